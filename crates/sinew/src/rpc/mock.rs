//! What mocks of generated services and clients are made of: a script per method.

use heapless::{Deque, Vec};

use super::client::CallError;
use super::message::Encode;
use super::server::{AnswerError, Cx, Responder, Stop, StreamCx, StreamIn, Writer};
use super::status::Status;

/// Plays answers for one method, one after another, and records what came in: up to `N` of each.
///
/// An error ends the call with its [`CallError::status`]; in a stream of answers that is the only
/// end, with [`Status::OK`] for a good one. Without an answer left, a call that needs one ends
/// with UNIMPLEMENTED, and a stream waits for more.
#[derive(Debug)]
pub struct Script<Q, R: Encode, const N: usize> {
    requests: Vec<Q, N>,
    unrecorded: usize,
    answers: Deque<Result<R, CallError>, N>,
    writer: Option<Writer<R>>,
}

impl<Q, R: Encode, const N: usize> Default for Script<Q, R, N> {
    fn default() -> Self {
        Script {
            requests: Vec::new(),
            unrecorded: 0,
            answers: Deque::new(),
            writer: None,
        }
    }
}

impl<Q: Clone, R: Encode, const N: usize> Script<Q, R, N> {
    /// Adds an answer behind the others; gives it back where there are `N` already.
    pub fn answer(&mut self, answer: Result<R, CallError>) -> Result<(), Result<R, CallError>> {
        self.answers.push_back(answer)
    }

    /// The requests, or the items of client streams, that came in so far.
    pub fn requests(&self) -> &[Q] {
        &self.requests
    }

    /// How many came in after `N` were recorded.
    pub fn unrecorded(&self) -> usize {
        self.unrecorded
    }

    /// How many answers have not been played.
    pub fn left(&self) -> usize {
        self.answers.len()
    }

    fn record(&mut self, request: &Q) {
        if self.requests.push(request.clone()).is_err() {
            self.unrecorded += 1;
        }
    }

    fn play(&mut self) -> Result<R, CallError> {
        self.answers
            .pop_front()
            .unwrap_or(Err(CallError::Status(Status::UNIMPLEMENTED)))
    }

    /// Plays the part of a client's reach.
    pub fn call(&mut self, request: &Q) -> Result<R, CallError> {
        self.record(request);
        self.play()
    }

    /// Handles a unary method.
    pub fn unary(&mut self, request: &Q) -> Result<R, Stop> {
        self.record(request);
        self.play().map_err(|error| error.status().into())
    }

    /// Handles a server stream; [`Script::poll`] plays its items. One call at a time.
    pub fn server_stream(&mut self, request: &Q, cx: Cx<'_, Writer<R>>) -> Result<(), Stop> {
        self.record(request);
        if self.writer.as_ref().is_some_and(Writer::is_open) {
            return Err(Status::RESOURCE_EXHAUSTED.into());
        }
        let (writer, later) = cx.defer()?;
        self.writer = Some(writer);
        Err(later)
    }

    /// Handles a client stream: the answer is played at its end.
    pub fn client_stream(
        &mut self,
        input: StreamIn<'_, Q>,
        cx: StreamCx<'_, Responder<R>>,
    ) -> Result<R, Stop> {
        match input {
            StreamIn::Item(item) => self.record(item),
            StreamIn::End => return self.play().map_err(|error| error.status().into()),
            StreamIn::Open | StreamIn::Closed(_) => {}
        }
        Err(cx.wait())
    }

    /// Handles streams in both directions: one answer is played per item.
    pub fn bidi(
        &mut self,
        input: StreamIn<'_, Q>,
        cx: StreamCx<'_, Writer<R>>,
    ) -> Result<(), Stop> {
        match input {
            StreamIn::Item(item) => {
                self.record(item);
                match self.answers.pop_front() {
                    Some(Ok(answer)) => Err(cx.send(&answer)),
                    Some(Err(error)) => Err(error.status().into()),
                    None => Err(cx.wait()),
                }
            }
            StreamIn::Open => Err(cx.wait()),
            StreamIn::End | StreamIn::Closed(_) => Ok(()),
        }
    }

    /// Plays at most one item of an open server stream; `true` where there may be more to do.
    pub fn poll(&mut self) -> bool {
        let (Some(writer), Some(answer)) = (&mut self.writer, self.answers.front()) else {
            return false;
        };
        let (sent, ends) = match answer {
            Ok(item) => (writer.send(item), false),
            Err(error) => (writer.finish(error.status()), true),
        };
        match sent {
            Err(AnswerError::Full) => return true,
            Ok(()) | Err(AnswerError::TooLarge) => {
                self.answers.pop_front();
                if ends {
                    self.writer = None;
                }
            }
            Err(AnswerError::Cancelled | AnswerError::Closed) => self.writer = None,
        }
        self.writer.is_some() && !self.answers.is_empty()
    }
}

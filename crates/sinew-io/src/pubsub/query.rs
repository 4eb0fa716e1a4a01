//! Queries: answers to one's own, and what a queryable answers with.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::Waker;
#[cfg(feature = "tokio")]
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sinew::link::Tx;
use sinew::pubsub::codec::{self, Consolidation, Encoding, Timestamp};
use sinew::pubsub::keyexpr::{KeyExpr, KeyExprError};
use sinew::pubsub::session::{Ended, Put, PutError, QueryId, Reply, RequestId, Session};

use super::core::Shared;
use super::key_expr;
use super::sample::OwnedSample;
use super::tables::Host;
use crate::lock;

/// One answer to a query.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A sample.
    Sample(OwnedSample),
    /// Somebody could not answer: his words, and what they are.
    Error {
        /// What the payload is, as Zenoh writes it.
        encoding: String,
        /// The words.
        payload: Vec<u8>,
    },
}

/// Answers that have arrived and were not looked at.
#[derive(Debug, Default)]
struct Letters {
    answers: VecDeque<Answer>,
    /// Bytes of all of them.
    bytes: usize,
    end: Option<Ended>,
    /// Answers for which there was no room.
    dropped: u64,
    /// A task that waits for one.
    task: Option<Waker>,
}

/// Where the driver puts answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Mailbox(Arc<(Mutex<Letters>, Condvar)>);

/// More that wait are dropped, and counted.
const MOST: usize = 65_536;
/// More bytes are dropped, of those that wait and of those that are kept to the end.
const BYTES: usize = 256 << 20;

impl Answer {
    /// Bytes that it takes.
    fn size(&self) -> usize {
        match self {
            Answer::Sample(sample) => sample.size(),
            Answer::Error { encoding, payload } => {
                size_of::<Answer>() + encoding.len() + payload.len()
            }
        }
    }
}

impl Letters {
    fn pop(&mut self) -> Option<Answer> {
        let answer = self.answers.pop_front()?;
        self.bytes -= answer.size();
        Some(answer)
    }
}

impl Mailbox {
    pub(super) fn put(&self, reply: &Reply<'_>) {
        let answer = match &reply.answer {
            codec::Reply::Sample { body, .. } => {
                Answer::Sample(OwnedSample::of(reply.key, reply.qos, true, body))
            }
            codec::Reply::Error {
                encoding, payload, ..
            } => Answer::Error {
                encoding: encoding.to_string(),
                payload: payload.to_vec(),
            },
        };
        let mut letters = lock(&self.0.0);
        let bytes = letters.bytes.saturating_add(answer.size());
        if letters.answers.len() < MOST && bytes <= BYTES {
            letters.bytes = bytes;
            letters.answers.push_back(answer);
            self.tell(letters);
        } else {
            letters.dropped += 1;
        }
    }

    pub(super) fn end(&self, how: Ended) {
        let mut letters = lock(&self.0.0);
        letters.end = Some(how);
        self.tell(letters);
    }

    fn tell(&self, mut letters: MutexGuard<'_, Letters>) {
        let task = letters.task.take();
        drop(letters);
        self.0.1.notify_one();
        task.inspect(Waker::wake_by_ref);
    }
}

/// The answers to a query, as they arrive; with consolidation `Latest` (also where nothing was chosen)
/// the newest of each key, at the end.
pub struct Replies {
    pub(super) shared: Arc<Shared>,
    pub(super) query: QueryId,
    pub(super) mailbox: Mailbox,
    pub(super) consolidation: Consolidation,
    pub(super) deadline: Instant,
    pub(super) newest: Newest,
    pub(super) end: Option<Ended>,
}

impl Replies {
    /// How it ended; `None` while answers can come.
    pub fn ended(&self) -> Option<Ended> {
        self.end
    }

    /// Answers for which there was no room: 65,536 wait, or 256 MiB, until somebody takes them out, and
    /// 256 MiB are kept to the end to find the newest of each key.
    pub fn dropped(&self) -> u64 {
        lock(&self.mailbox.0.0).dropped
    }

    /// What [`Replies::arrived`] waits for.
    #[cfg(feature = "tokio")]
    pub(super) fn poll_arrived(&mut self, cx: &Context<'_>) -> Poll<Option<Answer>> {
        let mut letters = lock(&self.mailbox.0.0);
        let answer = letters.pop();
        if answer.is_none() {
            let late = self.deadline <= Instant::now();
            self.end = letters.end.or(late.then_some(Ended::TimedOut));
            if self.end.is_none() {
                letters.task = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        Poll::Ready(answer)
    }

    fn arrived(&mut self) -> Option<Answer> {
        let (letters, come) = &*self.mailbox.0;
        let mut letters = lock(letters);
        loop {
            if let Some(answer) = letters.pop() {
                return Some(answer);
            }
            if let Some(how) = letters.end {
                self.end = Some(how);
                return None;
            }
            // The session ends queries by itself; this is for a driver that is gone.
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.end = Some(Ended::TimedOut);
                return None;
            }
            letters = come
                .wait_timeout(letters, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
    }
}

impl Replies {
    /// The next of what was kept until the end.
    pub(super) fn left(&mut self) -> Option<Answer> {
        // What was handed out already is kept to compare with only.
        if self.consolidation == Consolidation::Monotonic {
            return None;
        }
        let (_, sample) = self.newest.samples.pop_first()?;
        Some(Answer::Sample(sample))
    }

    /// What is to be handed out of an answer that has arrived.
    pub(super) fn consolidated(&mut self, answer: Answer) -> Option<Answer> {
        let Answer::Sample(sample) = answer else {
            return Some(answer);
        };
        let known = self.newest.samples.get(&sample.key);
        let newer = known.is_none_or(|old| is_newer(sample.timestamp, old.timestamp));
        match self.consolidation {
            Consolidation::None => return Some(Answer::Sample(sample)),
            Consolidation::Monotonic => {
                if newer {
                    let mark = OwnedSample {
                        payload: Vec::new(),
                        ..sample.clone()
                    };
                    self.newest.keep(mark);
                    return Some(Answer::Sample(sample));
                }
            }
            Consolidation::Auto | Consolidation::Latest => {
                if newer && !self.newest.keep(sample) {
                    lock(&self.mailbox.0.0).dropped += 1;
                }
            }
        }
        None
    }
}

/// The newest sample of each key.
#[derive(Default)]
pub(super) struct Newest {
    samples: BTreeMap<String, OwnedSample>,
    /// Bytes of all of them.
    bytes: usize,
}

impl Newest {
    /// Keeps a sample instead of the one with its key. `false`: there is no room for it.
    fn keep(&mut self, sample: OwnedSample) -> bool {
        let before = self.samples.get(&sample.key).map_or(0, OwnedSample::size);
        let bytes = self.bytes - before + sample.size();
        let has_room = bytes <= BYTES;
        if has_room {
            self.bytes = bytes;
            self.samples.insert(sample.key.clone(), sample);
        }
        has_room
    }
}

/// Whether `new` is later than what is known of its key. Without timestamps, the order of arrival
/// decides.
fn is_newer(new: Option<Timestamp>, old: Option<Timestamp>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => new.time >= old.time,
        _ => true,
    }
}

impl Iterator for Replies {
    type Item = Answer;

    fn next(&mut self) -> Option<Answer> {
        loop {
            if self.end.is_some() {
                return self.left();
            }
            let answer = self.arrived();
            if let Some(answer) = answer.and_then(|answer| self.consolidated(answer)) {
                return Some(answer);
            }
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        let mut core = self.shared.core();
        core.queries.remove(&self.query);
        core.session.forget(self.query);
    }
}

/// Answers one query, now or later, from any thread. Dropping it says that this was all.
pub struct Responder {
    pub(super) shared: Arc<Shared>,
    pub(super) request: RequestId,
    /// The session that asked.
    pub(super) opened: u32,
}

/// Why an answer was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyError {
    /// The key is no key expression.
    Key(KeyExprError),
    /// It could not be sent, or nobody waits for it any more.
    Put(PutError),
}

impl std::fmt::Display for ReplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplyError::Key(error) => error.fmt(f),
            ReplyError::Put(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplyError {}

impl Responder {
    /// Answers with a value of the queryable's own key, which then has no wildcard.
    pub fn reply(&self, payload: &[u8]) -> Result<(), ReplyError> {
        self.answer(None, &codec::Body::put(payload))
    }

    /// Answers with a value, or its absence, of this key, with options.
    pub fn reply_on(&self, key: &str, body: &codec::Body<'_>) -> Result<(), ReplyError> {
        let key = key_expr(key).map_err(ReplyError::Key)?;
        self.answer(Some(key), body)
    }

    fn answer(&self, key: Option<KeyExpr<'_>>, body: &codec::Body<'_>) -> Result<(), ReplyError> {
        let sent = self.shared.send(true, |session, tx, now| {
            self.attempt(session, tx, key, body, now)
        });
        sent.map(drop).map_err(ReplyError::Put)
    }

    /// Answers that there is no answer, and why.
    pub fn error(&self, encoding: Encoding<'_>, payload: &[u8]) -> Result<(), ReplyError> {
        let sent = self.shared.send(true, |session, tx, now| {
            self.attempt_error(session, tx, encoding, payload, now)
        });
        sent.map(drop).map_err(ReplyError::Put)
    }

    pub(super) fn attempt(
        &self,
        session: &mut Session<Host>,
        tx: &mut dyn Tx,
        key: Option<KeyExpr<'_>>,
        body: &codec::Body<'_>,
        now: sinew::time::Instant,
    ) -> Result<Put, PutError> {
        self.is_asked(session)?;
        session.reply(tx, self.request, key, body, now)?;
        Ok(Put::Sent)
    }

    pub(super) fn attempt_error(
        &self,
        session: &mut Session<Host>,
        tx: &mut dyn Tx,
        encoding: Encoding<'_>,
        payload: &[u8],
        now: sinew::time::Instant,
    ) -> Result<Put, PutError> {
        self.is_asked(session)?;
        session.reply_error(tx, self.request, encoding, payload, now)?;
        Ok(Put::Sent)
    }

    fn is_asked(&self, session: &Session<Host>) -> Result<(), PutError> {
        match session.stats().opened == self.opened {
            true => Ok(()),
            false => Err(PutError::NoSuch),
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let core = &mut *self.shared.core();
        core.unfinished.push((self.opened, self.request));
        core.finish_all();
    }
}

impl super::core::Core {
    /// Sends the ends of answers, as far as there are places.
    pub(super) fn finish_all(&mut self) {
        while let Some(&(opened, request)) = self.unfinished.last() {
            if self.session.stats().opened == opened {
                let now = self.clock.now();
                match self.session.finish(&mut *self.tx, request, now) {
                    Err(PutError::Full | PutError::Cut) => return,
                    _ => self.wake_by(now.after(self.batching)),
                }
            }
            self.unfinished.pop();
        }
    }
}

/// How long the driver of a query may be late.
pub(super) const GRACE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use sinew::pubsub::codec::{Body, Qos};

    use super::*;

    #[test]
    fn the_bytes_of_answers_that_wait_and_of_those_that_are_kept_are_bounded() {
        let mailbox = Mailbox::default();
        let large = vec![0; BYTES / 2 - 1000];
        let answer = |payload| codec::Reply::Sample {
            consolidation: Consolidation::Auto,
            body: Body::put(payload),
        };
        let put = |payload| {
            mailbox.put(&Reply {
                key: "demo/k",
                qos: Qos::DEFAULT,
                responder: None,
                answer: answer(payload),
            });
        };
        (0..3).for_each(|_| put(&large));
        put(b"small");
        let letters = &mut *lock(&mailbox.0.0);
        assert_eq!((letters.answers.len(), letters.dropped), (3, 1));
        let mut newest = Newest::default();
        for (key, has_room) in [("a", true), ("a", true), ("b", true), ("c", false)] {
            let sample = OwnedSample::of(key, Qos::DEFAULT, true, &Body::put(&large));
            assert_eq!(newest.keep(sample), has_room, "{key}");
            while letters.pop().is_some() {}
        }
        assert_eq!(letters.bytes, 0);
    }
}

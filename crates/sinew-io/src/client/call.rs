//! A call in flight, with messages as bytes: what typed streams, tools and bindings build on.

use std::time::Duration;

use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{CallError, Encode, Received, Status};
use sinew::time::Instant;

use super::{Client, End, Inner, Step, packet_len};
use crate::link::Link;

/// What happened to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallEvent<T> {
    /// An item of the server's stream.
    Item(T),
    /// The call is complete. With OK, the value is the response of a unary or client-stream
    /// method; of no meaning otherwise.
    Completed(Status, T),
}

/// The handle of a call. Dropping it abandons the call, see
/// [`CallHandle`](sinew::rpc::streams::CallHandle); [`RawCall::cancel`] tells the server.
pub struct RawCall<'c, L: Link, const CALLS: usize, const INBOX: usize> {
    pub(super) client: &'c Client<L, CALLS, INBOX>,
    pub(super) slot: usize,
}

impl<L: Link, const CALLS: usize, const INBOX: usize> RawCall<'_, L, CALLS, INBOX> {
    /// Sends an item of the client's stream. A full link is waited for until the call's time-out,
    /// then reported as `Full`; the item can be sent again. `Ended` where the call has ended: the
    /// next event says how.
    pub fn send<T: Encode + ?Sized>(&self, item: &T) -> Result<(), CallError> {
        self.client.inner.borrow_mut().send_item(self.slot, item)
    }

    /// Tells the server that the client's stream is complete. Doing so again does nothing.
    pub fn complete(&self) -> Result<(), CallError> {
        self.client.inner.borrow_mut().complete(self.slot)
    }

    /// Waits for the next event; `None` where nothing has happened for this long. The bytes are
    /// put into `message`. After the last event (`Completed` or an error): `Ended`.
    pub fn next_event(
        &self,
        message: &mut Vec<u8>,
        patience: Duration,
    ) -> Result<Option<CallEvent<()>>, CallError> {
        let mut inner = self.client.inner.borrow_mut();
        inner.refresh();
        let until = inner.now.after(patience);
        message.clear();
        inner.next(self.slot, until, |bytes| message.extend_from_slice(bytes))
    }

    /// Waits for the next event as long as the call lives.
    pub(super) fn next_with<T>(
        &self,
        read: impl FnMut(&[u8]) -> T,
    ) -> Result<CallEvent<T>, CallError> {
        let mut inner = self.client.inner.borrow_mut();
        inner.refresh();
        inner
            .next(self.slot, Instant::FAR, read)?
            .ok_or(CallError::DeadlineExceeded)
    }

    /// Ends the call and tells the server.
    pub fn cancel(self) {
        self.end(Status::CANCELLED);
    }

    /// Ends the call with a status for the server.
    pub(super) fn end(&self, status: Status) {
        let mut inner = self.client.inner.borrow_mut();
        inner.finish(self.slot, |engine, call, place| {
            engine.cancel(call, status, place)
        });
    }
}

impl<L: Link, const CALLS: usize, const INBOX: usize> Drop for RawCall<'_, L, CALLS, INBOX> {
    fn drop(&mut self) {
        let mut inner = self.client.inner.borrow_mut();
        inner.finish(self.slot, |engine, call, place| engine.abandon(call, place));
        if let Some(state) = inner.states.get_mut(self.slot) {
            state.call = None;
        }
    }
}

impl<L: Link, const CALLS: usize, const INBOX: usize> Inner<L, CALLS, INBOX> {
    fn send_item<T: Encode + ?Sized>(&mut self, slot: usize, item: &T) -> Result<(), CallError> {
        self.refresh();
        let state = self.states.get(slot).ok_or(CallError::Ended)?;
        let call = state.call.ok_or(CallError::Ended)?;
        let (deadline, min) = (self.now.after(state.timeout), packet_len(item));
        self.reserve(min, deadline, Some(&call))?;
        if !self.engine.is_open(&call) {
            let _ = sinew::link::Tx::commit(self.link.halves().0, 0);
            return Err(CallError::Ended);
        }
        self.send_reserved(min, |_, place| call.item(place, item))
    }

    fn complete(&mut self, slot: usize) -> Result<(), CallError> {
        self.refresh();
        let state = self.states.get(slot).ok_or(CallError::Ended)?;
        let call = state.call.ok_or(CallError::Ended)?;
        self.reserve(HEADER_MAX, self.now.after(state.timeout), Some(&call))?;
        self.send_reserved(HEADER_MAX, |engine, place| {
            Some(engine.complete(&call, place))
        })
    }

    /// The next event of a call, from its inbox or from the link.
    fn next<T>(
        &mut self,
        slot: usize,
        until: Instant,
        mut read: impl FnMut(&[u8]) -> T,
    ) -> Result<Option<CallEvent<T>>, CallError> {
        loop {
            let state = self.states.get_mut(slot).ok_or(CallError::Ended)?;
            let call = state.call.ok_or(CallError::Ended)?;
            if let Some(front) = state.inbox.front() {
                let last = state.inbox.len() == 1;
                let value = read(front);
                state.inbox.pop();
                if let (true, Some(End::Done(status, true))) = (last, state.end) {
                    state.end = Some(End::Told);
                    return Ok(Some(CallEvent::Completed(status, value)));
                }
                return Ok(Some(CallEvent::Item(value)));
            }
            match state.end.replace(End::Told) {
                None => state.end = None,
                Some(End::Done(status, _)) => {
                    return Ok(Some(CallEvent::Completed(status, read(&[]))));
                }
                Some(End::Failed(error)) => return Err(error),
                Some(End::Told) => return Err(CallError::Ended),
            }
            // The inbox is empty, so what comes now is read where it arrived.
            let step = self.step(Some(call.index()), |received| match received {
                Received::Item(item) => Ok(CallEvent::Item(read(item))),
                Received::Completed(status, response) => {
                    Ok(CallEvent::Completed(status, read(response)))
                }
                Received::Failed(status) => Err(CallError::Status(status)),
            });
            match step {
                Step::Own(result) => {
                    if !matches!(result, Ok(CallEvent::Item(_)))
                        && let Some(state) = self.states.get_mut(slot)
                    {
                        state.end = Some(End::Told);
                    }
                    return result.map(Some);
                }
                Step::Other => {}
                Step::Closed => self.closed(),
                Step::Wait(_) if self.now >= until => return Ok(None),
                Step::Wait(want) => self.sleep(want, until),
            }
        }
    }

    /// Ends a call on this side; what the engine wants to say leaves now or with the next step.
    fn finish(
        &mut self,
        slot: usize,
        say: impl FnOnce(&mut sinew::rpc::Client<CALLS>, &sinew::rpc::ClientCall, &mut [u8]) -> usize,
    ) {
        let Some(call) = self.states.get(slot).and_then(|state| state.call) else {
            return;
        };
        if self.answer_len > 0 {
            self.send_answer();
        }
        // Where an answer still waits for a place, the server is not told: it has a deadline of
        // its own.
        let mut unused = [0; HEADER_MAX];
        let free = self.answer_len == 0;
        let place = if free { &mut self.answer } else { &mut unused };
        let len = say(&mut self.engine, &call, place);
        if free && len > 0 {
            self.answer_len = len;
            self.send_answer();
        }
    }
}

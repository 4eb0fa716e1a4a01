//! A blocking client, driven inline in the caller's thread: no thread of its own, and no
//! allocation after its first calls.
//!
//! `&Client` is what generated clients are made over. Several streams and unary calls can be in
//! flight at the same time from one thread: while one is waited for, what arrives for the others
//! goes into their bounded inboxes. For several threads, give each its own client (a link each, so
//! that nothing is shared), or use the async client.

use std::cell::RefCell;
use std::time::Duration;

use sinew::link::{Rx, SendError, Tx};
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{
    self, CallError, ClientCall, ClientStats, DEFAULT_TIMEOUT, Encode, MethodId, Received, Status,
};
use sinew::time::Instant;

use crate::Clock;
use crate::link::{Link, Traffic, Want};

mod call;
pub(crate) mod state;
mod typed;

pub use call::{CallEvent, RawCall};
use state::{End, State};
pub use typed::{BidiStream, Caller, ClientStream, ServerStream};

/// A client over the link `L`, with up to `CALLS` calls in flight, each with an inbox of `INBOX`
/// bytes for what arrives while another is waited for.
pub struct Client<L, const CALLS: usize = 16, const INBOX: usize = 8192> {
    inner: RefCell<Inner<L, CALLS, INBOX>>,
    timeout: Duration,
}

impl<L: Link> Client<L> {
    /// A client on this channel, with the default capacities.
    pub fn new(link: L, channel: u32) -> Self {
        Client::with_capacities(link, channel)
    }
}

impl<L: Link, const CALLS: usize, const INBOX: usize> Client<L, CALLS, INBOX> {
    /// A client on this channel.
    pub fn with_capacities(link: L, channel: u32) -> Self {
        Client {
            inner: RefCell::new(Inner {
                link,
                engine: rpc::Client::new(channel, crate::random() as u32),
                clock: Clock::start(),
                now: Instant::START,
                states: (0..CALLS).map(|_| State::default()).collect(),
                owners: [None; CALLS],
                answer: [0; HEADER_MAX],
                answer_len: 0,
                overruns: 0,
            }),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Sets the time-out of calls that name none: 5 seconds at first.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// The same client with this time-out: for a unary or client-stream call until its response,
    /// for streams of the server until the next item.
    pub fn with_timeout(&self, timeout: Duration) -> Caller<'_, L, CALLS, INBOX> {
        Caller {
            client: self,
            timeout,
        }
    }

    /// A unary call with messages as bytes: the response is put into `response`.
    pub fn unary_raw(
        &self,
        method: MethodId,
        request: &[u8],
        response: &mut Vec<u8>,
        timeout: Duration,
    ) -> Result<(), CallError> {
        response.clear();
        self.inner
            .borrow_mut()
            .unary(method, request, timeout, |bytes| {
                response.extend_from_slice(bytes);
                Some(())
            })
    }

    /// Opens a call of any kind with its request as bytes (empty where the client streams).
    pub fn start(
        &self,
        method: MethodId,
        request: &[u8],
        timeout: Duration,
    ) -> Result<RawCall<'_, L, CALLS, INBOX>, CallError> {
        let slot = self
            .inner
            .borrow_mut()
            .start(method, Some(request), timeout)?;
        Ok(RawCall { client: self, slot })
    }

    /// Waits for a stream that the server opens unasked (wire reference, section Call ids); sends
    /// nothing.
    pub fn listen(
        &self,
        method: MethodId,
        timeout: Duration,
    ) -> Result<RawCall<'_, L, CALLS, INBOX>, CallError> {
        let slot = self
            .inner
            .borrow_mut()
            .start::<[u8]>(method, None, timeout)?;
        Ok(RawCall { client: self, slot })
    }

    /// What the engine has refused so far.
    pub fn stats(&self) -> ClientStats {
        *self.inner.borrow().engine.stats()
    }

    /// Calls ended because their inbox was full.
    pub fn overruns(&self) -> u32 {
        self.inner.borrow().overruns
    }

    /// What has passed over the link.
    pub fn traffic(&self) -> Traffic {
        self.inner.borrow().link.traffic()
    }

    /// Reaches the link, between two operations.
    pub fn with_link<T>(&self, f: impl FnOnce(&mut L) -> T) -> T {
        f(&mut self.inner.borrow_mut().link)
    }

    /// Gives the link back. Calls in flight are forgotten.
    pub fn into_link(self) -> L {
        self.inner.into_inner().link
    }
}

/// What one receive step came to.
enum Step<T> {
    /// A packet of the call that is waited for.
    Own(T),
    /// A packet of another call, or of none.
    Other,
    /// Nothing has arrived, or nothing can be taken up before something else is there.
    Wait(Want),
    /// The link is gone.
    Closed,
}

struct Inner<L, const CALLS: usize, const INBOX: usize> {
    link: L,
    engine: rpc::Client<CALLS>,
    clock: Clock,
    /// The time of the current operation: read when it starts and after each sleep.
    now: Instant,
    /// What is kept of a call between two looks of its handle. A unary call needs none.
    states: Vec<State<INBOX>>,
    /// For each call of the engine, its entry in `states`.
    owners: [Option<usize>; CALLS],
    /// The engine's answer to a packet (rare: an error), until the link has a place for it.
    answer: [u8; HEADER_MAX],
    answer_len: usize,
    overruns: u32,
}

impl<L: Link, const CALLS: usize, const INBOX: usize> Inner<L, CALLS, INBOX> {
    fn refresh(&mut self) {
        self.now = self.clock.now();
    }

    /// Calls a unary method; the response is decoded where it arrived.
    fn unary<Q: Encode + ?Sized, T>(
        &mut self,
        method: MethodId,
        request: &Q,
        timeout: Duration,
        mut decode: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<T, CallError> {
        let call = self.open(method, Some(request), timeout)?;
        let own = call.index();
        loop {
            let step = self.step(Some(own), |received| match received {
                Received::Completed(Status::OK, payload) => {
                    decode(payload).ok_or(CallError::Undecodable)
                }
                Received::Completed(status, _) | Received::Failed(status) => {
                    Err(CallError::Status(status))
                }
                Received::Item(_) => Err(CallError::Undecodable),
            });
            match step {
                Step::Own(result) => return result,
                Step::Other => {}
                Step::Wait(want) => {
                    self.sleep(want, Instant::FAR);
                    if !self.engine.is_open(&call) {
                        return Err(CallError::DeadlineExceeded);
                    }
                }
                Step::Closed => {
                    self.closed();
                    return Err(CallError::Closed);
                }
            }
        }
    }

    /// Opens a call that outlives this operation: its entry in `states`.
    fn start<Q: Encode + ?Sized>(
        &mut self,
        method: MethodId,
        request: Option<&Q>,
        timeout: Duration,
    ) -> Result<usize, CallError> {
        let free = self.states.iter().position(|state| state.call.is_none());
        let slot = free.ok_or(CallError::TooManyCalls)?;
        let call = match request {
            Some(_) => self.open(method, request, timeout)?,
            None => {
                self.refresh();
                self.engine.listen(method, timeout, self.now)?
            }
        };
        if let (Some(state), Some(owner)) =
            (self.states.get_mut(slot), self.owners.get_mut(call.index()))
        {
            state.open(call, timeout);
            *owner = Some(slot);
        }
        Ok(slot)
    }

    /// Opens a call and sends its request, as soon as there is a place for it.
    fn open<Q: Encode + ?Sized>(
        &mut self,
        method: MethodId,
        request: Option<&Q>,
        timeout: Duration,
    ) -> Result<ClientCall, CallError> {
        self.refresh();
        let start = self.now;
        let min = request.map_or(HEADER_MAX, |request| packet_len(request));
        if self.link.revives() {
            // A request must not leave by a connection that has ended meanwhile. Twice, because a
            // carrier may spare itself the first look after a packet.
            self.drain();
            self.drain();
        }
        self.reserve(min, start.after(timeout), None)?;
        let call = match self.engine.open(method, timeout, start) {
            Ok(call) => call,
            Err(error) => {
                let _ = self.link.halves().0.commit(0);
                return Err(error.into());
            }
        };
        if let Some(owner) = self.owners.get_mut(call.index()) {
            *owner = None;
        }
        let sent = self.send_reserved(min, |_, place| match request {
            Some(request) => call.request(place, request),
            None => call.open_stream(place),
        });
        if let Err(error) = sent {
            self.engine
                .cancel(&call, Status::CANCELLED, &mut [0; HEADER_MAX]);
            return Err(error);
        }
        Ok(call)
    }

    /// Waits until there is a place for a packet of `min` bytes. What arrives meanwhile is taken
    /// up, so that two full sides do not wait for each other.
    fn reserve(
        &mut self,
        min: usize,
        deadline: Instant,
        call: Option<&ClientCall>,
    ) -> Result<(), CallError> {
        loop {
            match self.link.halves().0.place(min) {
                Ok(_) => return Ok(()),
                Err(SendError::Full) => {}
                Err(SendError::Closed) => {
                    self.closed();
                    if !self.link.revives() {
                        return Err(CallError::Closed);
                    }
                }
                Err(error) => return Err(error.into()),
            }
            self.drain();
            if let Some(call) = call
                && !self.engine.is_open(call)
            {
                return Err(CallError::Ended);
            }
            if self.now >= deadline {
                let revives = self.link.revives();
                return Err(if revives {
                    CallError::Closed
                } else {
                    CallError::Full
                });
            }
            self.sleep(Want::Place, deadline);
        }
    }

    /// Fills the reserved place and sends it.
    fn send_reserved(
        &mut self,
        min: usize,
        fill: impl FnOnce(&mut rpc::Client<CALLS>, &mut [u8]) -> Option<usize>,
    ) -> Result<(), CallError> {
        let tx = self.link.halves().0;
        let len = fill(&mut self.engine, tx.place(min)?);
        tx.commit(len.unwrap_or(0))?;
        tx.flush();
        len.map(drop).ok_or(CallError::TooLarge)
    }

    /// Takes up what has arrived, up to a bound.
    fn drain(&mut self) {
        for _ in 0..64 {
            match self.step(None, |_| ()) {
                Step::Own(()) | Step::Other => {}
                Step::Wait(_) => return,
                Step::Closed => return self.closed(),
            }
        }
    }

    /// One receive step. A packet of the call with the engine's index `own` goes to `take`.
    fn step<T>(&mut self, own: Option<usize>, take: impl FnOnce(Received<'_>) -> T) -> Step<T> {
        if self.answer_len > 0 && !self.send_answer() {
            return Step::Wait(Want::Place);
        }
        let rx = self.link.halves().1;
        let packet = match rx.peek() {
            Ok(Some(packet)) => packet,
            Ok(None) => return Step::Wait(Want::Packet),
            Err(_) => return Step::Closed,
        };
        let (len, event) = self.engine.handle(packet, &mut self.answer, self.now);
        self.answer_len = len;
        let mut step = Step::Other;
        if let Some(event) = event {
            let index = event.call.index();
            if own == Some(index) {
                step = Step::Own(take(event.received));
            } else if let Some(slot) = self.owners.get(index).copied().flatten()
                && let Some(state) = self.states.get_mut(slot)
                && state.put(&event).is_err()
            {
                self.overruns = self.overruns.wrapping_add(1);
                let status = Status::RESOURCE_EXHAUSTED;
                self.answer_len = self.engine.cancel(&event.call, status, &mut self.answer);
            }
        }
        rx.release();
        if self.answer_len > 0 {
            self.send_answer();
        }
        step
    }

    /// Sends the engine's answer, if there is a place.
    fn send_answer(&mut self) -> bool {
        let tx = self.link.halves().0;
        let answer = self.answer.get(..self.answer_len).unwrap_or_default();
        match tx.place(answer.len()) {
            Ok(place) => {
                if let Some(front) = place.get_mut(..answer.len()) {
                    front.copy_from_slice(answer);
                }
                let _ = tx.commit(answer.len());
                tx.flush();
            }
            Err(SendError::Full) => return false,
            // The link says so again on the next receive step.
            Err(_) => {}
        }
        self.answer_len = 0;
        true
    }

    /// Sleeps until there may be something to do, at the latest until `until`, then ends the calls
    /// whose time is up.
    fn sleep(&mut self, want: Want, until: Instant) {
        let until = until.min(self.engine.deadline());
        let timeout = (until != Instant::FAR).then(|| until.since(self.now));
        self.link.wait(want, timeout);
        self.refresh();
        while self.now >= self.engine.deadline() {
            // Where an answer still waits for a place, the server is not told: it has a deadline
            // of its own.
            let mut unused = [0; HEADER_MAX];
            let place = if self.answer_len == 0 {
                &mut self.answer
            } else {
                &mut unused
            };
            let Some((call, len)) = self.engine.expire(place, self.now) else {
                return;
            };
            if self.answer_len == 0 {
                self.answer_len = len;
                self.send_answer();
            }
            if let Some(slot) = self.owners.get(call.index()).copied().flatten()
                && let Some(state) = self.states.get_mut(slot)
            {
                state.end = Some(End::Failed(CallError::DeadlineExceeded));
            }
        }
    }

    /// The link is gone: every call ends.
    fn closed(&mut self) {
        self.engine.link_down();
        self.answer_len = 0;
        for state in &mut self.states {
            state.end.get_or_insert(End::Failed(CallError::Closed));
        }
        self.link.lost();
    }
}

/// At least as long as the packet around this message, and no longer than needed to be sure.
pub(crate) fn packet_len<T: Encode + ?Sized>(message: &T) -> usize {
    let len = if T::MAX_LEN <= 128 {
        T::MAX_LEN
    } else {
        message.encoded_len()
    };
    HEADER_MAX.saturating_add(len)
}

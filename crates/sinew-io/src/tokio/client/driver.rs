//! What the tasks of one client share, and the task that drives it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use ::tokio::sync::Notify;
use sinew::link::{Rx, SendError, Tx};
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{self, CallError, ClientCall, Encode, Event, MethodId, Status};
use sinew::time::Instant;

use crate::client::packet_len;
use crate::client::state::{End, State};
use crate::tokio::after;
use crate::{Clock, lock};

/// Calls in flight over one client.
pub(super) const CALLS: usize = 64;
/// Bytes that wait for one call.
const INBOX: usize = 8192;
/// Packets taken up in a row before other tasks get their turn.
const BURST: usize = 64;

pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) senders: Arc<Senders>,
    pub(super) inner: Mutex<Inner>,
}

/// What the mutex guards: held to take, fill and publish a place, and to look; never across an
/// await.
pub(super) struct Inner {
    tx: Box<dyn Tx + Send>,
    engine: rpc::Client<CALLS>,
    pub(super) states: Vec<(State<INBOX>, Option<Waker>)>,
    owners: [Option<usize>; CALLS],
    answer: [u8; HEADER_MAX],
    answer_len: usize,
    pub(super) closed: bool,
    senders: Arc<Senders>,
    pub(super) driver: Option<Waker>,
    /// When the driver wakes by itself.
    timer: Instant,
}

impl Shared {
    pub(super) fn new(tx: Box<dyn Tx + Send>, channel: u32) -> Shared {
        let senders = Arc::<Senders>::default();
        Shared {
            clock: Clock::start(),
            inner: Mutex::new(Inner::new(tx, channel, senders.clone())),
            senders,
        }
    }
}

impl Inner {
    fn new(tx: Box<dyn Tx + Send>, channel: u32, senders: Arc<Senders>) -> Inner {
        Inner {
            tx,
            engine: rpc::Client::new(channel, crate::random() as u32),
            states: (0..CALLS).map(|_| Default::default()).collect(),
            owners: [None; CALLS],
            answer: [0; HEADER_MAX],
            answer_len: 0,
            closed: false,
            senders,
            driver: None,
            timer: Instant::FAR,
        }
    }

    /// The call of this slot, if it has not ended.
    pub(super) fn call(&self, slot: usize) -> Result<ClientCall, CallError> {
        let call = self.states.get(slot).and_then(|(state, _)| state.call);
        call.filter(|call| self.engine.is_open(call))
            .ok_or(CallError::Ended)
    }

    /// Takes a place in hand. Where that is refused as `Full`, the senders are woken later.
    pub(super) fn reserve(&mut self, min: usize) -> Result<(), CallError> {
        if self.closed {
            return Err(CallError::Closed);
        }
        let reserved = self.tx.place(min).map(drop);
        if reserved == Err(SendError::Full) {
            self.tx.arm(&self.senders.clone().into());
        }
        Ok(reserved?)
    }

    /// Fills the reserved place and sends it.
    pub(super) fn send(
        &mut self,
        min: usize,
        fill: impl FnOnce(&mut rpc::Client<CALLS>, &mut [u8]) -> Option<usize>,
    ) -> Result<(), CallError> {
        let len = fill(&mut self.engine, self.tx.place(min)?);
        self.tx.commit(len.unwrap_or(0))?;
        self.tx.flush();
        len.map(drop).ok_or(CallError::TooLarge)
    }

    /// Opens a call if there is a place for its request, which is encoded there: the call's entry
    /// in `states`. `None` is a call without a message: the client streams.
    pub(super) fn open<Q: Encode + ?Sized>(
        &mut self,
        method: MethodId,
        request: Option<&Q>,
        timeout: Duration,
        now: Instant,
    ) -> Result<usize, CallError> {
        let Some(slot) = self
            .states
            .iter()
            .position(|(state, _)| state.call.is_none())
        else {
            return Err(CallError::TooManyCalls);
        };
        let min = request.map_or(HEADER_MAX, packet_len);
        self.reserve(min)?;
        let call = match self.engine.open(method, timeout, now) {
            Ok(call) => call,
            Err(error) => {
                let _ = self.tx.commit(0);
                return Err(error.into());
            }
        };
        let sent = self.send(min, |_, place| match request {
            Some(request) => call.request(place, request),
            None => call.open_stream(place),
        });
        if let Err(error) = sent {
            self.engine
                .cancel(&call, Status::CANCELLED, &mut [0; HEADER_MAX]);
            return Err(error);
        }
        if let (Some((state, _)), Some(owner)) =
            (self.states.get_mut(slot), self.owners.get_mut(call.index()))
        {
            state.open(call, timeout);
            *owner = Some(slot);
        }
        if now.after(timeout) < self.timer
            && let Some(driver) = &self.driver
        {
            driver.wake_by_ref();
        }
        Ok(slot)
    }

    fn send_answer(&mut self) -> bool {
        let answer = self.answer.get(..self.answer_len).unwrap_or_default();
        if answer.is_empty() {
            return true;
        }
        match self.tx.place(answer.len()) {
            Ok(place) => {
                if let Some(front) = place.get_mut(..answer.len()) {
                    front.copy_from_slice(answer);
                }
                let _ = self.tx.commit(answer.len());
                self.tx.flush();
            }
            Err(SendError::Full) => return false,
            // The receiving half says so as well.
            Err(_) => {}
        }
        self.answer_len = 0;
        true
    }

    /// Lets the engine say something now or, while the link is full, with the next packet.
    pub(super) fn say(&mut self, what: impl FnOnce(&mut rpc::Client<CALLS>, &mut [u8]) -> usize) {
        self.send_answer();
        // Where an answer still waits for a place, the server is not told: it has a deadline of
        // its own.
        let mut unused = [0; HEADER_MAX];
        let free = self.answer_len == 0;
        let len = what(
            &mut self.engine,
            if free { &mut self.answer } else { &mut unused },
        );
        if free {
            self.answer_len = len;
            self.send_answer();
        }
    }

    /// Puts what has arrived where its task finds it: the task to wake.
    fn deliver(&mut self, event: &Event<'_>) -> Option<Waker> {
        let slot = self.owners.get(event.call.index()).copied().flatten()?;
        let (state, waker) = self.states.get_mut(slot)?;
        let waker = waker.take();
        if state.put(event).is_err() {
            let status = Status::RESOURCE_EXHAUSTED;
            self.say(|engine, place| engine.cancel(&event.call, status, place));
        }
        waker
    }

    /// Ends the calls whose time is up; returns the tasks to wake.
    fn expire(&mut self, now: Instant) -> Vec<Waker> {
        let mut woken = Vec::new();
        while now >= self.engine.deadline() {
            let mut expired: Option<ClientCall> = None;
            self.say(|engine, place| {
                engine.expire(place, now).map_or(0, |(call, len)| {
                    expired = Some(call);
                    len
                })
            });
            let owner = expired.and_then(|call| self.owners.get(call.index()).copied().flatten());
            if let Some((state, waker)) = owner.and_then(|slot| self.states.get_mut(slot)) {
                state.end = Some(End::Failed(CallError::DeadlineExceeded));
                woken.extend(waker.take());
            }
        }
        woken
    }

    fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        self.engine.link_down();
        let mut woken = vec![Waker::from(self.senders.clone())];
        for (state, waker) in &mut self.states {
            state.end.get_or_insert(End::Failed(CallError::Closed));
            woken.extend(waker.take());
        }
        woken
    }
}

/// Everybody who waits for a place: tasks that send, each for as long as it does, and the driver.
#[derive(Default)]
pub(super) struct Senders {
    pub(super) tasks: Notify,
    driver: Mutex<Option<Waker>>,
}

impl Wake for Senders {
    fn wake(self: Arc<Self>) {
        let driver = lock(&self.driver).take();
        driver.inspect(Waker::wake_by_ref);
        self.tasks.notify_waiters();
    }
}

/// The driver: receives, sorts, and ends calls at their deadline.
pub(super) async fn drive(shared: &Shared, mut rx: Box<dyn Rx + Send>) {
    let mut timer = pin!(::tokio::time::sleep(Duration::ZERO));
    poll_fn(|cx| {
        let now = shared.clock.now();
        // Unless something is armed, the burst has ended before the packets did.
        let mut armed = false;
        for _ in 0..BURST {
            let mut inner = lock(&shared.inner);
            if inner.closed {
                return Poll::Ready(());
            }
            if !inner.send_answer() {
                *lock(&inner.senders.driver) = Some(cx.waker().clone());
                let senders = inner.senders.clone().into();
                inner.tx.arm(&senders);
                armed = true;
                break;
            }
            let packet = match rx.peek() {
                Ok(Some(packet)) => packet,
                Ok(None) => {
                    drop(inner);
                    rx.arm(cx.waker());
                    armed = true;
                    break;
                }
                Err(_) => return Poll::Ready(()),
            };
            let Inner {
                engine,
                answer,
                answer_len,
                ..
            } = &mut *inner;
            let (len, event) = engine.handle(packet, answer, now);
            *answer_len = len;
            let waker = event.and_then(|event| inner.deliver(&event));
            drop(inner);
            rx.release();
            waker.inspect(Waker::wake_by_ref);
        }
        if !armed {
            cx.waker().wake_by_ref();
        }
        let mut inner = lock(&shared.inner);
        let woken = inner.expire(now);
        inner.timer = inner.engine.deadline();
        inner.driver = Some(cx.waker().clone());
        let next = inner.timer;
        drop(inner);
        woken.iter().for_each(Waker::wake_by_ref);
        if next != Instant::FAR {
            timer.as_mut().reset(after(next.since(now)));
            if timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await;
    let woken = lock(&shared.inner).close();
    woken.iter().for_each(Waker::wake_by_ref);
}

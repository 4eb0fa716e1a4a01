//! A client that many tasks share; one task drives it.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use sinew::link::{Rx, SendError, Tx};
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{
    self, AsyncBidiStreaming, AsyncClientStreaming, AsyncServerStreaming, AsyncUnary, CallError,
    ClientCall, DEFAULT_TIMEOUT, Decode, Encode, Event, Method, MethodId, Status,
};
use sinew::time::Instant;

use super::after;
use crate::client::state::{End, State};
use crate::{Clock, lock};

/// Calls in flight over one client.
const CALLS: usize = 64;
/// Bytes that wait for one call.
const INBOX: usize = 8192;
/// Packets taken up in a row before other tasks get their turn.
const BURST: usize = 64;

/// A client for any number of tasks: cloned freely, `&AsyncClient` is what generated async clients
/// are made over. Dropping a call's future or handle cancels the call. When the last clone is
/// dropped, the link closes.
#[derive(Clone)]
pub struct AsyncClient {
    alive: Arc<Alive>,
    timeout: Duration,
}

/// Closes the link when the last client goes.
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        let mut inner = lock(&self.0.inner);
        inner.closed = true;
        let driver = inner.driver.take();
        drop(inner);
        driver.inspect(Waker::wake_by_ref);
    }
}

struct Shared {
    clock: Clock,
    inner: Mutex<Inner>,
}

/// What the mutex guards: held to take, fill and publish a place, and to look; never across an
/// await.
struct Inner {
    tx: Box<dyn Tx + Send>,
    engine: rpc::Client<CALLS>,
    states: Vec<(State<INBOX>, Option<Waker>)>,
    owners: [Option<usize>; CALLS],
    answer: [u8; HEADER_MAX],
    answer_len: usize,
    closed: bool,
    /// Tasks that wait for a place.
    senders: Arc<Senders>,
    driver: Option<Waker>,
    /// When the driver wakes by itself.
    timer: Instant,
}

impl AsyncClient {
    /// A client over these halves. Its driver is a task of the current runtime; `keep` is dropped
    /// with the link.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn over(
        tx: Box<dyn Tx + Send>,
        rx: Box<dyn Rx + Send>,
        keep: Option<Box<dyn Send>>,
        channel: u32,
    ) -> AsyncClient {
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            inner: Mutex::new(Inner {
                tx,
                engine: rpc::Client::new(channel, crate::client::seed()),
                states: (0..CALLS).map(|_| Default::default()).collect(),
                owners: [None; CALLS],
                answer: [0; HEADER_MAX],
                answer_len: 0,
                closed: false,
                senders: Arc::default(),
                driver: None,
                timer: Instant::FAR,
            }),
        });
        let driven = shared.clone();
        ::tokio::spawn(async move {
            drive(&driven, rx).await;
            drop(keep);
        });
        AsyncClient {
            alive: Arc::new(Alive(shared)),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The same client with this time-out: for a unary or client-stream call until its response,
    /// for streams of the server until the next item.
    pub fn with_timeout(&self, timeout: Duration) -> AsyncClient {
        AsyncClient {
            alive: self.alive.clone(),
            timeout,
        }
    }

    /// Opens a call; the request is bytes already, so that no message is held across an await.
    async fn start<M: Method>(self, request: Vec<u8>) -> Result<AsyncCall<M>, CallError> {
        let shared = &self.alive.0;
        let open = poll_fn(|cx| {
            let mut inner = lock(&shared.inner);
            let now = shared.clock.now();
            inner.open(cx, M::ID, &request, self.timeout, now)
        });
        let opened = ::tokio::time::timeout(self.timeout, open).await;
        let slot = opened.unwrap_or(Err(CallError::Full))?;
        Ok(AsyncCall {
            client: self,
            slot,
            method: PhantomData,
        })
    }
}

impl Inner {
    /// Waits for a place; it is in hand when this is ready.
    fn reserve(&mut self, cx: &mut Context<'_>, min: usize) -> Poll<Result<(), CallError>> {
        if self.closed {
            return Poll::Ready(Err(CallError::Closed));
        }
        match self.tx.place(min) {
            Ok(_) => Poll::Ready(Ok(())),
            Err(SendError::Full) => {
                self.wait_for_place(cx);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    /// Wakes this task, and those that wait already, when there is a place.
    fn wait_for_place(&mut self, cx: &mut Context<'_>) {
        let mut waiting = lock(&self.senders.0);
        if !waiting.iter().any(|other| other.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        drop(waiting);
        self.tx.arm(&self.senders.clone().into());
    }

    /// Fills the reserved place and sends it.
    fn send(
        &mut self,
        min: usize,
        fill: impl FnOnce(&mut rpc::Client<CALLS>, &mut [u8]) -> Option<usize>,
    ) -> Result<(), CallError> {
        let len = fill(&mut self.engine, self.tx.place(min)?);
        self.tx.commit(len.unwrap_or(0))?;
        self.tx.flush();
        len.map(drop).ok_or(CallError::TooLarge)
    }

    fn open(
        &mut self,
        cx: &mut Context<'_>,
        method: MethodId,
        request: &[u8],
        timeout: Duration,
        now: Instant,
    ) -> Poll<Result<usize, CallError>> {
        let Some(slot) = self
            .states
            .iter()
            .position(|(state, _)| state.call.is_none())
        else {
            return Poll::Ready(Err(CallError::TooManyCalls));
        };
        let min = HEADER_MAX + request.len();
        std::task::ready!(self.reserve(cx, min))?;
        let call = match self.engine.open(method, timeout, now) {
            Ok(call) => call,
            Err(error) => {
                let _ = self.tx.commit(0);
                return Poll::Ready(Err(error.into()));
            }
        };
        if let Err(error) = self.send(min, |_, place| call.request(place, request)) {
            self.engine
                .cancel(&call, Status::CANCELLED, &mut [0; HEADER_MAX]);
            return Poll::Ready(Err(error));
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
        Poll::Ready(Ok(slot))
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
    fn say(&mut self, what: impl FnOnce(&mut rpc::Client<CALLS>, &mut [u8]) -> usize) {
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
        let mut woken = std::mem::take(&mut *lock(&self.senders.0));
        for (state, waker) in &mut self.states {
            state.end.get_or_insert(End::Failed(CallError::Closed));
            woken.extend(waker.take());
        }
        woken
    }
}

/// Everybody who waits for a place.
#[derive(Default)]
struct Senders(Mutex<Vec<Waker>>);

impl Wake for Senders {
    fn wake(self: Arc<Self>) {
        let all = std::mem::take(&mut *lock(&self.0));
        all.iter().for_each(Waker::wake_by_ref);
    }
}

/// The driver: receives, sorts, and ends calls at their deadline.
async fn drive(shared: &Shared, mut rx: Box<dyn Rx + Send>) {
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
                inner.wait_for_place(cx);
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

/// The handle of a call: items out and in, as far as its method has them. Dropping it cancels the
/// call.
pub struct AsyncCall<M> {
    client: AsyncClient,
    slot: usize,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> AsyncCall<M> {
    /// Sends an item of the client's stream. A full link is waited for until the call's time-out,
    /// then reported as `Full`; the item can be sent again.
    pub fn send(
        &mut self,
        item: &M::Request,
    ) -> impl Future<Output = Result<(), CallError>> + Send {
        let item = bytes_of(item);
        self.act(HEADER_MAX + item.len(), move |_, call, place| {
            call.item(place, &item[..])
        })
    }

    /// Tells the server that the client's stream is complete.
    pub fn complete(&mut self) -> impl Future<Output = Result<(), CallError>> + Send {
        self.act(HEADER_MAX, |engine, call, place| {
            Some(engine.complete(call, place))
        })
    }

    async fn act(
        &mut self,
        min: usize,
        mut fill: impl FnMut(&mut rpc::Client<CALLS>, &ClientCall, &mut [u8]) -> Option<usize>,
    ) -> Result<(), CallError> {
        let slot = self.slot;
        let act = poll_fn(|cx| {
            let mut inner = lock(&self.client.alive.0.inner);
            let call = inner.call(slot)?;
            std::task::ready!(inner.reserve(cx, min))?;
            Poll::Ready(inner.send(min, |engine, place| fill(engine, &call, place)))
        });
        let done = ::tokio::time::timeout(self.client.timeout, act).await;
        done.unwrap_or(Err(CallError::Full))
    }

    /// The next item; `None` after the last one, where the stream ended with OK. Any other end is
    /// an error.
    pub async fn next(&mut self) -> Result<Option<M::Response>, CallError> {
        match self.event().await? {
            (Some(Status::OK), _) => Ok(None),
            (Some(status), _) => Err(CallError::Status(status)),
            (None, item) => item.map(Some).ok_or(CallError::Undecodable),
        }
    }

    /// Completes the client's stream and waits for the response.
    pub async fn finish_and_wait(mut self) -> Result<M::Response, CallError> {
        match self.complete().await {
            Ok(()) | Err(CallError::Ended) => self.response().await,
            Err(error) => Err(error),
        }
    }

    /// Ends the call and tells the server: the same as dropping it.
    pub fn cancel(self) {}

    async fn response(&mut self) -> Result<M::Response, CallError> {
        match self.event().await? {
            (Some(Status::OK), response) => response.ok_or(CallError::Undecodable),
            (Some(status), _) => Err(CallError::Status(status)),
            (None, _) => Err(CallError::Undecodable),
        }
    }

    /// An item, or the final status with the response.
    fn event(
        &mut self,
    ) -> impl Future<Output = Result<(Option<Status>, Option<M::Response>), CallError>> + Send {
        let slot = self.slot;
        poll_fn(move |cx| {
            let mut inner = lock(&self.client.alive.0.inner);
            let (state, waker) = inner.states.get_mut(slot).ok_or(CallError::Ended)?;
            Poll::Ready(if let Some(front) = state.inbox.front() {
                let message = M::Response::decode(front);
                state.inbox.pop();
                match state.end {
                    Some(End::Done(status, true)) if state.inbox.is_empty() => {
                        state.end = Some(End::Told);
                        Ok((Some(status), message))
                    }
                    _ => Ok((None, message)),
                }
            } else {
                match state.end.replace(End::Told) {
                    None => {
                        state.end = None;
                        *waker = Some(cx.waker().clone());
                        return Poll::Pending;
                    }
                    Some(End::Done(status, _)) => Ok((Some(status), M::Response::decode(&[]))),
                    Some(End::Failed(error)) => Err(error),
                    Some(End::Told) => Err(CallError::Ended),
                }
            })
        })
    }
}

impl Inner {
    /// The call of this slot, if it has not ended.
    fn call(&self, slot: usize) -> Result<ClientCall, CallError> {
        let call = self.states.get(slot).and_then(|(state, _)| state.call);
        call.filter(|call| self.engine.is_open(call))
            .ok_or(CallError::Ended)
    }
}

impl<M> Drop for AsyncCall<M> {
    fn drop(&mut self) {
        let mut inner = lock(&self.client.alive.0.inner);
        if let Ok(call) = inner.call(self.slot) {
            inner.say(|engine, place| engine.cancel(&call, Status::CANCELLED, place));
        }
        if let Some((state, waker)) = inner.states.get_mut(self.slot) {
            state.call = None;
            *waker = None;
        }
    }
}

fn bytes_of<T: Encode>(message: &T) -> Vec<u8> {
    let mut bytes = vec![0; message.encoded_len()];
    message.encode(&mut bytes);
    bytes
}

impl<M: Method> AsyncUnary<M> for &AsyncClient {
    fn unary(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<M::Response, CallError>> + Send {
        let call = self.clone().start::<M>(bytes_of(request));
        async move { call.await?.response().await }
    }
}

impl<M: Method> AsyncServerStreaming<M> for &AsyncClient {
    type Stream = AsyncCall<M>;

    fn server_stream(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<AsyncCall<M>, CallError>> + Send {
        self.clone().start(bytes_of(request))
    }
}

impl<M: Method> AsyncClientStreaming<M> for &AsyncClient {
    type Stream = AsyncCall<M>;

    fn client_stream(&mut self) -> impl Future<Output = Result<AsyncCall<M>, CallError>> + Send {
        self.clone().start(Vec::new())
    }
}

impl<M: Method> AsyncBidiStreaming<M> for &AsyncClient {
    type Stream = AsyncCall<M>;

    fn bidi(&mut self) -> impl Future<Output = Result<AsyncCall<M>, CallError>> + Send {
        self.clone().start(Vec::new())
    }
}

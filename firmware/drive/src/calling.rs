//! Calling: what generated clients are made over, in an image without tasks.
//!
//! Several calls can be open at the same time. While one is waited for, what arrives for the others goes into
//! their bounded inboxes; what does not fit ends its call with [`CallError::Overrun`]. Every wait ends: with an
//! answer, at the deadline of the call, or with the link. Words are those of `sinew_io::Client`.

use core::cell::{RefCell, RefMut};
use core::marker::PhantomData;
use core::task::Waker;
use core::time::Duration;

use sinew::link::{Rx, SendError, Tx};
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::streams::{CallHandle, ItemReader, ItemSender, ResponseReader};
use sinew::rpc::{
    BidiStreaming, CallError, Client, ClientCall, ClientStreaming, DEFAULT_TIMEOUT, Decode, Encode,
    Event, Inbox, Method, MethodId, Received, ServerStreaming, Status, Unary,
};
use sinew::time::Instant;

use crate::serving::Renew;

/// What keeps a caller going while it waits: the two closures of [`run`](crate::run), as a type.
pub trait Pace {
    /// Takes back what woke the core, looks at links that want it, and gives the time.
    fn look(&mut self) -> Instant;
    /// Waits for an interrupt, unless one has come since `look`.
    fn sleep(&mut self);
}

/// How a call has ended.
#[derive(Clone, Copy)]
enum Ending {
    /// Whether the last message in the inbox is the response.
    Done(Status, bool),
    Failed(CallError),
}

/// An open call, until its handle is dropped.
struct Open<const INBOX: usize> {
    call: ClientCall,
    inbox: Inbox<INBOX>,
    ending: Option<Ending>,
}

impl<const INBOX: usize> Open<INBOX> {
    /// Keeps what has arrived; where it does not fit, the call has failed.
    fn put(&mut self, event: &Event<'_>) -> Result<(), CallError> {
        let kept = match event.received {
            Received::Item(item) => self.inbox.push(item),
            Received::Completed(status, response) => {
                self.ending = Some(Ending::Done(status, !response.is_empty()));
                match response {
                    [] => Ok(()),
                    response => self.inbox.push(response),
                }
            }
            Received::Failed(status) => {
                self.ending = Some(Ending::Failed(CallError::Status(status)));
                Ok(())
            }
        };
        kept.map_err(|_| {
            self.ending = Some(Ending::Failed(CallError::Overrun));
            CallError::Overrun
        })
    }
}

/// Where an open call is kept. Its index in the engine is its own only as long as it is open: of a call that has
/// ended the handle may still be held, and the index be another's.
fn owner<'c, const INBOX: usize>(
    calls: &'c mut [Option<Open<INBOX>>],
    call: &ClientCall,
) -> Option<(usize, &'c mut Open<INBOX>)> {
    let calls = calls.iter_mut().enumerate();
    let mut kept = calls.filter_map(|(slot, open)| Some((slot, open.as_mut()?)));
    kept.find(|(_, open)| open.ending.is_none() && open.call.index() == call.index())
}

struct Inner<T, R, P, const CALLS: usize, const INBOX: usize> {
    tx: T,
    rx: R,
    pace: P,
    client: Client<CALLS>,
    calls: [Option<Open<INBOX>>; CALLS],
    /// What the server is to be told, until the link has a place for it.
    owed: [u8; HEADER_MAX],
    owed_len: usize,
}

/// A caller over the link with these halves, with up to `CALLS` calls open, each with an inbox of `INBOX` bytes: a
/// message takes its length and 2. A call that has ended counts until its handle is dropped.
pub struct Caller<T, R, P, const CALLS: usize, const INBOX: usize> {
    inner: RefCell<Inner<T, R, P, CALLS, INBOX>>,
    timeout: Duration,
}

impl<T: Tx + Renew, R: Rx + Renew, P: Pace, const CALLS: usize, const INBOX: usize>
    Caller<T, R, P, CALLS, INBOX>
{
    /// A caller on `channel`; `seed` is a number that differs from start to start, so that answers to an earlier
    /// life are not taken for those of this one.
    pub const fn new(tx: T, rx: R, pace: P, channel: u32, seed: u32) -> Self {
        Caller {
            inner: RefCell::new(Inner {
                tx,
                rx,
                pace,
                client: Client::new(channel, seed),
                calls: [const { None }; CALLS],
                owed: [0; HEADER_MAX],
                owed_len: 0,
            }),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Sets the time-out: for a unary or client-stream call until its response, for streams of the server until
    /// the next item.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Nobody else has it: each use ends before it returns, and no handler calls.
    fn inner(&self) -> Result<RefMut<'_, Inner<T, R, P, CALLS, INBOX>>, CallError> {
        self.inner.try_borrow_mut().map_err(|_| CallError::Closed)
    }

    fn start<M: Method>(
        &self,
        request: Option<&M::Request>,
    ) -> Result<Handle<'_, Self, M>, CallError> {
        let slot = self.inner()?.start(M::ID, request, self.timeout)?;
        Ok(Handle {
            caller: self,
            slot,
            method: PhantomData,
        })
    }
}

impl<T: Tx + Renew, R: Rx + Renew, P: Pace, const CALLS: usize, const INBOX: usize>
    Inner<T, R, P, CALLS, INBOX>
{
    fn start<Q: Encode>(
        &mut self,
        method: MethodId,
        request: Option<&Q>,
        timeout: Duration,
    ) -> Result<usize, CallError> {
        let mut places = self.calls.iter_mut().enumerate();
        let free = places.find(|(_, place)| place.is_none());
        let (slot, place) = free.ok_or(CallError::TooManyCalls)?;
        let call = self.client.open(method, timeout, self.pace.look())?;
        *place = Some(Open {
            call,
            inbox: Inbox::new(),
            ending: None,
        });
        let sent = self.send(slot, |call, place| match request {
            Some(request) => call.request(place, request),
            None => call.open_stream(place),
        });
        if let Err(error) = sent {
            self.forget(slot);
            return Err(error);
        }
        Ok(slot)
    }

    /// Sends a packet of a call, as soon as the link has a place for it.
    fn send(
        &mut self,
        slot: usize,
        encode: impl Fn(&ClientCall, &mut [u8]) -> Option<usize>,
    ) -> Result<(), CallError> {
        loop {
            let call = match self.open(slot)? {
                Open {
                    ending: Some(Ending::Failed(error)),
                    ..
                } => return Err(*error),
                Open {
                    ending: Some(Ending::Done(..)),
                    ..
                } => return Err(CallError::Ended),
                open => open.call,
            };
            let mtu = self.tx.mtu();
            match self.tx.place(mtu) {
                Ok(place) => {
                    let len = encode(&call, place).ok_or(CallError::TooLarge);
                    let _ = self.tx.commit(*len.as_ref().unwrap_or(&0));
                    self.tx.flush();
                    return len.map(drop);
                }
                Err(SendError::Full) => self.wait(true),
                Err(SendError::TooLarge) => return Err(CallError::TooLarge),
                Err(SendError::Closed) => self.lost(),
            }
        }
    }

    fn open(&mut self, slot: usize) -> Result<&mut Open<INBOX>, CallError> {
        let open = self.calls.get_mut(slot).and_then(Option::as_mut);
        open.ok_or(CallError::Ended)
    }

    /// Takes up what there is, or waits for more, or for a place.
    fn wait(&mut self, for_place: bool) {
        if self.step() {
            return;
        }
        match for_place || self.owed_len > 0 {
            true => self.tx.arm(Waker::noop()),
            false => self.rx.arm(Waker::noop()),
        }
        // What came before is found by one more step.
        if !(self.step() || for_place && self.tx.place(0).is_ok()) {
            self.pace.sleep();
        }
    }

    /// One packet, or one deadline; `false` where there is neither. As long as there is no place for what is owed, no
    /// packet is taken up, and who meets a deadline is not told: the server has its own.
    fn step(&mut self) -> bool {
        let now = self.pace.look();
        let owed = self.owed_len > 0;
        if !self.pay() {
            return self.expire(now, &mut [0; HEADER_MAX]).is_some();
        }
        let mut overrun = None;
        match self.rx.peek() {
            Err(_) => self.lost(),
            Ok(Some(packet)) => {
                let (len, event) = self.client.handle(packet, &mut self.owed, now);
                self.owed_len = len;
                if let Some(event) = event
                    && let Some((slot, open)) = owner(&mut self.calls, &event.call)
                    && open.put(&event).is_err()
                {
                    overrun = Some(slot);
                }
                self.rx.release();
            }
            Ok(None) => {
                let mut place = [0; HEADER_MAX];
                let Some(len) = self.expire(now, &mut place) else {
                    // What was paid is not waited for any more: what is, has to be armed.
                    return owed;
                };
                (self.owed, self.owed_len) = (place, len);
            }
        }
        self.pay();
        if let Some(slot) = overrun {
            self.cancel(slot, Status::RESOURCE_EXHAUSTED);
        }
        true
    }

    /// Ends a call whose deadline has passed: the length of what tells the server.
    fn expire(&mut self, now: Instant, place: &mut [u8]) -> Option<usize> {
        let (call, len) = self.client.expire(place, now)?;
        if let Some((_, open)) = owner(&mut self.calls, &call) {
            open.ending = Some(Ending::Failed(CallError::DeadlineExceeded));
        }
        Some(len)
    }

    /// Sends what is owed; `false` where there is no place for it.
    fn pay(&mut self) -> bool {
        let Some(owed @ [_, ..]) = self.owed.get(..self.owed_len) else {
            return true;
        };
        match self.tx.place(owed.len()) {
            Ok(place) => {
                if let Some(place) = place.get_mut(..owed.len()) {
                    place.copy_from_slice(owed);
                }
                let _ = self.tx.commit(owed.len());
                self.tx.flush();
            }
            Err(SendError::Full) => return false,
            // Nobody is there to be told.
            Err(_) => {}
        }
        self.owed_len = 0;
        true
    }

    /// Ends every call: the peer is gone, or has begun again.
    fn lost(&mut self) {
        self.client.link_down();
        for open in self.calls.iter_mut().flatten() {
            if open.ending.is_none() {
                open.ending = Some(Ending::Failed(CallError::Closed));
            }
        }
        self.tx.renew();
        self.rx.renew();
    }

    fn cancel(&mut self, slot: usize, status: Status) {
        self.say(slot, |client, call, place| {
            client.cancel(call, status, place)
        });
    }

    /// What the engine says at the end of a call leaves now or with the next step. Where another answer still waits
    /// for a place, the server is not told: it has a deadline of its own.
    fn say(
        &mut self,
        slot: usize,
        say: impl FnOnce(&mut Client<CALLS>, &ClientCall, &mut [u8]) -> usize,
    ) {
        let Ok(&mut Open { call, .. }) = self.open(slot) else {
            return;
        };
        let mut unused = [0; HEADER_MAX];
        match self.pay() {
            true => {
                self.owed_len = say(&mut self.client, &call, &mut self.owed);
                self.pay();
            }
            false => drop(say(&mut self.client, &call, &mut unused)),
        }
    }

    /// Forgets a call, by the rule of [`CallHandle`].
    fn forget(&mut self, slot: usize) {
        self.say(slot, |client, call, place| client.abandon(call, place));
        if let Some(place) = self.calls.get_mut(slot) {
            *place = None;
        }
    }

    /// The next message of a call, or how it has ended.
    fn next<A: Decode>(&mut self, slot: usize) -> Result<Next<A>, CallError> {
        loop {
            let open = self.open(slot)?;
            if let Some(front) = open.inbox.front() {
                let message = A::decode(front);
                open.inbox.pop();
                return Ok(match open.ending {
                    Some(Ending::Done(status, true)) if open.inbox.is_empty() => {
                        Next::Done(status, message)
                    }
                    _ => Next::Item(message),
                });
            }
            match open.ending {
                Some(Ending::Done(status, _)) => return Ok(Next::Done(status, A::decode(&[]))),
                Some(Ending::Failed(error)) => return Err(error),
                None => self.wait(false),
            }
        }
    }
}

/// What has come for a call. A message is `None` where it does not decode.
pub enum Next<A> {
    /// An item of the server's stream.
    Item(Option<A>),
    /// How the call was completed, and the response, where its method has one.
    Done(Status, Option<A>),
}

/// What a [`Handle`] needs of its [`Caller`], whatever that is over. `slot` is a call.
pub trait Calls {
    /// See [`ItemSender::send`].
    fn send<Q: Encode>(&self, slot: usize, item: &Q) -> Result<(), CallError>;
    /// See [`ItemSender::complete`].
    fn complete(&self, slot: usize) -> Result<(), CallError>;
    /// Waits for what comes next.
    fn next<A: Decode>(&self, slot: usize) -> Result<Next<A>, CallError>;
    /// See [`CallHandle::cancel`].
    fn cancel(&self, slot: usize);
    /// The handle is gone.
    fn forget(&self, slot: usize);
}

impl<T: Tx + Renew, R: Rx + Renew, P: Pace, const CALLS: usize, const INBOX: usize> Calls
    for Caller<T, R, P, CALLS, INBOX>
{
    fn send<Q: Encode>(&self, slot: usize, item: &Q) -> Result<(), CallError> {
        self.inner()?
            .send(slot, |call, place| call.item(place, item))
    }

    fn complete(&self, slot: usize) -> Result<(), CallError> {
        let mut inner = self.inner()?;
        inner.say(slot, |client, call, place| client.complete(call, place));
        Ok(())
    }

    fn next<A: Decode>(&self, slot: usize) -> Result<Next<A>, CallError> {
        self.inner()?.next(slot)
    }

    fn cancel(&self, slot: usize) {
        if let Ok(mut inner) = self.inner() {
            inner.cancel(slot, Status::CANCELLED);
        }
    }

    fn forget(&self, slot: usize) {
        if let Ok(mut inner) = self.inner() {
            inner.forget(slot);
        }
    }
}

/// The handle of an open call of any kind: what it can do follows from its method, by
/// [`sinew::rpc::streams`]. Dropping it abandons the call, see [`CallHandle`].
pub struct Handle<'c, C: Calls, M> {
    caller: &'c C,
    slot: usize,
    method: PhantomData<fn() -> M>,
}

impl<C: Calls, M> Drop for Handle<'_, C, M> {
    fn drop(&mut self) {
        self.caller.forget(self.slot);
    }
}

impl<C: Calls, M> CallHandle for Handle<'_, C, M> {
    fn cancel(self) {
        self.caller.cancel(self.slot);
    }
}

impl<C: Calls, M: Method> ItemReader<M::Response> for Handle<'_, C, M> {
    fn next(&mut self) -> Result<Option<M::Response>, CallError> {
        match self.caller.next(self.slot)? {
            Next::Item(Some(item)) => Ok(Some(item)),
            Next::Item(None) => Err(CallError::Undecodable),
            Next::Done(Status::OK, _) => Ok(None),
            Next::Done(status, _) => Err(CallError::Status(status)),
        }
    }
}

impl<C: Calls, M: Method> ItemSender<M::Request> for Handle<'_, C, M> {
    fn send(&mut self, item: &M::Request) -> Result<(), CallError> {
        self.caller.send(self.slot, item)
    }

    fn complete(&mut self) -> Result<(), CallError> {
        self.caller.complete(self.slot)
    }
}

impl<C: Calls, M: Method> ResponseReader<M::Response> for Handle<'_, C, M> {
    fn finish_and_wait(self) -> Result<M::Response, CallError> {
        self.caller.complete(self.slot)?;
        self.response()
    }
}

impl<C: Calls, M: Method> Handle<'_, C, M> {
    fn response(self) -> Result<M::Response, CallError> {
        match self.caller.next(self.slot)? {
            Next::Done(Status::OK, response) => response.ok_or(CallError::Undecodable),
            Next::Done(status, _) => Err(CallError::Status(status)),
            Next::Item(_) => Err(CallError::Undecodable),
        }
    }
}

macro_rules! reach {
    ($($trait:ident::$open:ident($($arg:ident: $ty:ty)?) opens with $request:expr;)*) => {$(
        impl<'c, M, T, R, P, const CALLS: usize, const INBOX: usize> $trait<M>
            for &'c Caller<T, R, P, CALLS, INBOX>
        where
            M: Method,
            T: Tx + Renew,
            R: Rx + Renew,
            P: Pace,
        {
            type Stream = Handle<'c, Caller<T, R, P, CALLS, INBOX>, M>;

            fn $open(&mut self $(, $arg: $ty)?) -> Result<Self::Stream, CallError> {
                self.start($request)
            }
        }
    )*};
}
reach! {
    ServerStreaming::server_stream(request: &M::Request) opens with Some(request);
    ClientStreaming::client_stream() opens with None;
    BidiStreaming::bidi() opens with None;
}

impl<M, T, R, P, const CALLS: usize, const INBOX: usize> Unary<M> for &Caller<T, R, P, CALLS, INBOX>
where
    M: Method,
    T: Tx + Renew,
    R: Rx + Renew,
    P: Pace,
{
    fn unary(&mut self, request: &M::Request) -> Result<M::Response, CallError> {
        self.start::<M>(Some(request))?.response()
    }
}

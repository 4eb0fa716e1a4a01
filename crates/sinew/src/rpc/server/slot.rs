//! Static call slots, and what points at them: responders and stream writers.
//!
//! A slot is what a call in another task shares with the engine: words that have one writer each,
//! so that neither side needs a lock or an atomic read-modify-write.
//!
//! | word | written by | meaning |
//! |---|---|---|
//! | `open` | engine | generation of the last call, and whether it is open; cleared by a cancel |
//! | `call_id` | engine | the id on the wire (it changes once where an open id is adopted) |
//! | `done` | responder | generation, a count of packets sent, and whether it finished or was dropped |
//!
//! Invariant: a slot is given to a new call only after the responder of its last call is gone, so
//! `done` never has two writers. A responder is born by writing its generation there, so the engine
//! never takes what an earlier one left for its word. Generations may wrap.

use core::marker::PhantomData;
#[cfg(not(all(test, loom)))]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering;
#[cfg(all(test, loom))]
use loom::sync::atomic::AtomicU32;

use super::super::message::Encode;
use super::super::packet::{Draft, Nothing, Of, PacketType, Payload, Route};
use super::super::status::Status;
use crate::link::{Port, SendError};

/// What a deferred call shares with its responder. Lives in a static:
///
/// ```
/// use sinew::rpc::Slot;
/// static SLOTS: [Slot; 8] = [const { Slot::new() }; 8];
/// ```
#[derive(Debug)]
pub struct Slot {
    open: AtomicU32,
    call_id: AtomicU32,
    done: AtomicU32,
}

// `open` is generation << 24 | OPEN; `done` is generation << 24 | count << 2 | state.
const OPEN: u32 = 1;
const FINISHED: u32 = 1;
const DROPPED: u32 = 2;
const GENERATION: u32 = 0xff << 24;
const COUNT: u32 = !GENERATION >> 2;

/// What the engine reads in `done`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// The responder lives; the word changes with every packet that it sends.
    Working(u32),
    Finished,
    Dropped,
}

impl Slot {
    /// A free slot.
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Slot {
            open: AtomicU32::new(0),
            call_id: AtomicU32::new(0),
            done: AtomicU32::new(0),
        }
    }

    /// A free slot; the words of loom cannot be made in a constant.
    #[cfg(all(test, loom))]
    pub fn new() -> Self {
        Slot {
            open: AtomicU32::new(0),
            call_id: AtomicU32::new(0),
            done: AtomicU32::new(0),
        }
    }

    /// Opens the next call and returns its generation (in the high bits, the others 0).
    pub(super) fn open(&self, call_id: u32) -> u32 {
        self.set_call_id(call_id);
        let last = self.open.load(Ordering::Relaxed) & GENERATION;
        let generation = last.wrapping_add(1 << 24);
        self.open.store(generation | OPEN, Ordering::Release);
        generation
    }

    pub(super) fn set_call_id(&self, call_id: u32) {
        self.call_id.store(call_id, Ordering::Relaxed);
    }

    pub(super) fn close(&self) {
        let generation = self.open.load(Ordering::Relaxed) & GENERATION;
        self.open.store(generation, Ordering::Release);
    }

    pub(super) fn progress(&self, generation: u32) -> Progress {
        let done = self.done.load(Ordering::Acquire);
        match (done & GENERATION == generation, done & 3) {
            (true, FINISHED) => Progress::Finished,
            (true, DROPPED) => Progress::Dropped,
            _ => Progress::Working(done),
        }
    }
}

impl Default for Slot {
    fn default() -> Self {
        Slot::new()
    }
}

/// Why an answer or an item could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerError {
    /// Every place of the link is taken. Nothing is lost: wait with `arm`, then send again.
    Full,
    /// The client cancelled, the deadline passed, or the peer went away. Drop the responder.
    Cancelled,
    /// The message does not fit into a packet of this link. For a final answer the call has been
    /// ended with INTERNAL; a stream goes on. Shorten the message or configure a larger mtu.
    TooLarge,
    /// The link is down. Drop the responder.
    Closed,
}

impl From<SendError> for AnswerError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Full => AnswerError::Full,
            SendError::TooLarge => AnswerError::TooLarge,
            SendError::Closed => AnswerError::Closed,
        }
    }
}

/// What a responder and a writer have in common: the way back to one open call.
struct Ticket {
    slot: &'static Slot,
    port: &'static dyn Port,
    generation: u32,
    channel: u32,
    service: u32,
    method: u32,
    sent: u32,
    finished: bool,
}

impl Ticket {
    fn is_open(&self) -> bool {
        self.slot.open.load(Ordering::Acquire) == self.generation | OPEN
    }

    fn send(
        &mut self,
        packet_type: PacketType,
        payload: &dyn Payload,
        status: Status,
    ) -> Result<(), AnswerError> {
        if self.finished || !self.is_open() {
            return Err(AnswerError::Cancelled);
        }
        let route = Route {
            channel: self.channel,
            service: self.service,
            method: self.method,
            call_id: self.slot.call_id.load(Ordering::Relaxed),
        };
        let draft = Draft {
            packet_type,
            route: &route,
            payload,
            status,
        };
        if !draft.send(self.port)? {
            return Err(AnswerError::TooLarge);
        }
        self.sent = self.sent.wrapping_add(1) & COUNT;
        self.publish(0);
        Ok(())
    }

    fn finish(&mut self, payload: &dyn Payload, status: Status) -> Result<(), AnswerError> {
        let sent = self.send(PacketType::RESPONSE, payload, status);
        if sent == Err(AnswerError::TooLarge) {
            self.send(PacketType::SERVER_ERROR, &Nothing, Status::INTERNAL)?;
        } else {
            sent?;
        }
        self.finished = true;
        self.publish(FINISHED);
        sent
    }

    fn publish(&self, state: u32) {
        self.slot
            .done
            .store(self.generation | self.sent << 2 | state, Ordering::Release);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.finished {
            // The engine answers for it with a place of its own: a drop cannot wait for one.
            self.publish(DROPPED);
            self.port.ring();
        }
    }
}

/// The way to answer a unary or client-stream call later, from any task.
///
/// Small, `Send` and `'static`. Dropping it unanswered ends the call with ABORTED: an answer that
/// nobody gave must not look like a default one.
pub struct Responder<T> {
    ticket: Ticket,
    message: PhantomData<fn(T)>,
}

impl<T: Encode> Responder<T> {
    /// Answers with OK and `response`. After `Ok` or [`AnswerError::TooLarge`] the call has ended;
    /// after [`AnswerError::Full`] nothing has been lost and it can be tried again.
    pub fn answer(&mut self, response: &T) -> Result<(), AnswerError> {
        self.ticket.finish(&Of(response), Status::OK)
    }

    /// Ends the call with a status and no response.
    pub fn fail(&mut self, status: Status) -> Result<(), AnswerError> {
        self.ticket.finish(&Nothing, status)
    }
}

/// The way to send a server's stream from any task.
///
/// Small, `Send` and `'static`. Dropping it unfinished ends the stream with OK, as Pigweed's call
/// objects do.
pub struct Writer<T> {
    ticket: Ticket,
    message: PhantomData<fn(T)>,
}

impl<T: Encode> Writer<T> {
    /// Sends one item. [`AnswerError::Full`] is the link's back-pressure: arm, then send the same
    /// item again.
    pub fn send(&mut self, item: &T) -> Result<(), AnswerError> {
        self.ticket
            .send(PacketType::SERVER_STREAM, &Of(item), Status::OK)
    }

    /// As [`Writer::send`], with whatever encodes as a `T` does: a service that keeps items in another form
    /// writes them once.
    pub fn send_as(&mut self, item: &impl Encode) -> Result<(), AnswerError> {
        self.ticket
            .send(PacketType::SERVER_STREAM, &Of(item), Status::OK)
    }

    /// Ends the stream with a status.
    pub fn finish(&mut self, status: Status) -> Result<(), AnswerError> {
        self.ticket.finish(&Nothing, status)
    }
}

macro_rules! shared_parts {
    ($($name:ident)*) => {$(
        impl<T> $name<T> {
            /// Whether the call is still wanted: not answered, cancelled or expired.
            pub fn is_open(&self) -> bool {
                !self.ticket.finished && self.ticket.is_open()
            }

            /// Wakes `waker` once when the link has a place for the next packet.
            pub fn arm(&self, waker: &core::task::Waker) {
                self.ticket.port.arm(waker);
            }
        }

        impl<T> core::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($name), "(open: {})"), self.is_open())
            }
        }

        impl<T> FromSlot for $name<T> {}
        impl<T> sealed::Build for $name<T> {
            fn build(slot: &'static Slot, port: &'static dyn Port, route: Route, generation: u32) -> Self {
                let ticket = Ticket {
                    slot,
                    port,
                    generation,
                    channel: route.channel,
                    service: route.service,
                    method: route.method,
                    sent: 0,
                    finished: false,
                };
                ticket.publish(0);
                $name { ticket, message: PhantomData }
            }
        }
    )*};
}
shared_parts!(Responder Writer);

/// What a deferred call leaves with: [`Responder`] or [`Writer`].
pub trait FromSlot: sealed::Build {}

pub(super) mod sealed {
    use super::{Port, Route, Slot};

    pub trait Build {
        fn build(
            slot: &'static Slot,
            port: &'static dyn Port,
            route: Route,
            generation: u32,
        ) -> Self;
    }
}

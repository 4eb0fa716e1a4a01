//! The server engine: packets in, packets out, services by reference.
//!
//! [`Server::handle`] takes one packet and writes at most one, in one bounded step. What it does
//! with each packet is the table of the wire reference, section Server, row by row; beyond it,
//! every call that outlives its step has a deadline, everything refused is counted, and what does
//! not fit is answered with RESOURCE_EXHAUSTED.

use core::task::Waker;
use core::time::Duration;

use super::message::MethodKind;
use super::packet::{Draft, Packet, PacketError, PacketType};
use super::status::Status;
use crate::link::{Port, SendError};
use crate::time::{Instant, micros};

mod call;
mod slot;
#[cfg(all(test, loom))]
mod slot_loom;
mod table;

pub use call::{Call, Cx, Input, Stop, StreamCx, StreamIn};
pub use slot::{AnswerError, FromSlot, Responder, Slot, Writer};
use table::{Book, Entry, Overdue, Table};

/// Something that serves methods. `sinew-gen` makes one for each service; a tuple of services is
/// one as well.
pub trait Service {
    /// The kind of a method; `None` where this is not one of its methods.
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind>;

    /// Handles one step of a call; `false`, with nothing done, where this is not its method.
    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool;

    /// Continues what the service has in hand (streams, late answers): a bounded piece of work.
    ///
    /// Drivers call it after each receive step and when a place became free. `true` asks to be
    /// called again, as soon as there is a place.
    fn poll(&mut self, _now: Instant) -> bool {
        false
    }

    /// Wakes `waker` once when there is something to go on with that no packet brings, at once where there is
    /// already: written by another thread or an interrupt handler. Drivers call it after each [`Service::poll`]
    /// that returned `false`.
    fn arm(&mut self, _waker: &Waker) {}
}

impl<S: Service + ?Sized> Service for &mut S {
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
        (**self).kind(service, method)
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        (**self).handle(call, input)
    }

    fn poll(&mut self, now: Instant) -> bool {
        (**self).poll(now)
    }

    fn arm(&mut self, waker: &Waker) {
        (**self).arm(waker);
    }
}

macro_rules! tuple_services {
    ($($name:ident . $index:tt),*) => {
        impl<$($name: Service),*> Service for ($($name,)*) {
            fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
                None$(.or_else(|| self.$index.kind(service, method)))*
            }

            fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
                $(self.$index.handle(call, input))||*
            }

            fn poll(&mut self, now: Instant) -> bool {
                // Every service gets its turn.
                $(self.$index.poll(now))|*
            }

            fn arm(&mut self, waker: &Waker) {
                $(self.$index.arm(waker);)*
            }
        }
    };
}
tuple_services!(A.0);
tuple_services!(A.0, B.1);
tuple_services!(A.0, B.1, C.2);
tuple_services!(A.0, B.1, C.2, D.3);
tuple_services!(A.0, B.1, C.2, D.3, E.4);
tuple_services!(A.0, B.1, C.2, D.3, E.4, F.5);

/// The channels that a link serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Channels {
    /// Any channel id; answers carry the one of the packet, as Pigweed's default channel does.
    #[default]
    Any,
    /// One channel id; packets for others are counted and dropped.
    Only(u32),
}

/// The link that a packet came in by, and the way back for what is answered later.
#[derive(Clone, Copy)]
pub struct Via {
    /// A number of the caller's choice, unique among the links of this server.
    pub link: u16,
    /// The channels served on it.
    pub channels: Channels,
    /// Where deferred answers leave. Without a port nothing can be deferred.
    pub port: Option<&'static dyn Port>,
    /// Where streams leave, if not by `port`: a port onto the same link that leaves more places
    /// free, so that a bulk stream does not hold up an urgent answer.
    pub bulk: Option<&'static dyn Port>,
}

impl Via {
    /// The port for what a call of this kind sends after its receive step.
    fn port_for(&self, kind: MethodKind) -> Option<&'static dyn Port> {
        if kind.server_streams() {
            self.bulk.or(self.port)
        } else {
            self.port
        }
    }
}

impl core::fmt::Debug for Via {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Via({}, {:?}, port: {})",
            self.link,
            self.channels,
            self.port.is_some()
        )
    }
}

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a server refused, dropped or ended. Counts wrap.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Stats { $($(#[$doc])* pub $name: u32,)* }

        impl Stats {
            const ZERO: Stats = Stats { $($name: 0,)* };

            /// Every counter with its name, for tools.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

stats! {
    /// Packets that could not be decoded.
    malformed,
    /// Packets with channel, service or method 0.
    zero_id,
    /// Packets meant for a client.
    wrong_direction,
    /// Packets for a channel that the link does not serve.
    unknown_channel,
    /// Packets for an unknown service or method (answered with NOT_FOUND).
    unknown_method,
    /// Packets of an unknown even type, for a known method.
    unknown_type,
    /// Packets for a call that is not open (answered with FAILED_PRECONDITION).
    no_such_call,
    /// Stream items for a method or a call that takes none (now).
    unexpected_item,
    /// Payloads that could not be decoded.
    undecodable,
    /// Calls ended because a slot or a receiver's queue was full.
    exhausted,
    /// Answers that did not fit into the place.
    oversize,
    /// Open calls replaced by a new request with their key.
    replaced,
    /// Calls cancelled by the client.
    cancelled,
    /// Calls ended at their deadline.
    expired,
    /// Responders dropped without an answer.
    dropped,
}

fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

/// How long a call that outlives its step may stay without a sign of life from either side.
pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);

/// A server with room for `CALLS` calls that outlive their step.
#[derive(Debug)]
pub struct Server<const CALLS: usize> {
    slots: &'static [Slot; CALLS],
    book: Book<[Entry; CALLS]>,
    stats: Stats,
}

impl<const CALLS: usize> Server<CALLS> {
    /// A server over these slots. Slots belong to one server.
    pub const fn new(slots: &'static [Slot; CALLS]) -> Self {
        Server {
            slots,
            book: Book::new(micros(DEFAULT_LIFETIME)),
            stats: Stats::ZERO,
        }
    }

    /// Sets how long a call may stay without a packet from either side.
    pub fn set_lifetime(&mut self, lifetime: Duration) {
        self.book.lifetime = micros(lifetime);
    }

    /// What has been refused so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Handles one packet and returns the length of the answer in `place`, 0 for none.
    ///
    /// `place` must hold a packet of the link's mtu, so that no answer is lost for want of room.
    pub fn handle<S: Service>(
        &mut self,
        packet: &[u8],
        via: &Via,
        place: &mut [u8],
        services: &mut S,
        now: Instant,
    ) -> usize {
        match Packet::decode(packet) {
            Ok(packet) => self.handle_packet(&packet, via, place, services, now),
            Err(error) => {
                self.refuse(error);
                0
            }
        }
    }

    /// Counts bytes that were no packet, where the caller decodes.
    pub fn refuse(&mut self, error: PacketError) {
        count(match error {
            PacketError::Malformed => &mut self.stats.malformed,
            PacketError::ZeroId => &mut self.stats.zero_id,
        });
    }

    /// [`Server::handle`] for a packet that is decoded already: a link that carries a client and a
    /// server decodes once and splits by [`PacketType::is_for_server`].
    pub fn handle_packet<S: Service>(
        &mut self,
        packet: &Packet<'_>,
        via: &Via,
        place: &mut [u8],
        services: &mut S,
        now: Instant,
    ) -> usize {
        if !packet.packet_type.is_for_server() {
            count(&mut self.stats.wrong_direction);
            return 0;
        }
        if let Channels::Only(channel) = via.channels
            && channel != packet.route.channel
        {
            count(&mut self.stats.unknown_channel);
            return 0;
        }
        let table = Table {
            slots: self.slots,
            book: &mut self.book,
        };
        let mut step = Call {
            route: packet.route,
            via,
            table,
            entry: None,
            place,
            written: 0,
            now,
            stats: &mut self.stats,
        };
        if packet.packet_type == PacketType::REQUEST {
            request(&mut step, packet, services);
        } else {
            follow_up(&mut step, packet, services);
        }
        step.written
    }

    /// Ends calls that need it (deadline passed, responder dropped). Returns at the first one that
    /// is told to the client in `place`, with the packet's length: call again until 0. What follows
    /// packets of a responder leaves through the port, behind them.
    ///
    /// [`SendError::Full`]: a port of the link has no place for one of them (the others have been
    /// seen to); call again when it has.
    pub fn poll<S: Service>(
        &mut self,
        via: &Via,
        place: &mut [u8],
        services: &mut S,
        now: Instant,
    ) -> Result<usize, SendError> {
        let mut done = Ok(0);
        for index in 0..CALLS {
            let mut table = Table {
                slots: self.slots,
                book: &mut self.book,
            };
            let Some(overdue) = table.overdue(index, via.link, now) else {
                continue;
            };
            let Some(entry) = table.get(index) else {
                continue;
            };
            let (packet_type, status, counter) = match overdue {
                Overdue::Expired => (
                    PacketType::SERVER_ERROR,
                    Status::DEADLINE_EXCEEDED,
                    &mut self.stats.expired,
                ),
                Overdue::Dropped if entry.kind.server_streams() => {
                    (PacketType::RESPONSE, Status::OK, &mut self.stats.dropped)
                }
                Overdue::Dropped => (
                    PacketType::RESPONSE,
                    Status::ABORTED,
                    &mut self.stats.dropped,
                ),
            };
            let draft = Draft::empty(packet_type, &entry.route, status);
            // Behind what the responder has sent, where there is one: through the same port.
            let written = match via.port_for(entry.kind) {
                Some(port) if entry.taken => {
                    if let Err(error) = draft.send(port) {
                        done = Err(error);
                        continue;
                    }
                    0
                }
                _ => draft.write(place).unwrap_or(0),
            };
            count(counter);
            self.end(index, via, services, status, now);
            if written > 0 {
                return Ok(written);
            }
        }
        done
    }

    /// When [`Server::poll`] must be called at the latest; [`Instant::FAR`] for never.
    pub fn deadline(&self) -> Instant {
        let book: &Book<[Entry]> = &self.book;
        book.deadline()
    }

    /// Ends every call of a link that is gone: services are told, responders see `Cancelled`.
    pub fn link_down<S: Service>(&mut self, via: &Via, services: &mut S, now: Instant) {
        for index in 0..CALLS {
            let entry = self.book.entries.get(index);
            if entry.is_some_and(|entry| entry.open && entry.link == via.link) {
                self.end(index, via, services, Status::UNAVAILABLE, now);
            }
        }
    }

    /// Ends a call from outside of a step: its service is told, nothing is sent.
    fn end<S: Service>(
        &mut self,
        index: usize,
        via: &Via,
        services: &mut S,
        status: Status,
        now: Instant,
    ) {
        let Some(route) = self.book.entries.get(index).map(|entry| entry.route) else {
            return;
        };
        let mut step = Call {
            route,
            via,
            table: Table {
                slots: self.slots,
                book: &mut self.book,
            },
            entry: Some(index),
            place: &mut [],
            written: 0,
            now,
            stats: &mut self.stats,
        };
        close(&mut step, services, status);
    }

    /// Whether no responder of this link's calls lives any more, so that its port may be reused.
    pub fn is_quiet(&self, link: u16) -> bool {
        self.book
            .entries
            .iter()
            .zip(self.slots)
            .all(|(entry, slot)| {
                entry.link != link
                    || !entry.taken
                    || !matches!(
                        slot.progress(entry.generation()),
                        slot::Progress::Working(_)
                    )
            })
    }

    /// Opens a stream that no client asked for, with the open call id: it reaches any pending call
    /// of the method at the client, for example after a reboot (wire
    /// reference, section Call ids).
    ///
    /// `None` where every slot is in use or the link has no port.
    pub fn open_unrequested<M: super::Method>(
        &mut self,
        via: &Via,
        channel: u32,
        now: Instant,
    ) -> Option<Writer<M::Response>> {
        use slot::sealed::Build;
        let port = via.port_for(M::ID.kind)?;
        let route = super::packet::Route::new(channel, M::ID, super::packet::OPEN_CALL_ID);
        let mut table = Table {
            slots: self.slots,
            book: &mut self.book,
        };
        let index = table.open(via.link, &route, M::ID.kind, now)?;
        let entry = self.book.entries.get_mut(index)?;
        entry.taken = true;
        Some(Writer::build(
            self.slots.get(index)?,
            port,
            route,
            entry.generation(),
        ))
    }
}

/// A REQUEST: the method runs; an open call with the same key is closed here, silently.
fn request<S: Service>(step: &mut Call<'_>, packet: &Packet<'_>, services: &mut S) {
    if let Some(index) = step.table.find(step.via.link, &packet.route) {
        count(&mut step.stats.replaced);
        step.entry = Some(index);
        close(step, services, Status::CANCELLED);
        step.entry = None;
    }
    if !services.handle(step, Input::Request(packet.payload)) {
        unknown_method(step);
    }
}

/// Any other packet. Errors echo the packet's call id; answers carry that of the call, which
/// differs where the packet's is an open one.
fn follow_up<S: Service>(step: &mut Call<'_>, packet: &Packet<'_>, services: &mut S) {
    step.entry = step.table.find(step.via.link, &packet.route);
    let Some(entry) = step
        .entry
        .and_then(|index| step.table.touch(index, step.now))
    else {
        return without_call(step, packet.packet_type, services);
    };
    let call_id = entry.route.call_id;
    match packet.packet_type {
        PacketType::CLIENT_STREAM if !entry.kind.client_streams() => {
            count(&mut step.stats.unexpected_item);
            step.write_empty(PacketType::SERVER_ERROR, Status::INVALID_ARGUMENT);
        }
        PacketType::CLIENT_STREAM if entry.ended => {
            count(&mut step.stats.unexpected_item);
            step.write_empty(PacketType::SERVER_ERROR, Status::FAILED_PRECONDITION);
        }
        PacketType::CLIENT_STREAM => {
            step.route.call_id = call_id;
            services.handle(step, Input::Item(packet.payload));
        }
        PacketType::CLIENT_REQUEST_COMPLETION => {
            if entry.kind.client_streams() && !entry.ended {
                entry.ended = true;
                step.route.call_id = call_id;
                services.handle(step, Input::End);
            }
        }
        PacketType::CLIENT_ERROR => {
            count(&mut step.stats.cancelled);
            close(step, services, packet.status);
        }
        _ => count(&mut step.stats.unknown_type),
    }
}

/// A packet that belongs to no open call.
fn without_call<S: Service>(step: &mut Call<'_>, packet_type: PacketType, services: &S) {
    let known = services
        .kind(step.route.service, step.route.method)
        .is_some();
    match packet_type {
        PacketType::CLIENT_ERROR => {
            count(if known {
                &mut step.stats.no_such_call
            } else {
                &mut step.stats.unknown_method
            });
        }
        _ if !known => unknown_method(step),
        PacketType::CLIENT_STREAM | PacketType::CLIENT_REQUEST_COMPLETION => {
            count(&mut step.stats.no_such_call);
            step.write_empty(PacketType::SERVER_ERROR, Status::FAILED_PRECONDITION);
        }
        _ => count(&mut step.stats.unknown_type),
    }
}

fn unknown_method(step: &mut Call<'_>) {
    count(&mut step.stats.unknown_method);
    step.write_empty(PacketType::SERVER_ERROR, Status::NOT_FOUND);
}

/// Closes the step's call and tells its service; nothing is sent.
#[cfg_attr(target_pointer_width = "32", inline(never))] // one copy where flash is short
fn close<S: Service>(step: &mut Call<'_>, services: &mut S, status: Status) {
    if let Some(index) = step.entry {
        step.table.close(index);
        services.handle(step, Input::Closed(status));
        step.written = 0;
    }
}

//! The client engine: opens calls, encodes their packets, sorts what comes back.
//!
//! A call is split in three, so that no lock is held while sending: [`Client::open`] changes the
//! state (under the caller's lock), [`ClientCall::request`] only encodes, and the link commits.
//! What it does with each packet is the table of the wire reference, section Client, as Pigweed's
//! C++ does it; beyond it, every call has a deadline and everything refused is counted.

use core::time::Duration;

use super::message::{Encode, MethodId, MethodKind};
use super::packet::{self, OPEN_CALL_ID, Packet, PacketError, PacketType, Route, is_open_id};
use super::status::Status;
use crate::time::{Instant, micros};

mod error;
mod inbox;
pub use error::CallError;
pub use inbox::{Inbox, Overrun};

/// Call ids stay below 2^14, as those of Pigweed's C++ client (wire reference, section
/// Call ids).
const LAST_CALL_ID: u32 = (1 << 14) - 1;

/// A call as the application holds it: plain numbers, copied freely.
///
/// Its methods only encode; they return the packet's length, or `None` where it does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientCall {
    route: Route,
    index: usize,
    order: u32,
}

impl ClientCall {
    /// The packet that opens the call; `request` is empty for a method with a client stream.
    pub fn request<T: Encode + ?Sized>(&self, place: &mut [u8], request: &T) -> Option<usize> {
        packet::encode(place, PacketType::REQUEST, &self.route, request, Status::OK)
    }

    /// The packet that opens a call without a request message.
    pub fn open_stream(&self, place: &mut [u8]) -> Option<usize> {
        packet::encode_empty(place, PacketType::REQUEST, &self.route, Status::OK)
    }

    /// An item of the client's stream.
    pub fn item<T: Encode + ?Sized>(&self, place: &mut [u8], item: &T) -> Option<usize> {
        packet::encode(
            place,
            PacketType::CLIENT_STREAM,
            &self.route,
            item,
            Status::OK,
        )
    }

    /// Where the call's state lives: below the number of calls of its client, and this call's as
    /// long as it is open.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The call id on the wire.
    pub fn call_id(&self) -> u32 {
        self.route.call_id
    }
}

/// What came in for a call; payloads stay in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received<'p> {
    /// An item of the server's stream.
    Item(&'p [u8]),
    /// The call is complete. The payload is the response of a unary or client-stream method,
    /// empty otherwise.
    Completed(Status, &'p [u8]),
    /// The server, or a packet that does not fit the method, ended the call.
    Failed(Status),
}

/// Something happened to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event<'p> {
    /// Which call. After [`Received::Completed`] and [`Received::Failed`] it is closed.
    pub call: ClientCall,
    /// What.
    pub received: Received<'p>,
}

/// Why a call could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// Every call of this client is in use. Wait for one to end, or configure more.
    TooManyCalls,
}

/// What a client refused, dropped or ended. Counts wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets that could not be decoded.
    pub malformed: u32,
    /// Packets with channel, service or method 0.
    pub zero_id: u32,
    /// Packets meant for a server.
    pub wrong_direction: u32,
    /// Packets for another channel.
    pub unknown_channel: u32,
    /// Packets for a call that is not open.
    pub no_such_call: u32,
    /// Packets of an unknown odd type.
    pub unknown_type: u32,
    /// Stream items for a method without a server stream.
    pub unexpected_item: u32,
    /// Calls ended at their deadline.
    pub expired: u32,
    /// Calls ended with RESOURCE_EXHAUSTED, because their receiver was full.
    pub exhausted: u32,
}

impl Stats {
    const ZERO: Stats = Stats {
        malformed: 0,
        zero_id: 0,
        wrong_direction: 0,
        unknown_channel: 0,
        no_such_call: 0,
        unknown_type: 0,
        unexpected_item: 0,
        expired: 0,
        exhausted: 0,
    };

    /// Every counter with its name, for tools.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [
            ("malformed", self.malformed),
            ("zero_id", self.zero_id),
            ("wrong_direction", self.wrong_direction),
            ("unknown_channel", self.unknown_channel),
            ("no_such_call", self.no_such_call),
            ("unknown_type", self.unknown_type),
            ("unexpected_item", self.unexpected_item),
            ("expired", self.expired),
            ("exhausted", self.exhausted),
        ]
        .into_iter()
    }
}

fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    open: bool,
    kind: MethodKind,
    /// The client's stream is complete.
    ended: bool,
    route: Route,
    order: u32,
    /// In microseconds.
    timeout: u64,
    deadline: Instant,
}

impl Entry {
    const FREE: Entry = Entry {
        open: false,
        kind: MethodKind::Unary,
        ended: false,
        route: Route {
            channel: 0,
            service: 0,
            method: 0,
            call_id: 0,
        },
        order: 0,
        timeout: 0,
        deadline: Instant::FAR,
    };
}

/// A client with room for `CALLS` calls in flight, on one channel of one link.
#[derive(Debug)]
pub struct Client<const CALLS: usize> {
    channel: u32,
    last_id: u32,
    newest: u32,
    /// How many entries are open, so that searches end early.
    live: usize,
    entries: [Entry; CALLS],
    stats: Stats,
}

/// The deadline of a call for which the application names none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

impl<const CALLS: usize> Client<CALLS> {
    /// A client on `channel` (1 to 127 for routes that rewrite ids). `seed` is any number that
    /// differs from boot to boot: call ids start there, so that calls of an earlier life are not
    /// taken for those of this one.
    pub const fn new(channel: u32, seed: u32) -> Self {
        const { assert!(CALLS < LAST_CALL_ID as usize, "more calls than call ids") }
        Client {
            channel,
            last_id: seed % LAST_CALL_ID,
            newest: 0,
            live: 0,
            entries: [Entry::FREE; CALLS],
            stats: Stats::ZERO,
        }
    }

    /// What has been refused so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Opens a call. It ends at the latest `timeout` after now; for a method with a server stream,
    /// `timeout` after the last item.
    pub fn open(
        &mut self,
        method: MethodId,
        timeout: Duration,
        now: Instant,
    ) -> Result<ClientCall, OpenError> {
        let mut call_id = self.last_id;
        loop {
            // At most CALLS ids are taken, and CALLS is below their number, so this ends.
            call_id = if call_id >= LAST_CALL_ID {
                1
            } else {
                call_id + 1
            };
            let taken = |entry: &Entry| entry.open && entry.route.call_id == call_id;
            if self.live == 0 || !self.entries.iter().any(taken) {
                break;
            }
        }
        let call = self.enter(method, call_id, timeout, now)?;
        self.last_id = call_id;
        Ok(call)
    }

    /// Waits for a stream that the server opens unasked (open call id), without sending anything.
    /// The call takes over the id of the first packet that matches it; the handle in that packet's
    /// event carries it.
    pub fn listen(
        &mut self,
        method: MethodId,
        timeout: Duration,
        now: Instant,
    ) -> Result<ClientCall, OpenError> {
        self.enter(method, OPEN_CALL_ID, timeout, now)
    }

    fn enter(
        &mut self,
        method: MethodId,
        call_id: u32,
        timeout: Duration,
        now: Instant,
    ) -> Result<ClientCall, OpenError> {
        let route = Route::new(self.channel, method, call_id);
        let timeout = micros(timeout);
        let free = self
            .entries
            .iter_mut()
            .enumerate()
            .find(|(_, entry)| !entry.open);
        let (index, entry) = free.ok_or(OpenError::TooManyCalls)?;
        self.newest = self.newest.wrapping_add(1);
        self.live += 1;
        *entry = Entry {
            open: true,
            kind: method.kind,
            ended: false,
            route,
            order: self.newest,
            timeout,
            deadline: now.after_micros(timeout),
        };
        Ok(ClientCall {
            route,
            index,
            order: self.newest,
        })
    }

    fn entry(&mut self, call: &ClientCall) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(call.index)?;
        (entry.open && entry.order == call.order).then_some(entry)
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))] // one copy where flash is short
    fn close(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index).filter(|entry| entry.open) {
            entry.open = false;
            self.live -= 1;
        }
    }

    /// Whether the call has not ended.
    pub fn is_open(&self, call: &ClientCall) -> bool {
        self.entries
            .get(call.index)
            .is_some_and(|entry| entry.open && entry.order == call.order)
    }

    /// Handles one packet: the length of the answer in `place` (0 for none), and what happened.
    ///
    /// `place` must hold [`packet::HEADER_MAX`] bytes.
    pub fn handle<'p>(
        &mut self,
        packet: &'p [u8],
        place: &mut [u8],
        now: Instant,
    ) -> (usize, Option<Event<'p>>) {
        match &Packet::decode(packet) {
            Ok(packet) => self.handle_packet(packet, place, now),
            Err(error) => {
                self.refuse(*error);
                (0, None)
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

    /// [`Client::handle`] for a packet that is decoded already.
    pub fn handle_packet<'p>(
        &mut self,
        packet: &Packet<'p>,
        place: &mut [u8],
        now: Instant,
    ) -> (usize, Option<Event<'p>>) {
        if packet.packet_type.is_for_server() {
            count(&mut self.stats.wrong_direction);
            return (0, None);
        }
        if packet.route.channel != self.channel {
            count(&mut self.stats.unknown_channel);
            return (0, None);
        }
        let error = |place: &mut [u8], status| {
            packet::encode_empty(place, PacketType::CLIENT_ERROR, &packet.route, status)
                .unwrap_or(0)
        };
        let Some(index) = self.find(&packet.route) else {
            count(&mut self.stats.no_such_call);
            let stray = packet.packet_type == PacketType::SERVER_STREAM;
            let len = if stray {
                error(place, Status::FAILED_PRECONDITION)
            } else {
                0
            };
            return (len, None);
        };
        let Some(entry) = self.entries.get_mut(index) else {
            return (0, None);
        };
        let call = ClientCall {
            route: entry.route,
            index,
            order: entry.order,
        };
        let (len, received) = match packet.packet_type {
            PacketType::SERVER_STREAM if !entry.kind.server_streams() => {
                count(&mut self.stats.unexpected_item);
                let len = error(place, Status::INVALID_ARGUMENT);
                (len, Received::Failed(Status::INVALID_ARGUMENT))
            }
            PacketType::SERVER_STREAM => {
                entry.deadline = now.after_micros(entry.timeout);
                (0, Received::Item(packet.payload))
            }
            PacketType::RESPONSE if entry.kind.server_streams() => {
                (0, Received::Completed(packet.status, &[]))
            }
            PacketType::RESPONSE => (0, Received::Completed(packet.status, packet.payload)),
            PacketType::SERVER_ERROR => (0, Received::Failed(packet.status)),
            _ => {
                count(&mut self.stats.unknown_type);
                return (0, None);
            }
        };
        if !matches!(received, Received::Item(_)) {
            self.close(index);
        }
        (len, Some(Event { call, received }))
    }

    /// The pending call of this key, or one that an open id matches.
    fn find(&mut self, route: &Route) -> Option<usize> {
        let same = |entry: &Entry| entry.open && entry.route == *route;
        let exact = self.entries.iter().position(same);
        exact
            .filter(|_| !is_open_id(route.call_id))
            .or_else(|| self.find_by_open_id(route))
    }

    /// Open ids match any call of the method, the newest first. An equal id goes before them, so
    /// that a listener takes no packet from a requested call.
    #[inline(never)] // rare
    fn find_by_open_id(&mut self, route: &Route) -> Option<usize> {
        let mut found: Option<(usize, u32)> = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let same_method = entry.open
                && entry.route.service == route.service
                && entry.route.method == route.method;
            let matches = is_open_id(entry.route.call_id) || is_open_id(route.call_id);
            if same_method && matches && found.is_none_or(|(_, order)| entry.order > order) {
                found = Some((index, entry.order));
            }
        }
        let (index, _) = found?;
        if let Some(entry) = self.entries.get_mut(index)
            && is_open_id(entry.route.call_id)
            && !is_open_id(route.call_id)
        {
            entry.route.call_id = route.call_id;
        }
        Some(index)
    }

    /// Marks the client's stream as complete and writes the packet that says so; 0 where the call
    /// has ended or its stream was complete already.
    pub fn complete(&mut self, call: &ClientCall, place: &mut [u8]) -> usize {
        let Some(entry) = self.entry(call).filter(|entry| !entry.ended) else {
            return 0;
        };
        let route = entry.route;
        let packet_type = PacketType::CLIENT_REQUEST_COMPLETION;
        match packet::encode_empty(place, packet_type, &route, Status::OK) {
            Some(len) => {
                entry.ended = true;
                len
            }
            None => 0,
        }
    }

    /// Ends the call and writes the packet that tells the server, with `status` (normally
    /// CANCELLED); 0 where the call has ended already.
    pub fn cancel(&mut self, call: &ClientCall, status: Status, place: &mut [u8]) -> usize {
        let Some(entry) = self.entry(call) else {
            return 0;
        };
        let route = entry.route;
        self.close(call.index);
        if status == Status::RESOURCE_EXHAUSTED {
            count(&mut self.stats.exhausted);
        }
        packet::encode_empty(place, PacketType::CLIENT_ERROR, &route, status).unwrap_or(0)
    }

    /// Forgets a call whose handle was dropped, as Pigweed's C++ client does it: an incomplete
    /// client stream is completed, otherwise nothing is sent (wire reference,
    /// section Client).
    pub fn abandon(&mut self, call: &ClientCall, place: &mut [u8]) -> usize {
        let streams = self
            .entry(call)
            .is_some_and(|entry| entry.kind.client_streams());
        let len = if streams {
            self.complete(call, place)
        } else {
            0
        };
        if self.is_open(call) {
            self.close(call.index);
        }
        len
    }

    /// Forgets every call: the link is gone.
    pub fn link_down(&mut self) {
        for index in 0..CALLS {
            self.close(index);
        }
    }

    /// When [`Client::expire`] must be called at the latest; [`Instant::FAR`] for never.
    pub fn deadline(&self) -> Instant {
        let open = self.entries.iter().filter(|entry| entry.open);
        let deadlines = open.take(self.live).map(|entry| entry.deadline);
        deadlines.min().unwrap_or(Instant::FAR)
    }

    /// Ends at most one call whose deadline has passed: which, and the length of the packet in
    /// `place` that tells the server, so that it does not work on for nobody. A listener that no
    /// packet has given an id says nothing: its open id could end any call of the method. Call
    /// again until `None`.
    pub fn expire(&mut self, place: &mut [u8], now: Instant) -> Option<(ClientCall, usize)> {
        let due = |entry: &Entry| entry.open && now >= entry.deadline;
        let index = self.entries.iter().position(due)?;
        let entry = self.entries.get(index)?;
        let call = ClientCall {
            route: entry.route,
            index,
            order: entry.order,
        };
        count(&mut self.stats.expired);
        let len = self.cancel(&call, Status::DEADLINE_EXCEEDED, place);
        let told = !is_open_id(call.route.call_id);
        Some((call, if told { len } else { 0 }))
    }
}

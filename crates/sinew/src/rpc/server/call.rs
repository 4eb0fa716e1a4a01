//! One step of one call: what a service sees, and how what it says becomes a packet.
//!
//! # Where a handler runs
//! In the receive step of the link's driver, in the driver's thread, task or main loop, with the
//! services borrowed (in `sinew-io`: their mutex held). So a handler must be short and must not
//! block or call back over the same link. It may compute, answer at once, or take the call away
//! with `defer` and answer from anywhere, at any time.

use core::marker::PhantomData;

use super::super::message::{Decode, Encode, MethodKind};
use super::super::packet::{self, Draft, Of, PacketType, Payload, Route};
use super::super::status::Status;
use super::slot::{FromSlot, Responder, Writer};
use super::table::Table;
use super::{Stats, Via};
use crate::time::Instant;

/// What came in for a call. Plain bytes: generated code decodes them.
#[derive(Clone, Copy, Debug)]
pub enum Input<'p> {
    /// The call opens. The payload is the request; a method with a client stream ignores it.
    Request(&'p [u8]),
    /// An item of the client's stream.
    Item(&'p [u8]),
    /// The client's stream is complete.
    End,
    /// The call has ended from outside: cancelled, expired, replaced, or the link is gone. Nothing
    /// can be sent any more.
    Closed(Status),
}

/// What a handler of a client stream is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StreamIn<'m, T> {
    /// The call opens.
    Open,
    /// An item.
    Item(&'m T),
    /// The client's stream is complete.
    End,
    /// The call has ended from outside; whatever the handler returns is ignored.
    Closed(Status),
}

/// Why a handler returns without a response. Made from a [`Status`] (the call ends with it), or
/// by `defer`, `wait` and `send`: there is no other way not to answer.
#[derive(Debug)]
#[must_use = "the handler returns it as its error"]
pub struct Stop(Reason);

#[derive(Debug, PartialEq)]
enum Reason {
    Status(Status),
    Deferred,
    Waiting,
    Sent,
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Stop(Reason::Status(status))
    }
}

#[cfg(feature = "micropb")]
impl From<heapless::CapacityError> for Stop {
    /// OUT_OF_RANGE: a value of the response exceeds the capacity of its field.
    fn from(_: heapless::CapacityError) -> Self {
        Status::OUT_OF_RANGE.into()
    }
}

impl Stop {
    /// The status, where the handler ended the call with one.
    pub fn status(&self) -> Option<Status> {
        match self.0 {
            Reason::Status(status) => Some(status),
            _ => None,
        }
    }
}

/// One step of one call, as a service sees it: the untyped form that generated code builds on.
#[derive(Debug)]
pub struct Call<'a> {
    pub(super) route: Route,
    pub(super) via: &'a Via,
    pub(super) table: Table<'a>,
    /// Index of the call's entry, where it has one.
    pub(super) entry: Option<usize>,
    pub(super) place: &'a mut [u8],
    pub(super) written: usize,
    pub(super) now: Instant,
    pub(super) stats: &'a mut Stats,
}

impl<'a> Call<'a> {
    /// Service id of this packet.
    pub fn service(&self) -> u32 {
        self.route.service
    }

    /// Method id of this packet.
    pub fn method(&self) -> u32 {
        self.route.method
    }

    /// The packet that this step has written so far; empty where there is none. What leaves later, by a
    /// [`Responder`] or a [`Writer`], is never here.
    pub fn written(&self) -> &[u8] {
        self.place.get(..self.written).unwrap_or_default()
    }

    /// What the engine has refused so far.
    pub fn stats(&self) -> &Stats {
        self.stats
    }

    /// Serves a unary method: decodes, calls `handler`, answers. Returns `true`, so that a
    /// dispatcher can end with it.
    pub fn unary<Q: Decode, R: Encode>(
        &mut self,
        input: Input<'_>,
        handler: impl FnOnce(&Q, Cx<'_, Responder<R>>) -> Result<R, Stop>,
    ) -> bool {
        if let Input::Request(bytes) = input {
            match Q::decode(bytes) {
                Some(request) => {
                    let result = handler(&request, Cx::new(self, MethodKind::Unary));
                    self.answer(result);
                }
                None => self.undecodable(),
            }
        }
        true
    }

    /// Serves a server-stream method.
    pub fn server_stream<Q: Decode, R: Encode>(
        &mut self,
        input: Input<'_>,
        handler: impl FnOnce(&Q, Cx<'_, Writer<R>>) -> Result<(), Stop>,
    ) -> bool {
        if let Input::Request(bytes) = input {
            match Q::decode(bytes) {
                Some(request) => {
                    let result = handler(&request, Cx::new(self, MethodKind::ServerStream));
                    self.end(result);
                }
                None => self.undecodable(),
            }
        }
        true
    }

    /// Serves a client-stream method.
    pub fn client_stream<Q: Decode, R: Encode>(
        &mut self,
        input: Input<'_>,
        handler: impl FnOnce(StreamIn<'_, Q>, StreamCx<'_, Responder<R>>) -> Result<R, Stop>,
    ) -> bool {
        if let Some((closed, result)) = self.stream(MethodKind::ClientStream, input, handler)
            && !closed
        {
            self.answer(result);
        }
        true
    }

    /// Serves a method with streams in both directions.
    pub fn bidi<Q: Decode, R: Encode>(
        &mut self,
        input: Input<'_>,
        handler: impl FnOnce(StreamIn<'_, Q>, StreamCx<'_, Writer<R>>) -> Result<(), Stop>,
    ) -> bool {
        if let Some((closed, result)) = self.stream(MethodKind::Bidi, input, handler)
            && !closed
        {
            self.end(result);
        }
        true
    }

    /// Runs a handler of a client stream; `None` where it did not run, and whether the call was
    /// closed before it ran.
    fn stream<Q: Decode, D: FromSlot, T>(
        &mut self,
        kind: MethodKind,
        input: Input<'_>,
        handler: impl FnOnce(StreamIn<'_, Q>, StreamCx<'_, D>) -> Result<T, Stop>,
    ) -> Option<(bool, Result<T, Stop>)> {
        let item;
        let (input, closed) = match input {
            Input::Request(_) => {
                if !self.open(kind) {
                    self.exhausted();
                    return None;
                }
                (StreamIn::Open, false)
            }
            Input::Item(bytes) => match Q::decode(bytes) {
                Some(message) => {
                    item = message;
                    (StreamIn::Item(&item), false)
                }
                None => {
                    // Table: nothing is sent; the next packet of the call finds none.
                    self.stats.undecodable = self.stats.undecodable.wrapping_add(1);
                    self.close();
                    (StreamIn::Closed(Status::DATA_LOSS), true)
                }
            },
            Input::End => (StreamIn::End, false),
            Input::Closed(status) => (StreamIn::Closed(status), true),
        };
        let index = self.entry?;
        let cx = Cx::new(self, kind);
        let result = handler(input, StreamCx { cx, index });
        if closed {
            self.written = 0; // an item sent by a handler that was told of the end
        }
        Some((closed, result))
    }

    /// Makes sure that the call has an entry; `false` where every slot is in use.
    // Here and below: one copy on small cores, where flash is short.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn open(&mut self, kind: MethodKind) -> bool {
        if self.entry.is_none() {
            self.entry = self.table.open(self.via.link, &self.route, kind, self.now);
        }
        self.entry.is_some()
    }

    fn close(&mut self) {
        if let Some(index) = self.entry {
            self.table.close(index);
        }
    }

    fn answer<R: Encode>(&mut self, result: Result<R, Stop>) {
        match result {
            Ok(response) => {
                if !self.write(PacketType::RESPONSE, &Of(&response)) {
                    self.write_empty(PacketType::SERVER_ERROR, Status::INTERNAL);
                }
                self.close();
            }
            Err(stop) => self.stop(stop),
        }
    }

    fn end(&mut self, result: Result<(), Stop>) {
        self.stop(match result {
            Ok(()) => Status::OK.into(),
            Err(stop) => stop,
        });
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn stop(&mut self, stop: Stop) {
        match stop.0 {
            Reason::Status(status) => {
                if status == Status::RESOURCE_EXHAUSTED {
                    self.stats.exhausted = self.stats.exhausted.wrapping_add(1);
                }
                self.write_empty(PacketType::RESPONSE, status);
                self.close();
            }
            // A token kept from another call must not leave this one without an answer.
            _ if self.entry.is_none() => {
                self.write_empty(PacketType::RESPONSE, Status::INTERNAL);
            }
            Reason::Deferred | Reason::Waiting | Reason::Sent => {}
        }
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn undecodable(&mut self) {
        self.stats.undecodable = self.stats.undecodable.wrapping_add(1);
        self.write_empty(PacketType::SERVER_ERROR, Status::DATA_LOSS);
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn exhausted(&mut self) {
        self.stats.exhausted = self.stats.exhausted.wrapping_add(1);
        self.write_empty(PacketType::SERVER_ERROR, Status::RESOURCE_EXHAUSTED);
    }

    /// Writes a message into the place of this step; `false`, and counted, where it does not fit.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    fn write(&mut self, packet_type: PacketType, payload: &dyn Payload) -> bool {
        let draft = Draft {
            packet_type,
            route: &self.route,
            payload,
            status: Status::OK,
        };
        let len = draft.write(self.place);
        match len {
            Some(len) => self.written = len,
            None => self.stats.oversize = self.stats.oversize.wrapping_add(1),
        }
        len.is_some()
    }

    #[inline(never)] // one copy for all that refuses or ends a call
    pub(super) fn write_empty(&mut self, packet_type: PacketType, status: Status) {
        self.written =
            packet::encode_empty(self.place, packet_type, &self.route, status).unwrap_or(0);
    }
}

/// What a handler knows of its call, and the way to answer it later.
///
/// `D` is what [`Cx::defer`] gives: a [`Responder`] or a [`Writer`].
#[derive(Debug)]
pub struct Cx<'c, D> {
    call: Calling<'c>,
    kind: MethodKind,
    deferred: PhantomData<fn() -> D>,
}

/// The call behind a context; a direct call has none, and nothing to answer later with.
#[derive(Debug)]
enum Calling<'c> {
    Link(&'c mut dyn Deferring),
    Direct,
}

/// The part of [`Call`] that a context needs, free of its lifetime.
trait Deferring: core::fmt::Debug {
    fn take(&mut self, kind: MethodKind) -> Result<(usize, u32), Status>;
    fn build_parts(
        &self,
        kind: MethodKind,
        index: usize,
    ) -> Option<(&'static super::Slot, &'static dyn crate::link::Port)>;
    fn route(&self) -> Route;
    fn now(&self) -> Instant;
    fn write_item(&mut self, item: &dyn Payload) -> bool;
}

impl Deferring for Call<'_> {
    fn take(&mut self, kind: MethodKind) -> Result<(usize, u32), Status> {
        if self.via.port_for(kind).is_none() {
            return Err(Status::UNIMPLEMENTED);
        }
        if !self.open(kind) {
            return Err(Status::RESOURCE_EXHAUSTED);
        }
        let index = self.entry.ok_or(Status::INTERNAL)?;
        let entry = self
            .table
            .book
            .entries
            .get_mut(index)
            .ok_or(Status::INTERNAL)?;
        if entry.taken {
            return Err(Status::FAILED_PRECONDITION);
        }
        entry.taken = true;
        Ok((index, entry.generation()))
    }

    fn build_parts(
        &self,
        kind: MethodKind,
        index: usize,
    ) -> Option<(&'static super::Slot, &'static dyn crate::link::Port)> {
        Some((self.table.slots.get(index)?, self.via.port_for(kind)?))
    }

    fn route(&self) -> Route {
        self.route
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn write_item(&mut self, item: &dyn Payload) -> bool {
        self.write(PacketType::SERVER_STREAM, item)
    }
}

impl<'c, D: FromSlot> Cx<'c, D> {
    fn new(call: &'c mut Call<'_>, kind: MethodKind) -> Self {
        Cx {
            call: Calling::Link(call),
            kind,
            deferred: PhantomData,
        }
    }

    /// A context without a link, for a direct call.
    pub(crate) fn direct(kind: MethodKind) -> Cx<'static, D> {
        Cx {
            call: Calling::Direct,
            kind,
            deferred: PhantomData,
        }
    }

    /// Takes the call away, to be answered later from any task, and gives what the handler then
    /// returns as its error:
    ///
    /// ```
    /// # use sinew::rpc::{Cx, Raw, Responder, Stop};
    /// # struct Later { waiting: Option<Responder<Raw<8>>> }
    /// # impl Later {
    /// fn measure(&mut self, _: &Raw<8>, cx: Cx<'_, Responder<Raw<8>>>) -> Result<Raw<8>, Stop> {
    ///     let (responder, later) = cx.defer()?;
    ///     self.waiting = Some(responder); // or into a queue that another task serves
    ///     Err(later)
    /// }
    /// # }
    /// ```
    ///
    /// The error ends the call: RESOURCE_EXHAUSTED where every slot is in use, UNIMPLEMENTED on a
    /// link without a port or in a direct call (reach the service through a loopback queue),
    /// FAILED_PRECONDITION where the call has been taken before.
    pub fn defer(self) -> Result<(D, Stop), Stop> {
        let Calling::Link(call) = self.call else {
            return Err(Status::UNIMPLEMENTED.into());
        };
        let (index, generation) = call.take(self.kind)?;
        let (slot, port) = call.build_parts(self.kind, index).ok_or(Status::INTERNAL)?;
        Ok((
            D::build(slot, port, call.route(), generation),
            Stop(Reason::Deferred),
        ))
    }

    /// The channel that the call came in on; 0 in a direct call.
    pub fn channel(&self) -> u32 {
        match &self.call {
            Calling::Link(call) => call.route().channel,
            Calling::Direct => 0,
        }
    }

    /// The time of this step; [`Instant::START`] in a direct call.
    pub fn now(&self) -> Instant {
        match &self.call {
            Calling::Link(call) => call.now(),
            Calling::Direct => Instant::START,
        }
    }
}

/// [`Cx`] for a method with a client stream: the call stays open between its steps.
#[derive(Debug)]
pub struct StreamCx<'c, D> {
    cx: Cx<'c, D>,
    index: usize,
}

impl<D: FromSlot> StreamCx<'_, D> {
    /// A small number that is this call's as long as it is open: below the number of call slots,
    /// so a service can keep the state of its calls in an array.
    pub fn slot(&self) -> usize {
        self.index
    }

    /// More is expected: the call stays open and nothing is sent now.
    pub fn wait(&self) -> Stop {
        Stop(Reason::Waiting)
    }

    /// See [`Cx::defer`]. Later items still come to the handler.
    pub fn defer(self) -> Result<(D, Stop), Stop> {
        self.cx.defer()
    }

    /// See [`Cx::channel`].
    pub fn channel(&self) -> u32 {
        self.cx.channel()
    }

    /// See [`Cx::now`].
    pub fn now(&self) -> Instant {
        self.cx.now()
    }
}

impl<R: Encode> StreamCx<'_, Writer<R>> {
    /// Sends one item in the place of this step (so it never meets a full link) and waits for
    /// more. An item that does not fit ends the call with INTERNAL.
    pub fn send(self, item: &R) -> Stop {
        let Calling::Link(call) = self.cx.call else {
            return Status::UNIMPLEMENTED.into();
        };
        if call.write_item(&Of(item)) {
            Stop(Reason::Sent)
        } else {
            Status::INTERNAL.into()
        }
    }
}

//! One packet of pw_rpc: the message `RpcPacket` (specs/pw_rpc.md, section 1).
//!
//! Any field order is read, unknown fields are skipped, the last duplicate wins, absent is 0.
//! Written in field order, zero fields dropped, as Pigweed's Python does it: byte for byte the
//! frames of section 9.

use super::message::{Encode, MethodId};
use super::status::Status;
use crate::wire::{Reader, varint};

/// The most bytes that the fields around the payload take.
pub const HEADER_MAX: usize = 2 + 6 + 5 + 5 + 6 + 6 + 6;

/// The call id of an unrequested answer: matches any pending call of the method. 0 is its legacy
/// form (section 4).
pub const OPEN_CALL_ID: u32 = u32::MAX;

/// Whether a call id is one of the two that match any call.
pub const fn is_open_id(call_id: u32) -> bool {
    call_id == 0 || call_id == OPEN_CALL_ID
}

/// The type field. Even: for the server; odd: for the client. Any value can arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PacketType(pub u32);

impl PacketType {
    /// Opens a call; carries the request of unary and server-stream methods.
    pub const REQUEST: PacketType = PacketType(0);
    /// Ends a call; carries the response of unary and client-stream methods.
    pub const RESPONSE: PacketType = PacketType(1);
    /// An item of the client's stream.
    pub const CLIENT_STREAM: PacketType = PacketType(2);
    /// The client gives the call up.
    pub const CLIENT_ERROR: PacketType = PacketType(4);
    /// The server gives the call up, or never had it.
    pub const SERVER_ERROR: PacketType = PacketType(5);
    /// An item of the server's stream.
    pub const SERVER_STREAM: PacketType = PacketType(7);
    /// The client's stream is complete.
    pub const CLIENT_REQUEST_COMPLETION: PacketType = PacketType(8);

    /// Whether the packet is for the server's side.
    pub const fn is_for_server(self) -> bool {
        self.0 & 1 == 0
    }
}

/// A call's address on one link: what every packet of it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Route {
    /// Channel id, 1 and up.
    pub channel: u32,
    /// Service id.
    pub service: u32,
    /// Method id.
    pub method: u32,
    /// Call id; chosen by the client and echoed verbatim.
    pub call_id: u32,
}

impl Route {
    /// The route of a call of `method`.
    pub const fn new(channel: u32, method: MethodId, call_id: u32) -> Route {
        Route {
            channel,
            service: method.service,
            method: method.method,
            call_id,
        }
    }

    /// Whether both are calls of one method on one channel.
    pub(crate) fn same_method(&self, other: &Route) -> bool {
        self.channel == other.channel
            && self.service == other.service
            && self.method == other.method
    }
}

/// Why bytes are no packet. Nothing is ever sent back for these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketError {
    /// Not a protobuf message, cut off, or a known field of the wrong wire type.
    Malformed,
    /// Channel, service or method is 0.
    ZeroId,
}

/// A packet as it arrived; the payload stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Which of the seven.
    pub packet_type: PacketType,
    /// Channel, service, method and call.
    pub route: Route,
    /// The encoded message; empty where absent.
    pub payload: &'a [u8],
    /// The status; OK where absent.
    pub status: Status,
}

impl<'a> Packet<'a> {
    /// Reads a packet, all ids non-zero.
    pub fn decode(bytes: &'a [u8]) -> Result<Packet<'a>, PacketError> {
        let packet = Packet::read(bytes).ok_or(PacketError::Malformed)?;
        let Route {
            channel,
            service,
            method,
            ..
        } = packet.route;
        if channel == 0 || service == 0 || method == 0 {
            return Err(PacketError::ZeroId);
        }
        Ok(packet)
    }

    fn read(mut bytes: &'a [u8]) -> Option<Packet<'a>> {
        let (mut packet_type, mut channel, mut status, mut call_id) = (0, 0, 0, 0);
        let (mut service, mut method) = (0, 0);
        let mut payload: &[u8] = &[];
        // In field order, with numbers below 128, as nearly every packet comes: the head at a look.
        if let &[0x08, value @ 0..=0x7f, ref rest @ ..] = bytes {
            packet_type = u32::from(value);
            bytes = rest;
        }
        if let Some(rest) = usual_ids(bytes, &mut channel, &mut service, &mut method) {
            bytes = rest;
        }
        let mut bytes = Reader::new(bytes);
        while !bytes.is_empty() {
            match bytes.varint32()? {
                0x08 => packet_type = bytes.varint32()?,
                0x10 => channel = bytes.varint32()?,
                0x1d => service = bytes.fixed32()?,
                0x25 => method = bytes.fixed32()?,
                0x2a => {
                    let len = bytes.varint32()?;
                    payload = bytes.take(len as usize)?;
                }
                0x30 => status = bytes.varint32()?,
                0x38 => call_id = bytes.varint32()?,
                // Field 0, or a known field of the wrong wire type.
                tag if tag >> 3 <= 7 => return None,
                tag => bytes.skip(tag & 7)?,
            }
        }
        Some(Packet {
            packet_type: PacketType(packet_type),
            route: Route {
                channel,
                service,
                method,
                call_id,
            },
            payload,
            status: Status::from_code(status),
        })
    }
}

/// Reads channel, service and method where they stand in this order and the channel is below 128.
#[inline(always)]
fn usual_ids<'a>(
    bytes: &'a [u8],
    channel: &mut u32,
    service: &mut u32,
    method: &mut u32,
) -> Option<&'a [u8]> {
    let (&[0x10, id @ 0..=0x7f, 0x1d], rest) = bytes.split_first_chunk()? else {
        return None;
    };
    let (first, rest) = rest.split_first_chunk()?;
    let (0x25, rest) = rest.split_first()? else {
        return None;
    };
    let (second, rest) = rest.split_first_chunk()?;
    *channel = u32::from(id);
    *service = u32::from_le_bytes(*first);
    *method = u32::from_le_bytes(*second);
    Some(rest)
}

/// Writes a packet to the front of `place` and returns its length; `None` where it does not fit
/// or the message cannot be encoded.
pub fn encode<T: Encode + ?Sized>(
    place: &mut [u8],
    packet_type: PacketType,
    route: &Route,
    payload: &T,
    status: Status,
) -> Option<usize> {
    encode_any(place, packet_type, route, &Of(payload), status)
}

/// A payload of any type, so that a program holds one copy of what encodes packets and not one for
/// each of its messages.
pub(crate) trait Payload {
    /// The exact number of bytes of the message.
    fn len(&self) -> usize;
    /// Writes the payload field at `start` and returns the index behind it.
    fn write(&self, place: &mut [u8], start: usize) -> Option<usize>;
}

/// A message as the payload.
pub(crate) struct Of<'m, T: ?Sized>(pub(crate) &'m T);

impl<T: Encode + ?Sized> Payload for Of<'_, T> {
    fn len(&self) -> usize {
        self.0.encoded_len()
    }

    fn write(&self, place: &mut [u8], start: usize) -> Option<usize> {
        encode_payload(place, start, self.0)
    }
}

/// No payload.
pub(crate) struct Nothing;

impl Payload for Nothing {
    fn len(&self) -> usize {
        0
    }

    fn write(&self, _place: &mut [u8], start: usize) -> Option<usize> {
        Some(start)
    }
}

pub(crate) fn encode_any(
    place: &mut [u8],
    packet_type: PacketType,
    route: &Route,
    payload: &dyn Payload,
    status: Status,
) -> Option<usize> {
    let start = encode_head(place, packet_type, route)?;
    let end = payload.write(place, start)?;
    encode_tail(place, end, route, status)
}

/// Writes a packet without payload.
pub fn encode_empty(
    place: &mut [u8],
    packet_type: PacketType,
    route: &Route,
    status: Status,
) -> Option<usize> {
    encode_any(place, packet_type, route, &Nothing, status)
}

fn encode_head(place: &mut [u8], packet_type: PacketType, route: &Route) -> Option<usize> {
    let mut at = 0;
    if packet_type.0 != 0 {
        *place.get_mut(at)? = 0x08;
        at = varint::write32(place, at + 1, packet_type.0)?;
    }
    *place.get_mut(at)? = 0x10;
    at = varint::write32(place, at + 1, route.channel)?;
    let ids: &mut [u8; 10] = place.get_mut(at..at + 10)?.try_into().ok()?;
    ids[0] = 0x1d;
    ids[1..5].copy_from_slice(&route.service.to_le_bytes());
    ids[5] = 0x25;
    ids[6..10].copy_from_slice(&route.method.to_le_bytes());
    Some(at + 10)
}

fn encode_payload<T: Encode + ?Sized>(
    place: &mut [u8],
    start: usize,
    payload: &T,
) -> Option<usize> {
    // A message that can never reach 128 bytes has a one-byte length, known without a first pass.
    if T::MAX_LEN < 128 {
        let body = start + 2;
        // An empty message fits even where the place ends before its body would begin.
        let len = payload.encode(place.get_mut(body..).unwrap_or_default())?;
        if len == 0 {
            return Some(start);
        }
        *place.get_mut(start)? = 0x2a;
        *place.get_mut(start + 1)? = len as u8;
        return body.checked_add(len);
    }
    let len = payload.encoded_len();
    if len == 0 {
        return Some(start);
    }
    *place.get_mut(start)? = 0x2a;
    let body = varint::write32(place, start + 1, u32::try_from(len).ok()?)?;
    let end = body.checked_add(len)?;
    (payload.encode(place.get_mut(body..end)?)? == len).then_some(end)
}

fn encode_tail(place: &mut [u8], mut at: usize, route: &Route, status: Status) -> Option<usize> {
    if !status.is_ok() {
        *place.get_mut(at)? = 0x30;
        at = varint::write32(place, at + 1, status.code())?;
    }
    if route.call_id != 0 {
        *place.get_mut(at)? = 0x38;
        at = varint::write32(place, at + 1, route.call_id)?;
    }
    Some(at)
}

//! One packet of pw_rpc: the message `RpcPacket` (wire reference, section Packet).
//!
//! Any field order is read, unknown fields are skipped, the last duplicate wins, absent is 0.
//! Written in field order, zero fields dropped, as Pigweed's Python does it: byte for byte the
//! frames of the wire reference, section Worked frames.

use super::message::{Encode, MethodId};
use super::status::Status;
use crate::link::{Port, SendError};
use crate::wire::Reader;

/// The most bytes that the fields around the payload take.
pub const HEADER_MAX: usize = 2 + 6 + 5 + 5 + 6 + 6 + 6;

/// The call id of an unrequested answer: matches any pending call of the method. 0 is its legacy
/// form (wire reference, section Call ids).
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
            let tag = bytes.varint32()?;
            let value = match tag & 7 {
                0 | 2 => bytes.varint32()?,
                1 => {
                    bytes.take(8)?;
                    0
                }
                5 => bytes.fixed32()?,
                _ => return None, // groups, and what does not exist
            };
            let part = if tag & 7 == 2 {
                bytes.take(value as usize)?
            } else {
                &[]
            };
            match tag {
                0x08 => packet_type = value,
                0x10 => channel = value,
                0x1d => service = value,
                0x25 => method = value,
                0x2a => payload = part,
                0x30 => status = value,
                0x38 => call_id = value,
                // Field 0, or a known field of the wrong wire type.
                tag if tag >> 3 <= 7 => return None,
                _ => {}
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
    let payload = &Of(payload);
    Draft {
        packet_type,
        route,
        payload,
        status,
    }
    .write(place)
}

/// Writes a packet without payload.
#[cfg_attr(target_pointer_width = "32", inline(never))] // one copy where flash is short
pub fn encode_empty(
    place: &mut [u8],
    packet_type: PacketType,
    route: &Route,
    status: Status,
) -> Option<usize> {
    Draft::empty(packet_type, route, status).write(place)
}

/// A payload of any type, so that a program holds one copy of what encodes packets and not one for
/// each of its messages.
pub(crate) trait Payload {
    /// As many bytes as the message may take, and no fewer than it does.
    fn room(&self) -> usize;
    /// Writes the payload field to the front of `place` and returns what is behind it.
    fn write<'p>(&self, place: &'p mut [u8]) -> Option<&'p mut [u8]>;
}

/// A message as the payload.
pub(crate) struct Of<'m, T: ?Sized>(pub(crate) &'m T);

impl<T: Encode + ?Sized> Of<'_, T> {
    /// A message that can never reach 128 bytes has a length of one byte, known without a first
    /// pass.
    const IS_SHORT: bool = T::MAX_LEN < 128;
}

impl<T: Encode + ?Sized> Payload for Of<'_, T> {
    fn room(&self) -> usize {
        if Self::IS_SHORT {
            T::MAX_LEN
        } else {
            self.0.encoded_len()
        }
    }

    fn write<'p>(&self, place: &'p mut [u8]) -> Option<&'p mut [u8]> {
        if Self::IS_SHORT {
            // An empty message fits even where the place ends before its body would begin.
            let len = self.0.encode(place.get_mut(2..).unwrap_or_default())?;
            if len == 0 {
                return Some(place);
            }
            let (head, rest) = place.split_first_chunk_mut()?;
            *head = [PAYLOAD, len as u8];
            return rest.get_mut(len..);
        }
        let len = self.0.encoded_len();
        let rest = field(place, PAYLOAD, u32::try_from(len).ok()?)?;
        let (body, rest) = rest.split_at_mut_checked(len)?;
        (self.0.encode(body)? == len).then_some(rest)
    }
}

/// No payload.
pub(crate) struct Nothing;

impl Payload for Nothing {
    fn room(&self) -> usize {
        0
    }

    fn write<'p>(&self, place: &'p mut [u8]) -> Option<&'p mut [u8]> {
        Some(place)
    }
}

/// A packet to be written.
#[derive(Clone, Copy)]
pub(crate) struct Draft<'a> {
    pub(crate) packet_type: PacketType,
    pub(crate) route: &'a Route,
    pub(crate) payload: &'a dyn Payload,
    pub(crate) status: Status,
}

impl<'a> Draft<'a> {
    /// A packet without payload.
    pub(crate) fn empty(packet_type: PacketType, route: &'a Route, status: Status) -> Self {
        Draft {
            packet_type,
            route,
            payload: &Nothing,
            status,
        }
    }

    /// Writes the packet to the front of `place` and returns its length; `None` where it does not
    /// fit.
    // One copy for all packets on small cores; elsewhere one for each message.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline(always))]
    pub(crate) fn write(&self, place: &mut [u8]) -> Option<usize> {
        let room = place.len();
        let rest = field(place, 0x08, self.packet_type.0)?;
        let rest = field(rest, 0x10, self.route.channel)?;
        let (ids, rest) = rest.split_first_chunk_mut::<10>()?;
        ids[0] = 0x1d;
        ids[1..5].copy_from_slice(&self.route.service.to_le_bytes());
        ids[5] = 0x25;
        ids[6..10].copy_from_slice(&self.route.method.to_le_bytes());
        let rest = self.payload.write(rest)?;
        let rest = field(rest, 0x30, self.status.code())?;
        let rest = field(rest, 0x38, self.route.call_id)?;
        room.checked_sub(rest.len())
    }

    /// Sends the packet by `port`; `Ok(false)` where it does not fit into a place of it.
    pub(crate) fn send(&self, port: &dyn Port) -> Result<bool, SendError> {
        let min = HEADER_MAX.saturating_add(self.payload.room());
        let mut len = None;
        port.send(min.min(port.mtu()), &mut |place| {
            len = self.write(place);
            len.unwrap_or(0)
        })?;
        Ok(len.is_some())
    }
}

const PAYLOAD: u8 = 0x2a;

/// Writes a varint field, or nothing where it is 0; returns what is behind it.
#[inline(always)]
fn field(place: &mut [u8], tag: u8, value: u32) -> Option<&mut [u8]> {
    if value == 0 {
        return Some(place);
    }
    long_field(place, tag, value)
}

#[cfg_attr(target_pointer_width = "32", inline(never))] // one copy for all fields
fn long_field(place: &mut [u8], tag: u8, mut value: u32) -> Option<&mut [u8]> {
    let (first, mut rest) = place.split_first_mut()?;
    *first = tag;
    loop {
        let (first, behind) = rest.split_first_mut()?;
        rest = behind;
        *first = value as u8;
        if value < 0x80 {
            return Some(rest);
        }
        *first |= 0x80;
        value >>= 7;
    }
}

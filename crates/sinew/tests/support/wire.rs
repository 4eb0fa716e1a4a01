//! Packets by hand, and as they were seen.

use std::fmt;

use sinew::rpc::packet::{Packet, PacketType, Route, encode};
use sinew::rpc::{Decode, Encode, Status};

use super::kinds::SERVICE;

/// The message of the tests: `message Num { uint32 n = 1; }`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Num(pub u32);

impl Num {
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0; self.encoded_len()];
        self.encode(&mut bytes).expect("room for its own length");
        bytes
    }
}

impl Encode for Num {
    const MAX_LEN: usize = 6;

    fn encoded_len(&self) -> usize {
        match self.0 {
            0 => 0,
            n => 1 + (32 - n.leading_zeros() as usize).div_ceil(7),
        }
    }

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        if self.0 == 0 {
            return Some(0);
        }
        *out.first_mut()? = 0x08;
        sinew::wire::varint::write32(out, 1, self.0)
    }
}

impl Decode for Num {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = sinew::wire::Reader::new(bytes);
        let mut num = Num(0);
        while !reader.is_empty() {
            match reader.varint32()? {
                0x08 => num.0 = reader.varint32()?,
                tag if tag >> 3 > 1 => reader.skip(tag & 7)?,
                _ => return None,
            }
        }
        Some(num)
    }
}

/// A packet to be sent.
#[derive(Clone, Debug)]
pub struct P {
    pub packet_type: u32,
    pub channel: u32,
    pub service: u32,
    pub method: u32,
    pub call_id: u32,
    pub payload: Vec<u8>,
    pub status: Status,
}

impl P {
    pub fn new(packet_type: PacketType, method: u32, call_id: u32, payload: &[u8]) -> P {
        P {
            packet_type: packet_type.0,
            channel: 1,
            service: SERVICE,
            method,
            call_id,
            payload: payload.to_vec(),
            status: Status::OK,
        }
    }

    pub fn status(mut self, status: Status) -> P {
        self.status = status;
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut place = vec![0; 64 + self.payload.len()];
        let route = Route {
            channel: self.channel,
            service: self.service,
            method: self.method,
            call_id: self.call_id,
        };
        let packet_type = PacketType(self.packet_type);
        let len = encode(
            &mut place,
            packet_type,
            &route,
            &self.payload[..],
            self.status,
        );
        place.truncate(len.expect("room for the packet"));
        place
    }
}

pub fn request(method: u32, call_id: u32, n: u32) -> P {
    P::new(PacketType::REQUEST, method, call_id, &Num(n).to_vec())
}

pub fn item(method: u32, call_id: u32, payload: &[u8]) -> P {
    P::new(PacketType::CLIENT_STREAM, method, call_id, payload)
}

pub fn end(method: u32, call_id: u32) -> P {
    P::new(PacketType::CLIENT_REQUEST_COMPLETION, method, call_id, &[])
}

pub fn cancel(method: u32, call_id: u32) -> P {
    P::new(PacketType::CLIENT_ERROR, method, call_id, &[]).status(Status::CANCELLED)
}

/// A packet as it was seen on the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    pub packet_type: PacketType,
    pub route: Route,
    pub payload: Vec<u8>,
    pub status: Status,
}

impl Seen {
    pub fn of(bytes: &[u8]) -> Seen {
        let packet = Packet::decode(bytes).expect("engines send packets that can be decoded");
        Seen {
            packet_type: packet.packet_type,
            route: packet.route,
            payload: packet.payload.to_vec(),
            status: packet.status,
        }
    }

    pub fn num(&self) -> u32 {
        Num::decode(&self.payload).expect("a number").0
    }
}

pub fn type_name(packet_type: PacketType) -> String {
    match packet_type {
        PacketType::REQUEST => "REQUEST".into(),
        PacketType::RESPONSE => "RESPONSE".into(),
        PacketType::CLIENT_STREAM => "CLIENT_STREAM".into(),
        PacketType::CLIENT_ERROR => "CLIENT_ERROR".into(),
        PacketType::SERVER_ERROR => "SERVER_ERROR".into(),
        PacketType::SERVER_STREAM => "SERVER_STREAM".into(),
        PacketType::CLIENT_REQUEST_COMPLETION => "CLIENT_REQUEST_COMPLETION".into(),
        PacketType(other) => format!("type {other}"),
    }
}

/// `TYPE STATUS #call [payload]`: short enough for a table.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = type_name(self.packet_type);
        write!(f, "{name} {} #{}", self.status, self.route.call_id)?;
        match self.payload.as_slice() {
            [] => Ok(()),
            payload => match Num::decode(payload) {
                Some(num) => write!(f, " n={}", num.0),
                None => write!(f, " {} bytes", payload.len()),
            },
        }
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub fn show(seen: &Option<Seen>) -> String {
    seen.as_ref().map_or("-".into(), Seen::to_string)
}

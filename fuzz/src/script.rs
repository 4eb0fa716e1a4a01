//! An input read as a script for an engine: packets, time that passes, and tasks that act.

use sinew::rpc::packet::{OPEN_CALL_ID, PacketType, Route, encode};
use sinew::rpc::{Raw, Status};

/// The service of the targets, and a method of each kind; the last one is unknown.
pub const SERVICE: u32 = 1;
pub const UNARY: u32 = 1;
pub const SERVER_STREAM: u32 = 2;
pub const CLIENT_STREAM: u32 = 3;
pub const BIDI: u32 = 4;
const METHODS: u8 = 5;

pub type Bytes = Raw<8>;

/// One step of a script.
pub enum Step {
    Packet(Vec<u8>),
    /// Milliseconds.
    Wait(u64),
    /// An action of the target's choice.
    Act(u8),
}

/// Reads the next step, by its first byte: a packet from its fields, bytes as they are (with their
/// length), time, an action.
pub fn next(script: &mut &[u8]) -> Option<Step> {
    let kind = take(script, 1)?[0];
    Some(match kind % 8 {
        0..4 => {
            let fields = take(script, 5)?;
            Step::Packet(packet(fields))
        }
        4 => {
            let len = take(script, 1)?[0].min(64);
            Step::Packet(take(script, len.into())?.to_vec())
        }
        5 => Step::Wait(u64::from(take(script, 1)?[0]) * 256),
        _ => Step::Act(take(script, 1)?[0]),
    })
}

fn take<'s>(script: &mut &'s [u8], len: usize) -> Option<&'s [u8]> {
    let (taken, rest) = script.split_at_checked(len)?;
    *script = rest;
    Some(taken)
}

/// Type, method, call id, length of the payload (10 is too long for [`Bytes`]), status.
fn packet(fields: &[u8]) -> Vec<u8> {
    let route = Route {
        channel: 1,
        service: SERVICE,
        method: u32::from(fields[1] % METHODS) + 1,
        call_id: match fields[2] {
            u8::MAX => OPEN_CALL_ID,
            call_id => call_id.into(),
        },
    };
    let payload = vec![fields[2]; usize::from(fields[3] % 11)];
    let mut place = [0; 64];
    let packet_type = PacketType(u32::from(fields[0] % 12));
    let status = Status::from_code(fields[4].into());
    let len = encode(&mut place, packet_type, &route, &payload[..], status);
    place[..len.expect("room")].to_vec()
}

/// Behind what an engine may write.
pub const GUARD: u8 = 0x5a;

/// Checks what an engine wrote at the front of `place`, and returns it.
pub fn written(place: &[u8], room: usize, len: usize) -> &[u8] {
    assert!(len <= room);
    assert!(place[room..].iter().all(|&byte| byte == GUARD));
    &place[..len]
}

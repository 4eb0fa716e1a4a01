//! What the tests of the client share: a method of each kind, packets of a server, events by name.

use core::time::Duration;

use sinew::rpc::packet::PacketType;
use sinew::rpc::{Client, Event, MethodId, MethodKind, Received, Status};
use sinew::time::Instant;

use super::kinds::*;
use super::wire::*;

pub const UNARY: MethodId = method(DOUBLE, MethodKind::Unary);
pub const SERVER_STREAM: MethodId = method(COUNT, MethodKind::ServerStream);
pub const CLIENT_STREAM: MethodId = method(SUM, MethodKind::ClientStream);
pub const BIDI: MethodId = method(ECHO_ALL, MethodKind::Bidi);

pub fn with(change: impl FnOnce(&mut P), mut packet: P) -> P {
    change(&mut packet);
    packet
}

pub fn response(method: u32, call_id: u32, n: u32) -> P {
    P::new(PacketType::RESPONSE, method, call_id, &Num(n).to_vec())
}

pub fn stream(method: u32, call_id: u32, n: u32) -> P {
    P::new(PacketType::SERVER_STREAM, method, call_id, &Num(n).to_vec())
}

pub fn error(method: u32, call_id: u32, status: Status) -> P {
    P::new(PacketType::SERVER_ERROR, method, call_id, &[]).status(status)
}

pub fn event_name(event: &Event<'_>) -> String {
    let bytes = |payload: &[u8]| match payload {
        [] => String::new(),
        payload => match <Num as sinew::rpc::Decode>::decode(payload) {
            Some(num) => format!(" {}", num.0),
            None => format!(" {} bytes", payload.len()),
        },
    };
    let call = event.call.call_id();
    match event.received {
        Received::Item(payload) => format!("#{call} item{}", bytes(payload)),
        Received::Completed(status, payload) => {
            format!("#{call} completed {status}{}", bytes(payload))
        }
        Received::Failed(status) => format!("#{call} failed {status}"),
    }
}

/// Gives one packet to a client: the reply and the event.
pub fn give(client: &mut Client<4>, packet: &[u8]) -> (Option<Seen>, String) {
    let mut place = [0xAA; 64];
    let (len, event) = client.handle(packet, &mut place, Instant::START);
    let reply = (len > 0).then(|| Seen::of(&place[..len]));
    (reply, event.map_or("-".into(), |event| event_name(&event)))
}

pub const SECOND: Duration = Duration::from_secs(1);

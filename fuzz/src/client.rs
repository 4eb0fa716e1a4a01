use std::time::Duration;

use sinew::rpc::packet::{HEADER_MAX, Packet, PacketType};
use sinew::rpc::{Client, ClientCall, MethodId, MethodKind, Received, Status};
use sinew::time::Instant;

use crate::script::{self, BIDI, CLIENT_STREAM, GUARD, SERVER_STREAM, SERVICE, Step, UNARY};

const CALLS: usize = 4;

/// The input is a script (see `script`). The engine writes only into its place and only packets for
/// a server, answers no error, and every call ends: once, and by its deadline.
pub fn client(mut script: &[u8]) {
    let mut client = Client::<CALLS>::new(1, 0);
    let mut open: Vec<ClientCall> = Vec::new();
    let mut now = Instant::START;
    while let Some(step) = script::next(&mut script) {
        let mut place = [GUARD; HEADER_MAX + 8];
        match step {
            Step::Packet(packet) => {
                let (len, event) = client.handle(&packet, &mut place[..HEADER_MAX], now);
                let answer = script::written(&place, HEADER_MAX, len);
                if !answer.is_empty() {
                    let answer = Packet::decode(answer).expect("an engine sends packets");
                    assert_eq!(answer.packet_type, PacketType::CLIENT_ERROR);
                    assert!(!answer.status.is_ok());
                    let read = Packet::decode(&packet).expect("only packets are answered");
                    assert_eq!(read.packet_type, PacketType::SERVER_STREAM);
                }
                if let Some(event) = event {
                    let ended = !matches!(event.received, Received::Item(_));
                    assert_eq!(client.is_open(&event.call), !ended);
                    let index = event.call.index();
                    let known = open.iter().position(|call| call.index() == index);
                    let known = known.expect("only an open call hears something");
                    if ended {
                        open.remove(known);
                    }
                }
            }
            Step::Wait(millis) => {
                now = now.after(Duration::from_millis(millis));
                while let Some((call, len)) = client.expire(&mut place, now) {
                    script::written(&place, place.len(), len);
                    open.retain(|other| other.index() != call.index());
                }
                assert!(client.deadline() > now);
            }
            Step::Act(choice) => act(&mut client, &mut open, choice, now),
        }
        assert!(open.iter().all(|call| client.is_open(call)));
        assert_eq!(client.deadline() == Instant::FAR, open.is_empty());
    }
}

fn act(client: &mut Client<CALLS>, open: &mut Vec<ClientCall>, choice: u8, now: Instant) {
    const KINDS: [(u32, MethodKind); 4] = [
        (UNARY, MethodKind::Unary),
        (SERVER_STREAM, MethodKind::ServerStream),
        (CLIENT_STREAM, MethodKind::ClientStream),
        (BIDI, MethodKind::Bidi),
    ];
    let (method, kind) = KINDS[usize::from(choice / 8 % 4)];
    let id = MethodId {
        service: SERVICE,
        method,
        kind,
    };
    let timeout = Duration::from_millis(1 + u64::from(choice) * 64);
    let mut place = [0; HEADER_MAX];
    let len = match choice % 8 {
        0..3 => {
            let call = client.open(id, timeout, now);
            assert_eq!(call.is_err(), open.len() == CALLS);
            open.extend(call);
            return;
        }
        3 => {
            open.extend(client.listen(id, timeout, now));
            return;
        }
        ending => {
            let at = usize::from(choice / 32);
            let Some(call) = open.get(at).copied() else {
                return;
            };
            match ending {
                4 | 5 => client.complete(&call, &mut place),
                6 => {
                    open.remove(at);
                    client.cancel(&call, Status::CANCELLED, &mut place)
                }
                _ => {
                    open.remove(at);
                    client.abandon(&call, &mut place)
                }
            }
        }
    };
    if len > 0 {
        let packet = Packet::decode(&place[..len]).expect("an engine sends packets");
        assert!(packet.packet_type.is_for_server());
    }
}

//! Every interleaving of the engine with a responder in another thread, by loom.
//!
//! One pair loom cannot test, because it lets no load see a later store: a responder reads
//! `call_id` before it publishes `done` (release), and the engine reads `done` (acquire) before it
//! writes the `call_id` of the next call. So the read happens before that write, and an answer
//! never carries the id of the next call in its slot.

use std::boxed::Box;
use std::sync::Mutex;
use std::vec::Vec;

use core::task::Waker;

use super::super::packet::{OPEN_CALL_ID, Packet, PacketType, Route, encode, encode_empty};
use super::super::{MethodKind, Raw, Status};
use super::{
    AnswerError, Call, Channels, Cx, Input, Responder, Server, Service, Slot, StreamCx, StreamIn,
    Via, Writer,
};
use crate::link::{Port, SendError};
use crate::time::Instant;

const UNARY: u32 = 1;
const BIDI: u32 = 2;

type Byte = Raw<1>;

fn byte(value: u8) -> Byte {
    Raw::new(&[value]).unwrap()
}

/// A port that keeps everything. Its lock orders nothing for loom: it is not one of loom's.
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Port for Kept {
    fn mtu(&self) -> usize {
        64
    }

    fn send(&self, _: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut place = [0; 64];
        let len = fill(&mut place);
        self.0.lock().unwrap().push(place[..len].to_vec());
        Ok(())
    }

    fn arm(&self, _: &Waker) {}

    fn ring(&self) {}
}

#[derive(Default)]
struct Defer {
    responder: Option<Responder<Byte>>,
    writer: Option<Writer<Byte>>,
}

impl Service for Defer {
    fn kind(&self, _: u32, method: u32) -> Option<MethodKind> {
        Some(if method == UNARY {
            MethodKind::Unary
        } else {
            MethodKind::Bidi
        })
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        if call.method() == UNARY {
            call.unary(input, |_: &Byte, cx: Cx<'_, Responder<Byte>>| {
                let (responder, later) = cx.defer()?;
                self.responder = Some(responder);
                Err(later)
            })
        } else {
            call.bidi(
                input,
                |input: StreamIn<'_, Byte>, cx: StreamCx<'_, Writer<Byte>>| {
                    if input != StreamIn::Open {
                        return Err(cx.wait());
                    }
                    let (writer, later) = cx.defer()?;
                    self.writer = Some(writer);
                    Err(later)
                },
            )
        }
    }
}

/// A server with one slot, and its only link.
struct Engine {
    server: Server<1>,
    defer: Defer,
    port: &'static Kept,
    via: Via,
}

impl Engine {
    fn new() -> Engine {
        let port: &'static Kept = Box::leak(Box::new(Kept(Mutex::default())));
        Engine {
            server: Server::new(Box::leak(Box::new([Slot::new()]))),
            defer: Defer::default(),
            port,
            via: Via {
                link: 0,
                channels: Channels::Any,
                port: Some(port),
                bulk: None,
            },
        }
    }

    /// Gives one packet to the server; whether it answered at once.
    fn give(&mut self, packet_type: PacketType, method: u32, call_id: u32) -> bool {
        let route = Route {
            channel: 1,
            service: 1,
            method,
            call_id,
        };
        let mut packet = [0; 64];
        let len = match packet_type {
            PacketType::REQUEST => {
                encode(&mut packet, packet_type, &route, &byte(0), Status::OK).unwrap()
            }
            _ => encode_empty(&mut packet, packet_type, &route, Status::OK).unwrap(),
        };
        let mut place = [0; 64];
        let now = Instant::START;
        self.server
            .handle(&packet[..len], &self.via, &mut place, &mut self.defer, now)
            > 0
    }

    fn poll(&mut self) {
        let mut place = [0; 64];
        let polled = self
            .server
            .poll(&self.via, &mut place, &mut self.defer, Instant::START);
        assert_eq!(polled, Ok(0));
    }

    /// Type, call id and payload of everything that left by the port.
    fn sent(&self) -> Vec<(PacketType, u32, Vec<u8>)> {
        let packets = self.port.0.lock().unwrap();
        let seen = |bytes: &Vec<u8>| {
            let packet = Packet::decode(bytes).unwrap();
            (
                packet.packet_type,
                packet.route.call_id,
                packet.payload.to_vec(),
            )
        };
        packets.iter().map(seen).collect()
    }

    /// The only slot can be used again.
    fn assert_free(&mut self) {
        assert!(
            !self.give(PacketType::REQUEST, UNARY, 9),
            "the slot was leaked"
        );
        assert!(self.defer.responder.take().unwrap().is_open());
    }
}

/// A cancel meets an answer, and the next call wants the slot.
#[test]
fn an_answer_never_goes_to_the_next_call_of_its_slot() {
    loom::model(|| {
        let mut engine = Engine::new();
        assert!(!engine.give(PacketType::REQUEST, UNARY, 1));
        let mut first = engine.defer.responder.take().unwrap();
        let task = loom::thread::spawn(move || first.answer(&byte(1)));
        engine.give(PacketType::CLIENT_ERROR, UNARY, 1);
        let refused = engine.give(PacketType::REQUEST, UNARY, 2);
        let second = engine.defer.responder.take();
        assert_eq!(second.is_none(), refused);
        let deferred = second.is_some();
        if let Some(mut second) = second {
            assert_eq!(second.answer(&byte(2)), Ok(()));
        }
        let answered = task.join().unwrap();
        assert!(matches!(answered, Ok(()) | Err(AnswerError::Cancelled)));
        let sent = engine.sent();
        for call in [1, 2] {
            let of_call = sent.iter().filter(|(_, call_id, _)| *call_id == call);
            assert!(
                of_call
                    .clone()
                    .all(|(_, _, payload)| *payload == [call as u8])
            );
            let expected = if call == 1 {
                answered.is_ok()
            } else {
                deferred
            };
            assert_eq!(of_call.count(), usize::from(expected));
        }
        engine.poll();
        engine.assert_free();
    });
}

/// A writer sends and dies while the engine looks after its calls.
#[test]
fn a_dropped_writer_is_answered_for_once_and_behind_its_items() {
    loom::model(|| {
        let mut engine = Engine::new();
        assert!(!engine.give(PacketType::REQUEST, BIDI, 1));
        let mut writer = engine.defer.writer.take().unwrap();
        let task = loom::thread::spawn(move || writer.send(&byte(1)).unwrap());
        engine.poll();
        task.join().unwrap();
        engine.poll();
        let types: Vec<_> = engine.sent().into_iter().map(|(kind, ..)| kind).collect();
        assert_eq!(types, [PacketType::SERVER_STREAM, PacketType::RESPONSE]);
        engine.assert_free();
    });
}

/// A cancel meets a stream that ends by itself.
#[test]
fn a_cancelled_stream_is_not_answered_for() {
    loom::model(|| {
        let mut engine = Engine::new();
        assert!(!engine.give(PacketType::REQUEST, BIDI, 1));
        let mut writer = engine.defer.writer.take().unwrap();
        let task = loom::thread::spawn(move || writer.finish(Status::OK).is_ok());
        engine.give(PacketType::CLIENT_ERROR, BIDI, 1);
        engine.poll();
        let finished = task.join().unwrap();
        engine.poll();
        assert_eq!(engine.sent().len(), usize::from(finished));
        engine.assert_free();
    });
}

/// A packet gives its id to an open call while the writer sends.
#[test]
fn an_item_carries_the_open_id_or_the_adopted_one() {
    loom::model(|| {
        let mut engine = Engine::new();
        assert!(!engine.give(PacketType::REQUEST, BIDI, OPEN_CALL_ID));
        let mut writer = engine.defer.writer.take().unwrap();
        let task = loom::thread::spawn(move || {
            writer.send(&byte(1)).unwrap();
            writer
        });
        assert!(!engine.give(PacketType::CLIENT_STREAM, BIDI, 5));
        let mut writer = task.join().unwrap();
        writer.send(&byte(2)).unwrap();
        let ids: Vec<_> = engine.sent().into_iter().map(|(_, id, _)| id).collect();
        assert!(ids == [OPEN_CALL_ID, 5] || ids == [5, 5], "{ids:?}");
        drop(writer);
        engine.poll();
        engine.assert_free();
    });
}

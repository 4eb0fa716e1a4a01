use std::sync::Mutex;
use std::task::Waker;
use std::time::Duration;

use sinew::link::{Port, SendError};
use sinew::rpc::packet::{Packet, PacketType};
use sinew::rpc::{
    Call, Channels, Cx, DEFAULT_LIFETIME, Input, MethodKind, Responder, Server, Service, Slot,
    Status, StreamCx, StreamIn, Via, Writer,
};
use sinew::time::Instant;

use crate::script::{self, BIDI, Bytes, CLIENT_STREAM, GUARD, SERVER_STREAM, SERVICE, Step, UNARY};

const CALLS: usize = 4;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static PORT: Bounded = Bounded(Mutex::new(0));

/// A port that holds two packets; it keeps their number only.
struct Bounded(Mutex<u32>);

impl Port for Bounded {
    fn mtu(&self) -> usize {
        64
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut held = self.0.lock().expect("no panic in a port");
        if *held == 2 {
            return Err(SendError::Full);
        }
        let mut place = [GUARD; 64];
        let len = fill(&mut place[..min]);
        if len > 0 {
            check_answer(&place[..len]);
            *held += 1;
        }
        Ok(())
    }

    fn arm(&self, _: &Waker) {}

    fn ring(&self) {}
}

/// The input is a script (see `script`). The engine writes only into its place and only packets for
/// a client, answers no error, and has every slot free in the end.
pub fn server(mut script: &[u8]) {
    let mut server = Server::new(&SLOTS);
    let mut tasks = Tasks::default();
    let via = Via {
        link: 0,
        channels: Channels::Only(1),
        port: Some(&PORT),
        bulk: None,
    };
    let mut now = Instant::START;
    *PORT.0.lock().expect("no panic in a port") = 0;
    while let Some(step) = script::next(&mut script) {
        let mut place = [GUARD; 80];
        match step {
            Step::Packet(packet) => {
                let room = 64 - tasks.narrow;
                let len = server.handle(&packet, &via, &mut place[..room], &mut tasks, now);
                let answer = script::written(&place, room, len);
                if !answer.is_empty() {
                    check_answer(answer);
                    let read = Packet::decode(&packet).expect("only packets are answered");
                    assert_ne!(read.packet_type, PacketType::CLIENT_ERROR);
                }
            }
            Step::Wait(millis) => now = now.after(Duration::from_millis(millis)),
            Step::Act(choice) => tasks.act(choice),
        }
        let _ = server.poll(&via, &mut place, &mut tasks, now);
    }
    tasks = Tasks::default();
    now = now.after(DEFAULT_LIFETIME * 2);
    while server.poll(&via, &mut [0; 64], &mut tasks, now) != Ok(0) {
        *PORT.0.lock().expect("no panic in a port") = 0;
    }
    assert_eq!(server.deadline(), Instant::FAR);
    for call_id in 0..CALLS {
        // REQUEST of the client stream: it needs a slot, and gets no answer.
        let request = [
            0x10,
            1,
            0x1d,
            1,
            0,
            0,
            0,
            0x25,
            3,
            0,
            0,
            0,
            0x38,
            200 + call_id as u8,
            1,
        ];
        let len = server.handle(&request, &via, &mut [0; 64], &mut tasks, now);
        assert_eq!(len, 0, "a slot was leaked");
    }
}

fn check_answer(bytes: &[u8]) {
    let answer = Packet::decode(bytes).expect("an engine sends packets");
    assert!(!answer.packet_type.is_for_server());
    let refused = answer.packet_type == PacketType::SERVER_ERROR;
    assert!(!(refused && answer.status.is_ok()));
}

/// The service, and the tasks that answer later.
#[derive(Default)]
struct Tasks {
    defer: bool,
    /// How many bytes the place lacks.
    narrow: usize,
    responders: Vec<Responder<Bytes>>,
    writers: Vec<Writer<Bytes>>,
}

impl Tasks {
    fn act(&mut self, choice: u8) {
        let message = Bytes::new(&[choice; 3]).expect("room");
        match choice % 8 {
            0 => drop(self.responders.pop()),
            1 => drop(self.writers.pop()),
            2 => {
                if let Some(mut responder) = self.responders.pop() {
                    let _ = responder.answer(&message);
                }
            }
            3 => {
                if let Some(mut writer) = self.writers.pop() {
                    let _ = writer.finish(Status::ABORTED);
                }
            }
            4 => {
                for writer in &mut self.writers {
                    let _ = writer.send(&message);
                }
            }
            5 => self.narrow = usize::from(choice / 8) * 2,
            6 => *PORT.0.lock().expect("no panic in a port") = 0,
            _ => self.defer = !self.defer,
        }
    }
}

impl Service for Tasks {
    fn kind(&self, service: u32, method: u32) -> Option<MethodKind> {
        match (service, method) {
            (SERVICE, UNARY) => Some(MethodKind::Unary),
            (SERVICE, SERVER_STREAM) => Some(MethodKind::ServerStream),
            (SERVICE, CLIENT_STREAM) => Some(MethodKind::ClientStream),
            (SERVICE, BIDI) => Some(MethodKind::Bidi),
            _ => None,
        }
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        if call.service() != SERVICE {
            return false;
        }
        match call.method() {
            UNARY => call.unary(input, |q: &Bytes, cx: Cx<'_, Responder<Bytes>>| {
                if !self.defer {
                    return Ok(*q);
                }
                let (responder, later) = cx.defer()?;
                self.responders.push(responder);
                Err(later)
            }),
            SERVER_STREAM => call.server_stream(input, |_: &Bytes, cx| {
                let (writer, later) = cx.defer()?;
                self.writers.push(writer);
                Err(later)
            }),
            CLIENT_STREAM => call.client_stream(
                input,
                |q: StreamIn<'_, Bytes>, cx: StreamCx<'_, Responder<Bytes>>| match q {
                    StreamIn::End if self.defer => {
                        let (responder, later) = cx.defer()?;
                        self.responders.push(responder);
                        Err(later)
                    }
                    StreamIn::End => Ok(Bytes::default()),
                    _ => Err(cx.wait()),
                },
            ),
            BIDI => call.bidi(
                input,
                |q: StreamIn<'_, Bytes>, cx: StreamCx<'_, Writer<Bytes>>| match q {
                    StreamIn::Open if self.defer => {
                        let (writer, later) = cx.defer()?;
                        self.writers.push(writer);
                        Err(later)
                    }
                    StreamIn::Item(item) => Err(cx.send(item)),
                    StreamIn::End => Ok(()),
                    _ => Err(cx.wait()),
                },
            ),
            _ => false,
        }
    }
}

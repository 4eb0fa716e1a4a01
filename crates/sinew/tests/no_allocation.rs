//! Neither engine allocates, and the core depends on nothing.

use core::time::Duration;
use std::process::Command;
use std::sync::Mutex;
use std::task::Waker;

use sinew::link::{Port, SendError};
use sinew::rpc::{
    Call, Channels, Client, ClientCall, Cx, Input, MethodId, MethodKind, Raw, Received, Responder,
    Server, Service, Slot, Status, Stop, StreamCx, StreamIn, Via, Writer,
};
use sinew::time::Instant;

type Bytes = Raw<16>;

/// A port that holds one packet.
struct OnePlace(Mutex<([u8; 64], usize)>);

impl OnePlace {
    fn take(&self, into: &mut [u8; 64]) -> usize {
        let mut held = self.0.lock().unwrap();
        *into = held.0;
        std::mem::take(&mut held.1)
    }
}

impl Port for OnePlace {
    fn mtu(&self) -> usize {
        64
    }

    fn send(&self, _: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut held = self.0.lock().unwrap();
        if held.1 > 0 {
            return Err(SendError::Full);
        }
        held.1 = fill(&mut held.0);
        Ok(())
    }

    fn arm(&self, _: &Waker) {}

    fn ring(&self) {}
}

static SLOTS: [Slot; 4] = [const { Slot::new() }; 4];
static PORT: OnePlace = OnePlace(Mutex::new(([0; 64], 0)));

/// Methods 1 to 4, one of each kind; 5 is unary and answered later.
#[derive(Default)]
struct Echo {
    later: Option<Responder<Bytes>>,
    stream: Option<Writer<Bytes>>,
}

impl Service for Echo {
    fn kind(&self, _: u32, method: u32) -> Option<MethodKind> {
        match method {
            1 | 5 => Some(MethodKind::Unary),
            2 => Some(MethodKind::ServerStream),
            3 => Some(MethodKind::ClientStream),
            4 => Some(MethodKind::Bidi),
            _ => None,
        }
    }

    fn handle(&mut self, call: &mut Call<'_>, input: Input<'_>) -> bool {
        match call.method() {
            1 => call.unary(input, |q: &Bytes, _: Cx<'_, Responder<Bytes>>| Ok(*q)),
            2 => call.server_stream(input, |_: &Bytes, cx| {
                let (writer, later) = cx.defer()?;
                self.stream = Some(writer);
                Err(later)
            }),
            3 => call.client_stream(
                input,
                |q: StreamIn<'_, Bytes>, cx: StreamCx<'_, Responder<Bytes>>| match q {
                    StreamIn::End => Ok(Bytes::default()),
                    _ => Err(cx.wait()),
                },
            ),
            4 => call.bidi(
                input,
                |q: StreamIn<'_, Bytes>, cx: StreamCx<'_, Writer<Bytes>>| match q {
                    StreamIn::Item(item) => Err::<(), Stop>(cx.send(item)),
                    StreamIn::End => Ok(()),
                    _ => Err(cx.wait()),
                },
            ),
            5 => call.unary(input, |_: &Bytes, cx: Cx<'_, Responder<Bytes>>| {
                let (responder, later) = cx.defer()?;
                self.later = Some(responder);
                Err(later)
            }),
            _ => false,
        }
    }
}

struct Ends {
    server: Server<4>,
    client: Client<4>,
    echo: Echo,
    via: Via,
    now: Instant,
    /// What came back at the client.
    items: u32,
    completed: u32,
}

impl Ends {
    /// Gives a packet to the server, and what comes back in the place or by the port to the client.
    fn exchange(&mut self, packet: &[u8]) {
        let mut place = [0; 64];
        let len = self
            .server
            .handle(packet, &self.via, &mut place, &mut self.echo, self.now);
        self.deliver(&place[..len]);
    }

    fn deliver(&mut self, packet: &[u8]) {
        if packet.is_empty() {
            return;
        }
        let (_, event) = self.client.handle(packet, &mut [0; 64], self.now);
        match event.expect("an answer to a call").received {
            Received::Item(_) => self.items += 1,
            Received::Completed(Status::OK, _) => self.completed += 1,
            other => panic!("{other:?}"),
        }
    }

    fn take_from_port(&mut self) {
        let mut place = [0; 64];
        let len = PORT.take(&mut place);
        self.deliver(&place[..len]);
    }

    fn open(&mut self, method: u32, kind: MethodKind) -> ClientCall {
        let id = MethodId {
            service: 1,
            method,
            kind,
        };
        let call = self.client.open(id, Duration::from_secs(1), self.now);
        call.expect("a free call")
    }

    /// One call of each kind and one that is answered later.
    fn calls_of_all_kinds(&mut self) {
        let message = Bytes::new(b"hello").expect("16 bytes at most");
        let mut place = [0; 64];
        for (method, kind) in [
            (1, MethodKind::Unary),
            (2, MethodKind::ServerStream),
            (3, MethodKind::ClientStream),
            (4, MethodKind::Bidi),
            (5, MethodKind::Unary),
        ] {
            let call = self.open(method, kind);
            let len = call.request(&mut place, &message).expect("room");
            self.exchange(&place[..len]);
            if kind.client_streams() {
                for _ in 0..3 {
                    let len = call.item(&mut place, &message).expect("room");
                    self.exchange(&place[..len]);
                }
                let len = self.client.complete(&call, &mut place);
                self.exchange(&place[..len]);
            }
        }
        let mut writer = self.echo.stream.take().expect("a stream");
        writer.send(&message).expect("a place");
        self.take_from_port();
        writer.finish(Status::OK).expect("a place");
        self.take_from_port();
        let mut responder = self.echo.later.take().expect("a deferred call");
        responder.answer(&message).expect("a place");
        self.take_from_port();
        // What is not answered: expired, cancelled, dropped, garbage.
        let call = self.open(5, MethodKind::Unary);
        let len = call.request(&mut place, &message).expect("room");
        self.exchange(&place[..len]);
        let len = self.client.cancel(&call, Status::CANCELLED, &mut place);
        self.exchange(&place[..len]);
        drop(self.echo.later.take());
        self.exchange(b"garbage");
        let polled = self
            .server
            .poll(&self.via, &mut place, &mut self.echo, self.now);
        assert_eq!(polled, Ok(0));
        assert_eq!(self.client.expire(&mut place, self.now), None);
    }
}

#[test]
fn calls_of_all_kinds_allocate_nothing() {
    let mut ends = Ends {
        server: Server::new(&SLOTS),
        client: Client::new(1, 0),
        echo: Echo::default(),
        via: Via {
            link: 0,
            channels: Channels::Any,
            port: Some(&PORT),
            bulk: None,
        },
        now: Instant::START,
        items: 0,
        completed: 0,
    };
    let control = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(control.count_total, 1, "allocations are counted");
    let info = allocation_counter::measure(|| {
        for _ in 0..100 {
            ends.calls_of_all_kinds();
        }
    });
    assert_eq!((ends.completed, ends.items), (500, 400));
    assert_eq!(info.count_total, 0);
    assert_eq!(ends.server.stats().cancelled, 100);
}

#[test]
fn the_core_depends_on_nothing() {
    // Without features, on any target: only the crate itself is in the tree.
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", "sinew", "--no-default-features"])
        .args(["-e", "normal,build", "--target", "all", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let crates = String::from_utf8(tree.stdout).expect("names");
    assert!(tree.status.success());
    assert_eq!(crates.lines().count(), 1, "{crates}");
    assert!(crates.starts_with("sinew v"), "{crates}");
}

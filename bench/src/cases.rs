//! What is counted: one typed call of `demo.Cache`, encoded and decoded on both sides, and HDLC.

use std::hint::black_box;

use sinew::frame::Framing;
use sinew::link::queue::{QueueRx, QueueTx, pair};
use sinew::link::{Rx, Tx};
use sinew::rpc::{Channels, Client, DEFAULT_TIMEOUT, Decode, Method, Received, Server, Slot, Via};
use sinew::time::Instant;
use sinew_demo::cache::method::{GetValue, SetValue};
use sinew_demo::cache::{self, Serve};
use sinew_demo::{CacheService, GetValueRequest, SetValueRequest, exercise};
use sinew_io::threads;
use sinew_shm::{Lock, Queue, StdLock, Unshared};

use crate::Result;

/// Bytes of the packet in the HDLC cases.
pub const HDLC_BYTES: usize = 512;

/// Call slots of every engine here: what a small product would configure.
const CALLS: usize = 8;
const BLOCK: usize = 256;

pub const VIA: Via = Via {
    link: 0,
    channels: Channels::Only(1),
    port: None,
    bulk: None,
};

/// A client's side of one call, without a link: encodes the request, reads the answer.
pub struct Caller(Client<CALLS>);

impl Caller {
    pub fn new() -> Self {
        Caller(Client::new(1, 7))
    }

    /// One call. The request is encoded into `place`; `exchange` carries that packet there and
    /// gives the answer.
    pub fn call<'p, M: Method>(
        &mut self,
        request: &M::Request,
        place: &mut [u8],
        exchange: impl FnOnce(&[u8]) -> &'p [u8],
    ) -> M::Response {
        let now = Instant::START;
        let call = self
            .0
            .open(M::ID, DEFAULT_TIMEOUT, now)
            .expect("a free call slot");
        let len = call.request(place, request).expect("the request fits");
        let answer = exchange(&place[..len]);
        let (_, event) = self.0.handle(answer, &mut [], now);
        response::<M>(event)
    }
}

fn response<M: Method>(event: Option<sinew::rpc::Event<'_>>) -> M::Response {
    match event.map(|event| event.received) {
        Some(Received::Completed(status, payload)) if status.is_ok() => {
            M::Response::decode(payload).expect("a response that decodes")
        }
        other => panic!("no response: {other:?}"),
    }
}

/// The service's side, without a link.
pub struct Answerer {
    server: Server<CALLS>,
    services: Serve<CacheService>,
}

impl Answerer {
    pub fn new() -> Self {
        Answerer {
            server: Server::new(Box::leak(Box::new([const { Slot::new() }; CALLS]))),
            services: Serve(CacheService::new()),
        }
    }

    pub fn answer(&mut self, packet: &[u8], place: &mut [u8]) -> usize {
        self.server
            .handle(packet, &VIA, place, &mut self.services, Instant::START)
    }
}

/// Runs one case `n` times.
pub fn run(name: &str, n: u64) -> Result<()> {
    match name {
        "rpc" => {
            let mut bare = Bare::new();
            exercises(n, |value| bare.set_and_get(value));
        }
        "rpc-queue" => {
            let mut loopback = Loopback::<Unshared>::new();
            exercises(n, |value| loopback.set_and_get(value));
        }
        "rpc-queue-locked" => {
            let mut loopback = Loopback::<StdLock>::new();
            exercises(n, |value| loopback.set_and_get(value));
        }
        "rpc-threads" => rpc_threads(n),
        "pubsub-batch" => crate::batched::publish(n)?,
        "pubsub-run" => crate::batched::subscribe(n)?,
        "hdlc-encode" => hdlc_encode(n),
        "hdlc-decode" => hdlc_decode(n),
        _ => return Err(format!("no case {name}").into()),
    }
    Ok(())
}

/// Client and server with nothing between them: two methods in turn.
pub struct Bare {
    caller: Caller,
    answerer: Answerer,
    there: [u8; BLOCK],
    back: [u8; BLOCK],
}

impl Bare {
    pub fn new() -> Self {
        Bare {
            caller: Caller::new(),
            answerer: Answerer::new(),
            there: [0; BLOCK],
            back: [0; BLOCK],
        }
    }

    fn call<M: Method>(&mut self, request: &M::Request) -> M::Response {
        let Bare {
            caller,
            answerer,
            there,
            back,
        } = self;
        caller.call::<M>(request, there, |packet| {
            let len = answerer.answer(packet, back);
            &back[..len]
        })
    }

    pub fn set_and_get(&mut self, value: i32) {
        self.call::<SetValue>(&SetValueRequest { value });
        let got = self.call::<GetValue>(&GetValueRequest {});
        assert_eq!(got.value, value);
    }
}

type End<L> = (QueueTx<L, 4, BLOCK>, QueueRx<L, 4, BLOCK>);

/// The same through a block queue each way, in one thread: every packet is written in the block it
/// leaves from and read in the block it arrived.
pub struct Loopback<L: Lock + 'static> {
    client: Client<CALLS>,
    near: End<L>,
    far: End<L>,
    answerer: Answerer,
}

impl<L: Lock + 'static> Loopback<L> {
    pub fn new() -> Self {
        let queue = || -> &'static Queue<L, 4, BLOCK> { Box::leak(Box::new(Queue::new())) };
        let (near, far) = pair(queue(), queue()).expect("fresh queues");
        Loopback {
            client: Client::new(1, 7),
            near,
            far,
            answerer: Answerer::new(),
        }
    }

    pub fn set_and_get(&mut self, value: i32) {
        self.call::<SetValue>(&SetValueRequest { value });
        let got = self.call::<GetValue>(&GetValueRequest {});
        assert_eq!(got.value, value);
    }

    fn call<M: Method>(&mut self, request: &M::Request) -> M::Response {
        let (now, near, far) = (Instant::START, &mut self.near, &mut self.far);
        let call = self
            .client
            .open(M::ID, DEFAULT_TIMEOUT, now)
            .expect("a free call slot");
        let place = near.0.place(BLOCK).expect("a free block");
        let len = call.request(place, request).expect("the request fits");
        near.0.commit(len).expect("a place in hand");

        let packet = far.1.peek().expect("an open link").expect("the request");
        let place = far.0.place(BLOCK).expect("a free block");
        let len = self.answerer.answer(packet, place);
        far.0.commit(len).expect("a place in hand");
        far.1.release();

        let packet = near.1.peek().expect("an open link").expect("the answer");
        let (_, event) = self.client.handle(packet, &mut [], now);
        let response = response::<M>(event);
        near.1.release();
        response
    }
}

/// Runs an exercise of two calls, so that n calls are n / 2 of it.
fn exercises(n: u64, mut exercise: impl FnMut(i32)) {
    for round in 0..n / 2 {
        exercise(black_box(round as i32));
    }
}

/// As a program has it: queue link, drivers, deadlines, two threads.
fn rpc_threads(n: u64) {
    let (near, mut far) = threads::link();
    let services = Serve(CacheService::new());
    let driver = std::thread::spawn(move || sinew_io::Server::new(services).serve(&mut far, 1));
    let client = sinew_io::Client::new(near, 1);
    exercises(n, |value| {
        assert_eq!(exercise(&mut cache::Client(&client), value), Ok(value));
    });
    drop(client); // the link closes
    driver.join().expect("the driver ends");
}

/// Bytes of which one in 128 must be escaped, as in random data.
fn mixed() -> [u8; HDLC_BYTES] {
    let mut state = 1u32;
    std::array::from_fn(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
}

fn hdlc_encode(n: u64) {
    let packet = mixed();
    let mut frame = [0; 2 * HDLC_BYTES + 32];
    for _ in 0..n {
        black_box(Framing::HDLC.encode(black_box(&packet), &mut frame));
    }
}

fn hdlc_decode(n: u64) {
    let packet = mixed();
    let mut frame = [0; 2 * HDLC_BYTES + 32];
    let len = Framing::HDLC
        .encode(&packet, &mut frame)
        .expect("the frame fits");
    let mut decoder = Framing::HDLC.decoder();
    let mut place = [0; HDLC_BYTES + 32];
    for _ in 0..n {
        let mut input = black_box(&frame[..len]);
        let packet = decoder
            .decode(&mut place, &mut input)
            .expect("HDLC never fails");
        assert_eq!(packet.map(<[u8]>::len), Some(HDLC_BYTES));
    }
}

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

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];

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
            server: Server::new(&SLOTS),
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
        "rpc" => rpc(n),
        "rpc-queue" => rpc_queue::<Unshared>(n),
        "rpc-queue-locked" => rpc_queue::<StdLock>(n),
        "rpc-threads" => rpc_threads(n),
        "hdlc-encode" => hdlc_encode(n),
        "hdlc-decode" => hdlc_decode(n),
        _ => return Err(format!("no case {name}").into()),
    }
    Ok(())
}

/// Two methods in turn, so that n calls are n / 2 of each.
fn rpc(n: u64) {
    let (mut caller, mut answerer) = (Caller::new(), Answerer::new());
    let (mut there, mut back) = ([0; BLOCK], [0; BLOCK]);
    for round in 0..n / 2 {
        let value = black_box(round as i32);
        caller.call::<SetValue>(&SetValueRequest { value }, &mut there, |packet| {
            let len = answerer.answer(packet, &mut back);
            &back[..len]
        });
        let got = caller.call::<GetValue>(&GetValueRequest {}, &mut there, |packet| {
            let len = answerer.answer(packet, &mut back);
            &back[..len]
        });
        assert_eq!(got.value, value);
    }
}

type Ends<L> = (QueueTx<L, 4, BLOCK>, QueueRx<L, 4, BLOCK>);

fn rpc_queue<L: Lock + 'static>(n: u64) {
    let queue = || -> &'static Queue<L, 4, BLOCK> { Box::leak(Box::new(Queue::new())) };
    let (mut near, mut far) = pair(queue(), queue()).expect("fresh queues");
    let mut client = Client::<CALLS>::new(1, 7);
    let mut server = Server::<CALLS>::new(&SLOTS);
    let mut services = Serve(CacheService::new());
    for round in 0..n / 2 {
        let value = black_box(round as i32);
        let request = SetValueRequest { value };
        through::<SetValue, _>(
            &mut client,
            &request,
            &mut near,
            &mut far,
            &mut server,
            &mut services,
        );
        let request = GetValueRequest {};
        let got = through::<GetValue, _>(
            &mut client,
            &request,
            &mut near,
            &mut far,
            &mut server,
            &mut services,
        );
        assert_eq!(got.value, value);
    }
}

/// As a program has it: queue link, drivers, deadlines, two threads.
fn rpc_threads(n: u64) {
    let (near, mut far) = threads::link();
    let services = Serve(CacheService::new());
    let driver = std::thread::spawn(move || sinew_io::Server::new(services).serve(&mut far, 1));
    let client = sinew_io::Client::new(near, 1);
    for round in 0..n / 2 {
        let value = black_box(round as i32);
        assert_eq!(exercise(&mut cache::Client(&client), value), Ok(value));
    }
    drop(client); // the link closes
    driver.join().expect("the driver ends");
}

/// One call, every packet written in the block it leaves from and read in the block it arrived.
fn through<M: Method, L: Lock + 'static>(
    client: &mut Client<CALLS>,
    request: &M::Request,
    near: &mut Ends<L>,
    far: &mut Ends<L>,
    server: &mut Server<CALLS>,
    services: &mut Serve<CacheService>,
) -> M::Response {
    let now = Instant::START;
    let call = client
        .open(M::ID, DEFAULT_TIMEOUT, now)
        .expect("a free call slot");
    let place = near.0.place(BLOCK).expect("a free block");
    let len = call.request(place, request).expect("the request fits");
    near.0.commit(len).expect("a place in hand");

    let packet = far.1.peek().expect("an open link").expect("the request");
    let place = far.0.place(BLOCK).expect("a free block");
    let len = server.handle(packet, &VIA, place, services, now);
    far.0.commit(len).expect("a place in hand");
    far.1.release();

    let packet = near.1.peek().expect("an open link").expect("the answer");
    let (_, event) = client.handle(packet, &mut [], now);
    let response = response::<M>(event);
    near.1.release();
    response
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

//! Prints instructions per call, as `name value` lines on the UART.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ops::Range;

use an385::count::{Meter, print};
use an385::{Kinds, MTU, board, lock::Masked};
use sinew::frame::hdlc::{self, Decoder, RPC_ADDRESS};
use sinew::link::{Rx, Tx, queue};
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{
    Channels, Client, DEFAULT_TIMEOUT, Decode, Event, Method, Received, Server, Slot, Status, Via,
};
use sinew::time::Instant;
use sinew_demo::{Num, kinds::method::Double};
use sinew_shm::Queue;

/// Calls with the shortest packets: every number of one byte.
const SHORT: Range<u32> = 0..126;
/// Calls with call ids and numbers of two bytes.
const LONG: Range<u32> = 200..1200;

/// Packets that are framed: the difference is what 256 bytes take.
const SMALL: usize = 28;
const LARGE: usize = SMALL + 256;

static SLOTS: [Slot; 4] = [const { Slot::new() }; 4];
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: None,
    bulk: None,
};
static THERE: Queue<Masked, 4, MTU> = Queue::new();
static BACK: Queue<Masked, 4, MTU> = Queue::new();

struct Both {
    client: Client<4>,
    server: Server<4>,
    services: Kinds,
    now: Instant,
    /// For what the client says to a stray packet.
    reply: [u8; HEADER_MAX],
}

impl Both {
    /// One unary call without a hop: the client's and the server's whole work, both messages
    /// encoded and decoded.
    #[inline(never)]
    fn call(&mut self, n: u32, there: &mut [u8; MTU], back: &mut [u8; MTU]) -> Option<u32> {
        let call = self
            .client
            .open(Double::ID, DEFAULT_TIMEOUT, self.now)
            .ok()?;
        let len = call.request(there, &Num { n })?;
        let len = self
            .server
            .handle(there.get(..len)?, &VIA, back, &mut self.services, self.now);
        let (_, event) = self.client.handle(back.get(..len)?, there, self.now);
        response(event)
    }

    /// The same through two block queues.
    #[inline(never)]
    fn call_queued(
        &mut self,
        n: u32,
        client: &mut (impl Tx, impl Rx),
        server: &mut (impl Tx, impl Rx),
    ) -> Option<u32> {
        let call = self
            .client
            .open(Double::ID, DEFAULT_TIMEOUT, self.now)
            .ok()?;
        let len = call.request(client.0.place(MTU).ok()?, &Num { n })?;
        client.0.commit(len).ok()?;

        let packet = server.1.peek().ok()??;
        let place = server.0.place(MTU).ok()?;
        let len = self
            .server
            .handle(packet, &VIA, place, &mut self.services, self.now);
        server.0.commit(len).ok()?;
        server.1.release();

        let packet = client.1.peek().ok()??;
        let (_, event) = self.client.handle(packet, &mut self.reply, self.now);
        let n = response(event);
        client.1.release();
        n
    }
}

fn response(event: Option<Event<'_>>) -> Option<u32> {
    match event?.received {
        Received::Completed(Status::OK, bytes) => Some(Num::decode(bytes)?.n),
        _ => None,
    }
}

/// Instructions per run of `f`, the loop around it included.
fn per_run(runs: Range<u32>, mut f: impl FnMut(u32) -> bool) -> u32 {
    let mut meter = Meter::new();
    if meter.runs(runs, |n| f(n).then_some(())).is_none() {
        sinew_rt::exit(3);
    }
    meter.per_run()
}

/// Prints them.
fn measure(name: &str, runs: Range<u32>, f: impl FnMut(u32) -> bool) {
    print("", name, per_run(runs, f));
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    let mut both = Both {
        client: Client::new(1, 1),
        server: Server::new(&SLOTS),
        services: an385::kinds(),
        now: Instant::from_micros(1),
        reply: [0; HEADER_MAX],
    };
    let (mut there, mut back) = ([0; MTU], [0; MTU]);
    // Call ids from 2 to 127 fit into one byte on the wire, as 21 and 42 do.
    measure("call", SHORT, |_| {
        both.call(black_box(21), &mut there, &mut back) == Some(42)
    });
    measure("call_long", LONG, |n| {
        both.call(n, &mut there, &mut back) == Some(2 * n)
    });

    let Some((mut client, mut server)) = queue::pair(&THERE, &BACK) else {
        sinew_rt::exit(4)
    };
    both.client = Client::new(1, 1);
    measure("call_queued", SHORT, |_| {
        both.call_queued(black_box(21), &mut client, &mut server) == Some(42)
    });
    measure("call_queued_long", LONG, |n| {
        both.call_queued(n, &mut client, &mut server) == Some(2 * n)
    });

    let mut frame = [0; 2 * LARGE];
    let packet = [0x42; LARGE];
    let (mut small_encode, mut small_decode) = (0, 0);
    for size in [SMALL, LARGE] {
        let packet = packet.get(..size).unwrap_or_default();
        let mut len = 0;
        let encode = per_run(SHORT, |_| {
            len = hdlc::encode(RPC_ADDRESS, black_box(packet), &mut frame).unwrap_or(0);
            len == size + 8
        });
        let mut decoder = Decoder::new(RPC_ADDRESS);
        let mut place = [0; LARGE + 4]; // and the CRC, which is taken for packet until the frame ends
        let decode = per_run(SHORT, |_| {
            let mut input = frame.get(..len).unwrap_or_default();
            decoder.decode(&mut place, black_box(&mut input)).is_some()
        });
        if size == SMALL {
            print("", "hdlc_encode", encode);
            print("", "hdlc_decode", decode);
            (small_encode, small_decode) = (encode, decode);
        } else {
            print("", "hdlc_encode_256", encode.wrapping_sub(small_encode));
            print("", "hdlc_decode_256", decode.wrapping_sub(small_decode));
        }
    }
    sinew_rt::exit(0)
}

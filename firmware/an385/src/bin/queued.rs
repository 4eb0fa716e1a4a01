//! `demo.Cache` and `demo.Kinds` with the block queue of sinew-shm between engine and UART.
//!
//! Streams leave by a port that keeps one place free for answers; the pump escapes one packet in each turn.
#![no_std]
#![no_main]

use an385::lock::Masked;
use an385::uart::{self, Line};
use an385::{CALLS, MTU, board};
use sinew::link::Rx;
use sinew::link::queue::{self, QueuePort};
use sinew::rpc::{Channels, Slot, Via};
use sinew::time::Instant;
use sinew_demo::{CacheService, cache};
use sinew_drive::{Link, Serving, frames};
use sinew_shm::{Bell, Queue};
use static_cell::StaticCell;

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", an385::MTU);

const BLOCKS: usize = 4;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static TO_UART: Queue<Masked, BLOCKS, MTU> = Queue::new();
static BELL: Bell<Masked> = Bell::new();
static PORT: StaticCell<QueuePort<Masked, BLOCKS, MTU>> = StaticCell::new();

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    let mut clock = board::Clock::start();
    let Some((tx, mut leaving)) = queue::one_way(&TO_UART) else {
        sinew_rt::exit(3)
    };
    let Some(port) = PORT.try_init(tx.port(1, &BELL)) else {
        sinew_rt::exit(4)
    };
    let via = Via {
        link: 0,
        channels: Channels::Any,
        port: Some(port),
        bulk: None,
    };
    let services = (cache::Serve(CacheService::new()), an385::kinds());
    let links = Link::new(tx, uart::Receiver::<MTU>::new(Line), &via);
    let mut serving = Serving::new(&SLOTS, services, (&BELL, links));
    loop {
        board::acknowledge();
        let mut busy = serving.turn(Instant::from_micros(clock.micros()));
        if let Ok(Some(packet)) = leaving.peek() {
            frames::send(Line, packet);
            leaving.release();
            busy = true;
        }
        if !busy {
            sinew_rt::sleep();
        }
    }
}

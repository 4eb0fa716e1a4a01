//! `demo.Cache` and `demo.Kinds` with the block queue of sinew-shm between engine and UART.
//!
//! A packet is taken up only with a place for its answer in hand; streams leave by a port that
//! keeps one place free for it; the pump escapes one packet in each turn.
#![no_std]
#![no_main]

use an385::{CALLS, MTU, board, lock::Masked, uart};
use sinew::link::queue::{self, QueuePort};
use sinew::link::{Rx, Tx};
use sinew::rpc::{Channels, Server, Service, Slot, Via};
use sinew::time::Instant;
use sinew_demo::{CacheService, cache};
use sinew_shm::{Bell, Queue};
use static_cell::StaticCell;

const BLOCKS: usize = 4;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static TO_UART: Queue<Masked, BLOCKS, MTU> = Queue::new();
static BELL: Bell<Masked> = Bell::new();
static PORT: StaticCell<QueuePort<Masked, BLOCKS, MTU>> = StaticCell::new();

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    let mut clock = board::Clock::start();
    let Some((mut tx, mut rx)) = queue::one_way(&TO_UART) else {
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
    let mut server = Server::new(&SLOTS);
    let mut services = (cache::Serve(CacheService::new()), an385::kinds());
    let mut requests = uart::Receiver::<MTU>::new();
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        let mut busy = BELL.take();
        if let Ok(place) = tx.place(MTU) {
            let len = match requests.receive() {
                Some(packet) => {
                    busy = true;
                    server.handle(packet, &via, place, &mut services, now)
                }
                None => server.poll(&via, place, &mut services, now).unwrap_or(0),
            };
            let _ = tx.commit(len);
        }
        busy |= services.poll(now);
        if let Ok(Some(packet)) = rx.peek() {
            uart::send(packet);
            rx.release();
            busy = true;
        }
        if !busy {
            sinew_rt::sleep();
        }
    }
}

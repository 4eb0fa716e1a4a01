//! The demo services without a queue.
#![no_std]
#![no_main]

use an385::{CALLS, MTU, board, uart};
use sinew::rpc::{Channels, Server, Service, Slot, Via};
use sinew::time::Instant;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: Some(&uart::Direct),
    bulk: None,
};

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    let mut clock = board::Clock::start();
    let mut server = Server::new(&SLOTS);
    let mut services = an385::kinds();
    let mut requests = uart::Receiver::<MTU>::new();
    let mut place = [0; MTU];
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        let (len, mut busy) = match requests.receive() {
            Some(packet) => (
                server.handle(packet, &VIA, &mut place, &mut services, now),
                true,
            ),
            None => (
                server
                    .poll(&VIA, &mut place, &mut services, now)
                    .unwrap_or(0),
                false,
            ),
        };
        if let Some(answer @ [_, ..]) = place.get(..len) {
            uart::send(answer);
            busy = true;
        }
        if !services.poll(now) && !busy {
            sinew_rt::sleep();
        }
    }
}

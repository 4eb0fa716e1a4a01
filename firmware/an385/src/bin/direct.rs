//! The demo services without a queue.
#![no_std]
#![no_main]

use an385::uart::{self, Line};
use an385::{CALLS, MTU, board};
use sinew::rpc::{Channels, Slot, Via};
use sinew::time::Instant;
use sinew_drive::frames::Direct;
use sinew_drive::{Link, Serving};

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", an385::MTU);

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: Some(&Direct::<Line, MTU>(Line)),
    bulk: None,
};

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    let mut clock = board::Clock::start();
    let (tx, rx) = uart::halves::<MTU>();
    let mut serving = Serving::new(&SLOTS, an385::kinds(), Link::new(tx, rx, &VIA));
    loop {
        board::acknowledge();
        if !serving.turn(Instant::from_micros(clock.micros())) {
            sinew_rt::sleep();
        }
    }
}

//! `channel` without messages: a link that opens, finds its peer, and finds it anew.
#![no_std]
#![no_main]

use an385::{MTU, board, shared};
use sinew_shm::Unshared;

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    let end = shared::open::<Unshared, false, MTU>()?;
    loop {
        board::take_bell();
        end.look((clock.micros() >> 10) as u32);
        sinew_rt::sleep();
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start_clock();
    board::start_bell();
    let _ = run();
    sinew_rt::exit(3)
}

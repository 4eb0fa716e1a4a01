//! What is left of `link` without a link: the clock, and a doorbell that says nothing.
#![no_std]
#![no_main]

use an385::board;

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start_clock();
    board::start_bell();
    let mut clock = board::Clock::start();
    loop {
        board::take_bell();
        if clock.micros() as u32 & 1 == 0 {
            board::ring_bell();
        }
        sinew_rt::sleep();
    }
}

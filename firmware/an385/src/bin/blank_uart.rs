//! A node of Zenoh without Zenoh: the clock, the UART, and HDLC both ways. It echoes packets, with the time in
//! their first byte.
#![no_std]
#![no_main]

use an385::{BATCH, board, zenoh};
use sinew::link::{Rx, Tx};

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    let (mut tx, mut rx) = zenoh::link();
    loop {
        board::acknowledge();
        // It ends some time, as the nodes may: start-up wants the exit linked.
        let now = clock.micros().checked_add(1)?;
        while let Ok(Some(packet)) = rx.peek() {
            let place = tx.place(BATCH).ok()?;
            for (to, from) in place.iter_mut().zip(packet) {
                *to = *from;
            }
            *place.first_mut()? = now as u8;
            let len = packet.len();
            tx.commit(len).ok()?;
            rx.release();
        }
        sinew_rt::sleep();
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    run();
    sinew_rt::exit(3)
}

//! The sensor over the UART.
#![no_std]
#![no_main]

use an385::sensor::{self, Sensor};
use an385::{BATCH, board, zenoh};
use sinew::link::Rx;
use sinew::time::Instant;

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", BATCH);

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    clock.restart(sensor::WAKE - 1);
    let (mut tx, mut rx) = zenoh::link();
    let mut sensor = Sensor::new()?;
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        while let Some(packet) = rx.packet() {
            // There is always a place.
            sensor.receive(packet, &mut tx, now);
            rx.release();
        }
        sensor.turn(&mut tx, now);
        sinew_rt::sleep();
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    run();
    sinew_rt::exit(3)
}

//! The sensor over memory that the board shares with a Linux process, with doorbells.
//!
//! One context without a lock: interrupts stay masked and only end the sleep. Either side may start again
//! at any time.
#![no_std]
#![no_main]

use core::task::Waker;

use an385::sensor::{self, Sensor};
use an385::shared::{self, Board, CALLS};
use an385::{BATCH, board};
use sinew::link::{Rx, Tx};
use sinew::time::Instant;
use sinew_shm::Unshared;
use sinew_shm::domain::{End, Incoming, Outgoing, Receiver, Sender};

sinew_rt::board!("machine=mps2-an385 link=shm mtu={}", BATCH);

type Link<'a> = &'a End<Board<Unshared, true, BATCH>>;

struct Node<'a> {
    sensor: Sensor,
    tx: Outgoing<Link<'a>>,
    rx: Incoming<Link<'a>, [u8; BATCH]>,
}

impl Node<'_> {
    /// Takes up what has come, and does what is due.
    fn turn(&mut self, now: Instant) {
        loop {
            match Rx::peek(&mut self.rx) {
                Ok(Some(packet)) if self.sensor.receive(packet, &mut self.tx, now) => {
                    Rx::release(&mut self.rx);
                }
                Ok(_) => break,
                Err(_) => {
                    self.sensor.link_lost();
                    self.tx.renew();
                    self.rx.renew();
                    break;
                }
            }
        }
        self.sensor.turn(&mut self.tx, now);
        Tx::flush(&mut self.tx);
    }

    /// Asks to be rung. Nobody is to be woken: what came before is found by one more turn.
    fn arm(&mut self) {
        Tx::arm(&mut self.tx, Waker::noop());
        Rx::arm(&mut self.rx, Waker::noop());
    }
}

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    clock.restart(sensor::WAKE - 1);
    let end = &shared::open::<Unshared, true, BATCH>()?;
    let mut node = Node {
        sensor: Sensor::new()?,
        tx: Outgoing::new(Sender::new(&end, CALLS)?),
        rx: Incoming::new(Receiver::new(&end, CALLS)?, [0; BATCH])?,
    };
    loop {
        board::take_bell();
        let micros = clock.micros();
        shared::look(end, (micros >> 10) as u32);
        let now = Instant::from_micros(micros);
        node.turn(now);
        node.arm();
        node.turn(now);
        sinew_rt::sleep();
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start_clock();
    board::start_bell();
    run();
    sinew_rt::exit(3)
}

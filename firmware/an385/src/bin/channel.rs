//! Sends every packet back that comes in over shared memory.
//!
//! One context without a lock: interrupts stay masked and only end the sleep.
#![no_std]
#![no_main]

use an385::shared::{self, Board};
use an385::{MTU, board};
use sinew_shm::Unshared;
use sinew_shm::domain::{End, Lost, Receiver, Refused, Sender};

sinew_rt::board!("machine=mps2-an385 link=shm mtu={}", an385::MTU);

type Link<'a> = &'a End<Board<Unshared, false>>;

/// A packet on its way back.
struct Echo {
    bytes: [u8; MTU],
    /// Of a packet that has not gone yet.
    len: Option<usize>,
}

impl Echo {
    /// Takes a packet up, or sends one; `false` where there is none, or no place for it: then the board
    /// is rung for that.
    fn turn(&mut self, tx: &Sender<Link<'_>>, rx: &Receiver<Link<'_>>) -> Result<bool, Lost> {
        let Some(len) = self.len else {
            self.len = rx.receive_into(&mut self.bytes)?;
            return Ok(self.len.is_some() || rx.ring_at(1)?);
        };
        match tx.send(self.bytes.get(..len).unwrap_or_default()) {
            Err(Refused::Lost(lost)) => return Err(lost),
            Err(Refused::Full) => return tx.ring_at_return(),
            _ => self.len = None,
        }
        Ok(true)
    }
}

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    let end = &shared::open::<Unshared, false, MTU>()?;
    let (mut tx, mut rx) = (Sender::new(&end, 1)?, Receiver::new(&end, 1)?);
    let mut echo = Echo {
        bytes: [0; MTU],
        len: None,
    };
    loop {
        board::take_bell();
        // Checks stop a link whose peer broke the protocol. Beginning again after that, as `shared::look` does, is 40 B
        // more, and part of the link.
        end.look((clock.micros() >> 10) as u32);
        match echo.turn(&tx, &rx) {
            Ok(true) => {}
            Ok(false) => sinew_rt::sleep(),
            Err(_) => {
                echo.len = None;
                tx.renew();
                rx.renew();
            }
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start_clock();
    board::start_bell();
    let _ = run();
    sinew_rt::exit(3)
}

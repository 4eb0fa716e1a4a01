//! Sends every packet back that comes in over shared memory.
//!
//! One context without a lock: interrupts stay masked and only end the sleep.
#![no_std]
#![no_main]

use core::task::Waker;

use an385::shared::{self, Board};
use an385::{MTU, board};
use sinew_shm::Unshared;
use sinew_shm::domain::{End, Lost, Outgoing, Receiver, Refused, Sender};

type Link<'a> = &'a End<Board<Unshared>>;

/// Echoes one packet; `false` where there is none, or no place for it.
fn turn(tx: &mut Outgoing<Link<'_>>, rx: &Receiver<Link<'_>>) -> Result<bool, Lost> {
    let place = match tx.place(MTU) {
        Ok(place) => place,
        Err(Refused::Lost(lost)) => return Err(lost),
        Err(_) => return Ok(false),
    };
    let Some(packet) = rx.receive()? else {
        return Ok(false);
    };
    let len = packet.copy_to(place)?;
    drop(packet);
    if let Err(Refused::Lost(lost)) = tx.commit(len) {
        return Err(lost);
    }
    tx.flush();
    Ok(true)
}

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    let end = &shared::open::<Unshared>()?;
    let (mut tx, mut rx) = (
        Outgoing::new(Sender::new(&end, 1)?),
        Receiver::new(&end, 1)?,
    );
    loop {
        board::take_bell();
        end.look((clock.micros() >> 10) as u32);
        let mut idle = false;
        let mut result = turn(&mut tx, &rx);
        if let Ok(false) = result {
            // Nobody is to be woken: what comes after this is found by the turn below, or rings.
            tx.arm(Waker::noop());
            rx.arm(Waker::noop());
            result = turn(&mut tx, &rx);
            idle = matches!(result, Ok(false));
        }
        if result.is_err() {
            tx.renew();
            rx.renew();
        }
        if idle {
            sinew_rt::sleep();
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

//! Prints instructions per call through a message channel, as `name value` lines on the UART: see
//! [`counted::calls`].
#![no_std]
#![no_main]

use an385::board;
use an385::count::An385;
use counted::calls::{EXCHANGE, FIRST, SECOND, Segments};
use sinew_shm::domain::Memory;
use sinew_shm::{Line, Segment};
use static_cell::StaticCell;

type Lines = ([Line; FIRST], [Line; SECOND], [Line; EXCHANGE]);

fn run() -> Option<()> {
    static MEMORY: StaticCell<Lines> = StaticCell::new();
    let lines = (
        [Line::ZERO; FIRST],
        [Line::ZERO; SECOND],
        [Line::ZERO; EXCHANGE],
    );
    let (first, second, exchange) = MEMORY.try_init(lines)?;
    let memory = Segments {
        first: Segment::from_lines(first),
        second: Segment::from_lines(second),
        exchange: Segment::from_lines(exchange),
    };
    counted::calls::run::<An385>(memory, |mine, peer, exchange| {
        // SAFETY: the segments are statics of this image, which nothing but the two ends use; each end
        // writes its own one, and what both write the one that has it in hand.
        unsafe { Memory::new(mine, peer, exchange) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    if !counted::is_exact::<An385>() {
        sinew_rt::exit(4);
    }
    match run() {
        Some(()) => sinew_rt::exit(0),
        None => sinew_rt::exit(3),
    }
}

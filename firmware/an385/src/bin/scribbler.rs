//! A board gone mad: it writes garbage into its segment of the shared memory, blocks and rings alike, and rings the
//! other side all the time. What the other side makes of it is checked by the runner.
#![no_std]
#![no_main]

use an385::{MTU, board, shared};

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start_clock();
    board::start_bell();
    // First as a peer that opens the link, so that there is one to spoil.
    let Some(end) = shared::open::<sinew_shm::Unshared, false, MTU>() else {
        sinew_rt::exit(3)
    };
    let mut clock = board::Clock::start();
    let mut random = 0x5eed_0004u32;
    loop {
        let micros = clock.micros();
        let mad = micros >> 17 & 1 == 1; // for 0.13 s each, so that links come up in between
        for _ in 0..16 {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            // Small numbers pass more checks.
            let word = if random & 3 == 0 { random } else { random % 20 };
            if mad {
                shared::scribble(random >> 8, word);
            }
        }
        board::take_bell();
        end.look((micros >> 10) as u32);
        board::ring_bell();
    }
}

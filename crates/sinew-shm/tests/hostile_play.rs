//! Random scripts of a side, its peer, and writes into the peer's memory between any two calls.
#![cfg(not(loom))]

#[path = "support/play.rs"]
mod play;
#[path = "support/random.rs"]
mod random;
#[path = "support/raw.rs"]
mod raw;

use play::Stage;
use random::Random;

/// How many scripts there are for each first byte.
fn scripts() -> u64 {
    match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => 1,
        (_, true) => 20,
        _ => 1000,
    }
}

fn play_each(steps: fn(u8) -> u8) {
    let mut stage = Stage::new();
    for setup in 0..64 {
        for seed in 0..scripts() {
            let mut random =
                Random((seed << 8 | u64::from(setup)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
            let mut script = vec![setup];
            script.extend((0..300).map(|_| steps(random.byte())));
            stage.play(&script);
        }
    }
}

#[test]
fn any_steps_and_any_writes_leave_every_block() {
    play_each(|byte| byte);
}

#[test]
fn steps_with_few_writes_leave_every_block() {
    // The steps that write into the peer's memory become steps of this side.
    play_each(|byte| {
        if (11..15).contains(&(byte % 16)) && byte & 0x30 != 0 {
            byte - 8
        } else {
            byte
        }
    });
}

#[test]
fn entries_that_look_right_leave_every_block() {
    // Every write into the peer's memory becomes an entry of a ring.
    play_each(|byte| {
        if (12..15).contains(&(byte % 16)) {
            byte & 0xF0 | 11
        } else {
            byte
        }
    });
}

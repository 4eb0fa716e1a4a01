//! One typed call in one thread, without a hop: what the work itself takes, beside a plain struct
//! through the control's ring.

use std::time::Instant;

use sinew_shm::{StdLock, Unshared};

use crate::cases::{Bare, Loopback};
use crate::csv::{Row, spread};
use crate::ring::Ring;
use crate::talk::Plain;

const ROUNDS: usize = 101;
const CALLS: u64 = 10_000;

/// Times all ways, interleaved.
pub fn run() -> Vec<Row> {
    let (mut control, mut bare, mut queue, mut locked) = (vec![], vec![], vec![], vec![]);
    let (there, back) = (Ring::new(), Ring::new());
    let mut calls = Bare::new();
    let (mut loopback, mut shared) = (Loopback::<Unshared>::new(), Loopback::<StdLock>::new());
    for round in 0..=ROUNDS {
        let samples = [
            time(|value| plain(&there, &back, value)),
            time(|value| calls.set_and_get(value)),
            time(|value| loopback.set_and_get(value)),
            time(|value| shared.set_and_get(value)),
        ];
        if round > 0 {
            let all = [&mut control, &mut bare, &mut queue, &mut locked];
            for (samples, sample) in all.into_iter().zip(samples) {
                samples.push(sample);
            }
        }
    }
    let note = format!("one thread; {ROUNDS} interleaved rounds of {CALLS} calls");
    [
        ("no hop: control", control),
        ("no hop: typed call", bare),
        ("no hop: with queues", queue),
        ("no hop: with locked queues", locked),
    ]
    .into_iter()
    .map(|(case, samples)| spread(case, "time", samples, "ns/call", &note))
    .collect()
}

/// Nanoseconds per call; `exercise` makes two.
fn time(mut exercise: impl FnMut(i32)) -> f64 {
    let start = Instant::now();
    for value in 0..CALLS / 2 {
        exercise(value as i32);
    }
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

/// The control's set and get, both ends of its rings in this thread.
fn plain(there: &Ring<Plain>, back: &Ring<Plain>, value: i32) {
    let mut remembered = 0;
    for request in [Plain::set(value), Plain::get()] {
        there.push(&request);
        back.push(&there.pop().answer(&mut remembered));
        remembered = back.pop().value;
    }
    assert_eq!(remembered, value);
}

//! Prints instructions per sample of 8 bytes, as `name value` lines on the UART: see [`counted::puts`].
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ops::Range;

use an385::board;
use an385::count::{An385, Meter, print};
use counted::puts::{Pair, SAMPLE};

const RUNS: Range<u32> = 0..512;
/// Samples that fit one batch.
const SHARING: Range<u32> = 0..80;

fn run() -> Option<()> {
    let mut pair = Pair::open()?;
    let (mut meter, sample) = (Meter::new(), black_box(SAMPLE));
    pair.put(&sample)?; // begins the batch
    meter.runs(SHARING, |_| pair.put(&sample))?;
    print("", "put", meter.per_run());
    pair.flush()?;

    let mut meter = Meter::new();
    let mut samples = 0;
    meter.part(|| samples = pair.receive());
    for _ in 0..samples {
        meter.end_run();
    }
    if samples != SHARING.end + 1 {
        return None;
    }
    print("", "received", meter.per_run());

    let mut meter = Meter::new();
    meter.runs(RUNS, |_| pair.put_alone(&sample))?;
    print("", "put_alone", meter.per_run());
    Some(())
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

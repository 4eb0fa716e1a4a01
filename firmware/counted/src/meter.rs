//! Counting, and printing counts.

use core::hint::black_box;
use core::marker::PhantomData;
use core::ops::Range;

use crate::Board;

/// Ticks and runs so far.
pub struct Meter<B> {
    ticks: u32,
    runs: u32,
    board: PhantomData<B>,
}

impl<B: Board> Meter<B> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Meter {
            ticks: 0,
            runs: 0,
            board: PhantomData,
        }
    }

    /// Counts runs of `f`, the loop around it included; all together less than the counter's span.
    /// `None` where one of them fails.
    pub fn runs(&mut self, runs: Range<u32>, mut f: impl FnMut(u32) -> Option<()>) -> Option<()> {
        self.runs += runs.end - runs.start;
        let from = B::ticks();
        for n in runs {
            f(black_box(n))?;
        }
        self.ticks += B::elapsed(from, B::ticks());
        Some(())
    }

    /// Counts a part of a run, to within one tick and with what it takes to look at the counter.
    #[inline(always)]
    pub fn part<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let from = B::ticks();
        let result = f();
        self.ticks += B::elapsed(from, B::ticks());
        result
    }

    /// Ends a run whose parts were counted.
    pub fn end_run(&mut self) {
        self.runs += 1;
    }

    /// Instructions per run.
    pub fn per_run(&self) -> u32 {
        let mut instructions = B::instructions(self.ticks);
        // Without a division, whose check for zero would be the only panic of the image.
        let mut per_run = 0;
        while self.runs > 0 && instructions >= self.runs {
            instructions -= self.runs;
            per_run += 1;
        }
        per_run
    }
}

impl<B: Board> Default for Meter<B> {
    fn default() -> Self {
        Meter::new()
    }
}

/// Whether the counter goes with the instructions: a loop of known length takes what it must.
pub fn is_exact<B: Board>() -> bool {
    let spun = |times| {
        let mut meter = Meter::<B>::new();
        meter.part(|| B::spin(times));
        B::instructions(meter.ticks)
    };
    // The rest of both is the same, except for a tick.
    let (short, long) = (spun(1_000), spun(6_000));
    long.wrapping_sub(short).abs_diff(10_000) <= 2
}

/// Prints a line with a name, in two parts, and a value of at most six digits.
pub fn print<B: Board>(kind: &str, name: &str, mut value: u32) {
    kind.bytes()
        .chain(name.bytes())
        .chain([b' '])
        .for_each(B::send);
    for unit in [100_000, 10_000, 1_000, 100, 10, 1] {
        let mut digit = b'0';
        while value >= unit {
            value -= unit;
            digit += 1;
        }
        B::send(digit);
    }
    B::send(b'\n');
}

//! Counting instructions, and printing counts.
//!
//! Under `-icount shift=6,sleep=off` one instruction takes 64 ns, and SysTick counts 40 ns: so many
//! runs are measured, and instructions are ticks * 5 / 8.

use core::hint::black_box;
use core::ops::Range;

use crate::board;

/// Ticks and runs so far.
pub struct Meter {
    ticks: u32,
    runs: u32,
}

impl Meter {
    /// Nothing yet.
    pub const fn new() -> Meter {
        Meter { ticks: 0, runs: 0 }
    }

    /// Counts runs of `f`, the loop around it included; all together less than 0.67 s. `None` where
    /// one of them fails.
    pub fn runs(&mut self, runs: Range<u32>, mut f: impl FnMut(u32) -> Option<()>) -> Option<()> {
        self.runs += runs.end - runs.start;
        let from = board::ticks();
        for n in runs {
            f(black_box(n))?;
        }
        self.ticks += board::elapsed(from, board::ticks());
        Some(())
    }

    /// Instructions per run.
    pub fn per_run(&self) -> u32 {
        let mut instructions = self.ticks * 5 / 8;
        // Without a division, whose check for zero would be the only panic of the image.
        let mut per_run = 0;
        while self.runs > 0 && instructions >= self.runs {
            instructions -= self.runs;
            per_run += 1;
        }
        per_run
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::new()
    }
}

/// Prints a line with a name, in two parts, and a value of at most six digits.
pub fn print(kind: &str, name: &str, mut value: u32) {
    kind.bytes()
        .chain(name.bytes())
        .chain([b' '])
        .for_each(send);
    for unit in [100_000, 10_000, 1_000, 100, 10, 1] {
        let mut digit = b'0';
        while value >= unit {
            value -= unit;
            digit += 1;
        }
        send(digit);
    }
    send(b'\n');
}

fn send(byte: u8) {
    board::send(byte, || ());
}

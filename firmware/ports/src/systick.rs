//! SysTick, the timer of every Cortex-M (Armv7-M ARM, B3.3), as a clock; and what wakes the core by it.

use crate::register::{read, write};

const CSR: usize = 0xe000_e010;
const RVR: usize = 0xe000_e014;
const CVR: usize = 0xe000_e018;
const ICSR: usize = 0xe000_ed04;
const PENDSTCLR: u32 = 1 << 25;
const PENDSTSET: u32 = 1 << 26;

/// The largest value that it counts down from.
pub const WRAP: u32 = 0xff_ffff;

/// The core's SysTick.
#[derive(Clone, Copy, Debug)]
pub struct SysTick;

impl SysTick {
    // SAFETY, of all five: Armv6-M, 7-M and 8-M have these registers at these addresses (a core without
    // SysTick reads as zero), and none of them writes to memory.

    /// Switches it on with its interrupt, from the core's clock, counting down from [`WRAP`].
    pub fn start(self) {
        // SAFETY: see above.
        unsafe {
            write(RVR, WRAP);
            write(CVR, 0);
            write(CSR, 7);
        }
    }

    /// Starts it anew, to interrupt every `ticks + 1` ticks, at least 1 and at most [`WRAP`].
    pub fn restart(self, ticks: u32) {
        // SAFETY: see above.
        unsafe {
            write(RVR, ticks);
            write(CVR, 0);
        }
    }

    /// Whether its interrupt waits for its handler.
    pub fn is_pending(self) -> bool {
        // SAFETY: see above.
        unsafe { read(ICSR) & PENDSTSET != 0 }
    }

    /// Takes a pending interrupt of it back, for who sleeps with interrupts masked.
    pub fn acknowledge(self) {
        // SAFETY: see above.
        unsafe { write(ICSR, PENDSTCLR) }
    }

    /// What it shows now; it counts down.
    pub fn ticks(self) -> u32 {
        // SAFETY: see above.
        unsafe { read(CVR) }
    }
}

/// Ticks from one look to a later one, less than `WRAP` ticks apart.
pub fn elapsed(from: u32, to: u32) -> u32 {
    from.wrapping_sub(to) & WRAP
}

/// The time since the start, from SysTick at `MHZ` megahertz.
///
/// It has to be read once before SysTick wraps, 0.67 s at 25 MHz; its interrupt wakes the core that often.
#[derive(Debug)]
pub struct Clock<const MHZ: u32> {
    micros: u64,
    /// SysTick at the last look, less what does not make a microsecond yet.
    last: u32,
}

impl<const MHZ: u32> Clock<MHZ> {
    /// A clock that starts now, after [`SysTick::start`].
    pub fn start() -> Self {
        Clock {
            micros: 0,
            last: SysTick.ticks(),
        }
    }

    /// Microseconds since the start.
    pub fn micros(&mut self) -> u64 {
        let micros = elapsed(self.last, SysTick.ticks()) / MHZ;
        self.last = self.last.wrapping_sub(micros * MHZ) & WRAP;
        self.micros += u64::from(micros);
        self.micros
    }
}

//! SysTick, the timer of every Cortex-M (Armv7-M ARM, B3.3), as a clock; and what wakes the core by it.
//!
//! It interrupts where its counter begins anew, so a core that sleeps wakes once in each of its periods: two looks at
//! the counter alone do not tell a period from none. So [`Clock`] takes COUNTFLAG too, which says that a period has
//! ended since it was last read. Reading it takes it back: an image has one [`Clock`], and nothing else in it reads
//! that register.

use crate::register::{read, write};

const CSR: usize = 0xe000_e010;
const RVR: usize = 0xe000_e014;
const CVR: usize = 0xe000_e018;
/// In CSR: it has counted to 0 since the last look at CSR, or since CVR was written.
const COUNTFLAG: u32 = 1 << 16;
const ICSR: usize = 0xe000_ed04;
const PENDSTCLR: u32 = 1 << 25;

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

    /// Whether it has counted to 0 since it was last asked; it forgets.
    fn take_end(self) -> bool {
        // SAFETY: see above.
        unsafe { read(CSR) & COUNTFLAG != 0 }
    }
}

/// Ticks from one look to a later one, less than `WRAP` ticks apart.
pub fn elapsed(from: u32, to: u32) -> u32 {
    from.wrapping_sub(to) & WRAP
}

/// The time since the start, in microseconds, from SysTick at `MHZ` megahertz. One in an image.
///
/// It has to be read once in each period of SysTick, 0.67 s at 25 MHz: its interrupt wakes the core for that. Of
/// periods that end without a look in between, as while a handler runs or interrupts are masked, one counts; the time
/// then is behind, and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock<const MHZ: u32> {
    micros: u64,
    /// What SysTick showed at `micros`, as if it counted on from period to period.
    from: u32,
    /// Ticks of a period of it.
    period: u32,
}

impl<const MHZ: u32> Clock<MHZ> {
    /// A clock that shows 0 when SysTick has started, right before.
    pub const fn start() -> Self {
        Clock {
            micros: 0,
            from: WRAP + 1,
            period: WRAP + 1,
        }
    }

    /// Microseconds since the start.
    pub fn micros(&mut self) -> u64 {
        self.look();
        self.micros
    }

    /// Brings `micros` up to date. Ticks that do not make a microsecond yet.
    #[inline(never)] // smaller: the loop around it keeps its registers
    fn look(&mut self) -> u32 {
        if SysTick.take_end() {
            self.from += self.period;
        }
        let mut now = SysTick.ticks();
        if now == 0 && self.from >= self.period {
            // At its end, which has been taken, or not yet begun.
            now = self.period;
        } else if now > self.from {
            // It ended since the look above.
            SysTick.take_end();
            self.from += self.period;
        }
        let micros = (self.from - now) / MHZ;
        self.from -= micros * MHZ;
        self.micros += u64::from(micros);
        self.from - now
    }

    /// Lets SysTick interrupt every `ticks + 1` ticks from now on, at least 1 and at most [`WRAP`]: each of them is a
    /// period. The clock goes behind by the few ticks that this takes.
    pub fn restart(&mut self, ticks: u32) {
        let rest = self.look();
        SysTick.restart(ticks);
        self.period = ticks + 1;
        self.from = self.period + rest;
    }

    /// When SysTick interrupts next, in microseconds since the start; from the last look.
    #[cfg(feature = "embassy")]
    pub(crate) fn end(&self) -> u64 {
        self.micros + u64::from(self.from / MHZ)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fake::{self, Registers};

    const PENDSTSET: u32 = 1 << 26;
    /// No registers: ticks that pass at each access, and that have passed since the start.
    const STEP: usize = 0;
    const PASSED: usize = 1;

    /// From now on the registers are those of a core's SysTick.
    pub(crate) fn simulate() {
        fake::change(Registers::clear);
        fake::shown(|registers, address| {
            let step = *registers.entry(STEP).or_default();
            advance(registers, step);
            let value = *registers.entry(address).or_default();
            if address == CSR {
                registers.insert(CSR, value & !COUNTFLAG);
            }
            value
        });
        fake::device(|registers, address, value| {
            if address == CVR {
                registers.insert(CVR, 0);
                *registers.entry(CSR).or_default() &= !COUNTFLAG;
            } else if address == ICSR {
                *registers.entry(ICSR).or_default() &= !(PENDSTSET * (value & PENDSTCLR).min(1));
            } else {
                registers.insert(address, value);
            }
        });
    }

    fn advance(registers: &mut Registers, mut ticks: u32) {
        if registers.get(&CSR).is_none_or(|csr| csr & 1 == 0) {
            return;
        }
        *registers.entry(PASSED).or_default() += ticks;
        while ticks > 0 {
            let cvr = *registers.entry(CVR).or_default();
            if cvr == 0 {
                let reload = *registers.entry(RVR).or_default();
                registers.insert(CVR, reload);
                ticks -= 1;
                continue;
            }
            let step = ticks.min(cvr);
            registers.insert(CVR, cvr - step);
            ticks -= step;
            if cvr == step {
                *registers.entry(CSR).or_default() |= COUNTFLAG;
                *registers.entry(ICSR).or_default() |= PENDSTSET;
            }
        }
    }

    /// Lets so many ticks pass.
    pub(crate) fn pass(ticks: u32) {
        fake::change(|registers| advance(registers, ticks));
    }

    /// Enters its handler, where it is pending.
    pub(crate) fn take_interrupt() -> bool {
        let mut pending = false;
        fake::change(|registers| {
            let icsr = registers.entry(ICSR).or_default();
            pending = *icsr & PENDSTSET != 0;
            *icsr &= !PENDSTSET;
        });
        pending
    }

    /// Ticks since the start.
    fn passed() -> u32 {
        let mut passed = 0;
        fake::change(|registers| passed = registers.get(&PASSED).copied().unwrap_or_default());
        passed
    }

    fn start() -> Clock<25> {
        simulate();
        SysTick.start();
        Clock::start()
    }

    #[test]
    fn a_core_that_wakes_once_in_a_period_sees_each_of_them() {
        let mut clock = start();
        pass(51);
        for n in 1..=10 {
            pass(WRAP + 1);
            assert!(take_interrupt());
            assert_eq!(clock.micros(), (51 + n * (1 << 24)) / 25, "period {n}");
        }
    }

    #[test]
    fn no_period_is_lost_or_counted_twice_whenever_it_is_looked_at() {
        let mut clock = start();
        let mut random = 1u32;
        let (mut last, mut restarts) = (0, 0u64);
        for _ in 0..100_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let choice = random >> 8;
            fake::set(STEP, choice % 3);
            // Short ones, so that many looks are at an end.
            if choice.is_multiple_of(16) {
                clock.restart(30 + choice % 50);
                restarts += 1;
            }
            pass(choice % 25);
            let before = passed();
            let micros = clock.micros();
            // Up to two reads' ticks pass while it begins anew.
            let behind = restarts * 4;
            assert!(micros >= last);
            assert!(micros <= u64::from(passed() / 25));
            assert!((micros + 1) * 25 + behind >= u64::from(before));
            last = micros;
        }
    }

    #[test]
    fn a_look_soon_after_each_end_is_enough() {
        let mut clock = start();
        let mut delay = 0;
        for n in 1u64..100 {
            let next = (n as u32 * 7919) % 5000 + 1;
            pass(WRAP + 1 - delay + next);
            delay = next;
            assert_eq!(clock.micros(), ((n << 24) + u64::from(delay)) / 25);
        }
    }

    #[test]
    fn an_end_between_its_two_reads_is_counted_once() {
        // At each read three ticks pass, so in some of these it ends before the first, in others at either.
        for left in 0..10 {
            let mut clock = start();
            pass(100);
            clock.micros();
            pass(WRAP + 1 - 100 - left);
            fake::set(STEP, 3);
            let micros = clock.micros();
            fake::set(STEP, 0);
            assert!(micros.abs_diff((1 << 24) / 25) <= 1);
            assert_eq!(clock.micros(), u64::from(passed() / 25), "{left}");
            pass(WRAP);
            assert_eq!(clock.micros(), u64::from(passed() / 25), "{left}");
        }
    }

    #[test]
    fn of_periods_without_a_look_one_counts() {
        let mut clock = start();
        pass(3 * (WRAP + 1) + 250);
        assert_eq!(clock.micros(), ((1 << 24) + 250) / 25);
        pass(250);
        assert_eq!(clock.micros(), ((1 << 24) + 500) / 25);
    }

    #[test]
    fn a_shorter_period_counts_as_long_as_it_is() {
        let mut clock = start();
        pass(1_000_013);
        clock.restart(249_999);
        for n in 1..=100 {
            pass(250_000);
            assert_eq!(clock.micros(), (1_000_013 + n * 250_000) / 25);
        }
    }

    #[test]
    fn a_systick_that_is_off_shows_no_time() {
        simulate();
        let mut clock = Clock::<25>::start();
        pass(1000);
        assert_eq!(clock.micros(), 0);
    }
}

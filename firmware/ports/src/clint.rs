//! The local interrupts of RISC-V harts (CLINT; RISC-V ACLINT specification, chapters 2 and 3): the software
//! interrupt as a doorbell, and the timer as a clock.
//!
//! `BASE` is where the registers begin. Reset leaves the software interrupts at 0 and the timer's at any value.

use sinew_shm::domain::Doorbell;

use crate::register::{barrier, read, write};

/// One word for each hart.
const MSIP: usize = 0;
/// Two words for each hart, the lower one first.
const MTIMECMP: usize = 0x4000;
const MTIME: usize = 0xbff8;

/// The software interrupt (MSIP) of hart `PEER` as the doorbell that hart `HART` rings.
#[derive(Clone, Copy, Debug)]
pub struct Msip<const BASE: usize, const HART: usize, const PEER: usize>(());

impl<const BASE: usize, const HART: usize, const PEER: usize> Msip<BASE, HART, PEER> {
    /// The doorbell there.
    ///
    /// # Safety
    /// At `BASE` are these registers, for both harts, and this code runs on `HART`.
    pub const unsafe fn new() -> Self {
        Msip(())
    }

    fn write(hart: usize, value: u32) {
        // SAFETY: `new` has promised the device, which writes to no memory.
        unsafe { write(BASE + MSIP + 4 * hart, value) }
    }

    /// Takes what was rung. In the interrupt, before looking for what it rang for: a ring that comes
    /// meanwhile interrupts again.
    pub fn acknowledge(&self) {
        Self::write(HART, 0);
        barrier(); // it is taken before memory is looked at
    }
}

impl<const BASE: usize, const HART: usize, const PEER: usize> Doorbell for Msip<BASE, HART, PEER> {
    fn ring(&self) {
        barrier();
        Self::write(PEER, 1);
    }
}

/// The timer (MTIME), which counts `MHZ` times in a microsecond, and the interrupt of it of hart `HART`.
#[derive(Clone, Copy, Debug)]
pub struct Mtimer<const BASE: usize, const HART: usize, const MHZ: u64>(());

impl<const BASE: usize, const HART: usize, const MHZ: u64> Mtimer<BASE, HART, MHZ> {
    /// The timer there.
    ///
    /// # Safety
    /// At `BASE` are these registers.
    pub const unsafe fn new() -> Self {
        Mtimer(())
    }

    fn count(&self) -> u64 {
        // SAFETY: `new` has promised the device; reading has no effect.
        let word = |at| u64::from(unsafe { read(BASE + MTIME + at) });
        loop {
            let (high, low) = (word(4), word(0));
            if word(4) == high {
                return high << 32 | low;
            }
        }
    }

    /// Microseconds since it began to count.
    pub fn micros(&self) -> u64 {
        self.count() / MHZ
    }

    /// Raises the hart's timer interrupt from now on, in so many microseconds.
    pub fn wake_in(&self, micros: u32) {
        self.compare(self.count().wrapping_add(u64::from(micros) * MHZ));
    }

    /// Takes the timer interrupt back, for good.
    pub fn stop(&self) {
        self.compare(u64::MAX);
    }

    fn compare(&self, at: u64) {
        let word = BASE + MTIMECMP + 8 * HART;
        // SAFETY: `new` has promised the device, which writes to no memory. The order never shows a time
        // that is earlier than both the last one and this one.
        unsafe {
            write(word, u32::MAX);
            write(word + 4, (at >> 32) as u32);
            write(word, at as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, done, set};

    const BASE: usize = 0x200_0000;

    #[test]
    fn each_hart_sets_the_word_of_the_other_and_clears_its_own() {
        // SAFETY: registers of the test.
        let (zero, one) = unsafe { (Msip::<BASE, 0, 1>::new(), Msip::<BASE, 1, 0>::new()) };
        zero.ring();
        assert_eq!(done(), [Barrier, Write(0x200_0004, 1)]);
        one.acknowledge();
        assert_eq!(done(), [Write(0x200_0004, 0), Barrier]);
        one.ring();
        assert_eq!(done(), [Barrier, Write(0x200_0000, 1)]);
        zero.acknowledge();
        assert_eq!(done(), [Write(0x200_0000, 0), Barrier]);
    }

    #[test]
    fn the_timer_is_read_in_two_words_and_set_without_an_early_time() {
        // SAFETY: registers of the test.
        let timer = unsafe { Mtimer::<BASE, 1, 10>::new() };
        set(0x200_bff8, 90);
        set(0x200_bffc, 1);
        assert_eq!(timer.micros(), ((1 << 32) + 90) / 10);
        done();
        timer.wake_in(2);
        let writes: std::vec::Vec<_> = done().into_iter().skip(3).collect();
        let (low, high) = (0x200_4008, 0x200_400c);
        assert_eq!(
            writes,
            [Write(low, u32::MAX), Write(high, 1), Write(low, 110)]
        );
        timer.stop();
        let max = u32::MAX;
        assert_eq!(done(), [Write(low, max), Write(high, max), Write(low, max)]);
    }
}

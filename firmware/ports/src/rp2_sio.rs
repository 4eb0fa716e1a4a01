//! The doorbells between the two cores of an RP2040 or RP2350, in their single-cycle IO block (SIO, at
//! 0xd000_0000; RP2040 datasheet, 2.3.1.4 "Inter-processor FIFOs"; RP2350 datasheet, 3.1.5 "FIFOs" and 3.1.6
//! "Doorbells").
//!
//! Written by the reference manual: unit tests and compilation only, run on no chip.
//!
//! Each core sees its own side at the same address, so both run the same code. The boot ROM starts core 1 by the
//! FIFO: take it over after that.

use sinew_shm::domain::Doorbell;

use crate::register::{barrier, read, write};

const FIFO_ST: usize = 0x50;
const FIFO_WR: usize = 0x54;
const FIFO_RD: usize = 0x58;
const HAS_WORD: u32 = 1;
const HAS_ROOM: u32 = 2;
/// Sticky: written while full, read while empty. Any write clears both.
const ERRORS: u32 = 4 | 8;
/// How many words there can be, on the chip where there are more.
const DEPTH: usize = 8;

/// The FIFO of words to the other core, a word a ring: RP2040 (interrupts 15 on core 0, 16 on core 1) and RP2350
/// (25 on both).
#[derive(Clone, Copy, Debug)]
pub struct SioFifo<const BASE: usize>(());

impl<const BASE: usize> SioFifo<BASE> {
    /// The FIFO there.
    ///
    /// # Safety
    /// At `BASE` are the registers of the SIO block.
    pub const unsafe fn new() -> Self {
        SioFifo(())
    }

    fn read(register: usize) -> u32 {
        // SAFETY: one of the constants above, and `new` has promised the device. Reading has effects on
        // the device only.
        unsafe { read(BASE + register) }
    }

    fn write(register: usize, value: u32) {
        // SAFETY: as above; the device writes to no memory.
        unsafe { write(BASE + register, value) }
    }

    /// Takes what was rung, whatever the words say. In the interrupt, before looking for what it rang for.
    pub fn acknowledge(&self) {
        // What comes on top of these interrupts again.
        for _ in 0..DEPTH {
            if Self::read(FIFO_ST) & HAS_WORD == 0 {
                break;
            }
            Self::read(FIFO_RD);
        }
        Self::write(FIFO_ST, ERRORS);
        barrier();
    }
}

impl<const BASE: usize> Doorbell for SioFifo<BASE> {
    fn ring(&self) {
        barrier();
        // Where it is full, it rings already.
        if Self::read(FIFO_ST) & HAS_ROOM != 0 {
            Self::write(FIFO_WR, 1);
        }
    }
}

const DOORBELL_OUT_SET: usize = 0x180;
const DOORBELL_IN_CLR: usize = 0x18c;

/// Bit `BIT`, 0 to 7, of the doorbells of an RP2350 (interrupt 26 on both cores).
#[derive(Clone, Copy, Debug)]
pub struct SioDoorbell<const BASE: usize, const BIT: u32>(());

impl<const BASE: usize, const BIT: u32> SioDoorbell<BASE, BIT> {
    const VALID: () = assert!(BIT < 8);

    /// The bit there.
    ///
    /// # Safety
    /// At `BASE` are the registers of the SIO block of an RP2350.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        SioDoorbell(())
    }

    /// Takes what was rung. In the interrupt, before looking for what it rang for.
    pub fn acknowledge(&self) {
        // SAFETY: `new` has promised the device, which writes to no memory.
        unsafe { write(BASE + DOORBELL_IN_CLR, 1 << BIT) }
        barrier();
    }
}

impl<const BASE: usize, const BIT: u32> Doorbell for SioDoorbell<BASE, BIT> {
    fn ring(&self) {
        barrier();
        // SAFETY: as above.
        unsafe { write(BASE + DOORBELL_OUT_SET, 1 << BIT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, device, done, set};

    const SIO: usize = 0xd000_0000;
    const ST: usize = SIO + 0x50;

    #[test]
    fn a_full_fifo_is_not_written() {
        // SAFETY: registers of the test.
        let fifo = unsafe { SioFifo::<SIO>::new() };
        set(ST, 2);
        fifo.ring();
        assert_eq!(done(), [Barrier, Read(ST), Write(SIO + 0x54, 1)]);
        set(ST, 0);
        fifo.ring();
        assert_eq!(done(), [Barrier, Read(ST)]);
    }

    #[test]
    fn the_fifo_is_emptied_and_its_errors_are_cleared() {
        // SAFETY: registers of the test.
        let fifo = unsafe { SioFifo::<SIO>::new() };
        set(ST, 1);
        fifo.acknowledge();
        let done_now = done();
        let reads = done_now.iter().filter(|it| **it == Read(SIO + 0x58));
        assert_eq!(reads.count(), 8, "it ends although words keep coming");
        assert!(done_now.ends_with(&[Write(ST, 0xc), Barrier]));
        device(|_, _, _| ());
        set(ST, 0);
        fifo.acknowledge();
        assert_eq!(done(), [Read(ST), Write(ST, 0xc), Barrier]);
    }

    #[test]
    fn a_doorbell_is_set_at_the_other_core_and_cleared_at_the_own_one() {
        // SAFETY: registers of the test.
        let bell = unsafe { SioDoorbell::<SIO, 3>::new() };
        bell.ring();
        assert_eq!(done(), [Barrier, Write(SIO + 0x180, 8)]);
        bell.acknowledge();
        assert_eq!(done(), [Write(SIO + 0x18c, 8), Barrier]);
    }
}

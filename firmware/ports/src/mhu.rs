//! Arm's message handling unit: a doorbell between the two cores of an SSE-200 subsystem (Arm CoreLink
//! SSE-200 TRM, 101104, "Message Handling Unit").
//!
//! Each core has a word of four bits. While one is set, the core's interrupt of this unit is raised; either
//! core sets and clears bits by writing ones.

use sinew_shm::domain::Doorbell;

use crate::register::{barrier, write};

/// From the registers of one core to those of the next.
const CORE_STRIDE: usize = 0x10;
const SET: usize = 0x4;
const CLEAR: usize = 0x8;

/// Bit `BIT` of the unit whose registers begin at `BASE`, for core `CORE`, 0 or 1, which it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Mhu<const BASE: usize, const CORE: usize, const BIT: u32 = 0>(());

impl<const BASE: usize, const CORE: usize, const BIT: u32> Mhu<BASE, CORE, BIT> {
    const VALID: () = assert!(CORE < 2 && BIT < 4);

    /// The bit there.
    ///
    /// # Safety
    /// At `BASE` are the registers of such a unit, and this code runs on that core.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        Mhu(())
    }

    fn write(register: usize, core: usize) {
        // SAFETY: one of the constants above, and `new` has promised the device, which writes to no memory.
        unsafe { write(BASE + core * CORE_STRIDE + register, 1 << BIT) }
    }

    /// Takes what was rung. In the interrupt, before looking for what it rang for: a ring that comes
    /// meanwhile interrupts again.
    pub fn acknowledge(&self) {
        Self::write(CLEAR, CORE);
        barrier(); // it is taken before memory is looked at
    }
}

// ANCHOR: doorbell
impl<const BASE: usize, const CORE: usize, const BIT: u32> Doorbell for Mhu<BASE, CORE, BIT> {
    fn ring(&self) {
        barrier();
        Self::write(SET, 1 - CORE);
    }
}
// ANCHOR_END: doorbell

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, done};

    #[test]
    fn each_core_sets_the_bit_of_the_other_and_clears_its_own() {
        // SAFETY: registers of the test.
        let (zero, one) = unsafe {
            (
                Mhu::<0x5000_3000, 0>::new(),
                Mhu::<0x5000_3000, 1, 2>::new(),
            )
        };
        zero.ring();
        assert_eq!(done(), [Barrier, Write(0x5000_3014, 1)]);
        one.ring();
        assert_eq!(done(), [Barrier, Write(0x5000_3004, 4)]);
        zero.acknowledge();
        assert_eq!(done(), [Write(0x5000_3008, 1), Barrier]);
        one.acknowledge();
        assert_eq!(done(), [Write(0x5000_3018, 4), Barrier]);
    }
}

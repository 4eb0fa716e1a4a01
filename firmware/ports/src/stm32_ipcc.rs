//! The inter-processor communication controller of the STM32WB, WL and MP1 as a doorbell, IPCC (RM0434, chapter
//! "Inter-processor communication controller (IPCC)"; the same chapter of RM0453 and RM0436).
//!
//! Written by the reference manual: unit tests and compilation only, run on no chip.
//!
//! A channel has one flag in each direction: the sender sets it, and the receiver is interrupted (receive channel
//! occupied) until it has cleared it.

use sinew_shm::domain::Doorbell;

use crate::register::{barrier, read, write};

/// From the registers of processor 1 to those of processor 2.
const CPU_STRIDE: usize = 0x10;
const CR: usize = 0x0;
const MR: usize = 0x4;
const SCR: usize = 0x8;
/// In `CR`: interrupts where a receive channel is occupied.
const RECEIVE_INTERRUPT: u32 = 1;
/// In `SCR`: from clearing the receive flag of a channel to setting its send flag.
const SET: u32 = 16;

/// Channel `CHANNEL`, 1 to 16 or as many as there are, of the unit whose registers begin at `BASE`, for
/// processor `CPU`, 1 or 2, which this runs on.
#[derive(Clone, Copy, Debug)]
pub struct Ipcc<const BASE: usize, const CPU: usize, const CHANNEL: u32>(());

impl<const BASE: usize, const CPU: usize, const CHANNEL: u32> Ipcc<BASE, CPU, CHANNEL> {
    const VALID: () = assert!(CPU - 1 < 2 && CHANNEL - 1 < 16);
    const OWN: usize = BASE + (CPU - 1) * CPU_STRIDE;
    const BIT: u32 = 1 << (CHANNEL - 1);

    /// The channel there.
    ///
    /// # Safety
    /// At `BASE` are the registers of such a unit, and this code runs on that processor.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        Ipcc(())
    }

    fn read(register: usize) -> u32 {
        // SAFETY: one of the constants above, and `new` has promised the device; reading has no effect.
        unsafe { read(Self::OWN + register) }
    }

    fn write(register: usize, value: u32) {
        // SAFETY: as above; the device writes to no memory.
        unsafe { write(Self::OWN + register, value) }
    }

    /// Lets what the other processor rings interrupt. While nothing else changes which channels do.
    pub fn start(&self) {
        Self::write(MR, Self::read(MR) & !Self::BIT);
        Self::write(CR, Self::read(CR) | RECEIVE_INTERRUPT);
    }

    /// Takes what was rung. In the interrupt, before looking for what it rang for.
    pub fn acknowledge(&self) {
        Self::write(SCR, Self::BIT);
        barrier();
    }
}

impl<const BASE: usize, const CPU: usize, const CHANNEL: u32> Doorbell
    for Ipcc<BASE, CPU, CHANNEL>
{
    fn ring(&self) {
        barrier();
        Self::write(SCR, Self::BIT << SET);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, done, set};

    const BASE: usize = 0x5800_0c00;

    #[test]
    fn a_channel_is_unmasked_set_and_cleared_at_the_own_processor() {
        // SAFETY: registers of the test.
        let (one, two) = unsafe { (Ipcc::<BASE, 1, 3>::new(), Ipcc::<BASE, 2, 1>::new()) };
        set(BASE + 4, u32::MAX);
        one.start();
        let mask = [Read(BASE + 4), Write(BASE + 4, !4)];
        assert_eq!(done(), [&mask[..], &[Read(BASE), Write(BASE, 1)]].concat());
        one.ring();
        assert_eq!(done(), [Barrier, Write(BASE + 8, 4 << 16)]);
        one.acknowledge();
        assert_eq!(done(), [Write(BASE + 8, 4), Barrier]);
        two.ring();
        assert_eq!(done(), [Barrier, Write(BASE + 0x18, 1 << 16)]);
        two.acknowledge();
        assert_eq!(done(), [Write(BASE + 0x18, 1), Barrier]);
    }
}

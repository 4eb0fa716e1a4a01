//! The inter-processor interrupts of Zynq UltraScale+ as a doorbell, IPI (UG1085, chapter "Interrupts",
//! "Inter-Processor Interrupts"; UG1087, module IPI).
//!
//! Written by the reference manual: unit tests and compilation only, run on no chip (QEMU 7.2 does not wire it).
//!
//! An agent has registers of its own, and a bit by which the others name it:
//!
//! | agent | registers | bit |
//! |---|---|---|
//! | Cortex-A53 (channel 0) | 0xff30_0000 | 0 |
//! | Cortex-R5 0 (channel 1) | 0xff31_0000 | 8 |
//! | Cortex-R5 1 (channel 2) | 0xff32_0000 | 9 |

use sinew_shm::domain::Doorbell;

use crate::register::{barrier, write};

const TRIG: usize = 0x0;
const ISR: usize = 0x10;
const IER: usize = 0x18;

/// What the agent whose registers begin at `BASE` has with the one of bit `PEER`.
#[derive(Clone, Copy, Debug)]
pub struct Ipi<const BASE: usize, const PEER: u32>(());

impl<const BASE: usize, const PEER: u32> Ipi<BASE, PEER> {
    const VALID: () = assert!(PEER < 32);

    /// The doorbell there.
    ///
    /// # Safety
    /// At `BASE` are the registers of the agent that this code is.
    pub const unsafe fn new() -> Self {
        () = Self::VALID;
        Ipi(())
    }

    fn write(register: usize) {
        // SAFETY: one of the constants above, and `new` has promised the device, which writes to no memory.
        unsafe { write(BASE + register, 1 << PEER) }
    }

    /// Lets what the peer rings interrupt.
    pub fn start(&self) {
        Self::write(IER);
    }

    /// Takes what was rung. In the interrupt, before looking for what it rang for.
    pub fn acknowledge(&self) {
        Self::write(ISR);
        barrier();
    }
}

impl<const BASE: usize, const PEER: u32> Doorbell for Ipi<BASE, PEER> {
    fn ring(&self) {
        barrier();
        Self::write(TRIG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, done};

    #[test]
    fn an_agent_names_its_peer_in_its_own_registers() {
        // SAFETY: registers of the test.
        let r5 = unsafe { Ipi::<0xff31_0000, 0>::new() };
        r5.start();
        assert_eq!(done(), [Write(0xff31_0018, 1)]);
        r5.ring();
        assert_eq!(done(), [Barrier, Write(0xff31_0000, 1)]);
        r5.acknowledge();
        assert_eq!(done(), [Write(0xff31_0010, 1), Barrier]);
    }
}

//! The interrupt controller of RISC-V platforms (PLIC specification 1.0.0): which device interrupts a hart.

use crate::register::{read, write};

/// A word for each device.
const PRIORITY: usize = 0;
/// A bit for each device, 0x80 bytes for each context.
const ENABLE: usize = 0x2000;
/// Threshold and claim, 0x1000 bytes for each context.
const CONTEXT_REGISTERS: usize = 0x20_0000;

/// What the controller whose registers begin at `BASE` gives to context `CONTEXT`: on QEMU's `virt`, 2 * hart
/// for machine mode.
#[derive(Clone, Copy, Debug)]
pub struct Plic<const BASE: usize, const CONTEXT: usize>(());

impl<const BASE: usize, const CONTEXT: usize> Plic<BASE, CONTEXT> {
    const THRESHOLD: usize = BASE + CONTEXT_REGISTERS + 0x1000 * CONTEXT;
    const CLAIM: usize = Self::THRESHOLD + 4;

    /// The context there.
    ///
    /// # Safety
    /// At `BASE` are the registers of such a controller, which has this context.
    pub const unsafe fn new() -> Self {
        Plic(())
    }

    /// Lets this device interrupt, and no other one of its word of 32.
    pub fn enable(&self, device: u16) {
        let device = usize::from(device);
        let enable = BASE + ENABLE + 0x80 * CONTEXT + 4 * (device / 32);
        // SAFETY: `new` has promised the controller, which writes to no memory.
        unsafe {
            write(BASE + PRIORITY + 4 * device, 1);
            write(enable, 1 << (device % 32));
            write(Self::THRESHOLD, 0);
        }
    }

    /// Takes an interrupt: which device it is of, 0 for none. It comes again after [`Plic::complete`].
    pub fn claim(&self) -> u32 {
        // SAFETY: as above.
        unsafe { read(Self::CLAIM) }
    }

    /// The device was served.
    pub fn complete(&self, device: u32) {
        // SAFETY: as above.
        unsafe { write(Self::CLAIM, device) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Access::*, done, set};

    #[test]
    fn a_device_is_enabled_claimed_and_completed_in_its_context() {
        // SAFETY: registers of the test.
        let plic = unsafe { Plic::<0xc00_0000, 2>::new() };
        plic.enable(42);
        let (priority, enable) = (Write(0xc00_00a8, 1), Write(0xc00_2104, 1 << 10));
        assert_eq!(done(), [priority, enable, Write(0xc20_2000, 0)]);
        set(0xc20_2004, 42);
        assert_eq!(plic.claim(), 42);
        plic.complete(42);
        assert_eq!(done(), [Read(0xc20_2004), Write(0xc20_2004, 42)]);
    }
}

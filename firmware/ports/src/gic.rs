//! An interrupt of Arm's generic interrupt controller (GICv2) as a doorbell: set pending by software.
//!
//! For a core that has access to the distributor and no mailbox: the interrupt is one of those that no
//! device uses, and the other core's system sets it up (target, priority, enabled) as edge-triggered, like
//! a device's.

use sinew_shm::domain::Doorbell;

use crate::register;

/// `GICD_ISPENDR0`: one bit per interrupt.
const SET_PENDING: usize = 0x200;

/// The shared interrupt `ID` of the distributor at `BASE`.
pub struct Pending<const BASE: usize, const ID: u32>(());

impl<const BASE: usize, const ID: u32> Pending<BASE, ID> {
    /// Names it.
    ///
    /// # Safety
    /// A GICv2 distributor is at `BASE`, and no device uses this interrupt.
    pub const unsafe fn new() -> Self {
        // Those below are each core's own.
        const { assert!(ID >= 32 && ID < 1020) };
        Pending(())
    }
}

impl<const BASE: usize, const ID: u32> Doorbell for Pending<BASE, ID> {
    /// Sticky: it stays pending until the other core has taken it. A write of 1 changes one bit, so any core
    /// may do it at any time.
    fn ring(&self) {
        // Memory first, then the device.
        #[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
        // SAFETY: the instruction only waits.
        unsafe {
            core::arch::asm!("dsb sy", options(nostack, preserves_flags));
        }
        // SAFETY: promised by who made it.
        unsafe { register::write(BASE + SET_PENDING + ID as usize / 32 * 4, 1 << (ID % 32)) }
    }
}

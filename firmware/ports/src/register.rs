//! Reading and writing one register, and ordering memory before it.
//!
//! Only ports use this, with addresses that the maker of the port has promised. The unit tests of ports put
//! `fake` in its place, which says what was done in which order.

#[cfg(test)]
pub use crate::fake::{barrier, read, read8, write, write8, write16};
#[cfg(not(test))]
pub use real::{barrier, read, read8, write, write8, write16};

#[cfg(not(test))]
mod real {
    use core::ptr::{with_exposed_provenance as at, with_exposed_provenance_mut as at_mut};

    /// What the register holds.
    ///
    /// # Safety
    /// A readable register of 32 bits is at this address.
    #[inline(always)]
    pub unsafe fn read(address: usize) -> u32 {
        // SAFETY: promised by the caller.
        unsafe { at::<u32>(address).read_volatile() }
    }

    /// Gives the register a value.
    ///
    /// # Safety
    /// A writable register of 32 bits is at this address, and the value makes the hardware write to no
    /// memory that Rust code has.
    #[inline(always)]
    pub unsafe fn write(address: usize, value: u32) {
        // SAFETY: promised by the caller.
        unsafe { at_mut::<u32>(address).write_volatile(value) }
    }

    /// [`read`] for a register of 8 bits.
    ///
    /// # Safety
    /// As there, for 8 bits.
    #[inline(always)]
    pub unsafe fn read8(address: usize) -> u8 {
        // SAFETY: promised by the caller.
        unsafe { at::<u8>(address).read_volatile() }
    }

    /// [`write`] for a register of 8 bits.
    ///
    /// # Safety
    /// As there, for 8 bits.
    #[inline(always)]
    pub unsafe fn write8(address: usize, value: u8) {
        // SAFETY: promised by the caller.
        unsafe { at_mut::<u8>(address).write_volatile(value) }
    }

    /// [`write`] for a register of 16 bits.
    ///
    /// # Safety
    /// As there, for 16 bits.
    #[inline(always)]
    pub unsafe fn write16(address: usize, value: u16) {
        // SAFETY: promised by the caller.
        unsafe { at_mut::<u16>(address).write_volatile(value) }
    }

    /// Memory and registers that were used before are done with before those that come after.
    #[inline(always)]
    pub fn barrier() {
        #[cfg(target_arch = "arm")]
        // SAFETY: the instruction only waits.
        unsafe {
            core::arch::asm!("dsb sy", options(nostack, preserves_flags))
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the instruction only waits.
        unsafe {
            core::arch::asm!("dsb sy", options(nostack, preserves_flags))
        }
        #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
        // SAFETY: the instruction only orders.
        unsafe {
            core::arch::asm!("fence iorw, iorw", options(nostack, preserves_flags))
        }
        #[cfg(not(any(
            target_arch = "arm",
            target_arch = "aarch64",
            target_arch = "riscv32",
            target_arch = "riscv64"
        )))]
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    }
}

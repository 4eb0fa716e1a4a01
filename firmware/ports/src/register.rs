//! Reading and writing one register.
//!
//! Only ports use this, with addresses that the maker of the port has promised.

use core::ptr;

/// What the register holds.
///
/// # Safety
/// A readable register of 32 bits is at this address.
#[inline(always)]
pub unsafe fn read(address: usize) -> u32 {
    // SAFETY: promised by the caller.
    unsafe { ptr::with_exposed_provenance::<u32>(address).read_volatile() }
}

/// Gives the register a value.
///
/// # Safety
/// A writable register of 32 bits is at this address, and the value makes the hardware write to no memory
/// that Rust code has.
#[inline(always)]
pub unsafe fn write(address: usize, value: u32) {
    // SAFETY: promised by the caller.
    unsafe { ptr::with_exposed_provenance_mut::<u32>(address).write_volatile(value) }
}

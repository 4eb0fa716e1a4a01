//! Start-up of a Cortex-R with a floating-point unit, and its protection unit.
//!
//! The image has been loaded as a whole, `.data` too, and begins at its first byte. Exceptions go where
//! the core's vectors are: that is the board's.

use core::arch::{asm, global_asm};

// Statics must have their values before any Rust code runs, so this is not Rust. The unit for floating
// point is off after reset, and the compiler uses its registers as it likes. Symbols come from link.x.
global_asm!(
    ".section .text.start, \"ax\"",
    ".arm",
    ".globl sinew_reset",
    "sinew_reset:",
    "cpsid if",
    "ldr sp, =__stack_top",
    "mrc p15, 0, r0, c1, c0, 2",
    "orr r0, r0, #0xf00000", // CPACR: coprocessors 10 and 11
    "mcr p15, 0, r0, c1, c0, 2",
    "isb",
    "mov r0, #0x40000000", // FPEXC.EN
    ".fpu vfpv3-d16",
    "vmsr fpexc, r0",
    "ldr r0, =__bss_start",
    "ldr r1, =__bss_end",
    "mov r2, #0",
    "1: cmp r0, r1",
    "strlo r2, [r0], #4",
    "blo 1b",
    "bl main",
    "udf #0",
    ".pool",
);

/// Ends the image: an undefined instruction, for whoever is at the exception's vector.
pub fn end() -> ! {
    // SAFETY: nothing is executed after it.
    unsafe { asm!("udf #0", options(noreturn)) }
}

/// What memory is to the core. Neither kind is cached, and to both accesses are in order where the
/// program has a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Any access, also an unaligned one. `shared`: with other cores.
    Normal {
        /// With other cores.
        shared: bool,
    },
    /// Registers.
    Device,
}

/// What the image may do with a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read and run.
    Run,
    /// Read.
    Read,
    /// Read and write.
    Write,
}

/// A region of the protection unit.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// A multiple of the size.
    pub base: u32,
    /// Two to this power bytes, 5 to 31.
    pub log2: u32,
    /// What it is.
    pub memory: Memory,
    /// What may be done.
    pub access: Access,
}

/// Allows these regions, and nothing else, from now on. Where two overlap, the later one holds. A
/// Cortex-R5 has 12 or 16.
///
/// # Safety
/// The image's code, its data and its stack lie in regions that allow what is done there, and so do the
/// vectors.
pub unsafe fn protect(regions: &[Region]) {
    const EXECUTE_NEVER: u32 = 1 << 12;
    const PRIVILEGED_WRITE: u32 = 0b001 << 8;
    const PRIVILEGED_READ: u32 = 0b101 << 8;
    for (number, region) in (0u32..).zip(regions) {
        let memory = match region.memory {
            Memory::Normal { shared } => 1 << 3 | u32::from(shared) << 2,
            Memory::Device => 1,
        };
        let access = match region.access {
            Access::Run => PRIVILEGED_READ,
            Access::Read => PRIVILEGED_READ | EXECUTE_NEVER,
            Access::Write => PRIVILEGED_WRITE | EXECUTE_NEVER,
        };
        let size = (region.log2 - 1) << 1 | 1;
        // SAFETY: sets a region of the unit, which is off, or stays as the caller says.
        unsafe {
            asm!(
                "mcr p15, 0, {number}, c6, c2, 0",
                "mcr p15, 0, {base}, c6, c1, 0",
                "mcr p15, 0, {access}, c6, c1, 4",
                "mcr p15, 0, {size}, c6, c1, 2",
                number = in(reg) number,
                base = in(reg) region.base,
                access = in(reg) memory | access,
                size = in(reg) size,
                options(nostack, preserves_flags),
            );
        }
    }
    // SAFETY: SCTLR.M on and SCTLR.BR, the map behind the regions, off: what is used is allowed, says
    // the caller.
    unsafe {
        asm!(
            "dsb",
            "mrc p15, 0, {0}, c1, c0, 0",
            "bic {0}, {0}, #0x20000",
            "orr {0}, {0}, #1",
            "mcr p15, 0, {0}, c1, c0, 0",
            "isb",
            out(reg) _,
            options(nostack),
        );
    }
}

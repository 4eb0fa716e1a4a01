//! Start-up and end of a core of QEMU's RISC-V board `virt`.

use core::arch::global_asm;
use core::ptr;

// Statics must have their values before any Rust code runs, so this is not Rust. Those of `.data` have
// been loaded. Symbols come from link.x.
global_asm!(
    ".section .text.start, \"ax\"",
    ".globl sinew_reset",
    "sinew_reset:",
    "la sp, __stack_top",
    "la t0, sinew_fault",
    "csrw mtvec, t0",
    "la t0, __bss_start",
    "la t1, __bss_end",
    "1: bgeu t0, t1, 2f",
    "sw zero, 0(t0)",
    "addi t0, t0, 4",
    "j 1b",
    "2: call main",
    ".balign 4",
    "sinew_fault:",
    "li a0, 2",
    "call {exit}",
    exit = sym exit,
);

/// Ends the emulator with this exit code.
pub extern "C" fn exit(code: u32) -> ! {
    /// The board's test device.
    const FINISHER: usize = 0x10_0000;
    const PASS: u32 = 0x5555;
    const FAIL: u32 = 0x3333;
    let says = if code == 0 { PASS } else { FAIL | code << 16 };
    loop {
        // SAFETY: the device is there, and ends everything.
        unsafe { ptr::with_exposed_provenance_mut::<u32>(FINISHER).write_volatile(says) }
    }
}

//! Start-up, sleep and end of a hart of QEMU's RISC-V board `virt`.

use core::arch::{asm, global_asm};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

// Statics must have their values before any Rust code runs, so this is not Rust. Symbols come from the linker
// script, also which hart the image is for. Where every hart starts here, the others wait in `sinew_park`.
//
// Of interrupts there are two: the software interrupt is the image's (`unmask`), and the timer's begins again, as
// an image without a handler for it never lets it in.
global_asm!(
    ".section .text.start, \"ax\"",
    ".globl sinew_reset",
    "sinew_reset:",
    "csrci mstatus, 8",
    "csrw mie, zero",
    "lui t0, %hi(__hart)",
    "addi t0, t0, %lo(__hart)",
    "csrr t1, mhartid",
    "bne t0, t1, sinew_park",
    "la sp, __stack_top",
    "la t0, sinew_trap",
    "csrw mtvec, t0",
    "la t0, __data_start",
    "la t1, __data_end",
    "la t2, __data_load",
    "1: bgeu t0, t1, 2f",
    "lw t3, 0(t2)",
    "sw t3, 0(t0)",
    "addi t0, t0, 4",
    "addi t2, t2, 4",
    "j 1b",
    "2: la t1, __bss_end",
    "3: bgeu t0, t1, 4f",
    "sw zero, 0(t0)",
    "addi t0, t0, 4",
    "j 3b",
    "4: call main",
    "sinew_fault:",
    "li a0, 2",
    "call {exit}",
    // Until it is released, and its software interrupt is there.
    "sinew_park:",
    "li t0, 8",
    "csrw mie, t0",
    "5: wfi",
    "csrr t1, mip",
    "and t1, t1, t0",
    "beqz t1, 5b",
    "la t2, {entry}",
    "lw t2, 0(t2)",
    "beqz t2, 5b",
    "fence",
    "fence.i",
    "jr t2",
    ".balign 4",
    "sinew_trap:",
    "addi sp, sp, -64",
    "sw ra, 0(sp)",
    "sw t0, 4(sp)",
    "sw t1, 8(sp)",
    "sw t2, 12(sp)",
    "sw t3, 16(sp)",
    "sw t4, 20(sp)",
    "sw t5, 24(sp)",
    "sw t6, 28(sp)",
    "sw a0, 32(sp)",
    "sw a1, 36(sp)",
    "sw a2, 40(sp)",
    "sw a3, 44(sp)",
    "sw a4, 48(sp)",
    "sw a5, 52(sp)",
    "sw a6, 56(sp)",
    "sw a7, 60(sp)",
    "csrr a0, mcause",
    "bgez a0, sinew_fault",
    "andi a0, a0, 15",
    "li a1, 7",
    "beq a0, a1, sinew_reset",
    "csrr a0, mscratch",
    "jalr a0",
    "lw ra, 0(sp)",
    "lw t0, 4(sp)",
    "lw t1, 8(sp)",
    "lw t2, 12(sp)",
    "lw t3, 16(sp)",
    "lw t4, 20(sp)",
    "lw t5, 24(sp)",
    "lw t6, 28(sp)",
    "lw a0, 32(sp)",
    "lw a1, 36(sp)",
    "lw a2, 40(sp)",
    "lw a3, 44(sp)",
    "lw a4, 48(sp)",
    "lw a5, 52(sp)",
    "lw a6, 56(sp)",
    "lw a7, 60(sp)",
    "addi sp, sp, 64",
    "mret",
    exit = sym exit,
    entry = sym ENTRY,
);

/// Where harts that wait go on; 0 as long as they wait.
static ENTRY: AtomicUsize = AtomicUsize::new(0);

/// Lets the harts that wait at the start of this image go on there, as soon as their software interrupt is raised,
/// which is the caller's to do. They take it back.
pub fn release(entry: usize) {
    ENTRY.store(entry, Ordering::Release);
}

/// Machine software interrupt, in `mie`.
const SOFTWARE: usize = 1 << 3;
/// Machine timer interrupt, in `mie`.
const TIMER: usize = 1 << 7;
/// Machine external interrupt, in `mie`.
const EXTERNAL: usize = 1 << 11;

/// Lets the software interrupt in from now on, which `rung` handles, and the timer's, which begins again as after
/// reset: with statics as they were linked and an empty stack. Devices stay as they are, the timer included.
pub fn unmask(rung: extern "C" fn()) {
    // SAFETY: the trap handler calls what is in `mscratch`, which is a function. It and the restart keep every
    // promise that is made to Rust code: the one by saving registers, the other by not going back.
    unsafe {
        asm!(
            "csrw mscratch, {rung}",
            "csrs mie, {enabled}",
            "csrsi mstatus, 8",
            rung = in(reg) rung,
            enabled = in(reg) SOFTWARE | TIMER,
            options(nostack),
        );
    }
}

/// Waits for the next interrupt of a device; one that is pending already ends the wait at once. Interrupts are
/// never handled: for images that do not [`unmask`].
pub fn sleep() {
    // SAFETY: interrupts are masked, so these only end the wait.
    unsafe { asm!("csrw mie, {}", "wfi", in(reg) SOFTWARE | TIMER | EXTERNAL, options(nostack)) }
}

/// Runs `f` with interrupts masked: what it finds stays so until it is done, and an interrupt that is pending then ends
/// [`wait`]. To be called after [`unmask`].
pub fn masked(f: impl FnOnce()) {
    // SAFETY: it only masks.
    unsafe { asm!("csrci mstatus, 8", options(nostack)) }
    f();
    // SAFETY: as in `unmask`, which was called before.
    unsafe { asm!("csrsi mstatus, 8", options(nostack)) }
}

/// Waits for the next interrupt that was let in, also where it is masked; one that is pending already ends the wait at
/// once.
pub fn wait() {
    // SAFETY: the instruction only waits.
    unsafe { asm!("wfi", options(nostack)) }
}

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

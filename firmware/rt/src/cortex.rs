//! Start-up, sleep and end of a Cortex-M.

use core::arch::{asm, global_asm};

// Statics must have their values before any Rust code runs, so this is not Rust. Thumb-1 only:
// every Cortex-M takes it. Symbols come from link.x.
global_asm!(
    ".section .vectors, \"a\"",
    ".word __stack_top",
    ".word sinew_reset + 1",
    ".word sinew_fault + 1", // NMI
    ".word sinew_fault + 1", // HardFault; every other fault is escalated to it
    ".section .text.start, \"ax\"",
    ".thumb",
    "sinew_reset:",
    "cpsid i",
    "ldr r0, =__data_start",
    "ldr r1, =__data_end",
    "ldr r2, =__data_load",
    "1: cmp r0, r1",
    "bhs 2f",
    "ldm r2!, {{r3}}",
    "stm r0!, {{r3}}",
    "b 1b",
    "2: ldr r1, =__bss_end",
    "movs r3, #0",
    "3: cmp r0, r1",
    "bhs 4f",
    "stm r0!, {{r3}}",
    "b 3b",
    "4: bl main",
    "sinew_fault:",
    "movs r0, #2",
    "bl {exit}",
    ".pool",
    exit = sym exit,
);

// As an interrupt handler: leaves whatever was interrupted, by returning to the start instead of to it.
global_asm!(
    ".section .text.restart, \"ax\"",
    ".thumb",
    ".globl sinew_restart",
    ".thumb_func",
    "sinew_restart:",
    "cpsid i",
    "ldr r0, =__stack_top",
    "subs r0, #32", // an exception frame: its last two words are where to go, and the thumb bit
    "mov sp, r0",
    "ldr r1, =sinew_reset",
    "str r1, [r0, #24]",
    "movs r1, #1",
    "lsls r1, r1, #24",
    "str r1, [r0, #28]",
    "bx lr",
    ".pool",
);

unsafe extern "C" {
    /// An interrupt handler after which the image begins again, as after reset: with its statics as they were
    /// linked, an empty stack, and interrupts masked. Devices stay as they are, this interrupt included: it is to
    /// be taken back before interrupts are let in again.
    #[link_name = "sinew_restart"]
    pub safe fn restart();
}

/// Waits for the next interrupt; one that is pending already ends the wait at once.
#[inline(always)]
pub fn sleep() {
    // SAFETY: the instruction only waits.
    unsafe { asm!("wfi", options(nomem, nostack, preserves_flags)) }
}

/// Sleeps until the next interrupt, unless `busy` says that there is something to do: what a handler changes in
/// between is not missed. To be called with interrupts let in.
pub fn sleep_unless(busy: impl FnOnce() -> bool) {
    // SAFETY: interrupts are masked for two instructions and a look. Handlers run after that.
    unsafe { asm!("cpsid i", options(nostack, preserves_flags)) }
    if !busy() {
        sleep();
    }
    unmask();
}

/// Lets interrupt handlers run from now on.
pub fn unmask() {
    // SAFETY: the image gives every interrupt that it has enabled a handler, as [`unmask`] says.
    unsafe { asm!("cpsie i", options(nostack, preserves_flags)) }
}

/// Ends the emulator, by semihosting, with this exit code. Without a debugger or an emulator it is
/// a fault, which ends here again: the core stands still.
pub extern "C" fn exit(code: u32) -> ! {
    const SYS_EXIT_EXTENDED: u32 = 0x20;
    const APPLICATION_EXIT: u32 = 0x2_0026;
    let block = [APPLICATION_EXIT, code];
    loop {
        // SAFETY: the operation reads two words at `block`, which lives.
        unsafe {
            asm!("bkpt 0xab", in("r0") SYS_EXIT_EXTENDED, in("r1") &block, options(nostack, readonly));
        }
    }
}

//! What runs on the Cortex-A53 before Linux: starts the Cortex-R5F at its reset vector, as the boot loader
//! of the chip does, and goes on to the kernel.
#![no_std]
#![no_main]

use core::arch::global_asm;

// There is no stack yet, and x0 (the device tree) goes on to the kernel.
// The core's number in the emulator is 4: it comes after four Cortex-A53.
global_asm!(
    ".section .text.start, \"ax\"",
    ".globl sinew_boot",
    "sinew_boot:",
    "mov x20, x0",
    "movz w0, #0x0003",
    "movk w0, #0xc400, lsl #16", // PSCI CPU_ON
    "mov x1, #4",
    "mov x2, #0xffff0000", // zcu102/boot.x
    "mov x3, #0",
    "smc #0",
    // Where it failed, Linux finds that the core does not wait.
    "mov x0, x20",
    "mov x1, #0",
    "mov x2, #0",
    "mov x3, #0",
    "mov x4, #0x200000", // where the runner has loaded the kernel
    "br x4",
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

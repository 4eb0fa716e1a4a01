//! What the Cortex-R5F does after reset: it waits until Linux has loaded an image, and runs it.
//!
//! It lies at the high vectors, so every exception of an image ends here as well, and the core waits
//! again. Linux names each start with a number of its own (`START`); the core says which one it has
//! followed (`STARTED`), and whether it waits (`WAITS`). No word has two writers.
#![no_std]
#![no_main]

use core::arch::global_asm;

use zcu102::agreed::{CONTROL, START, STARTED, TCM, WAITS};

// Before an image there is no stack, and after a fault none that could be used: so this is not Rust.
// SCTLR: the protection unit off (bit 0), Arm instructions at exceptions (bit 30). Interrupts stay off.
global_asm!(
    ".section .vectors, \"ax\"",
    ".arm",
    ".globl sinew_vectors",
    "sinew_vectors:",
    ".rept 8", // reset, undefined, call, prefetch abort, data abort, unused, interrupts
    "b 1f",
    ".endr",
    "1: cpsid if, #0x13",
    "mrc p15, 0, r0, c1, c0, 0",
    "bic r0, r0, #0x40000000",
    "bic r0, r0, #1",
    "mcr p15, 0, r0, c1, c0, 0",
    "isb",
    "ldr r4, ={control}",
    "ldr r0, [r4, #{started}]",
    "mov r1, #1",
    "str r1, [r4, #{waits}]",
    "2: yield",
    "ldr r2, [r4, #{start}]",
    "cmp r2, r0",
    "beq 2b",
    // The image was written before the number.
    "dmb",
    "mov r1, #0",
    "str r1, [r4, #{waits}]",
    "str r2, [r4, #{started}]",
    "dsb",
    "isb",
    "ldr r1, ={image}",
    "bx r1",
    ".pool",
    control = const CONTROL,
    start = const START,
    started = const STARTED,
    waits = const WAITS,
    image = const TCM,
);

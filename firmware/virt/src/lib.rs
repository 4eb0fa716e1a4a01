//! QEMU's RISC-V board `virt`, as far as counts need it: RV32, one core, one UART.
//!
//! | image | what it shows |
//! |---|---|
//! | `calls` | instructions per call through a message channel, printed on the UART |
#![no_std]

extern crate sinew_mem;

use core::arch::asm;
use core::ptr;

/// A 16550.
const UART: usize = 0x1000_0000;
const UART_STATE: usize = UART + 5;
const TX_EMPTY: u8 = 0x20;

/// This board, for [`counted`]. Under `-icount shift=0` the counter counts instructions, without it time.
pub struct Virt;

impl counted::Board for Virt {
    #[inline(always)]
    fn ticks() -> u32 {
        let retired: u32;
        // SAFETY: reads a counter. Memory is named, so that what is counted stays where it is.
        unsafe { asm!("csrr {}, minstret", out(reg) retired, options(nostack, preserves_flags)) }
        retired
    }

    #[inline(always)]
    fn elapsed(from: u32, to: u32) -> u32 {
        to.wrapping_sub(from)
    }

    fn instructions(ticks: u32) -> u32 {
        ticks
    }

    fn spin(times: u32) {
        // SAFETY: it changes a register, and nothing else.
        unsafe {
            asm!("1: addi {0}, {0}, -1", "bnez {0}, 1b", inout(reg) times => _, options(nomem, nostack))
        }
    }

    fn send(byte: u8) {
        let state = ptr::with_exposed_provenance::<u8>(UART_STATE);
        let data = ptr::with_exposed_provenance_mut::<u8>(UART);
        // SAFETY: the state can be read, and has no effect.
        while unsafe { state.read_volatile() } & TX_EMPTY == 0 {}
        // SAFETY: what is written is sent, and nothing else.
        unsafe { data.write_volatile(byte) }
    }
}

//! Counting instructions.

use core::arch::asm;

use sinew_drive::bytes::Device;

use crate::UART;

/// This board, for [`counted`]. Under `-icount shift=0` the counter counts instructions of all harts together, without
/// it time.
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
        while !UART.has_room() {}
        UART.send(byte);
    }
}

//! Counting instructions.
//!
//! Under `-icount shift=6,sleep=off` one instruction takes 64 ns, and SysTick counts 40 ns: so many
//! runs are measured, and instructions are ticks * 5 / 8.

use sinew_drive::bytes::Device;

use crate::board::{self, UART};

/// This board, for [`counted`].
pub struct An385;

impl counted::Board for An385 {
    #[inline(always)]
    fn ticks() -> u32 {
        board::ticks()
    }

    #[inline(always)]
    fn elapsed(from: u32, to: u32) -> u32 {
        board::elapsed(from, to)
    }

    fn instructions(ticks: u32) -> u32 {
        ticks * 5 / 8
    }

    fn spin(times: u32) {
        board::spin(times);
    }

    fn send(byte: u8) {
        while !UART.has_room() {}
        UART.send(byte);
    }
}

/// Ticks and runs so far; runs of less than 0.67 s.
pub type Meter = counted::Meter<An385>;

/// See [`counted::print`].
pub fn print(kind: &str, name: &str, value: u32) {
    counted::print::<An385>(kind, name, value);
}

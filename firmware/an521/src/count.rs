//! Counting instructions, of both cores together.
//!
//! Under `-icount shift=6,sleep=off` one instruction of either core takes 64 ns, whichever runs, and SysTick counts
//! 50 ns: so instructions are ticks * 25 / 32. A core that sleeps takes none.

use sinew_drive::bytes::Device;
use sinew_ports::systick::{SysTick, elapsed};

use crate::UART;
use crate::board::spin;

/// This board, for [`counted`].
pub struct An521;

impl counted::Board for An521 {
    #[inline(always)]
    fn ticks() -> u32 {
        SysTick.ticks()
    }

    #[inline(always)]
    fn elapsed(from: u32, to: u32) -> u32 {
        elapsed(from, to)
    }

    fn instructions(ticks: u32) -> u32 {
        ticks * 25 / 32
    }

    fn spin(times: u32) {
        spin(times);
    }

    fn send(byte: u8) {
        while !UART.has_room() {}
        UART.send(byte);
    }
}

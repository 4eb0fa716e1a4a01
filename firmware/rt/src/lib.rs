//! What a bare image needs before and around its `main`: on a Cortex-M, on a Cortex-R, and on QEMU's
//! RISC-V board.
//!
//! On a Cortex-M interrupts are masked and only end [`sleep`], so the vector table has four entries and
//! nothing is shared with a handler. An image that wants handlers puts the rest of the table into the
//! section `.vectors.irq`, and calls [`unmask`].
#![no_std]

#[cfg(all(target_arch = "arm", not(cortex_r)))]
mod cortex;
#[cfg(all(target_arch = "arm", not(cortex_r)))]
pub use cortex::{exit, restart, sleep, sleep_unless, unmask};

#[cfg(cortex_r)]
pub mod cortex_r;

#[cfg(target_arch = "riscv32")]
mod riscv;
#[cfg(target_arch = "riscv32")]
pub use riscv::{exit, masked, release, sleep, unmask, wait};

/// Says, in a section that takes no flash, on which machine of QEMU an image runs, and by what it talks:
/// what the endpoint `qemu:IMAGE` reads. Once in an image, for example
/// `sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", MTU);`, with the constants of its braces.
#[macro_export]
macro_rules! board {
    ($text:literal $(, $value:expr)* $(,)?) => {
        ::core::arch::global_asm!(
            ".pushsection .sinew.board, \"\", %progbits",
            concat!(".ascii \"", $text, "\\n\""),
            ".popsection",
            $(const $value),*
        );
    };
}

/// Reached by no code of an image that links.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        /// Nowhere defined: where a panic can be reached, the linker names this symbol.
        safe fn a_panic_can_be_reached_from_here() -> !;
    }
    a_panic_can_be_reached_from_here()
}

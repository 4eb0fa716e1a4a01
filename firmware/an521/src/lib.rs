//! Two Cortex-M33 of mps2-an521, each with an image of its own, joined by memory that they share: see [`pair`].
//!
//! | image of the first core | what it shows |
//! |---|---|
//! | `client` | calls of all kinds to the second core, and restarts of either |
//! | `besieged` | the same while the second core scribbles |
//! | `relay` | UART0 passed on: who calls there is served by the second core |
//! | `count` | instructions per message of five words and its answer, printed on UART0 |
//!
//! | image of the second core | what it shows |
//! |---|---|
//! | `serve` | `demo.Cache` and `demo.Kinds` |
//! | `scribble` | the same, and garbage in its own segment |
//! | `answer` | messages of five words |
//!
//! Everything is in the secure state. Bit 0 of MHU 0 is the doorbell in both directions; that of MHU 1 restarts the
//! second core, which the emulator's own registers cannot.
#![no_std]
#![deny(unsafe_code)]

extern crate sinew_mem;

#[allow(unsafe_code)]
mod board;
pub mod count;

pub use board::{Board, UART, Uart0, Vectors, start_uart, vectors};

/// Puts the vector table of a core into its image: `an521::vectors!(0)`.
#[macro_export]
macro_rules! vectors {
    ($core:literal) => {
        #[used]
        #[unsafe(link_section = ".vectors.irq")]
        static VECTORS: $crate::Vectors = $crate::vectors::<$core>();
    };
}

//! QEMU's RISC-V board `virt`, RV32: one hart with a service on its UART, or two harts, each with an image of its
//! own, joined by memory that they share (see [`pair`]).
//!
//! | image of hart 0 | what it shows |
//! |---|---|
//! | `direct` | the demo services on the UART, no queue |
//! | `client` | calls of all kinds to hart 1, and restarts of either |
//! | `besieged` | the same while hart 1 scribbles |
//! | `count` | instructions per message of five words and its answer, printed on the UART |
//! | `calls` | instructions per call through a message channel inside one image, printed on the UART |
//!
//! | image of hart 1 | what it shows |
//! |---|---|
//! | `serve` | `demo.Cache` and `demo.Kinds` |
//! | `scribble` | the same, and garbage in its own segment |
//! | `answer` | messages of five words |
//!
//! The software interrupt of a hart is its doorbell; the timer interrupt of hart 1 starts it again.
#![no_std]
#![deny(unsafe_code)]

extern crate sinew_mem;

#[allow(unsafe_code)]
mod board;
#[allow(unsafe_code)]
mod count;

pub use board::{Board, TIMER, UART, Uart0, sleep, start_uart};
pub use count::Virt;

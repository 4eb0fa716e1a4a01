//! The demo services on mps2-an385, called through UART0.
//!
//! | image | what it shows |
//! |---|---|
//! | `direct` | no queue: answers and streams are escaped straight into the UART |
//! | `queued` | the block queue between the engine and the UART |
//! | `count` | instructions per call, printed on the UART |
//!
//! One context: the main loop polls, and interrupts only wake it.
#![no_std]
#![deny(unsafe_code)]

extern crate sinew_mem;

use sinew_demo::{KindsService, kinds};

#[allow(unsafe_code)]
pub mod board;
#[allow(unsafe_code)]
pub mod lock;
pub mod uart;

/// The largest packet in bytes: the largest header and a message of a few numbers.
pub const MTU: usize = 64;

/// Calls that outlive their receive step, at a time.
pub const CALLS: usize = 4;

/// `demo.Kinds` for an image.
pub type Kinds = kinds::Serve<KindsService<CALLS>>;

/// [`Kinds`] without calls.
pub const fn kinds() -> Kinds {
    kinds::Serve(KindsService::new())
}

//! Counts instructions on a board, and prints counts as `name value` lines.
//!
//! Same sources for every board: [`calls`] is what a call through a message channel takes, [`puts`] a sample
//! that is published.
#![no_std]
#![forbid(unsafe_code)]

pub mod calls;
mod meter;
pub mod puts;

pub use meter::{Meter, is_exact, print};

/// What a board has to have.
pub trait Board {
    /// A counter that goes with the instructions, as it is now.
    fn ticks() -> u32;

    /// How far it went from one look to a later one.
    fn elapsed(from: u32, to: u32) -> u32;

    /// Instructions for so many ticks.
    fn instructions(ticks: u32) -> u32;

    /// Runs a loop of two instructions so many times, at least once.
    fn spin(times: u32);

    /// Sends a byte to who reads the counts.
    fn send(byte: u8);
}

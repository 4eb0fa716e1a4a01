//! The demo services on a Cortex-R5F of QEMU's xlnx-zcu102, called by Linux on the Cortex-A53 of the same
//! chip, through on-chip memory that both reach.
//!
//! | image | what it is |
//! |---|---|
//! | `services` | `demo.Cache` and `demo.Kinds` over a domain link |
//! | `boot` | waits at the high vectors until Linux has loaded an image |
//!
//! The core polls: this emulator has no interrupt into it. It rings Linux by an interrupt.
#![no_std]
#![deny(unsafe_code)]

extern crate sinew_mem;

pub mod agreed;
#[allow(unsafe_code)]
pub mod board;

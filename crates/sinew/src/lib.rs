//! Sinew's core: a messaging fabric for machines with several unlike processors.
//!
//! Each layer knows only those below it in this list:
//!
//! | layer | what it is for | who uses it |
//! |---|---|---|
//! | [`rpc`] | typed calls: the client and server engines of pw_rpc | generated code, drivers |
//! | [`pubsub`] | publish, subscribe and query: Zenoh 1.x | drivers |
//! | [`link`] | the seam: a packet link, its conformance suite, and the block queue as a link | drivers, `rpc` |
//! | [`frame`] | packets on byte streams: HDLC, length prefix, COBS | links over UARTs, sockets, pipes |
//! | [`wire`] | varints, CRC-32, a checked cursor | `frame`, `rpc` |
//! | [`time`] | an instant as a number | all |
//!
//! Everything here is sans-IO: bytes in, bytes out. Time is an argument, output goes into a place
//! that the caller gives, every call does a bounded amount of work, there is no heap, and no input
//! leads to a panic.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "conformance"))]
extern crate std;

// Generated code refers to both through here, so its crate needs no dependency but this one.
#[cfg(feature = "micropb")]
pub use heapless;
#[cfg(feature = "micropb")]
pub use micropb;

/// Includes what `sinew_gen::build` made: `sinew::include_proto!("demo")` for `demo.proto`.
///
/// One module per package comes into being where the macro stands.
#[macro_export]
macro_rules! include_proto {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}

pub mod frame;
pub mod link;
pub mod pubsub;
#[cfg(not(target_arch = "avr"))] // its slots are words of 32 bits, written at once
pub mod rpc;
pub mod time;
pub mod wire;

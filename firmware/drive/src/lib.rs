//! What stands between an engine and a link on a microcontroller: for every image, whatever its board.
//!
//! * [`bytes`]: what arrives on a UART is kept until it is read, by a loop that polls or by an interrupt
//!   handler.
//! * [`frames`]: the seam's halves over such bytes, a packet a frame of HDLC.
//! * [`line`]: frames both ways with no buffer for bytes: the plainest link over a UART.
//! * [`domain`]: what a link over shared memory needs beyond the halves of `sinew`.
//! * [`serving`]: the work of one turn, packets in and answers out, over any links; and [`run`], the driver of an
//!   image without tasks.
//! * [`calling`]: what generated clients are made over, in an image without tasks.
//! * [`relay`]: passes packets on between two links.
//! * `tasks`: the driver of an image with tasks, under embassy (feature `embassy`).
//!
//! A board adds its registers ([`Device`](bytes::Device)), a clock and a sleep. There is no unsafe code here,
//! and no line that only one kind of core runs.
#![no_std]
#![forbid(unsafe_code)]

pub mod bytes;
pub mod calling;
pub mod domain;
pub mod frames;
pub mod line;
pub mod relay;
pub mod serving;
#[cfg(feature = "embassy")]
pub mod tasks;

pub use line::Line;
pub use serving::{Link, Links, Renew, Serving, run};

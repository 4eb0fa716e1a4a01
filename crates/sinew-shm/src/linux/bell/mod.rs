//! Doorbells between processes: how one side tells the other, and waits to be told.
//!
//! | bell | for trust | a ring costs | tells of death |
//! |---|---|---|---|
//! | [`SocketBell`] | none, mutual | a system call | at once |
//! | [`EventFdBell`] | mutual | a system call | at once |
//! | [`FutexBell`] | none, mutual | a store and a system call | at once, by a thread of its own |
//!
//! A bell is sticky: any number of rings before a wait end it at once, as one.

mod eventfd;
mod futex;
mod socket;
mod watch;

use std::time::Duration;

pub use eventfd::EventFdBell;
pub use futex::{FutexBell, FutexError};
pub use socket::SocketBell;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The peer rang since [`Wait::seen`]. It may have been for something that was found already.
    Rung,
    /// The time is over.
    TimedOut,
    /// The peer is gone, or the bell broke. It will never ring again.
    HungUp,
}

/// What a waiter knew of the bell before it looked for work. See [`Wait`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen(u32);

/// The waiting side of a bell. One thread waits at a time.
///
/// No ring is lost if the work is looked for between the two calls:
///
/// ```text
/// let seen = bell.seen();
/// if !work_is_there() { bell.wait(seen, timeout); }
/// ```
pub trait Wait {
    /// The state of the bell now; take it before the last look.
    fn seen(&self) -> Seen;

    /// Waits until the peer rings, unless it rang since `seen`. `None` waits for ever.
    fn wait(&self, seen: Seen, timeout: Option<Duration>) -> Woken;
}

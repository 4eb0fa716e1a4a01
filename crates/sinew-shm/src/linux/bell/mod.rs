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

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::domain::Doorbell;

pub use eventfd::EventFdBell;
pub use futex::{FutexBell, FutexError};
pub use socket::SocketBell;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The peer rang since [`Wait::seen`], or a thread of this process called [`Wait::interrupt`]. It
    /// may have been for something that was found already.
    Rung,
    /// The time is over.
    TimedOut,
    /// The peer is gone, or the bell broke. It will never ring again.
    HungUp,
}

/// What a waiter knew of the bell before it looked for work. See [`Wait`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    rung: u32,
    interrupted: u32,
}

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

    /// Ends the wait of a thread of this process, or the next one, as a ring does. From any thread.
    fn interrupt(&self);

    /// Becomes readable when the peer rings, for who waits by other means (`None`: there is no such
    /// descriptor): then a wait of no time takes the ring.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Both halves of a bell, for threads that share it.
pub trait Bell: Doorbell + Wait + Send + Sync {}

impl<B: Doorbell + Wait + Send + Sync> Bell for B {}

/// Where the kernel cannot wait for a ring and an interruption at the same time (no descriptor is
/// left, or Linux before 5.16), a wait is cut into slices of this time.
const SLICE: Duration = Duration::from_millis(5);

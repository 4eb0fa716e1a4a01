//! How long a call may wait in all, over however many steps it takes.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The time at which a call gives up, or never.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Waits for ever.
    pub const NEVER: Deadline = Deadline(None);

    /// `time` from now. One that is too far off to be said is never.
    pub fn after(time: Duration) -> Self {
        Deadline(Instant::now().checked_add(time))
    }

    /// `time` from now, or never.
    pub fn within(time: Option<Duration>) -> Self {
        time.map_or(Deadline::NEVER, Deadline::after)
    }

    /// What is left of the time; `None` is for ever.
    pub(super) fn remaining(self) -> Option<Duration> {
        let end = self.0?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    /// Whether the time is over.
    pub fn is_over(self) -> bool {
        self.remaining().is_some_and(|left| left.is_zero())
    }

    /// What is left, for a call of the kernel. `None` is for ever.
    pub(super) fn left(self) -> Option<Timespec> {
        Timespec::try_from(self.remaining()?).ok()
    }

    /// Waits until one of `fds` has what it asks for. False: the time is over.
    pub(super) fn poll(self, fds: &mut [PollFd<'_>]) -> io::Result<bool> {
        loop {
            match poll(fds, self.left().as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until `fd` can do what `flags` say, or is in error or hung up. False: the time is over.
    pub(super) fn ready(self, fd: BorrowedFd<'_>, flags: PollFlags) -> io::Result<bool> {
        self.poll(&mut [PollFd::from_borrowed_fd(fd, flags)])
    }
}

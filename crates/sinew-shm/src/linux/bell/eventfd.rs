//! A doorbell that is an eventfd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::io::Errno;

use super::{Seen, Wait, Woken};
use crate::domain::Doorbell;
use crate::linux::Deadline;

/// An eventfd in each direction, and the socket whose hang-up is the notice of death.
///
/// Only for trust = mutual: both sides share the open file, so a hostile peer could make it blocking
/// and fill it, and the next ring would wait.
#[derive(Debug)]
pub struct EventFdBell {
    mine: OwnedFd,
    peers: OwnedFd,
    socket: OwnedFd,
}

impl EventFdBell {
    /// Waits on `mine`, rings `peers`. Both come from [`EventFdBell::create`], one of each side.
    pub fn new(mine: OwnedFd, peers: OwnedFd, socket: OwnedFd) -> Self {
        EventFdBell {
            mine,
            peers,
            socket,
        }
    }

    /// Makes the eventfd on which this side waits; a copy of it goes to the peer.
    pub fn create() -> io::Result<OwnedFd> {
        Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
    }

    /// Whether the peer rang since the last call, without waiting: for who polls the descriptor.
    pub fn take(&self) -> bool {
        loop {
            match rustix::io::read(&self.mine, &mut [0; 8]) {
                Err(Errno::INTR) => {}
                taken => return taken.is_ok(),
            }
        }
    }
}

impl AsFd for EventFdBell {
    /// Readable when the peer rang. That it is gone is seen at the socket only.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mine.as_fd()
    }
}

impl Doorbell for EventFdBell {
    fn ring(&self) {
        // A full counter is a bell that is rung.
        while rustix::io::write(&self.peers, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }
}

impl Wait for EventFdBell {
    /// Nothing to remember: the count waits in the eventfd.
    fn seen(&self) -> Seen {
        Seen::default()
    }

    fn wait(&self, _: Seen, timeout: Option<Duration>) -> Woken {
        let deadline = Deadline::within(timeout);
        loop {
            let mut fds = [
                PollFd::new(&self.mine, PollFlags::IN),
                PollFd::new(&self.socket, PollFlags::RDHUP),
            ];
            match deadline.poll(&mut fds) {
                Ok(true) => {}
                Ok(false) => return Woken::TimedOut,
                Err(_) => return Woken::HungUp,
            }
            let [mine, socket] = fds;
            if !mine.revents().is_empty() && self.take() {
                return Woken::Rung;
            }
            if !socket.revents().is_empty() {
                return Woken::HungUp;
            }
        }
    }

    /// Rings one's own bell.
    fn interrupt(&self) {
        while rustix::io::write(&self.mine, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    /// That the peer is gone is seen by a wait only.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

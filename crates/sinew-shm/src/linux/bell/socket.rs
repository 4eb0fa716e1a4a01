//! A doorbell that is a byte in a unix socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{SLICE, Seen, Wait, Woken};
use crate::domain::Doorbell;
use crate::linux::Deadline;

/// How many calls one [`SocketBell::take`] makes at the most, so that a peer that rings without end
/// keeps nobody in it. What is left over rings once more.
const READS: usize = 64;

/// Both directions of the doorbell of a link: a connected unix stream or seqpacket socket.
///
/// The socket is for nothing else. Its hang-up is the notice that the peer died, whatever way it did.
#[derive(Debug)]
pub struct SocketBell {
    socket: OwnedFd,
    /// For [`Wait::interrupt`]; `None` where the process had no descriptor left.
    interrupted: Option<OwnedFd>,
}

impl SocketBell {
    /// Takes the socket that is left of [`crate::linux::exchange`], or one half of a pair.
    pub fn new(socket: OwnedFd) -> Self {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        SocketBell {
            socket,
            interrupted: eventfd(0, flags).ok(),
        }
    }

    /// Whether the peer rang since the last call, without waiting: for who polls the descriptor.
    ///
    /// Take first and look for work after it.
    pub fn take(&self) -> Woken {
        let mut woken = Woken::TimedOut;
        let mut bytes = [0; 256];
        for _ in 0..READS {
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return if_not(woken, Woken::HungUp),
                Ok(_) => woken = Woken::Rung,
                Err(Errno::AGAIN) => return woken,
                Err(Errno::INTR) => {}
                Err(_) => return if_not(woken, Woken::HungUp),
            }
        }
        woken
    }
}

/// What was rung before the end is told before it.
fn if_not(woken: Woken, other: Woken) -> Woken {
    match woken {
        Woken::Rung => Woken::Rung,
        _ => other,
    }
}

impl AsFd for SocketBell {
    /// Readable when the peer rang or is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Doorbell for SocketBell {
    fn ring(&self) {
        // A full socket holds bytes that the peer has not taken yet: it is rung already. A dead peer
        // is for the waiting side to notice.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while send(&self.socket, &[1], flags) == Err(Errno::INTR) {}
    }
}

impl Wait for SocketBell {
    /// Nothing to remember: the bytes wait in the socket.
    fn seen(&self) -> Seen {
        Seen::default()
    }

    fn wait(&self, _: Seen, timeout: Option<Duration>) -> Woken {
        let deadline = Deadline::within(timeout);
        let Some(interrupted) = &self.interrupted else {
            return self.wait_in_slices(deadline);
        };
        loop {
            let mut fds = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(interrupted, PollFlags::IN),
            ];
            match deadline.poll(&mut fds) {
                Ok(true) => {}
                Ok(false) => return Woken::TimedOut,
                Err(_) => return Woken::HungUp,
            }
            let [socket, own] = fds;
            let was_interrupted = !own.revents().is_empty();
            if was_interrupted {
                // The count is of no interest, and another thread may have taken it.
                let _ = rustix::io::read(interrupted, &mut [0; 8]);
            }
            let woken = match socket.revents().is_empty() {
                true => Woken::TimedOut,
                false => self.take(),
            };
            match woken {
                Woken::TimedOut if was_interrupted => return Woken::Rung,
                Woken::TimedOut => {}
                woken => return woken,
            }
        }
    }

    fn interrupt(&self) {
        if let Some(interrupted) = &self.interrupted {
            // A full counter is an interruption that was not taken yet.
            while rustix::io::write(interrupted, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl SocketBell {
    /// Where nothing can interrupt it, a wait is short, and its end counts as a ring.
    fn wait_in_slices(&self, deadline: Deadline) -> Woken {
        let (slice, is_last) = match deadline.remaining() {
            Some(left) if left <= SLICE => (left, true),
            _ => (SLICE, false),
        };
        match Deadline::after(slice).ready(self.as_fd(), PollFlags::IN) {
            Ok(true) => match self.take() {
                Woken::TimedOut => Woken::Rung,
                woken => woken,
            },
            Ok(false) if is_last => Woken::TimedOut,
            Ok(false) => Woken::Rung,
            Err(_) => Woken::HungUp,
        }
    }
}

//! Looking at the links of another process, without taking part in any.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use std::vec::Vec;

use super::error::refuse;
use super::hello::{Hello, Kind};
use super::{ExchangeError, Field, Greeting, begin, receive, tell};
use crate::linux::memfd::for_readers;
use crate::linux::{Deadline, Segment, fds};

/// How many links are shown at the most.
pub const MAX_LINKS: usize = 64;

/// The largest segment that an observer maps, in bytes: 1 GiB.
pub const MAX_SEGMENT: usize = 1 << 30;

/// What an observer sees.
#[derive(Debug)]
pub struct Observed {
    /// Of each link the segment of the side that serves, then that of the side that joined; both
    /// read-only. At most [`MAX_LINKS`].
    pub links: Vec<(Segment, Segment)>,
    /// How many links there are.
    pub total: u32,
    /// Its hang-up says that the other process ended.
    pub socket: OwnedFd,
}

/// Asks the process at the other end of `socket` for its links. Waits at most `timeout` in all.
pub fn observe(socket: OwnedFd, timeout: Duration) -> Result<Observed, ExchangeError> {
    let deadline = Deadline::after(timeout);
    begin(&socket, &Hello::observe(0), &[], deadline)?;
    let (answer, none) = receive(&socket, deadline)?;
    if let Some(refusal) = answer.refusal {
        return Err(ExchangeError::RefusedByPeer(refusal.seen_from_other_side()));
    }
    if answer.kind != Kind::Observe {
        return Err(refuse(Field::Kind, 1, 0));
    }
    if !none.is_empty() {
        return Err(refuse(Field::Descriptors, 0, none.len()));
    }
    let mut links = Vec::new();
    for _ in 0..answer.links.min(MAX_LINKS as u32) {
        let received = fds::receive(&socket, &mut [0], deadline)?;
        let got = received.len();
        let Ok([serving, joined]) = <[OwnedFd; 2]>::try_from(received) else {
            return Err(refuse(Field::Descriptors, 2, got));
        };
        let serving = Segment::observe(serving, MAX_SEGMENT)?;
        let joined = Segment::observe(joined, MAX_SEGMENT)?;
        links.push((serving, joined));
    }
    Ok(Observed {
        links,
        total: answer.links,
        socket,
    })
}

impl Greeting {
    /// Shows an observer the segments of each link (the own, the peer's), read-only.
    ///
    /// It sees the first [`MAX_LINKS`] and how many there are. Exchange segments are not shown, and a
    /// descriptor that is none of a [`Segment`] with one writer is refused. Waits at most `timeout`.
    pub fn show(
        self,
        links: &[(BorrowedFd<'_>, BorrowedFd<'_>)],
        timeout: Duration,
    ) -> Result<OwnedFd, ExchangeError> {
        let deadline = Deadline::after(timeout);
        let socket = self.socket;
        if self.hello.kind != Kind::Observe {
            return Err(tell(&socket, refuse(Field::Kind, 1, 0), deadline));
        }
        let total = u32::try_from(links.len()).unwrap_or(u32::MAX);
        fds::send(&socket, &Hello::observe(total).encode(), &[], deadline)?;
        for (mine, peers) in links.iter().take(MAX_LINKS) {
            let mine = for_readers(*mine)?;
            let peers = for_readers(*peers)?;
            fds::send(&socket, &[0], &[mine.as_fd(), peers.as_fd()], deadline)?;
        }
        Ok(socket)
    }
}

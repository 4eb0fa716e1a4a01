//! The least that a round trip can write: a line of data and a line with an index each way.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use crate::APART;
use crate::map::Map;

const INDEX: usize = APART; // behind the data of the same side
const SIDE: usize = 2 * APART;

/// Memory for [`PingPong`], to be mapped by both processes.
pub fn create_ping_pong() -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("ping-pong", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, 2 * SIDE as u64)?;
    Ok(file)
}

/// One side. Sides take turns: who has received may send, once; the near side begins.
pub struct PingPong {
    map: Map,
    mine: usize,
    theirs: usize,
    sent: u32,
    received: u32,
}

impl PingPong {
    /// Bytes of a message.
    pub const SIZE: usize = 64;

    /// A side of a ping-pong in `file`, of [`create_ping_pong`].
    pub fn new(file: impl AsFd, is_near: bool) -> io::Result<Self> {
        let (mine, theirs) = if is_near { (0, SIDE) } else { (SIDE, 0) };
        Ok(PingPong {
            map: Map::new(file, 2 * SIDE)?,
            mine,
            theirs,
            sent: 0,
            received: 0,
        })
    }

    /// Sends what `fill` writes.
    #[inline]
    pub fn send(&mut self, fill: impl FnOnce(&mut [u8])) {
        // SAFETY: it lies in the map. The other side reads it only between the store below and its own
        // next message, which this side has received: they take turns.
        fill(unsafe { self.map.bytes_mut(self.mine, Self::SIZE) });
        self.sent = self.sent.wrapping_add(1);
        let index = self.map.word(self.mine + INDEX);
        index.store(self.sent, Ordering::Release);
    }

    /// The next message; `None` where there is none yet.
    #[inline]
    pub fn receive(&mut self) -> Option<&[u8]> {
        let index = self.map.word(self.theirs + INDEX);
        if index.load(Ordering::Acquire) == self.received {
            return None;
        }
        self.received = self.received.wrapping_add(1);
        // SAFETY: it lies in the map, the other side has published it (the acquire load), and writes it
        // again only after the next `send`, which needs `&mut self` and so ends this borrow.
        Some(unsafe { self.map.bytes(self.theirs, Self::SIZE) })
    }
}

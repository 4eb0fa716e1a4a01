//! The packet link over a stream that loses nothing, with a length before each packet, and without
//! a copy: TCP and unix sockets, for packets that come thick and fast or are large.
//!
//! The place is the buffer that is written to the socket, with room for the length before it.
//! `commit` writes nothing while more fits in, `flush` writes what there is in one system call. What
//! the socket does not take stays in its buffer, and leaves when it does; with 4 such
//! buffers the link is full. The receiving half reads as much as there is, and lends packets from
//! where they have arrived.
//!
//! [`bytes`](crate::bytes) does the same for any framing and any descriptor, by a copy each way.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use sinew::frame::length::{Width, encoded_len};
use sinew::link::{SendError, Tx};

use crate::apart::Apart;
use crate::apart::polled::Polled;
use crate::nonblocking;
use crate::out::Out;
use crate::out::queue::{Chunk, Queue};

mod rx;

pub use rx::StreamRx;

/// Buffers that wait for the peer to take them; with so many the link is full.
const DEPTH: usize = 4;
/// Bytes beyond the largest frame in each buffer: small packets that leave together.
const SLACK: usize = 16 * 1024;

/// Both halves over one socket, which becomes non-blocking. `mtu`: at most what the width can say,
/// else that.
pub fn link(fd: OwnedFd, width: Width, mtu: usize) -> std::io::Result<(StreamTx, StreamRx)> {
    nonblocking(&fd)?;
    let mtu = mtu.min(width.max_packet());
    let write = fd.try_clone()?;
    Ok((
        StreamTx {
            width,
            mtu,
            chunk: None,
            in_hand: false,
            out: Out::new(write, Queue::new(encoded_len(width, mtu) + SLACK, DEPTH)),
        },
        StreamRx::new(fd, width, mtu),
    ))
}

/// The halves for two threads.
pub(crate) fn apart(tx: StreamTx, rx: StreamRx) -> Apart {
    let out = Arc::downgrade(&tx.out);
    Apart {
        tx: Box::new(tx),
        rx: Box::new(Polled::new(rx).watching(out)),
    }
}

/// The sending half.
pub struct StreamTx {
    width: Width,
    mtu: usize,
    /// Where packets are written; there is room for one more, however long.
    chunk: Option<Chunk>,
    in_hand: bool,
    out: Arc<Out<Queue>>,
}

impl StreamTx {
    /// Closes the link when the peer takes not one byte for this long while something waits to be
    /// sent. It is found out by who next sends, or sleeps on the receiving half.
    pub fn set_patience(&mut self, patience: Duration) {
        self.out.state().patience = Some(patience);
    }

    /// Lets what was committed leave.
    fn leave(&mut self) {
        let mut state = self.out.state();
        if self.in_hand
            && let Some(chunk) = &mut self.chunk
        {
            // The place must stay as it is.
            if !chunk.unsent().is_empty() {
                let mut other = state.pending.take();
                chunk.move_to(&mut other);
                state.pending.push(other);
            }
        } else if let Some(chunk) = self.chunk.take() {
            if chunk.unsent().is_empty() {
                self.chunk = Some(chunk);
            } else {
                state.pending.push(chunk);
            }
        }
        self.out.write(&mut state);
        if self.chunk.is_none() {
            self.chunk = state.pending.spare();
        }
        self.out.hand_over(state);
    }
}

impl Tx for StreamTx {
    fn mtu(&self) -> usize {
        self.mtu
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if min > self.mtu {
            return Err(SendError::TooLarge);
        }
        if !self.in_hand {
            let mut state = self.out.with_room()?;
            self.chunk.get_or_insert_with(|| state.pending.take());
            self.in_hand = true;
        }
        let free = self.chunk.as_mut().map(Chunk::free).unwrap_or_default();
        let prefix = self.width.bytes();
        free.get_mut(prefix..prefix + self.mtu)
            .ok_or(SendError::Full)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let in_hand = std::mem::take(&mut self.in_hand);
        let chunk = self.chunk.as_mut().filter(|_| in_hand && len <= self.mtu);
        let chunk = chunk.ok_or(SendError::TooLarge)?;
        if len == 0 {
            return Ok(());
        }
        let prefix = self.width.prefix(len, chunk.free());
        prefix.ok_or(SendError::TooLarge)?;
        chunk.add(encoded_len(self.width, len));
        if chunk.free().len() < encoded_len(self.width, self.mtu) {
            self.leave();
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.leave();
    }

    fn arm(&mut self, waker: &Waker) {
        self.out.arm(waker);
    }
}

impl Drop for StreamTx {
    fn drop(&mut self) {
        self.in_hand = false;
        self.leave();
        self.out.linger();
    }
}

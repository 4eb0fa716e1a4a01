//! The receiving side.

use core::task::Waker;

use super::Queue;
use crate::lock::Lock;
use crate::word::{CLOSE_LOAD, HEAD_LOAD, RETURN_FENCE, RETURN_STORE, full_fence};

/// Nothing more will come: the queue is closed and everything sent has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// The one consumer. Dropping it closes the queue.
pub struct Receiver<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> {
    queue: &'static Queue<L, BLOCKS, SIZE>,
    /// Free-running count of packets given back.
    tail: u32,
    /// The packet at `tail` has been looked at.
    peeked: bool,
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Receiver<L, BLOCKS, SIZE> {
    pub(super) fn new(queue: &'static Queue<L, BLOCKS, SIZE>, tail: u32) -> Self {
        Receiver {
            queue,
            tail,
            peeked: false,
        }
    }

    /// The oldest packet, where it lies, and the same one until [`Receiver::release`].
    #[inline]
    pub fn peek(&mut self) -> Result<Option<&[u8]>, Closed> {
        let shared = &self.queue.shared.0;
        if shared.head.load(HEAD_LOAD) == self.tail {
            if shared.closed.load(CLOSE_LOAD) == 0 {
                return Ok(None);
            }
            // The last packet may have come between the two looks.
            if shared.head.load(HEAD_LOAD) == self.tail {
                return Err(Closed);
            }
        }
        self.peeked = true;
        let entry = self.queue.entry(self.tail);
        let block = self.queue.block(entry.block.get());
        // SAFETY: the entry is published and not yet returned, so the block is ours, and nobody
        // writes it; the view ends before `release`, which needs `&mut self`.
        let block: &[u8] = unsafe { &*block.read() };
        Ok(block.get(..entry.len.get() as usize))
    }

    /// Gives the peeked block back and wakes who waits for one. Without a peeked packet: nothing.
    #[inline]
    pub fn release(&mut self) {
        if !core::mem::take(&mut self.peeked) {
            return;
        }
        self.tail = self.tail.wrapping_add(1);
        self.queue.returned.0.store(self.tail, RETURN_STORE);
        full_fence(RETURN_FENCE);
        if self.queue.shared.0.waiting.get() != 0 {
            self.queue.wake_ready();
        }
    }

    /// Wakes `waker` once when a packet is there, or at once where one is, or when the queue
    /// closes.
    pub fn arm(&mut self, waker: &Waker) {
        let mut mine = Some(waker.clone());
        let ready = self.queue.locked(|producers| {
            let ready = self.queue.shared.0.head.get() != self.tail || producers.open == 0;
            if !ready {
                core::mem::swap(&mut producers.consumer, &mut mine);
            }
            ready
        });
        if ready {
            waker.wake_by_ref();
        }
        // `mine` is the waker before, if any: it is dropped out here, without the lock.
    }

    /// Closes the queue: producers are refused at once; what is there can still be read.
    pub fn close(&self) {
        self.queue.close(false, false);
    }
}

impl<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> Drop for Receiver<L, BLOCKS, SIZE> {
    fn drop(&mut self) {
        self.queue.close(false, true);
    }
}

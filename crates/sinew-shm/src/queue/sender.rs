//! The sending side: the owner, its handles, and places.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::task::Waker;

use super::Queue;
use crate::lock::Lock;

/// Why a producer gets nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No block is free beyond those that this handle leaves to others. Wait with
    /// [`Handle::arm`], then retry.
    Full,
    /// The packet is larger than a block.
    TooLarge,
    /// The other side is gone, or the queue was closed. Open it again.
    Closed,
}

/// The owner of the sending side. Dropping it closes the queue.
pub struct Sender<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> {
    handle: Handle<L, BLOCKS, SIZE>,
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Sender<L, BLOCKS, SIZE> {
    pub(super) fn new(queue: &'static Queue<L, BLOCKS, SIZE>, session: u32) -> Self {
        Sender {
            handle: Handle::new(queue, session, 0),
        }
    }

    /// A handle for another context, that leaves `reserve` blocks free: 1 for urgent answers, more
    /// for bulk streams. At least one block is for it: a larger reserve counts as `BLOCKS - 1`.
    pub fn handle(&self, reserve: usize) -> Handle<L, BLOCKS, SIZE> {
        Handle::new(self.handle.queue, self.handle.session, reserve)
    }

    /// As [`Handle::place`], with nothing left free.
    #[inline]
    pub fn place(&self, min: usize) -> Result<Place<L, BLOCKS, SIZE>, Refused> {
        self.handle.place(min)
    }

    /// As [`Handle::arm`], with nothing left free.
    pub fn arm(&self, waker: &Waker) {
        self.handle.arm(waker);
    }

    /// Closes the queue: the receiver reads what is there, then [`Closed`](super::Closed).
    pub fn close(&self) {
        self.handle.queue.close(false, false);
    }
}

impl<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> Drop for Sender<L, BLOCKS, SIZE> {
    fn drop(&mut self) {
        self.handle.queue.close(true, false);
    }
}

/// One producer's way into the queue. Copy it freely; it outlives the session harmlessly.
pub struct Handle<L: 'static, const BLOCKS: usize, const SIZE: usize> {
    queue: &'static Queue<L, BLOCKS, SIZE>,
    session: u32,
    reserve: u32,
}

impl<L: 'static, const BLOCKS: usize, const SIZE: usize> Copy for Handle<L, BLOCKS, SIZE> {}

impl<L: 'static, const BLOCKS: usize, const SIZE: usize> Clone for Handle<L, BLOCKS, SIZE> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Handle<L, BLOCKS, SIZE> {
    pub(super) fn new(
        queue: &'static Queue<L, BLOCKS, SIZE>,
        session: u32,
        reserve: usize,
    ) -> Self {
        Handle {
            queue,
            session,
            reserve: reserve.min(BLOCKS - 1) as u32,
        }
    }

    /// Takes a block of `SIZE` bytes for a packet of at least `min`.
    #[inline]
    pub fn place(&self, min: usize) -> Result<Place<L, BLOCKS, SIZE>, Refused> {
        if min > SIZE {
            self.queue.count_too_large();
            return Err(Refused::TooLarge);
        }
        let block = self.queue.take(self.session, self.reserve)?;
        Ok(Place {
            queue: self.queue,
            session: self.session,
            block,
        })
    }

    /// Wakes `waker` once when a block is free for this handle, or at once where one is, or when
    /// the queue closes.
    ///
    /// Four producers wait at the same time; a fifth wakes the one that waits longest, which then
    /// arms again.
    pub fn arm(&self, waker: &Waker) {
        self.queue.wait(self.session, self.reserve, waker);
    }
}

/// A block in a producer's hands. Its content is unspecified. Dropping it gives it back unsent.
pub struct Place<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> {
    queue: &'static Queue<L, BLOCKS, SIZE>,
    session: u32,
    block: u32,
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Place<L, BLOCKS, SIZE> {
    /// Sends the first `len` bytes; 0 gives the block back and sends nothing.
    ///
    /// Never [`Refused::Full`]. With `len` above `SIZE` nothing is sent.
    #[inline]
    pub fn commit(self, len: usize) -> Result<(), Refused> {
        if len == 0 {
            return Ok(());
        }
        if len > SIZE {
            self.queue.count_too_large();
            return Err(Refused::TooLarge);
        }
        // From here the block is the consumer's.
        let place = ManuallyDrop::new(self);
        place.queue.publish(place.session, place.block, len as u32)
    }
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Deref for Place<L, BLOCKS, SIZE> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block was taken from the free ones and not yet published, so it is ours
        // alone, and `&self` keeps `deref_mut` away.
        unsafe { &*self.queue.block(self.block).read() }
    }
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> DerefMut for Place<L, BLOCKS, SIZE> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` keeps every other view of it away.
        unsafe { &mut *self.queue.block(self.block).write() }
    }
}

impl<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> Drop for Place<L, BLOCKS, SIZE> {
    fn drop(&mut self) {
        self.queue.give_back(self.block);
    }
}

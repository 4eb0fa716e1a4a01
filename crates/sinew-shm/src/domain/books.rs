//! What a side notes on each block, in private memory.

use super::port::Cache;
use crate::word::BlockArea;

/// The books on one block, of either side.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(super) state: State,
    /// The block behind in the line of the free ones, or in that of the answered ones.
    pub(super) next: u16,
    /// Bytes of an answer; of a call, its token.
    pub(super) len: u32,
    /// Bytes from its beginning that may have been written since it was all zeros.
    pub(super) dirty: u32,
}

impl Block {
    /// Of a block that nobody has used.
    pub const NEW: Block = Block {
        state: State::Free,
        next: NONE,
        len: 0,
        dirty: 0,
    };

    /// Writes zeros over what may have been written into this block of the pool, which is free: no handle
    /// of this side has it, and a peer that is trusted has given it back, or acknowledged a session
    /// in which it has none. How many bytes.
    #[cold]
    pub(super) fn clear(&mut self, pool: &BlockArea, block: u16, cache: &impl Cache) -> u32 {
        let dirty = core::mem::take(&mut self.dirty);
        if dirty == 0 || block >= pool.count() {
            return 0;
        }
        // SAFETY: only this side writes the block, there is no reference to it, as said above, and its
        // memory lives as long as the end.
        let cleared = unsafe { pool.for_clearing(block).clear(dirty) };
        let (at, len) = pool.bytes(block, cleared);
        cache.clean(at, len);
        cleared
    }

    /// Notes that so many bytes from its beginning are written.
    #[inline(always)]
    pub(super) fn soil(&mut self, bytes: u32) {
        if bytes > self.dirty {
            self.dirty = bytes;
        }
    }
}

/// Where a block or a call is. Of the peer's: `Held` is with us, anything else is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Held,
    Lent,
    Answered,
    /// A call that is open, whose answer nobody wants.
    Unwanted,
    /// Held since an earlier pairing: what is written there is for a peer that is gone.
    Stale,
}

pub(super) const NONE: u16 = u16::MAX;

/// How many books the line of the free ones has that begins with `first`; `None` where one in it is not
/// free.
pub(super) fn line_len(books: &[Block], first: u16) -> Option<usize> {
    let (mut in_line, mut at) = (0, first);
    while let Some(book) = books.get(usize::from(at)) {
        in_line += 1;
        at = book.next;
        if book.state != State::Free || in_line > books.len() {
            return None;
        }
    }
    Some(in_line)
}

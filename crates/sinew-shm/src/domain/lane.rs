//! Where one direction of a channel lies, as one side sees it.

use super::books::Block;
use super::port::Ways;
use crate::word::{BlockArea, RingArea, Words};

/// One direction: what its sender's half and its receiver's half reach, each on its side.
///
/// Of an end whose plan has one queue and nothing else ([`Plan::known`](super::plan::Plan::known)) the
/// compiler knows all of it but two addresses: [`Lane::out`] and [`Lane::back`] then give constants.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// Packets, in the sender's segment.
    pub ring: RingArea,
    /// What comes back, in the receiver's segment.
    pub returns: RingArea,
    /// The sender's blocks.
    pub pool: BlockArea,
    /// Where the books on them begin.
    pub first: usize,
    /// The own control line.
    pub mine: Words,
    /// The own statistics line.
    pub counts: Words,
    /// The peer's control line.
    pub theirs: Words,
}

impl Lane {
    /// This lane, which the own side sends on.
    #[inline(always)]
    pub(super) fn out<W: Ways>(&self) -> Lane {
        #[cfg(not(loom))]
        if let Some(known) = W::KNOWN {
            let (ours, theirs) = (&known.ours, &known.theirs);
            // SAFETY: an end with this plan makes its one channel by it, and both segments are as long
            // as it says; in each, the channel's control line comes first.
            return unsafe {
                Lane {
                    ring: self
                        .mine
                        .ring_behind(ours.ring - ours.control, ours.ring_log2),
                    returns: (self.theirs)
                        .ring_behind(theirs.returns - theirs.control, theirs.returns_log2),
                    pool: (self.mine).blocks_behind(
                        ours.pool - ours.control,
                        ours.stride,
                        (known.pool.size, known.pool.blocks),
                    ),
                    first: 0,
                    counts: self.mine.behind(ours.statistics - ours.control),
                    ..*self
                }
            };
        }
        *self
    }

    /// This lane, which the peer sends on.
    #[inline(always)]
    pub(super) fn back<W: Ways>(&self) -> Lane {
        #[cfg(not(loom))]
        if let Some(known) = W::KNOWN {
            let (ours, theirs) = (&known.ours, &known.theirs);
            // SAFETY: as above.
            return unsafe {
                Lane {
                    ring: (self.theirs).ring_behind(theirs.ring - theirs.control, theirs.ring_log2),
                    returns: self
                        .mine
                        .ring_behind(ours.returns - ours.control, ours.returns_log2),
                    pool: (self.theirs).blocks_behind(
                        theirs.pool - theirs.control,
                        theirs.stride,
                        (known.peer_pool.size, known.peer_pool.blocks),
                    ),
                    first: known.pool.blocks as usize,
                    counts: self.mine.behind(ours.statistics - ours.control),
                    ..*self
                }
            };
        }
        *self
    }

    /// The book on a block of this pool, in the books on all blocks.
    #[inline(always)]
    pub(super) fn book<'a>(&self, books: &'a mut [Block], block: u16) -> Option<&'a mut Block> {
        if block >= self.pool.count() {
            return None;
        }
        self.own_book(books, block)
    }

    /// As `book`, of a block that private memory names, or that was checked.
    #[inline(always)]
    pub(super) fn own_book<'a>(&self, books: &'a mut [Block], block: u16) -> Option<&'a mut Block> {
        books.get_mut(self.first + usize::from(block))
    }

    /// The books on the blocks of this pool.
    pub(super) fn books<'a>(&self, books: &'a [Block]) -> &'a [Block] {
        let all = self.first..self.first + usize::from(self.pool.count());
        books.get(all).unwrap_or_default()
    }
}

//! The own blocks: which are free, and which is taken next.

use super::super::books::{Block, NONE, State, line_len};
use super::super::layout::statistics;
use super::super::port::{Cache, Ways};
use super::returns::Returned;
use super::{Denied, Outbox};
use crate::word::Span;

/// Returns that are taken up at once.
const RETURNS_PER_LINE: u32 = 4;

impl Outbox {
    /// Takes a block for a packet of at least `min` bytes, leaving `reserve` free ones to others.
    #[inline]
    pub(in crate::domain) fn take<W: Ways>(
        &mut self,
        books: &mut [Block],
        min: usize,
        reserve: u16,
        cache: &W::Cache,
    ) -> Result<(u16, Span), Denied> {
        // What the compiler knows of a copy it need not look at again.
        let pool = self.lane::<W>().pool;
        if min > pool.size() as usize {
            return Err(self.is_too_large());
        }
        // Whoever has the block may write all of it.
        let block = self.pop::<W>(books, reserve, (State::Held, pool.size()), cache)?;
        Ok((block, pool.for_writing(block)))
    }

    /// Takes the first free block out of the line.
    #[inline(always)]
    pub(super) fn pop<W: Ways>(
        &mut self,
        books: &mut [Block],
        reserve: u16,
        (state, written): (State, u32),
        cache: &W::Cache,
    ) -> Result<u16, Denied> {
        if W::Cache::PREFETCHES && self.is_large && self.is_owed() {
            self.reclaim::<W>(books, self.free <= u32::from(reserve), cache)?;
        }
        // One more than is needed: the next, which the peer is told of.
        if W::Cache::PREFETCHES && self.free <= u32::from(reserve) + 1 {
            self.refill::<W>(books, reserve, cache)?;
        }
        let is_fetched = !W::Cache::PREFETCHES && self.free <= u32::from(reserve);
        let block = match is_fetched {
            true => self.fetch::<W>(books, reserve, cache)?,
            false => self.free_line.0,
        };
        let book = self.lane::<W>().own_book(books, block);
        let book = book.ok_or(Denied::Full)?;
        if !is_fetched {
            self.free_line.0 = book.next;
            self.free = self.free.wrapping_sub(1);
        }
        book.state = state;
        book.soil(written);
        Ok(block)
    }

    /// Takes returns up until there is one beyond `reserve` free blocks: that one, which would come first
    /// in the line of the free ones.
    #[inline(always)]
    fn fetch<W: Ways>(
        &mut self,
        books: &mut [Block],
        reserve: u16,
        cache: &W::Cache,
    ) -> Result<u16, Denied> {
        loop {
            match self.look::<W>(books, true, cache)? {
                Returned::Block(block) if self.free >= u32::from(reserve) => return Ok(block),
                Returned::Block(block) => self.free::<W>(books, block),
                Returned::Answer => {}
                Returned::Nothing => return Err(self.is_full::<W>()),
            }
        }
    }

    /// Sees to it that the next block is there before it is asked for: after a message, while the peer
    /// is at it.
    #[inline(always)]
    pub(in crate::domain) fn top_up<W: Ways>(&mut self, books: &mut [Block], cache: &W::Cache) {
        if W::Cache::PREFETCHES && self.free <= 1 && self.is_owed() {
            let mut looks = 0;
            while looks < RETURNS_PER_LINE && self.reclaim::<W>(books, false, cache) == Ok(true) {
                looks += 1;
            }
        }
    }

    /// Takes returns up, a line of them at once: taken one by one, each would be read while the peer
    /// writes the next into the same line.
    #[inline]
    pub(super) fn refill<W: Ways>(
        &mut self,
        books: &mut [Block],
        reserve: u16,
        cache: &W::Cache,
    ) -> Result<(), Denied> {
        let mut looks = 0;
        // A line, and where that is not enough, as many as are missing.
        while looks < RETURNS_PER_LINE || self.free <= u32::from(reserve) {
            if !self.reclaim::<W>(books, self.free <= u32::from(reserve), cache)? {
                break;
            }
            looks += 1;
        }
        match self.free > u32::from(reserve) {
            true => Ok(()),
            false => Err(self.is_full::<W>()),
        }
    }

    #[cold]
    pub(super) fn is_full<W: Ways>(&mut self) -> Denied {
        if self.lane::<W>().pool.count() == 0 {
            return self.is_too_large();
        }
        self.full = self.full.wrapping_add(1);
        self.lane.counts.at(statistics::FULL).set(self.full);
        Denied::Full
    }

    #[cold]
    pub(super) fn is_too_large(&mut self) -> Denied {
        self.too_large = self.too_large.wrapping_add(1);
        self.lane
            .counts
            .at(statistics::TOO_LARGE)
            .set(self.too_large);
        Denied::TooLarge
    }

    /// Takes a taken block back unsent. How many bytes were cleared, because it was taken in an earlier
    /// pairing.
    pub(in crate::domain) fn cancel<W: Ways>(
        &mut self,
        books: &mut [Block],
        block: u16,
        cache: &W::Cache,
    ) -> u32 {
        let state = self.lane::<W>().book(books, block).map(|book| book.state);
        if matches!(state, Some(State::Held | State::Stale)) {
            self.free::<W>(books, block);
        }
        match state {
            Some(State::Stale) => self.clear_block(books, block, cache),
            _ => 0,
        }
    }

    /// Clears what was written into free blocks, so that the next peer does not find what was for
    /// another: how many bytes. No view of them is left, here or with a peer that is trusted.
    #[cold]
    pub(in crate::domain) fn clear(&mut self, books: &mut [Block], cache: &impl Cache) -> u32 {
        let mut cleared = 0u32;
        for block in 0..self.lane.pool.count() {
            let Some(book) = self.lane.book(books, block) else {
                continue;
            };
            match book.state {
                State::Free => {
                    cleared = cleared.wrapping_add(self.clear_block(books, block, cache));
                }
                // Its holder may still write.
                State::Held => book.state = State::Stale,
                _ => {}
            }
        }
        cleared
    }

    #[cold]
    fn clear_block(&mut self, books: &mut [Block], block: u16, cache: &impl Cache) -> u32 {
        match self.lane.book(books, block) {
            Some(book) => book.clear(&self.lane.pool, block, cache),
            None => 0,
        }
    }

    /// Blocks that can be taken without a look at the returns.
    pub(in crate::domain) fn room(&self) -> u32 {
        self.free
    }

    #[inline]
    pub(super) fn free<W: Ways>(&mut self, books: &mut [Block], block: u16) {
        let lane = self.lane::<W>();
        let (first, last) = self.free_line;
        let goes_first = !W::Cache::PREFETCHES || self.is_large || first == NONE;
        let Some(book) = lane.own_book(books, block) else {
            return;
        };
        book.state = State::Free;
        book.next = if goes_first { first } else { NONE };
        if goes_first {
            self.free_line.0 = block;
        } else if let Some(last) = lane.own_book(books, last) {
            last.next = block;
        }
        if W::Cache::PREFETCHES && !self.is_large {
            self.free_line.1 = block;
        }
        self.free = self.free.wrapping_add(1);
    }

    /// Every block is in exactly one place, and the counts say so.
    pub(in crate::domain) fn check(&self, books: &[Block]) -> bool {
        let books = self.lane.books(books);
        let count = |state| books.iter().filter(|book| book.state == state).count();
        let free = self.free as usize;
        line_len(books, self.free_line.0) == Some(free) && count(State::Free) == free
    }
}

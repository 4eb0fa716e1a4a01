//! What comes back: blocks, and answers in them.

use super::super::Violation;
use super::super::books::{Block, NONE, State};
use super::super::layout::{REPLY, control, statistics};
use super::super::port::{Cache, Ways};
use super::super::ring::{Entry, Look};
use super::Outbox;
use crate::word::Span;

/// What a return was.
pub(super) enum Returned {
    /// There is none.
    Nothing,
    /// This block, empty.
    Block(u16),
    /// A block with an answer, which is kept.
    Answer,
}

impl Outbox {
    /// Takes up one return. `false` where there is none, or only a bad one and it is not `needed`:
    /// blocks that are free are not refused for it.
    #[inline]
    pub(in crate::domain) fn reclaim<W: Ways>(
        &mut self,
        books: &mut [Block],
        needed: bool,
        cache: &W::Cache,
    ) -> Result<bool, Violation> {
        match self.look::<W>(books, needed, cache)? {
            Returned::Nothing => return Ok(false),
            Returned::Answer => {}
            Returned::Block(block) => self.free::<W>(books, block),
        }
        Ok(true)
    }

    /// Takes up one return, see [`Outbox::reclaim`]. A block is the caller's, who says where it is.
    #[inline(always)]
    pub(super) fn look<W: Ways>(
        &mut self,
        books: &mut [Block],
        needed: bool,
        cache: &W::Cache,
    ) -> Result<Returned, Violation> {
        let (ring, at) = (self.lane::<W>().returns, self.returns.at());
        let look = match W::USES.replies {
            true => self.returns.look::<4>(ring, cache),
            false => self.returns.look::<2>(ring, cache),
        };
        let found = match look {
            Look::Empty => return Ok(Returned::Nothing),
            Look::Garbage if needed => return Err(Violation::Sequence),
            Look::Garbage => return Ok(Returned::Nothing),
            Look::New(entry) => self.judge::<W>(books, entry).map(|block| (block, entry)),
        };
        let (block, entry) = match found {
            Ok(found) => found,
            Err(_) if !needed => return Ok(Returned::Nothing),
            Err(violation) => {
                self.pass::<W>(at);
                return Err(violation);
            }
        };
        // Without replies nobody would ever take an answer up.
        let is_answer = W::USES.replies && self.has_replies && entry.flags & REPLY != 0;
        let returned = if is_answer {
            self.keep_answer::<W>(books, block, entry.len)
        } else {
            Ok(Returned::Block(block))
        };
        self.pass::<W>(at);
        returned
    }

    /// Goes on from the return at this position to the next.
    #[inline(always)]
    fn pass<W: Ways>(&mut self, from: u32) {
        let at = self.returns.advance(from);
        self.lane::<W>().counts.at(statistics::RECLAIMED).set(at);
    }

    /// The block of a return, which is lent.
    #[inline(always)]
    pub(super) fn judge<W: Ways>(
        &self,
        books: &mut [Block],
        entry: Entry,
    ) -> Result<u16, Violation> {
        let lane = self.lane::<W>();
        let Some(block) = entry.block(self.tag, lane.pool.count()) else {
            return Err(entry.wrong(self.tag, Violation::NotLent));
        };
        match lane.own_book(books, block) {
            Some(book) if book.state == State::Lent => Ok(block),
            _ => Err(Violation::NotLent),
        }
    }

    /// Puts an answer that has come back behind the others.
    pub(super) fn keep_answer<W: Ways>(
        &mut self,
        books: &mut [Block],
        block: u16,
        len: u32,
    ) -> Result<Returned, Violation> {
        if len > self.lane.pool.size() {
            self.free::<W>(books, block);
            return Err(Violation::Length);
        }
        if let Some(book) = self.lane.book(books, block) {
            book.state = State::Answered;
            book.len = len;
            book.next = NONE;
        }
        let last = core::mem::replace(&mut self.answers.1, block);
        match self.lane.book(books, last) {
            Some(last) if self.answers.0 != NONE => last.next = block,
            _ => self.answers.0 = block,
        }
        Ok(Returned::Answer)
    }

    /// The oldest answer that nobody has taken: its block, which is then held, and its length.
    pub(in crate::domain) fn take_answer<W: Ways>(
        &mut self,
        books: &mut [Block],
        cache: &W::Cache,
    ) -> Result<Option<(u16, Span)>, Violation> {
        if let Some(start) = self.lane.pool.start(self.last) {
            cache.prefetch(start);
        }
        // Returns without an answer may lie before it: as many as are lent, at most.
        while self.answers.0 == NONE && self.reclaim::<W>(books, true, cache)? {}
        Ok(self.next_answer(books).map(|(block, len)| {
            let (at, bytes) = self.lane.pool.bytes(block, len);
            cache.invalidate(at, bytes);
            (block, self.lane.pool.for_reading(block, len))
        }))
    }

    pub(super) fn next_answer(&mut self, books: &mut [Block]) -> Option<(u16, u32)> {
        let block = self.answers.0;
        let book = self.lane.book(books, block)?;
        book.state = State::Held;
        self.answers.0 = book.next;
        Some((block, book.len))
    }

    /// Whether returns wait that were not taken up.
    pub(in crate::domain) fn has_returns<W: Ways>(&self, cache: &W::Cache) -> bool {
        self.is_owed() && self.returns.has_news(self.lane::<W>().returns, 0, cache)
    }

    /// Whether an answer waits.
    pub(in crate::domain) fn has_answer<W: Ways>(&self, cache: &W::Cache) -> bool {
        self.answers.0 != NONE || self.has_returns::<W>(cache)
    }

    /// Asks the peer to ring at the next return. The fence after it is the caller's.
    pub(in crate::domain) fn arm(&self) {
        self.lane
            .mine
            .at(control::WAKE_RETURNS)
            .set(self.returns.at());
    }
}

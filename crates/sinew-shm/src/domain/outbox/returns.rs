//! What comes back: blocks, and answers in them.

use super::super::Violation;
use super::super::books::{Block, NONE, State};
use super::super::layout::{REPLY, control, statistics};
use super::super::port::{Cache, Ways};
use super::super::ring::{Entry, Look};
use super::Outbox;
use crate::word::Span;

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
        let look = match W::USES.replies {
            true => self.returns.look::<true>(cache),
            false => self.returns.look::<false>(cache),
        };
        let found = match look {
            Look::Empty => return Ok(false),
            Look::Garbage if needed => return Err(Violation::Sequence),
            Look::Garbage => return Ok(false),
            Look::New(entry) => self.judge(books, entry),
        };
        let entry = match found {
            Ok(entry) => entry,
            Err(_) if !needed => return Ok(false),
            Err(violation) => {
                self.pass();
                return Err(violation);
            }
        };
        self.lent = self.lent.wrapping_sub(1);
        // Without replies nobody would ever take an answer up.
        let is_answer = W::USES.replies && self.has_replies && entry.flags & REPLY != 0;
        let kept = if is_answer {
            self.keep_answer::<W>(books, entry)
        } else {
            self.free::<W>(books, entry.block);
            Ok(true)
        };
        self.pass();
        kept
    }

    /// Goes on to the next return.
    #[inline(always)]
    pub(super) fn pass(&mut self) {
        let at = self.returns.advance();
        self.counts.at(statistics::RECLAIMED).set(at);
    }

    /// Whether a return is one of a block that is lent.
    #[inline(always)]
    pub(super) fn judge(&self, books: &mut [Block], entry: Entry) -> Result<Entry, Violation> {
        if entry.tag != self.tag {
            return Err(Violation::Session);
        }
        let book = self.book(books, entry.block);
        if book.is_none_or(|book| book.state != State::Lent) {
            return Err(Violation::NotLent);
        }
        Ok(entry)
    }

    /// Puts an answer that has come back behind the others.
    pub(super) fn keep_answer<W: Ways>(
        &mut self,
        books: &mut [Block],
        entry: Entry,
    ) -> Result<bool, Violation> {
        if entry.len > self.pool.size() {
            self.free::<W>(books, entry.block);
            return Err(Violation::Length);
        }
        if let Some(book) = self.book(books, entry.block) {
            book.state = State::Answered;
            book.len = entry.len;
            book.next = NONE;
        }
        let last = core::mem::replace(&mut self.answers.1, entry.block);
        match self.book(books, last) {
            Some(last) if self.answers.0 != NONE => last.next = entry.block,
            _ => self.answers.0 = entry.block,
        }
        Ok(true)
    }

    /// The oldest answer that nobody has taken: its block, which is then held, and its length.
    pub(in crate::domain) fn take_answer<W: Ways>(
        &mut self,
        books: &mut [Block],
        cache: &W::Cache,
    ) -> Result<Option<(u16, Span)>, Violation> {
        if let Some(start) = self.pool.start(self.last) {
            cache.prefetch(start);
        }
        // Returns without an answer may lie before it: as many as are lent, at most.
        while self.answers.0 == NONE && self.reclaim::<W>(books, true, cache)? {}
        Ok(self.next_answer(books).map(|(block, len)| {
            let (at, bytes) = self.pool.bytes(block, len);
            cache.invalidate(at, bytes);
            (block, self.pool.for_reading(block, len))
        }))
    }

    pub(super) fn next_answer(&mut self, books: &mut [Block]) -> Option<(u16, u32)> {
        let block = self.answers.0;
        let book = self.book(books, block)?;
        book.state = State::Held;
        self.answers.0 = book.next;
        Some((block, book.len))
    }

    /// Whether returns wait that were not taken up.
    pub(in crate::domain) fn has_returns(&self, cache: &impl Cache) -> bool {
        self.lent > 0 && self.returns.has_news(0, cache)
    }

    /// Whether an answer waits.
    pub(in crate::domain) fn has_answer(&self, cache: &impl Cache) -> bool {
        self.answers.0 != NONE || self.has_returns(cache)
    }

    /// Asks the peer to ring at the next return. The fence after it is the caller's.
    pub(in crate::domain) fn arm(&self) {
        self.mine.at(control::WAKE_RETURNS).set(self.returns.at());
    }
}

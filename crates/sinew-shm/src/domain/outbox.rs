//! One side's sending half of a channel: its blocks, and who has them.
//!
//! The truth about every block is here, in private memory: it is free, held (a place in the user's
//! hand), lent (to the peer), or answered (back with a reply that nobody has read yet). A return is
//! accepted for a lent block only.

use super::Violation;
use super::filter::Filter;
use super::layout::{NEXT_SHIFT, REPLY, control, statistics};
use super::port::Cache;
use super::ring::{Entry, Look, RingReader, RingWriter, passes, tag};
use crate::word::{BlockArea, PUBLISH_FENCE, PublishFence, Span, Words};

/// The books on one block, of either side.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(super) state: State,
    /// The block behind in the line of the free ones, or in that of the answered ones.
    pub(super) next: u16,
    /// Bytes of an answer.
    pub(super) len: u32,
}

impl Block {
    /// Of a block that nobody has used.
    pub const NEW: Block = Block {
        state: State::Free,
        next: NONE,
        len: 0,
    };
}

/// Where a block is. Of the peer's blocks: `Held` is with us, anything else is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Held,
    Lent,
    Answered,
}

const NONE: u16 = u16::MAX;

/// Why there is no block, or a packet did not go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Denied {
    Full,
    TooLarge,
    Violation(Violation),
}

impl From<Violation> for Denied {
    fn from(violation: Violation) -> Denied {
        Denied::Violation(violation)
    }
}

/// From this size on a block that came back is used before one that was not used yet, because
/// what the caches hold of it is worth more than the look at the ring of returns.
const LARGE: u32 = 2048;

/// Returns that are taken up at once.
const RETURNS_PER_LINE: u32 = 4;

pub(super) struct Outbox {
    ring: RingWriter,
    returns: RingReader,
    pool: BlockArea,
    /// Where the books on this pool begin.
    first: usize,
    mine: Words,
    counts: Words,
    theirs: Words,
    /// A whole word of its own: as a half, next to one that was just written, it would be loaded
    /// together with that, which waits until the store is done.
    tag: u32,
    is_large: bool,
    has_replies: bool,
    /// The free blocks stand in line, first and last. What comes back goes behind: so the next block
    /// is known early, and the peer is told, see `Outbox::next`. A large one goes first, as more of
    /// it is in the caches.
    free_line: (u16, u16),
    free: u16,
    lent: u16,
    answers: (u16, u16),
    /// The block that was sent last: the one that an answer comes back in, often.
    last: u16,
    /// What has been shown, and looked after: the peer's wake word was compared.
    flushed: u32,
    filter: Filter,
    full: u32,
    too_large: u32,
    filtered: u32,
}

impl Outbox {
    /// `counts` is the own statistics line, `theirs` the peer's control line.
    pub(super) fn new(
        (ring, returns): (RingWriter, RingReader),
        (pool, has_replies): (BlockArea, bool),
        (mine, counts, theirs): (Words, Words, Words),
        (books, first): (&mut [Block], usize),
    ) -> Outbox {
        let mut outbox = Outbox {
            ring,
            returns,
            pool,
            first,
            mine,
            counts,
            theirs,
            tag: 0,
            is_large: pool.size() >= LARGE,
            has_replies,
            free_line: (NONE, NONE),
            free: 0,
            lent: 0,
            answers: (NONE, NONE),
            last: 0,
            flushed: 0,
            filter: Filter::default(),
            full: 0,
            too_large: 0,
            filtered: 0,
        };
        for block in 0..pool.count() {
            outbox.free(books, block);
        }
        outbox
    }

    /// Takes every lent block back, and empties the ring for a session of one's own.
    pub(super) fn reset(&mut self, session: u32, books: &mut [Block], cache: &impl Cache) {
        for block in 0..self.pool.count() {
            let state = self.book(books, block).map(|book| book.state);
            if matches!(state, Some(State::Lent)) {
                self.free(books, block);
            }
        }
        self.lent = 0;
        // Answers that nobody is reading: the line holds all of them.
        while self.answers.0 != NONE {
            let Some(block) = self.next_answer(books) else {
                break;
            };
            self.free(books, block.0);
        }
        self.tag = tag(session);
        self.ring.reset(cache);
        self.returns.reset();
        self.flushed = 0;
        self.filter = Filter::default();
        self.mine.at(control::WAKE_RETURNS).set(u32::MAX);
        self.count();
    }

    /// The book on a block of this pool, in the books on all blocks.
    #[inline(always)]
    fn book<'a>(&self, books: &'a mut [Block], block: u16) -> Option<&'a mut Block> {
        if block >= self.pool.count() {
            return None;
        }
        books.get_mut(self.first + usize::from(block))
    }

    /// A block that this side holds.
    pub(super) fn block(&self, block: u16) -> Option<Span> {
        (block < self.pool.count()).then(|| self.pool.for_writing(block))
    }

    /// Bytes of a block.
    pub(super) fn size(&self) -> u32 {
        self.pool.size()
    }

    pub(super) fn lent(&self) -> u16 {
        self.lent
    }

    /// Takes a block for a packet of at least `min` bytes, leaving `reserve` free ones to others.
    #[inline]
    pub(super) fn take(
        &mut self,
        books: &mut [Block],
        min: usize,
        reserve: u16,
        cache: &impl Cache,
    ) -> Result<(u16, Span), Denied> {
        if min > self.pool.size() as usize || self.pool.count() == 0 {
            return Err(self.is_too_large());
        }
        if self.is_large && self.lent > 0 {
            self.reclaim(books, self.free <= reserve, cache)?;
        }
        // One more than is needed: the next, which the peer is told of.
        if self.free <= reserve.saturating_add(1) {
            self.refill(books, reserve, cache)?;
        }
        let block = self.free_line.0;
        let book = self.book(books, block).ok_or(Denied::Full)?;
        self.free_line.0 = book.next;
        book.state = State::Held;
        self.free = self.free.wrapping_sub(1);
        Ok((block, self.pool.for_writing(block)))
    }

    /// Takes returns up, a line of them at once: taken one by one, each would be read while the peer
    /// writes the next into the same line.
    fn refill(
        &mut self,
        books: &mut [Block],
        reserve: u16,
        cache: &impl Cache,
    ) -> Result<(), Denied> {
        let mut looks = 0;
        // A line, and where that is not enough, as many as are missing.
        while looks < RETURNS_PER_LINE || self.free <= reserve {
            if !self.reclaim(books, self.free <= reserve, cache)? {
                break;
            }
            looks += 1;
        }
        match self.free > reserve {
            true => Ok(()),
            false => Err(self.is_full()),
        }
    }

    #[cold]
    fn is_full(&mut self) -> Denied {
        self.full = self.full.wrapping_add(1);
        self.counts.at(statistics::FULL).set(self.full);
        Denied::Full
    }

    #[cold]
    fn is_too_large(&mut self) -> Denied {
        self.too_large = self.too_large.wrapping_add(1);
        self.counts.at(statistics::TOO_LARGE).set(self.too_large);
        Denied::TooLarge
    }

    /// Takes a taken block back unsent. `false` where it was none.
    pub(super) fn cancel(&mut self, books: &mut [Block], block: u16) -> bool {
        let state = self.book(books, block).map(|book| book.state);
        let held = matches!(state, Some(State::Held));
        if held {
            self.free(books, block);
        }
        held
    }

    /// Writes the entry of the first `len` bytes of a taken block; `false` where the receiver's
    /// filter does not let it through, and the block is free again. [`Outbox::flush`] shows it.
    #[inline]
    pub(super) fn send(
        &mut self,
        books: &mut [Block],
        block: u16,
        len: u32,
        cache: &impl Cache,
    ) -> Result<bool, Denied> {
        if len > self.pool.size() {
            self.cancel(books, block);
            return Err(Denied::TooLarge);
        }
        if self.filter.is_set() && !self.is_wanted(books, block, len) {
            return Ok(false);
        }
        let book = self.book(books, block);
        let Some(book) = book.filter(|book| book.state == State::Held) else {
            return Err(Denied::TooLarge);
        };
        book.state = State::Lent;
        self.lent = self.lent.wrapping_add(1);
        // Where the peer answers in the block, nothing of it stays in this side's cache: written
        // back later, it would go over the answer.
        let written = if self.has_replies { self.size() } else { len };
        let (at, bytes) = self.pool.bytes(block, written);
        cache.clean(at, bytes);
        let entry = Entry {
            block,
            tag: self.tag,
            len,
            flags: self.next() << NEXT_SHIFT,
        };
        self.last = block;
        // Of a batch the first entry is shown last, by `flush`: until then the peer does not look at
        // the lines that are being written.
        if self.ring.at() == self.flushed {
            self.ring.put_hidden(entry, cache);
        } else {
            self.ring.put(entry, cache);
        }
        self.counts.at(statistics::SENT).set(self.ring.at());
        Ok(true)
    }

    /// The block that is taken next if nothing comes back before, + 1; 0 where there is none.
    #[inline(always)]
    fn next(&self) -> u32 {
        u32::from(self.free_line.0.wrapping_add(1))
    }

    /// Whether the receiver wants the packet; if not, its block is free again.
    #[cold]
    fn is_wanted(&mut self, books: &mut [Block], block: u16, len: u32) -> bool {
        if block >= self.pool.count() {
            return true;
        }
        // SAFETY: the block is held by who sends it, and not written while it is looked at here.
        let packet = unsafe { self.pool.for_reading(block, len).slice() };
        let is_wanted = self.filter.passes(packet);
        if !is_wanted {
            self.cancel(books, block);
            self.filtered = self.filtered.wrapping_add(1);
            self.counts.at(statistics::FILTERED).set(self.filtered);
        }
        is_wanted
    }

    /// Shows the peer what was sent since the last call; whether it waits for one of these packets.
    #[inline(always)]
    pub(super) fn flush(&mut self, fence: PublishFence, cache: &impl Cache) -> bool {
        let from = core::mem::replace(&mut self.flushed, self.ring.at());
        if from == self.flushed {
            return false;
        }
        self.ring.show(from, cache);
        fence.run(PUBLISH_FENCE);
        let (at, len) = self.theirs.bytes();
        cache.invalidate(at, len);
        let wake = self.theirs.at(control::WAKE_PACKETS).get();
        self.filter.refresh(&self.theirs);
        passes(wake, from, self.flushed)
    }

    /// Takes up one return. `false` where there is none, or only a bad one and it is not `needed`:
    /// blocks that are free are not refused for it.
    #[inline]
    pub(super) fn reclaim(
        &mut self,
        books: &mut [Block],
        needed: bool,
        cache: &impl Cache,
    ) -> Result<bool, Violation> {
        let found = match self.returns.look(cache) {
            Look::Empty => return Ok(false),
            Look::Garbage => Err(Violation::Sequence),
            Look::New(entry) => self.judge(books, entry),
        };
        if found.is_err() && !needed {
            return Ok(false);
        }
        if !matches!(found, Err(Violation::Sequence)) {
            self.returns.advance();
            self.counts.at(statistics::RECLAIMED).set(self.returns.at());
        }
        let entry = found?;
        self.lent = self.lent.wrapping_sub(1);
        // Without replies nobody would ever take an answer up.
        if entry.flags & REPLY == 0 || !self.has_replies {
            self.free(books, entry.block);
            return Ok(true);
        }
        self.keep_answer(books, entry)
    }

    /// Whether a return is one of a block that is lent.
    #[inline(always)]
    fn judge(&self, books: &mut [Block], entry: Entry) -> Result<Entry, Violation> {
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
    fn keep_answer(&mut self, books: &mut [Block], entry: Entry) -> Result<bool, Violation> {
        if entry.len > self.pool.size() {
            self.free(books, entry.block);
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
    pub(super) fn take_answer(
        &mut self,
        books: &mut [Block],
        cache: &impl Cache,
    ) -> Result<Option<(u16, Span)>, Violation> {
        if let Some(start) = self.pool.start(self.last) {
            cache.prefetch(start);
        }
        // Returns without an answer may lie before it: as many as are lent, at most.
        while self.answers.0 == NONE && self.reclaim(books, true, cache)? {}
        Ok(self.next_answer(books).map(|(block, len)| {
            let (at, bytes) = self.pool.bytes(block, len);
            cache.invalidate(at, bytes);
            (block, self.pool.for_reading(block, len))
        }))
    }

    fn next_answer(&mut self, books: &mut [Block]) -> Option<(u16, u32)> {
        let block = self.answers.0;
        let book = self.book(books, block)?;
        book.state = State::Held;
        self.answers.0 = book.next;
        Some((block, book.len))
    }

    /// Blocks that can be taken without a look at the returns.
    pub(super) fn room(&self) -> u16 {
        self.free
    }

    /// Whether returns wait that were not taken up.
    pub(super) fn has_returns(&self, cache: &impl Cache) -> bool {
        self.lent > 0 && self.returns.has_news(0, cache)
    }

    /// Whether an answer waits.
    pub(super) fn has_answer(&self, cache: &impl Cache) -> bool {
        self.answers.0 != NONE || self.has_returns(cache)
    }

    /// Asks the peer to ring at the next return. The fence after it is the caller's.
    pub(super) fn arm(&self) {
        self.mine.at(control::WAKE_RETURNS).set(self.returns.at());
    }

    #[inline]
    fn free(&mut self, books: &mut [Block], block: u16) {
        let (first, last) = self.free_line;
        let goes_first = self.is_large || first == NONE;
        let Some(book) = self.book(books, block) else {
            return;
        };
        book.state = State::Free;
        book.next = if goes_first { first } else { NONE };
        if goes_first {
            self.free_line.0 = block;
        } else if let Some(last) = self.book(books, last) {
            last.next = block;
        }
        if !self.is_large {
            self.free_line.1 = block;
        }
        self.free = self.free.wrapping_add(1);
    }

    fn count(&self) {
        self.counts.at(statistics::SENT).set(self.ring.at());
        self.counts.at(statistics::RECLAIMED).set(self.returns.at());
    }

    /// Every block is in exactly one place, and the counts say so.
    pub(super) fn check(&self, books: &[Block]) -> bool {
        let all = self.first..self.first + usize::from(self.pool.count());
        let books = books.get(all).unwrap_or_default();
        let count = |state| books.iter().filter(|book| book.state == state).count();
        let (mut in_line, mut at) = (0, self.free_line.0);
        while let Some(book) = books.get(usize::from(at)) {
            in_line += 1;
            at = book.next;
            if book.state != State::Free || in_line > books.len() {
                return false;
            }
        }
        in_line == usize::from(self.free)
            && in_line == count(State::Free)
            && count(State::Lent) == usize::from(self.lent)
    }

    /// Everything that a later call depends on.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(super) fn digest(&self) -> [u32; 9] {
        [
            self.tag,
            self.ring.at(),
            self.returns.at(),
            self.flushed,
            self.free_line.0.into(),
            self.free.into(),
            self.lent.into(),
            self.answers.0.into(),
            self.answers.1.into(),
        ]
    }
}

//! One side's sending half of a channel: its blocks, and who has them.
//!
//! The truth about every block is here, in private memory: it is free, held (a place in the user's
//! hand), lent (to the peer), or answered (back with a reply that nobody has read yet). A return is
//! accepted for a lent block only.

use super::Violation;
use super::filter::Filter;
use super::layout::{NEXT_SHIFT, REPLY, control, statistics};
use super::port::{Cache, Ways};
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
    pub(super) fn new<W: Ways>(
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
            outbox.free::<W>(books, block);
        }
        outbox
    }

    /// Takes every lent block back, and empties the ring for a session of one's own.
    pub(super) fn reset<W: Ways>(&mut self, session: u32, books: &mut [Block], cache: &W::Cache) {
        for block in 0..self.pool.count() {
            let state = self.book(books, block).map(|book| book.state);
            if matches!(state, Some(State::Lent)) {
                self.free::<W>(books, block);
            }
        }
        self.lent = 0;
        // Answers that nobody is reading: the line holds all of them.
        while self.answers.0 != NONE {
            let Some(block) = self.next_answer(books) else {
                break;
            };
            self.free::<W>(books, block.0);
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

    /// As `book`, of a block that private memory names.
    #[inline(always)]
    fn own_book<'a>(&self, books: &'a mut [Block], block: u16) -> Option<&'a mut Block> {
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
    pub(super) fn take<W: Ways>(
        &mut self,
        books: &mut [Block],
        min: usize,
        reserve: u16,
        cache: &W::Cache,
    ) -> Result<(u16, Span), Denied> {
        // What the compiler knows of a copy it need not look at again.
        let pool = self.pool;
        if min > pool.size() as usize {
            return Err(self.is_too_large());
        }
        let block = self.pop::<W>(books, reserve, State::Held, cache)?;
        Ok((block, pool.for_writing(block)))
    }

    /// Takes the first free block out of the line.
    #[inline(always)]
    fn pop<W: Ways>(
        &mut self,
        books: &mut [Block],
        reserve: u16,
        state: State,
        cache: &W::Cache,
    ) -> Result<u16, Denied> {
        if W::Cache::PREFETCHES && self.is_large && self.lent > 0 {
            self.reclaim::<W>(books, self.free <= reserve, cache)?;
        }
        // One more than is needed: the next, which the peer is told of.
        if u32::from(self.free) <= u32::from(reserve) + u32::from(W::Cache::PREFETCHES) {
            self.refill::<W>(books, reserve, cache)?;
        }
        let block = self.free_line.0;
        let book = self.own_book(books, block).ok_or(Denied::Full)?;
        self.free_line.0 = book.next;
        book.state = state;
        self.free = self.free.wrapping_sub(1);
        Ok(block)
    }

    /// Sees to it that the next block is there before it is asked for: after a message, while the peer
    /// is at it.
    #[inline(always)]
    pub(super) fn top_up<W: Ways>(&mut self, books: &mut [Block], cache: &W::Cache) {
        if W::Cache::PREFETCHES && self.free <= 1 && self.lent > 0 {
            let mut looks = 0;
            while looks < RETURNS_PER_LINE && self.reclaim::<W>(books, false, cache) == Ok(true) {
                looks += 1;
            }
        }
    }

    /// Takes returns up, a line of them at once: taken one by one, each would be read while the peer
    /// writes the next into the same line.
    #[inline]
    fn refill<W: Ways>(
        &mut self,
        books: &mut [Block],
        reserve: u16,
        cache: &W::Cache,
    ) -> Result<(), Denied> {
        let at_once = if W::Cache::PREFETCHES {
            RETURNS_PER_LINE
        } else {
            0
        };
        let mut looks = 0;
        // A line, and where that is not enough, as many as are missing.
        while looks < at_once || self.free <= reserve {
            if !self.reclaim::<W>(books, self.free <= reserve, cache)? {
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
        if self.pool.count() == 0 {
            return self.is_too_large();
        }
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
    pub(super) fn cancel<W: Ways>(&mut self, books: &mut [Block], block: u16) -> bool {
        let state = self.book(books, block).map(|book| book.state);
        let held = matches!(state, Some(State::Held));
        if held {
            self.free::<W>(books, block);
        }
        held
    }

    /// Writes the entry of the first `len` bytes of a taken block; `false` where the receiver's
    /// filter does not let it through, and the block is free again. [`Outbox::flush`] shows it.
    #[inline]
    pub(super) fn send<W: Ways>(
        &mut self,
        books: &mut [Block],
        block: u16,
        len: usize,
        cache: &W::Cache,
    ) -> Result<bool, Denied> {
        if len > self.pool.size() as usize {
            self.cancel::<W>(books, block);
            return Err(Denied::TooLarge);
        }
        let len = len as u32;
        let book = self.book(books, block);
        let Some(book) = book.filter(|book| book.state == State::Held) else {
            return Err(Denied::TooLarge);
        };
        book.state = State::Lent;
        if W::USES.filters && self.filter.is_set() {
            // SAFETY: the block was held by who sends it, and is not written while it is looked at.
            let packet = unsafe { self.pool.for_reading(block, len).slice() };
            if !self.is_wanted(packet, cache) {
                self.free::<W>(books, block);
                return Ok(false);
            }
        }
        self.lend::<W>(block, len, cache);
        Ok(true)
    }

    /// [`Outbox::take`], [`Outbox::send`] and [`Outbox::flush`] at once, with a packet that is copied.
    /// Whether the receiver's filter lets it through, and whether the peer waits for it.
    #[inline(always)]
    pub(super) fn post<W: Ways>(
        &mut self,
        books: &mut [Block],
        packet: &[u8],
        reserve: u16,
        fence: PublishFence,
        cache: &W::Cache,
    ) -> Result<(bool, bool), Denied> {
        let pool = self.pool;
        if packet.len() > pool.size() as usize {
            return Err(self.is_too_large());
        }
        let block = self.pop::<W>(books, reserve, State::Lent, cache)?;
        if W::USES.filters && self.filter.is_set() && !self.is_wanted(packet, cache) {
            self.free::<W>(books, block);
            return Ok((false, self.flush::<W>(fence, cache)));
        }
        let place = pool.for_writing(block);
        // SAFETY: the block was free a moment ago, and nobody else is told of it before the entry.
        unsafe { place.fill_from(packet) };
        let from = self.flushed;
        let to = self.lend::<W>(block, packet.len() as u32, cache);
        Ok((true, self.show::<W>(from, to, fence, cache)))
    }

    /// Writes the entry of a block that is lent from now on. The position behind it.
    #[inline(always)]
    fn lend<W: Ways>(&mut self, block: u16, len: u32, cache: &W::Cache) -> u32 {
        self.lent = self.lent.wrapping_add(1);
        // Where the peer answers in the block, nothing of it stays in this side's cache: written
        // back later, it would go over the answer.
        let is_answered = W::USES.replies && self.has_replies;
        let written = if is_answered { self.size() } else { len };
        let (at, bytes) = self.pool.bytes(block, written);
        cache.clean(at, bytes);
        let entry = Entry {
            block,
            tag: self.tag,
            len,
            flags: self.next::<W>() << NEXT_SHIFT,
        };
        if W::USES.replies {
            self.last = block;
        }
        // Of a batch the first entry is shown last, by `flush`: until then the peer does not look at
        // the lines that are being written.
        let at = self.ring.put_hidden(entry, cache);
        if at != self.flushed {
            self.ring.show(at, cache);
        }
        let next = at.wrapping_add(1);
        self.counts.at(statistics::SENT).set(next);
        next
    }

    /// The block that is taken next if nothing comes back before, + 1; 0 where there is none, or none
    /// is fetched early.
    #[inline(always)]
    fn next<W: Ways>(&self) -> u32 {
        match W::Cache::PREFETCHES {
            true => u32::from(self.free_line.0.wrapping_add(1)),
            false => 0,
        }
    }

    /// Whether the receiver wants the packet.
    ///
    /// The wish is looked at here as well: where nothing passes, [`Outbox::flush`] never does.
    #[cold]
    fn is_wanted(&mut self, packet: &[u8], cache: &impl Cache) -> bool {
        let (at, len) = self.theirs.bytes();
        cache.invalidate(at, len);
        self.filter.refresh(&self.theirs);
        let is_wanted = self.filter.passes(packet);
        if !is_wanted {
            self.filtered = self.filtered.wrapping_add(1);
            self.counts.at(statistics::FILTERED).set(self.filtered);
        }
        is_wanted
    }

    /// Shows the peer what was sent since the last call; whether it waits for one of these packets.
    #[inline(always)]
    pub(super) fn flush<W: Ways>(&mut self, fence: PublishFence, cache: &W::Cache) -> bool {
        let (from, to) = (self.flushed, self.ring.at());
        from != to && self.show::<W>(from, to, fence, cache)
    }

    /// Shows the peer what lies between two positions.
    #[inline(always)]
    fn show<W: Ways>(&mut self, from: u32, to: u32, fence: PublishFence, cache: &W::Cache) -> bool {
        self.flushed = to;
        self.ring.show(from, cache);
        fence.run(PUBLISH_FENCE);
        let (at, len) = self.theirs.bytes();
        cache.invalidate(at, len);
        let wake = self.theirs.at(control::WAKE_PACKETS).get();
        if W::USES.filters {
            self.filter.refresh(&self.theirs);
        }
        passes(wake, from, to)
    }

    /// Takes up one return. `false` where there is none, or only a bad one and it is not `needed`:
    /// blocks that are free are not refused for it.
    #[inline]
    pub(super) fn reclaim<W: Ways>(
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
    fn pass(&mut self) {
        let at = self.returns.advance();
        self.counts.at(statistics::RECLAIMED).set(at);
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
    fn keep_answer<W: Ways>(
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
    pub(super) fn take_answer<W: Ways>(
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
    fn free<W: Ways>(&mut self, books: &mut [Block], block: u16) {
        let (first, last) = self.free_line;
        let goes_first = !W::Cache::PREFETCHES || self.is_large || first == NONE;
        let Some(book) = self.own_book(books, block) else {
            return;
        };
        book.state = State::Free;
        book.next = if goes_first { first } else { NONE };
        if goes_first {
            self.free_line.0 = block;
        } else if let Some(last) = self.own_book(books, last) {
            last.next = block;
        }
        if W::Cache::PREFETCHES && !self.is_large {
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

//! One side's receiving half of a channel: the peer's blocks that are held here.
//!
//! Nothing that the peer wrote is used before it was checked: the block is one of its pool, not held
//! already, of this session, and not longer than a block. A bad entry is consumed and reported.

use super::Violation;
use super::books::{Block, State};
use super::filter::{Filter, Predicate};
use super::layout::{NEXT_SHIFT, REPLY, control, statistics};
use super::port::{Cache, Ways, clean, invalidate};
use super::ring::{Entry, Look, RingReader, RingWriter, passes, tag};
use crate::word::{BlockArea, PublishFence, RETURN_LOOK_FENCE, Span, Words};

pub(super) struct Inbox {
    ring: RingReader,
    returns: RingWriter,
    pool: BlockArea,
    /// Where the books on this pool begin.
    first: usize,
    mine: Words,
    counts: Words,
    theirs: Words,
    /// Whether this side may write into a block that it holds.
    has_replies: bool,
    /// Of the peer's session.
    tag: u32,
    held: u16,
    /// The block in which the next packet comes, as the peer says: it is fetched while the entry is
    /// awaited, not after it.
    next: u16,
    /// Returns for which the peer's wake word was compared.
    flushed: u32,
    filter: Filter,
    unwanted: u32,
}

/// What [`Inbox::receive`] came to.
pub(super) enum Received {
    Nothing,
    /// A block, and its packet.
    Packet(u16, Span),
    /// The own filter did not let it through; it has gone back.
    Filtered,
}

/// What [`Inbox::receive_into`] came to: as [`Received`], with the packet's length.
pub(super) enum Copied {
    Nothing,
    Packet(u32),
    Filtered,
}

impl Inbox {
    /// `counts` is the own statistics line, `theirs` the peer's control line.
    pub(super) fn new(
        (ring, returns): (RingReader, RingWriter),
        (pool, has_replies, first): (BlockArea, bool, usize),
        (mine, counts, theirs): (Words, Words, Words),
    ) -> Inbox {
        Inbox {
            has_replies,
            ring,
            returns,
            pool,
            first,
            mine,
            counts,
            theirs,
            tag: 0,
            held: 0,
            next: 0,
            flushed: 0,
            filter: Filter::default(),
            unwanted: 0,
        }
    }

    /// Begins a session of the peer's. `forget_held`: what is held of an earlier one is only a view
    /// that yields nothing any more.
    pub(super) fn reset(
        &mut self,
        peer_session: u32,
        books: &mut [Block],
        forget_held: bool,
        cache: &impl Cache,
    ) {
        if forget_held {
            for block in 0..self.pool.count() {
                if let Some(book) = self.book(books, block) {
                    book.state = State::Free;
                }
            }
            self.held = 0;
        }
        self.tag = tag(peer_session);
        self.ring.reset();
        self.returns.reset(cache);
        self.flushed = 0;
        // The wish stays; an earlier user of this segment may have left another.
        self.filter.publish(&self.mine, cache);
        self.mine.at(control::WAKE_PACKETS).set(u32::MAX);
        self.counts.at(statistics::RECEIVED).set(0);
        self.counts.at(statistics::RELEASED).set(0);
    }

    /// Blocks of the peer in the user's hands.
    pub(super) fn held(&self) -> u16 {
        self.held
    }

    /// The mark of every held block is counted.
    pub(super) fn check(&self, books: &[Block]) -> bool {
        let all = self.first..self.first + usize::from(self.pool.count());
        let books = books.get(all).unwrap_or_default();
        let held = books.iter().filter(|book| book.state == State::Held);
        held.count() == usize::from(self.held)
    }

    /// The book on a block of this pool, in the books on all blocks.
    #[inline(always)]
    fn book<'a>(&self, books: &'a mut [Block], block: u16) -> Option<&'a mut Block> {
        if block >= self.pool.count() {
            return None;
        }
        books.get_mut(self.first + usize::from(block))
    }

    /// As `book`, of a block that was checked.
    #[inline(always)]
    fn own_book<'a>(&self, books: &'a mut [Block], block: u16) -> Option<&'a mut Block> {
        books.get_mut(self.first + usize::from(block))
    }

    /// Bytes of a block.
    pub(super) fn size(&self) -> u32 {
        self.pool.size()
    }

    /// Packets that one call looks at, past those that its filter does not let through.
    #[inline(always)]
    pub(super) fn looks<W: Ways>(&self) -> u16 {
        if W::USES.filters {
            self.pool.count()
        } else {
            1
        }
    }

    /// Takes up one packet, and holds its block.
    #[inline]
    pub(super) fn receive<W: Ways>(
        &mut self,
        books: &mut [Block],
        cache: &W::Cache,
    ) -> Result<Received, Violation> {
        let Some((entry, packet)) = self.accept::<W>(books, cache)? else {
            return Ok(Received::Nothing);
        };
        if W::USES.filters && self.filter.is_set() && !self.is_wanted(entry.block, packet, cache) {
            return Ok(Received::Filtered);
        }
        if let Some(book) = self.own_book(books, entry.block) {
            book.state = State::Held;
        }
        self.held = self.held.wrapping_add(1);
        Ok(Received::Packet(entry.block, packet))
    }

    /// Takes up one packet, copies it and gives its block back: its length, which may be more than
    /// what `out` has room for.
    #[inline(always)]
    pub(super) fn receive_into<W: Ways>(
        &mut self,
        books: &mut [Block],
        out: &mut [u8],
        cache: &W::Cache,
    ) -> Result<Copied, Violation> {
        let Some((entry, packet)) = self.accept::<W>(books, cache)? else {
            return Ok(Copied::Nothing);
        };
        if W::USES.filters && self.filter.is_set() && !self.is_wanted(entry.block, packet, cache) {
            return Ok(Copied::Filtered);
        }
        packet.copy_to(out);
        if W::USES.replies && self.has_replies {
            self.clean_block(entry.block, cache);
        }
        self.give_back(entry.block, 0, 0, cache);
        Ok(Copied::Packet(entry.len))
    }

    /// Takes up one entry: one whose block can be held, and whose packet can be read. It is there as
    /// well.
    #[inline(always)]
    fn accept<W: Ways>(
        &mut self,
        books: &mut [Block],
        cache: &W::Cache,
    ) -> Result<Option<(Entry, Span)>, Violation> {
        if W::Cache::PREFETCHES
            && let Some(start) = self.pool.start(self.next)
        {
            cache.prefetch(start);
        }
        let pool = self.pool;
        let entry = match self.ring.look::<true>(cache) {
            Look::Empty => return Ok(None),
            Look::Garbage => return Err(Violation::Sequence),
            Look::New(entry) => entry,
        };
        let at = self.ring.advance();
        if W::Cache::PREFETCHES {
            self.next = (entry.flags >> NEXT_SHIFT).wrapping_sub(1) as u16;
        }
        self.counts.at(statistics::RECEIVED).set(at);
        if entry.tag != self.tag {
            return Err(Violation::Session);
        }
        let book = self.book(books, entry.block).ok_or(Violation::Block)?;
        if book.state == State::Held {
            return Err(Violation::Twice);
        }
        if entry.len > pool.size() {
            return Err(self.is_too_long(entry.block, cache));
        }
        let (at, bytes) = pool.bytes(entry.block, entry.len);
        cache.invalidate(at, bytes);
        Ok(Some((entry, pool.for_reading(entry.block, entry.len))))
    }

    #[cold]
    fn is_too_long(&mut self, block: u16, cache: &impl Cache) -> Violation {
        self.give_back(block, 0, 0, cache);
        Violation::Length
    }

    /// Whether the own filter lets a packet through; if not, its block has gone back.
    #[cold]
    fn is_wanted(&mut self, block: u16, packet: Span, cache: &impl Cache) -> bool {
        let is_wanted = self.filter.passes_foreign(packet);
        if !is_wanted {
            self.unwanted = self.unwanted.wrapping_add(1);
            self.counts.at(statistics::UNWANTED).set(self.unwanted);
            self.give_back(block, 0, 0, cache);
        }
        is_wanted
    }

    /// A held block, for the answer in it.
    pub(super) fn answer(&self, block: u16) -> Option<Span> {
        (block < self.pool.count()).then(|| self.pool.for_writing(block))
    }

    /// Gives a held block back, with an answer of `reply` bytes where there is one. `false` where it
    /// was not held.
    #[inline]
    pub(super) fn release<W: Ways>(
        &mut self,
        books: &mut [Block],
        block: u16,
        reply: Option<u32>,
        cache: &W::Cache,
    ) -> bool {
        let book = self.book(books, block);
        let Some(book) = book.filter(|book| book.state == State::Held) else {
            return false;
        };
        book.state = State::Free;
        self.held = self.held.wrapping_sub(1);
        let (len, flags) = match reply {
            Some(len) if W::USES.replies => (len.min(self.pool.size()), REPLY),
            _ => (0, 0),
        };
        if W::USES.replies && self.has_replies {
            self.pool.is_written(block, len);
            self.clean_block(block, cache);
        }
        self.give_back(block, len, flags, cache);
        true
    }

    /// Writes all of a block back, sent or not: later, it would go over the next packet.
    fn clean_block(&self, block: u16, cache: &impl Cache) {
        let (at, bytes) = self.pool.bytes(block, self.pool.size());
        cache.clean(at, bytes);
    }

    /// Puts a block into the ring of returns.
    #[inline(always)]
    fn give_back(&mut self, block: u16, len: u32, flags: u32, cache: &impl Cache) {
        let entry = Entry {
            block,
            tag: self.tag,
            len,
            flags,
        };
        let at = self.returns.put(entry, cache);
        self.counts.at(statistics::RELEASED).set(at);
    }

    /// Drops the mark of a block of an earlier session whose view is gone.
    #[cold]
    pub(super) fn forget<W: Ways>(&mut self, books: &mut [Block], block: u16, cache: &W::Cache) {
        let book = self.book(books, block);
        let Some(book) = book.filter(|book| book.state == State::Held) else {
            return;
        };
        book.state = State::Free;
        self.held = self.held.wrapping_sub(1);
        if W::USES.replies && self.has_replies {
            self.clean_block(block, cache);
        }
    }

    /// Whether the peer waits for one of the returns since the last call.
    #[inline(always)]
    pub(super) fn flush(&mut self, fence: PublishFence, cache: &impl Cache) -> bool {
        let (from, to) = (self.flushed, self.returns.at());
        if from == to {
            return false;
        }
        self.flushed = to;
        fence.run(RETURN_LOOK_FENCE);
        invalidate(&self.theirs, cache);
        let wake = self.theirs.at(control::WAKE_RETURNS).get();
        passes(wake, from, to)
    }

    /// Whether `count` entries wait; more than a ring holds never do, and count as all of it.
    #[inline(always)]
    pub(super) fn has_news(&self, count: u32, cache: &impl Cache) -> bool {
        self.ring.has_news(self.ahead(count), cache)
    }

    /// How far ahead the last of `count` entries lies.
    #[inline(always)]
    fn ahead(&self, count: u32) -> u32 {
        count.clamp(1, u32::from(self.pool.count()).max(1)) - 1
    }

    /// Asks the peer to ring when `count` more packets are there. The fence after it is the
    /// caller's.
    pub(super) fn arm(&self, count: u32) {
        let wake = self.ring.at().wrapping_add(self.ahead(count));
        self.mine.at(control::WAKE_PACKETS).set(wake);
    }

    /// Writes the own control line back, with both wake words in it.
    pub(super) fn clean_control(&self, cache: &impl Cache) {
        clean(&self.mine, cache);
        clean(&self.counts, cache);
    }

    /// Sets which packets are wanted, here and, as an optimisation, at the sender.
    pub(super) fn set_filter(&mut self, predicate: Predicate, cache: &impl Cache) {
        self.filter = Filter::new(predicate, self.filter.version().wrapping_add(2));
        self.filter.publish(&self.mine, cache);
    }

    /// Everything that a later call depends on.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(super) fn digest(&self) -> [u32; 4] {
        [
            self.tag,
            self.ring.at(),
            self.returns.at(),
            self.held.into(),
        ]
    }
}

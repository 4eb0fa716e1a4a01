//! One side's receiving half of a channel: the peer's blocks that are held here.
//!
//! Nothing that the peer wrote is used before it was checked: the block is one of its pool, not held
//! already, of this session, and not longer than a block. A bad entry is consumed and reported.

use super::Violation;
use super::books::{Block, State};
use super::filter::{Filter, Predicate};
use super::lane::Lane;
use super::layout::{NEXT_SHIFT, REPLY, control, statistics};
use super::port::{Cache, Ways, clean, invalidate};
use super::ring::{Entry, Look, RingReader, RingWriter, passes, tag};
use crate::word::{RETURN_LOOK_FENCE, Span, full_fence};

pub(super) struct Inbox {
    lane: Lane,
    ring: RingReader,
    returns: RingWriter,
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
    pub(super) fn new(lane: Lane, has_replies: bool) -> Inbox {
        Inbox {
            lane,
            ring: RingReader::default(),
            returns: RingWriter::default(),
            has_replies,
            tag: 0,
            held: 0,
            next: 0,
            flushed: 0,
            filter: Filter::default(),
            unwanted: 0,
        }
    }

    #[inline(always)]
    fn lane<W: Ways>(&self) -> Lane {
        self.lane.back::<W>()
    }

    /// Begins a session of the peer's. `forget_held`: what is held of an earlier one is only a view
    /// that yields nothing any more.
    pub(super) fn reset<W: Ways>(
        &mut self,
        peer_session: u32,
        books: &mut [Block],
        forget_held: bool,
        cache: &W::Cache,
    ) {
        let lane = self.lane::<W>();
        if forget_held {
            for block in 0..lane.pool.count() {
                if let Some(book) = lane.book(books, block) {
                    book.state = State::Free;
                }
            }
            self.held = 0;
        }
        self.tag = tag(peer_session);
        self.ring.reset();
        self.returns.reset(lane.returns, cache);
        self.flushed = 0;
        // The wish stays; an earlier user of this segment may have left another.
        match W::USES.filters {
            true => self.filter.publish(&lane.mine, cache),
            false => Filter::clear(&lane.mine),
        }
        lane.mine.at(control::WAKE_PACKETS).set(u32::MAX);
        lane.counts.at(statistics::RECEIVED).set(0);
        lane.counts.at(statistics::RELEASED).set(0);
    }

    /// Blocks of the peer in the user's hands.
    pub(super) fn held(&self) -> u16 {
        self.held
    }

    /// The mark of every held block is counted.
    pub(super) fn check(&self, books: &[Block]) -> bool {
        let books = self.lane.books(books);
        let held = books.iter().filter(|book| book.state == State::Held);
        held.count() == usize::from(self.held)
    }

    /// Bytes of a block.
    #[inline(always)]
    pub(super) fn size<W: Ways>(&self) -> u32 {
        self.lane::<W>().pool.size()
    }

    /// Packets that one call looks at, past those that its filter does not let through.
    #[inline(always)]
    pub(super) fn looks<W: Ways>(&self) -> u16 {
        if W::USES.filters {
            self.lane.pool.count()
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
        let Some((block, packet)) = self.accept::<W>(books, cache)? else {
            return Ok(Received::Nothing);
        };
        if W::USES.filters && self.filter.is_set() && !self.is_wanted::<W>(block, packet, cache) {
            return Ok(Received::Filtered);
        }
        if let Some(book) = self.lane::<W>().own_book(books, block) {
            book.state = State::Held;
        }
        self.held = self.held.wrapping_add(1);
        Ok(Received::Packet(block, packet))
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
        let Some((block, packet)) = self.accept::<W>(books, cache)? else {
            return Ok(Copied::Nothing);
        };
        if W::USES.filters && self.filter.is_set() && !self.is_wanted::<W>(block, packet, cache) {
            return Ok(Copied::Filtered);
        }
        packet.copy_to(out);
        if W::USES.replies && self.has_replies {
            self.clean_block(block, cache);
        }
        self.give_back::<W>(block, 0, 0, cache);
        Ok(Copied::Packet(packet.len() as u32))
    }

    /// Takes up one entry: one whose block can be held, and whose packet can be read. It is there as
    /// well.
    #[inline(always)]
    fn accept<W: Ways>(
        &mut self,
        books: &mut [Block],
        cache: &W::Cache,
    ) -> Result<Option<(u16, Span)>, Violation> {
        let lane = self.lane::<W>();
        if W::Cache::PREFETCHES
            && let Some(start) = lane.pool.start(self.next)
        {
            cache.prefetch(start);
        }
        let from = self.ring.at();
        let look = match W::Cache::PREFETCHES {
            true => self.ring.look::<4>(lane.ring, cache),
            false => self.ring.look::<3>(lane.ring, cache),
        };
        let entry = match look {
            Look::Empty => return Ok(None),
            Look::Garbage => return Err(Violation::Sequence),
            Look::New(entry) => entry,
        };
        let at = self.ring.advance(from);
        if W::Cache::PREFETCHES {
            self.next = (entry.flags >> NEXT_SHIFT).wrapping_sub(1) as u16;
        }
        lane.counts.at(statistics::RECEIVED).set(at);
        let Some(block) = entry.block(self.tag, lane.pool.count()) else {
            return Err(entry.wrong(self.tag, Violation::Block));
        };
        let book = lane.own_book(books, block).ok_or(Violation::Block)?;
        if book.state == State::Held {
            return Err(Violation::Twice);
        }
        if entry.len > lane.pool.size() {
            return Err(self.is_too_long::<W>(block, cache));
        }
        let (at, bytes) = lane.pool.bytes(block, entry.len);
        cache.invalidate(at, bytes);
        Ok(Some((block, lane.pool.for_reading(block, entry.len))))
    }

    #[cold]
    fn is_too_long<W: Ways>(&mut self, block: u16, cache: &W::Cache) -> Violation {
        self.give_back::<W>(block, 0, 0, cache);
        Violation::Length
    }

    /// Whether the own filter lets a packet through; if not, its block has gone back.
    #[cold]
    fn is_wanted<W: Ways>(&mut self, block: u16, packet: Span, cache: &W::Cache) -> bool {
        let is_wanted = self.filter.passes_foreign(packet);
        if !is_wanted {
            self.unwanted = self.unwanted.wrapping_add(1);
            self.lane.counts.at(statistics::UNWANTED).set(self.unwanted);
            self.give_back::<W>(block, 0, 0, cache);
        }
        is_wanted
    }

    /// A held block, for the answer in it.
    pub(super) fn answer(&self, block: u16) -> Option<Span> {
        let pool = &self.lane.pool;
        (block < pool.count()).then(|| pool.for_writing(block))
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
        let book = self.lane::<W>().book(books, block);
        let Some(book) = book.filter(|book| book.state == State::Held) else {
            return false;
        };
        book.state = State::Free;
        self.held = self.held.wrapping_sub(1);
        let (len, flags) = match reply {
            Some(len) if W::USES.replies => (len.min(self.lane.pool.size()), REPLY),
            _ => (0, 0),
        };
        if W::USES.replies && self.has_replies {
            self.lane.pool.is_written(block, len);
            self.clean_block(block, cache);
        }
        self.give_back::<W>(block, len, flags, cache);
        true
    }

    /// Writes all of a block back, sent or not: later, it would go over the next packet.
    fn clean_block(&self, block: u16, cache: &impl Cache) {
        let (at, bytes) = self.lane.pool.bytes(block, self.lane.pool.size());
        cache.clean(at, bytes);
    }

    /// Puts a block into the ring of returns.
    #[inline(always)]
    fn give_back<W: Ways>(&mut self, block: u16, len: u32, flags: u32, cache: &W::Cache) {
        let entry = Entry {
            word: u32::from(block) | self.tag,
            len,
            flags,
        };
        let lane = self.lane::<W>();
        // Length and flags of a return are of an answer.
        let at = match W::USES.replies {
            true => self.returns.put::<4>(lane.returns, entry, cache),
            false => self.returns.put::<2>(lane.returns, entry, cache),
        };
        self.returns.show(lane.returns, at, cache);
        lane.counts.at(statistics::RELEASED).set(at.wrapping_add(1));
    }

    /// Drops the mark of a block of an earlier session whose view is gone.
    #[cold]
    pub(super) fn forget<W: Ways>(&mut self, books: &mut [Block], block: u16, cache: &W::Cache) {
        let book = self.lane::<W>().book(books, block);
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
    pub(super) fn flush(&mut self, cache: &impl Cache) -> bool {
        self.flushed != self.returns.at() && self.look_after(cache)
    }

    /// As `flush`, after a return.
    #[inline(always)]
    pub(super) fn look_after(&mut self, cache: &impl Cache) -> bool {
        let (from, to) = (self.flushed, self.returns.at());
        self.flushed = to;
        full_fence(RETURN_LOOK_FENCE);
        let theirs = self.lane.theirs;
        invalidate(&theirs, cache);
        let wake = theirs.at(control::WAKE_RETURNS).get();
        passes(wake, from, to)
    }

    /// Whether `count` entries wait; more than a ring holds never do, and count as all of it.
    #[inline(always)]
    pub(super) fn has_news<W: Ways>(&self, count: u32, cache: &W::Cache) -> bool {
        let ahead = self.ahead::<W>(count);
        self.ring.has_news(self.lane::<W>().ring, ahead, cache)
    }

    /// How far ahead the last of `count` entries lies.
    #[inline(always)]
    fn ahead<W: Ways>(&self, count: u32) -> u32 {
        count.clamp(1, u32::from(self.lane::<W>().pool.count()).max(1)) - 1
    }

    /// Asks the peer to ring when `count` more packets are there. The fence after it is the
    /// caller's.
    pub(super) fn arm<W: Ways>(&self, count: u32) {
        let wake = self.ring.at().wrapping_add(self.ahead::<W>(count));
        self.lane.mine.at(control::WAKE_PACKETS).set(wake);
    }

    /// Writes the own control line back, with both wake words in it.
    pub(super) fn clean_control(&self, cache: &impl Cache) {
        clean(&self.lane.mine, cache);
        clean(&self.lane.counts, cache);
    }

    /// Sets which packets are wanted, here and, as an optimisation, at the sender.
    pub(super) fn set_filter(&mut self, predicate: Predicate, cache: &impl Cache) {
        self.filter = Filter::new(predicate, self.filter.version().wrapping_add(2));
        self.filter.publish(&self.lane.mine, cache);
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

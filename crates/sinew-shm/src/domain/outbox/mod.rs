//! One side's sending half of a channel: its blocks, and who has them.
//!
//! The truth about every block is here, in private memory: it is free, held (a place in the user's
//! hand), lent (to the peer), or answered (back with a reply that nobody has read yet). A return is
//! accepted for a lent block only.

use super::Violation;
use super::books::{Block, NONE, State};
use super::filter::Filter;
use super::lane::Lane;
use super::layout::{NEXT_SHIFT, control, statistics};
use super::port::{Cache, Ways, invalidate};
use super::ring::{Entry, RingReader, RingWriter, passes, tag};
use crate::word::{PUBLISH_FENCE, Span, full_fence};

mod blocks;
mod returns;

/// From this size on a block that came back is used before one that was not used yet, because
/// what the caches hold of it is worth more than the look at the ring of returns.
const LARGE: u32 = 2048;

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

pub(in crate::domain) struct Outbox {
    lane: Lane,
    ring: RingWriter,
    returns: RingReader,
    /// A whole word of its own: as a half, next to one that was just written, it would be loaded
    /// together with that, which waits until the store is done.
    tag: u32,
    is_large: bool,
    has_replies: bool,
    /// The free blocks stand in line, first and last. What comes back goes behind: so the next block
    /// is known early, and the peer is told, see `Outbox::next`. A large one goes first, as more of
    /// it is in the caches.
    free_line: (u16, u16),
    free: u32,
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
    pub(super) fn new<W: Ways>(lane: Lane, has_replies: bool, books: &mut [Block]) -> Outbox {
        let mut outbox = Outbox {
            lane,
            ring: RingWriter::default(),
            returns: RingReader::default(),
            tag: 0,
            is_large: lane.pool.size() >= LARGE,
            has_replies,
            free_line: (NONE, NONE),
            free: 0,
            answers: (NONE, NONE),
            last: 0,
            flushed: 0,
            filter: Filter::default(),
            full: 0,
            too_large: 0,
            filtered: 0,
        };
        for block in 0..outbox.lane::<W>().pool.count() {
            outbox.free::<W>(books, block);
        }
        outbox
    }

    #[inline(always)]
    fn lane<W: Ways>(&self) -> Lane {
        self.lane.out::<W>()
    }

    /// Takes every lent block back, and empties the ring for a session of one's own.
    pub(super) fn reset<W: Ways>(&mut self, session: u32, books: &mut [Block], cache: &W::Cache) {
        let lane = self.lane::<W>();
        for block in 0..lane.pool.count() {
            let state = lane.book(books, block).map(|book| book.state);
            if matches!(state, Some(State::Lent)) {
                self.free::<W>(books, block);
            }
        }
        // Answers that nobody is reading: the line holds all of them.
        while W::USES.replies && self.answers.0 != NONE {
            let Some(block) = self.next_answer(books) else {
                break;
            };
            self.free::<W>(books, block.0);
        }
        self.tag = tag(session);
        self.ring.reset(lane.ring, cache);
        self.returns.reset();
        self.flushed = 0;
        self.filter = Filter::default();
        lane.mine.at(control::WAKE_RETURNS).set(u32::MAX);
        lane.counts.at(statistics::SENT).set(0);
        lane.counts.at(statistics::RECLAIMED).set(0);
    }

    /// A block that this side holds.
    pub(super) fn block(&self, block: u16) -> Option<Span> {
        let pool = &self.lane.pool;
        (block < pool.count()).then(|| pool.for_writing(block))
    }

    /// Bytes of a block.
    #[inline(always)]
    pub(super) fn size<W: Ways>(&self) -> u32 {
        self.lane::<W>().pool.size()
    }

    /// Whether the peer has blocks of this side's.
    pub(super) fn lends(&self, books: &[Block]) -> bool {
        let mut books = self.lane.books(books).iter();
        self.free < u32::from(self.lane.pool.count()) && books.any(|book| book.state == State::Lent)
    }

    /// Whether returns may come: of all that was sent, one was not taken up.
    #[inline(always)]
    fn is_owed(&self) -> bool {
        self.ring.at() != self.returns.at()
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
        if len > self.lane::<W>().pool.size() as usize {
            self.cancel::<W>(books, block, cache);
            return Err(Denied::TooLarge);
        }
        let len = len as u32;
        let book = self.lane::<W>().book(books, block);
        let Some(book) = book.filter(|book| book.state == State::Held) else {
            return Err(Denied::TooLarge);
        };
        book.state = State::Lent;
        if W::USES.filters && self.filter.is_set() {
            // SAFETY: the block was held by who sends it, and is not written while it is looked at.
            let packet = unsafe { self.lane::<W>().pool.for_reading(block, len).slice() };
            if !self.is_wanted(packet, cache) {
                self.free::<W>(books, block);
                return Ok(false);
            }
        }
        // Of a batch the first entry is shown last, by `flush`: until then the peer does not look at
        // the lines that are being written.
        let at = self.lend::<W>(block, len, cache);
        if at != self.flushed {
            let ring = self.lane::<W>().ring;
            self.ring.show(ring, at, cache);
        }
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
        cache: &W::Cache,
    ) -> Result<(bool, bool), Denied> {
        let pool = self.lane::<W>().pool;
        if packet.len() > pool.size() as usize {
            return Err(self.is_too_large());
        }
        let from = self.flushed;
        let written = match W::USES.replies && self.has_replies {
            // By the peer, for an answer.
            true => pool.size(),
            false => packet.len() as u32,
        };
        let block = self.pop::<W>(books, reserve, (State::Lent, written), cache)?;
        if W::USES.filters && self.filter.is_set() && !self.is_wanted(packet, cache) {
            self.free::<W>(books, block);
            return Ok((false, self.flush::<W>(cache)));
        }
        let place = pool.for_writing(block);
        // SAFETY: the block was free a moment ago, and nobody else is told of it before the entry.
        unsafe { place.fill_from(packet) };
        let at = self.lend::<W>(block, packet.len() as u32, cache);
        let ring = self.lane::<W>().ring;
        self.ring.show(ring, at, cache);
        if at != from {
            self.ring.show(ring, from, cache);
        }
        let is_awaited = self.look_after::<W>(from, at.wrapping_add(1), cache);
        Ok((true, is_awaited))
    }

    /// Writes the entry of a block that is lent from now on, not yet to be seen. Its position.
    #[inline(always)]
    fn lend<W: Ways>(&mut self, block: u16, len: u32, cache: &W::Cache) -> u32 {
        // Where the peer answers in the block, nothing of it stays in this side's cache: written
        // back later, it would go over the answer.
        let is_answered = W::USES.replies && self.has_replies;
        let pool = self.lane::<W>().pool;
        let written = if is_answered { pool.size() } else { len };
        pool.is_written(block, len);
        let (at, bytes) = pool.bytes(block, written);
        cache.clean(at, bytes);
        let entry = Entry {
            word: u32::from(block) | self.tag,
            len,
            flags: self.next::<W>() << NEXT_SHIFT,
        };
        if W::USES.replies {
            self.last = block;
        }
        let at = self.ring.put::<4>(self.lane::<W>().ring, entry, cache);
        self.lane::<W>()
            .counts
            .at(statistics::SENT)
            .set(at.wrapping_add(1));
        at
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
        let theirs = self.lane.theirs;
        invalidate(&theirs, cache);
        self.filter.refresh(&theirs);
        let is_wanted = self.filter.passes(packet);
        if !is_wanted {
            self.filtered = self.filtered.wrapping_add(1);
            self.lane.counts.at(statistics::FILTERED).set(self.filtered);
        }
        is_wanted
    }

    /// Shows the peer what was sent since the last call; whether it waits for one of these packets.
    #[inline(always)]
    pub(super) fn flush<W: Ways>(&mut self, cache: &W::Cache) -> bool {
        let (from, to) = (self.flushed, self.ring.at());
        if from == to {
            return false;
        }
        self.ring.show(self.lane::<W>().ring, from, cache);
        self.look_after::<W>(from, to, cache)
    }

    /// Whether the peer waits for an entry between two positions, which have just been shown.
    #[inline(always)]
    fn look_after<W: Ways>(&mut self, from: u32, to: u32, cache: &W::Cache) -> bool {
        self.flushed = to;
        full_fence(PUBLISH_FENCE);
        let theirs = self.lane.theirs;
        invalidate(&theirs, cache);
        let wake = theirs.at(control::WAKE_PACKETS).get();
        if W::USES.filters {
            self.filter.refresh(&theirs);
        }
        passes(wake, from, to)
    }

    /// Everything that a later call depends on.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(super) fn digest(&self) -> [u32; 8] {
        [
            self.tag,
            self.ring.at(),
            self.returns.at(),
            self.flushed,
            self.free_line.0.into(),
            self.free,
            self.answers.0.into(),
            self.answers.1.into(),
        ]
    }
}

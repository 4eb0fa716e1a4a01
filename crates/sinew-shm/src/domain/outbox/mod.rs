//! One side's sending half of a channel: its blocks, and who has them.
//!
//! The truth about every block is here, in private memory: it is free, held (a place in the user's
//! hand), lent (to the peer), or answered (back with a reply that nobody has read yet). A return is
//! accepted for a lent block only.

use super::Violation;
use super::books::{Block, NONE, State};
use super::filter::Filter;
use super::layout::{NEXT_SHIFT, control, statistics};
use super::port::{Cache, Ways, invalidate};
use super::ring::{Entry, RingReader, RingWriter, passes, tag};
use crate::word::{BlockArea, PUBLISH_FENCE, PublishFence, Span, Words};

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
            self.cancel::<W>(books, block, cache);
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
        let written = match W::USES.replies && self.has_replies {
            // By the peer, for an answer.
            true => pool.size(),
            false => packet.len() as u32,
        };
        let block = self.pop::<W>(books, reserve, (State::Lent, written), cache)?;
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
        self.pool.is_written(block, len);
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
        invalidate(&self.theirs, cache);
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
        invalidate(&self.theirs, cache);
        let wake = self.theirs.at(control::WAKE_PACKETS).get();
        if W::USES.filters {
            self.filter.refresh(&self.theirs);
        }
        passes(wake, from, to)
    }

    fn count(&self) {
        self.counts.at(statistics::SENT).set(self.ring.at());
        self.counts.at(statistics::RECLAIMED).set(self.returns.at());
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

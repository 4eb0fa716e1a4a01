//! A ring of entries from one side to the other: packets, or returns.
//!
//! Positions run freely. An entry carries its position + 1, stored last with release: one look at
//! one line tells whether it is there and what it says. Where the entry of the lap before still
//! stands, nothing has come; anything else is a violation. The ring has at least as many entries as
//! there are blocks, so the writer never overtakes the reader: there is no other limit to look at.

use super::Violation;
use super::layout::entry::{BLOCK, FLAGS, LEN, SEQUENCE};
use super::port::Cache;
use crate::word::{ENTRY_LOAD, ENTRY_STORE, RESET_STORE, RingArea};

/// What an entry says. Of a foreign one nothing is checked yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The block, and the [`tag`] of its owner's session in the upper half.
    pub word: u32,
    pub len: u32,
    pub flags: u32,
}

impl Entry {
    /// The block, where the entry is of the session with this tag, and the block is one of `count`.
    #[inline(always)]
    pub(super) fn block(&self, tag: u32, count: u16) -> Option<u16> {
        // Of another session the upper half is not 0, and so it is none of the blocks either.
        let block = self.word ^ tag;
        (block < u32::from(count)).then_some(block as u16)
    }

    /// What is wrong with an entry whose block is none of those: `other`, where it is of this session.
    #[cold]
    pub(super) fn wrong(&self, tag: u32, other: Violation) -> Violation {
        match (self.word ^ tag) >> 16 {
            0 => other,
            _ => Violation::Session,
        }
    }
}

/// How entries of a session are marked: its low half, in the upper half of the word beside the block.
pub(super) fn tag(session: u32) -> u32 {
    session << 16
}

/// What stands at the reader's position.
pub(super) enum Look {
    Empty,
    New(Entry),
    /// Neither this lap's entry nor the last one's.
    Garbage,
}

/// The writing side of a ring. Each call is given where the ring lies, always the same place.
#[derive(Default)]
pub(super) struct RingWriter {
    /// Position of the next entry.
    at: u32,
}

impl RingWriter {
    #[inline(always)]
    pub(super) fn at(&self) -> u32 {
        self.at
    }

    /// Empties the ring for a new session. Its steps are bounded by the own capacity.
    ///
    /// The peer may be reading at this moment, in the session before: whoever sees an emptied entry
    /// sees the new session as well, and an entry that was found there keeps its length and flags.
    /// The block's tag goes, so that no position of 2^32 takes what stood there for its own.
    pub(super) fn reset(&mut self, area: RingArea, cache: &impl Cache) {
        let capacity = area.capacity();
        for position in 0..capacity {
            let words = area.entry(position);
            words[BLOCK].store(0, RESET_STORE);
            let last_lap = position.wrapping_add(1).wrapping_sub(capacity);
            words[SEQUENCE].store(last_lap, RESET_STORE);
            let (at, len) = area.bytes(position);
            cache.clean(at, len);
        }
        self.at = 0;
    }

    /// Writes an entry that the reader does not see before [`RingWriter::show`], nor anything behind
    /// it. Its position. Of its `WORDS` the last, length and flags, may be left out where nobody reads
    /// them.
    #[inline(always)]
    pub(super) fn put<const WORDS: usize>(
        &mut self,
        area: RingArea,
        entry: Entry,
        cache: &impl Cache,
    ) -> u32 {
        let position = self.at;
        let words = area.entry(position);
        let (at, len) = area.bytes(position);
        words[BLOCK].set(entry.word);
        if WORDS > LEN {
            words[LEN].set(entry.len);
        }
        if WORDS > FLAGS {
            words[FLAGS].set(entry.flags);
        }
        // The words must be in memory before the number is.
        cache.clean(at, len);
        self.at = position.wrapping_add(1);
        position
    }

    /// Shows the entry at this position, and what follows it.
    #[inline(always)]
    pub(super) fn show(&self, area: RingArea, position: u32, cache: &impl Cache) {
        let (at, len) = area.bytes(position);
        let sequence = &area.entry(position)[SEQUENCE];
        sequence.store(position.wrapping_add(1), ENTRY_STORE);
        cache.clean(at, len);
    }
}

/// The reading side of a ring. Each call is given where the ring lies, always the same place.
#[derive(Default)]
pub(super) struct RingReader {
    /// Position of the next entry.
    at: u32,
}

impl RingReader {
    #[inline(always)]
    pub(super) fn at(&self) -> u32 {
        self.at
    }

    pub(super) fn reset(&mut self) {
        self.at = 0;
    }

    /// Whether something other than the lap before stands here and `ahead` positions on: the first
    /// entry of a batch is shown last.
    #[inline(always)]
    pub(super) fn has_news(&self, area: RingArea, ahead: u32, cache: &impl Cache) -> bool {
        self.stands(area, 0, cache) && (ahead == 0 || self.stands(area, ahead, cache))
    }

    #[inline(always)]
    fn stands(&self, area: RingArea, ahead: u32, cache: &impl Cache) -> bool {
        let position = self.at.wrapping_add(ahead);
        let (at, len) = area.bytes(position);
        cache.invalidate(at, len);
        area.entry(position)[SEQUENCE].get() != self.last_lap(area).wrapping_add(ahead)
    }

    /// What stands at the position: so many `WORDS` of it, each read once; 0 for the others.
    #[inline(always)]
    pub(super) fn look<const WORDS: usize>(&self, area: RingArea, cache: &impl Cache) -> Look {
        let words = area.entry(self.at);
        let (at, len) = area.bytes(self.at);
        cache.invalidate(at, len);
        let sequence = words[SEQUENCE].load(ENTRY_LOAD);
        if sequence != self.at.wrapping_add(1) {
            return if sequence == self.last_lap(area) {
                Look::Empty
            } else {
                Look::Garbage
            };
        }
        // The line may have been fetched before its other words were there.
        cache.invalidate(at, len);
        Look::New(Entry {
            word: words[BLOCK].get(),
            len: if WORDS > LEN { words[LEN].get() } else { 0 },
            flags: if WORDS > FLAGS { words[FLAGS].get() } else { 0 },
        })
    }

    /// Goes on from this position, where the reader is, to the next.
    #[inline(always)]
    pub(super) fn advance(&mut self, from: u32) -> u32 {
        self.at = from.wrapping_add(1);
        self.at
    }

    #[inline(always)]
    fn last_lap(&self, area: RingArea) -> u32 {
        self.at.wrapping_add(1).wrapping_sub(area.capacity())
    }
}

/// Whether a wake word lies among the positions `from..to` that have just been published.
#[inline(always)]
pub(super) fn passes(wake: u32, from: u32, to: u32) -> bool {
    wake.wrapping_sub(from) < to.wrapping_sub(from)
}

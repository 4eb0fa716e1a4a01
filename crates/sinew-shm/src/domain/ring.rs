//! A ring of entries from one side to the other: packets, or returns.
//!
//! Positions run freely. An entry carries its position + 1, stored last with release: one look at
//! one line tells whether it is there and what it says. Where the entry of the lap before still
//! stands, nothing has come; anything else is a violation. The ring has at least as many entries as
//! there are blocks, so the writer never overtakes the reader: there is no other limit to look at.

use super::layout::entry::{BLOCK, FLAGS, LEN, SEQUENCE};
use super::port::Cache;
use crate::word::{ENTRY_LOAD, ENTRY_STORE, RESET_STORE, RingArea};

/// What an entry says. Of a foreign one nothing is checked yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub block: u16,
    /// Of the session of the block's owner, see [`tag`].
    pub tag: u32,
    pub len: u32,
    pub flags: u32,
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

/// The writing side of a ring.
pub(super) struct RingWriter {
    area: RingArea,
    /// Position of the next entry.
    at: u32,
}

impl RingWriter {
    pub(super) fn new(area: RingArea) -> RingWriter {
        RingWriter { area, at: 0 }
    }

    #[inline(always)]
    pub(super) fn at(&self) -> u32 {
        self.at
    }

    /// Empties the ring for a new session. Its steps are bounded by the own capacity.
    ///
    /// The peer may be reading at this moment, in the session before: whoever sees an emptied entry
    /// sees the new session as well, and an entry that was found there keeps its length and flags.
    /// The block's tag goes, so that no position of 2^32 takes what stood there for its own.
    pub(super) fn reset(&mut self, cache: &impl Cache) {
        let capacity = self.area.capacity();
        for position in 0..capacity {
            let words = self.area.entry(position);
            words[BLOCK].store(0, RESET_STORE);
            let last_lap = position.wrapping_add(1).wrapping_sub(capacity);
            words[SEQUENCE].store(last_lap, RESET_STORE);
            let (at, len) = self.area.bytes(position);
            cache.clean(at, len);
        }
        self.at = 0;
    }

    /// Publishes an entry. The position of the next one.
    #[inline(always)]
    pub(super) fn put(&mut self, entry: Entry, cache: &impl Cache) -> u32 {
        let at = self.put_hidden(entry, cache);
        self.show(at, cache);
        at.wrapping_add(1)
    }

    /// Writes an entry that the reader does not see before [`RingWriter::show`], nor anything behind
    /// it. Its position.
    #[inline(always)]
    pub(super) fn put_hidden(&mut self, entry: Entry, cache: &impl Cache) -> u32 {
        let position = self.at;
        let words = self.area.entry(position);
        let (at, len) = self.area.bytes(position);
        words[BLOCK].set(u32::from(entry.block) | entry.tag);
        words[LEN].set(entry.len);
        words[FLAGS].set(entry.flags);
        // The words must be in memory before the number is.
        cache.clean(at, len);
        self.at = position.wrapping_add(1);
        position
    }

    /// Shows the entry at this position, and what follows it.
    #[inline(always)]
    pub(super) fn show(&self, position: u32, cache: &impl Cache) {
        let (at, len) = self.area.bytes(position);
        let sequence = &self.area.entry(position)[SEQUENCE];
        sequence.store(position.wrapping_add(1), ENTRY_STORE);
        cache.clean(at, len);
    }
}

/// The reading side of a ring.
pub(super) struct RingReader {
    area: RingArea,
    /// Position of the next entry.
    at: u32,
}

impl RingReader {
    pub(super) fn new(area: RingArea) -> RingReader {
        RingReader { area, at: 0 }
    }

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
    pub(super) fn has_news(&self, ahead: u32, cache: &impl Cache) -> bool {
        self.stands(0, cache) && (ahead == 0 || self.stands(ahead, cache))
    }

    #[inline(always)]
    fn stands(&self, ahead: u32, cache: &impl Cache) -> bool {
        let position = self.at.wrapping_add(ahead);
        let (at, len) = self.area.bytes(position);
        cache.invalidate(at, len);
        self.area.entry(position)[SEQUENCE].get() != self.last_lap().wrapping_add(ahead)
    }

    /// What stands at the position; not `WHOLE`: without length and flags. Each word is read once.
    #[inline(always)]
    pub(super) fn look<const WHOLE: bool>(&self, cache: &impl Cache) -> Look {
        let words = self.area.entry(self.at);
        let (at, len) = self.area.bytes(self.at);
        cache.invalidate(at, len);
        let sequence = words[SEQUENCE].load(ENTRY_LOAD);
        if sequence != self.at.wrapping_add(1) {
            return if sequence == self.last_lap() {
                Look::Empty
            } else {
                Look::Garbage
            };
        }
        // The line may have been fetched before its other words were there.
        cache.invalidate(at, len);
        let block = words[BLOCK].get();
        Look::New(Entry {
            block: block as u16,
            tag: block & !0xFFFF,
            len: if WHOLE { words[LEN].get() } else { 0 },
            flags: if WHOLE { words[FLAGS].get() } else { 0 },
        })
    }

    /// Goes on to the next position.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> u32 {
        self.at = self.at.wrapping_add(1);
        self.at
    }

    #[inline(always)]
    fn last_lap(&self) -> u32 {
        self.at.wrapping_add(1).wrapping_sub(self.area.capacity())
    }
}

/// Whether a wake word lies among the positions `from..to` that have just been published.
#[inline(always)]
pub(super) fn passes(wake: u32, from: u32, to: u32) -> bool {
    wake.wrapping_sub(from) < to.wrapping_sub(from)
}

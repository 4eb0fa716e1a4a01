//! Which packets a receiver wants: a plain predicate that the sender evaluates as well, so that
//! what is not wanted costs no entry, no doorbell and no wake-up.
//!
//! It is data, never code, and the sender takes it as a wish: whatever its words say, only its own
//! packet is looked at. The receiver looks again at what arrives, so a sender that ignores the wish
//! changes nothing.

use super::layout::control::{FILTER, FILTER_KIND, FILTER_MASK, FILTER_OFFSET, FILTER_VALUE};
use super::port::{Cache, clean};
use crate::word::{FILTER_LOAD, FILTER_STORE, Span, Words};

/// What a receiver wants to see. Everything else is dropped by the sender, and counted there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Predicate {
    /// Every packet.
    #[default]
    All,
    /// Packets whose little-endian word at byte `offset` is `value` in the bits of `mask`. Shorter
    /// packets are not wanted.
    Matches {
        /// In bytes from the packet's start.
        offset: u32,
        /// The bits that count.
        mask: u32,
        /// What they are to be.
        value: u32,
    },
    /// Every n-th packet, beginning with the n-th; 0 and 1 are every one. Counted by the sender, from
    /// the moment it sees the wish.
    Every(u32),
}

/// A predicate, and how far its count is.
#[derive(Clone, Copy, Default)]
pub(super) struct Filter {
    predicate: Predicate,
    /// Which version of the peer's words this is.
    version: u32,
    seen: u32,
}

impl Filter {
    pub(super) fn new(predicate: Predicate, version: u32) -> Filter {
        Filter {
            predicate,
            version,
            seen: 0,
        }
    }

    pub(super) fn version(&self) -> u32 {
        self.version
    }

    #[inline(always)]
    pub(super) fn is_set(&self) -> bool {
        self.predicate != Predicate::All
    }

    /// At the sender: whether its packet is wanted.
    pub(super) fn passes(&mut self, packet: &[u8]) -> bool {
        match self.predicate {
            Predicate::All => true,
            Predicate::Matches {
                offset,
                mask,
                value,
            } => {
                let rest = packet.get(offset as usize..).unwrap_or_default();
                rest.first_chunk()
                    .is_some_and(|word| (u32::from_le_bytes(*word) ^ value) & mask == 0)
            }
            Predicate::Every(n) => {
                self.seen = self.seen.wrapping_add(1);
                let wanted = self.seen >= n;
                if wanted {
                    self.seen = 0;
                }
                wanted
            }
        }
    }

    /// At the receiver, which cannot count what it does not see.
    pub(super) fn passes_foreign(&self, packet: Span) -> bool {
        match self.predicate {
            Predicate::Matches {
                offset,
                mask,
                value,
            } => packet
                .word(offset as usize)
                .is_some_and(|word| (word ^ value) & mask == 0),
            _ => true,
        }
    }

    /// Takes up what the peer wants now. Words that change meanwhile are taken up next time; until
    /// then every packet is sent, and the receiver looks itself.
    #[inline(always)]
    pub(super) fn refresh(&mut self, theirs: &Words) {
        let version = theirs.at(FILTER).load(FILTER_LOAD);
        if version != self.version {
            self.read(theirs, version);
        }
    }

    #[cold]
    fn read(&mut self, theirs: &Words, version: u32) {
        let word = |index| theirs.at(index).load(FILTER_LOAD);
        let predicate = match word(FILTER_KIND) {
            1 => Predicate::Matches {
                offset: word(FILTER_OFFSET),
                mask: word(FILTER_MASK),
                value: word(FILTER_VALUE),
            },
            2 => Predicate::Every(word(FILTER_VALUE)),
            _ => Predicate::All,
        };
        let whole = version.is_multiple_of(2) && theirs.at(FILTER).get() == version;
        *self = if whole {
            Filter::new(predicate, version)
        } else {
            // Not the peer's version, so that it is read again.
            Filter::new(Predicate::All, version.wrapping_sub(1))
        };
    }

    /// Takes back what an earlier user of the segment wished. The line is written back by the caller.
    pub(super) fn clear(mine: &Words) {
        mine.at(FILTER_KIND).store(0, FILTER_STORE);
        mine.at(FILTER).store(0, FILTER_STORE);
    }

    /// Writes the wish where the sender looks.
    pub(super) fn publish(&self, mine: &Words, cache: &impl Cache) {
        let (kind, offset, mask, value) = match self.predicate {
            Predicate::All => (0, 0, 0, 0),
            Predicate::Matches {
                offset,
                mask,
                value,
            } => (1, offset, mask, value),
            Predicate::Every(n) => (2, 0, 0, n),
        };
        mine.at(FILTER).set(self.version.wrapping_sub(1));
        clean(mine, cache);
        // Release each: who sees one of them sees the odd count as well.
        mine.at(FILTER_KIND).store(kind, FILTER_STORE);
        mine.at(FILTER_OFFSET).store(offset, FILTER_STORE);
        mine.at(FILTER_MASK).store(mask, FILTER_STORE);
        mine.at(FILTER_VALUE).store(value, FILTER_STORE);
        clean(mine, cache);
        mine.at(FILTER).store(self.version, FILTER_STORE);
        clean(mine, cache);
    }
}

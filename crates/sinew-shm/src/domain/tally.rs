//! What a side counts of one channel for observers, besides the positions in its rings.

use super::layout::statistics;
use super::memory::Memory;
use super::observe::Counts;
use crate::word::Words;

/// The statistics line of a channel, and the counts that only this side knows.
pub(super) struct Tally {
    line: Words,
    violations: u32,
    rung: u32,
    cleared: u32,
}

impl Tally {
    /// The line at this offset of the own segment, all 0: an earlier user of the segment counted there.
    pub(super) fn new(memory: &Memory, at: u32) -> Option<Tally> {
        let line = memory.mine.words(at)?;
        (0..16).for_each(|word| line.at(word).set(0));
        Some(Tally {
            line,
            violations: 0,
            rung: 0,
            cleared: 0,
        })
    }

    /// The line, for the other counts.
    #[inline(always)]
    pub(super) fn line(&self) -> Words {
        self.line
    }

    /// All of them, as an observer has them.
    pub(super) fn counts(&self) -> Counts {
        let mut words = [0; 16];
        for (at, word) in words.iter_mut().enumerate() {
            *word = self.line.at(at).get();
        }
        Counts::of(&words)
    }

    /// Begins to count rings: positions begin anew as well, and one is compared with the other.
    pub(super) fn reset_rings(&mut self) {
        self.rung = 0;
        self.line.at(statistics::RUNG).set(0);
    }

    /// Counts a ring of the doorbell: `true`.
    #[cold]
    #[cfg_attr(target_pointer_width = "32", inline(never))] // there code is scarcer than time
    pub(super) fn count_ring(&mut self) -> bool {
        self.rung = self.rung.wrapping_add(1);
        self.line.at(statistics::RUNG).set(self.rung);
        true
    }

    /// Counts bytes that were cleared, so that the next peer does not find what was for another.
    pub(super) fn count_cleared(&mut self, bytes: u32) {
        if bytes == 0 {
            return;
        }
        self.cleared = self.cleared.wrapping_add(bytes);
        self.line.at(statistics::CLEARED).set(self.cleared);
    }

    /// Counts that the peer broke the protocol.
    pub(super) fn count_violation(&mut self) {
        self.violations = self.violations.wrapping_add(1);
        self.line.at(statistics::VIOLATIONS).set(self.violations);
    }
}

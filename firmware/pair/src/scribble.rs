//! Garbage in the own segment: what no side may write, and what each must stand of the other.

use sinew_shm::domain::{Doorbell, Role};

use crate::{Chip, chip};

/// The lines of a segment that say who is there, in bytes.
const WHO_IS_THERE: u32 = 0x100;

/// Strokes that look random, the same from the same seed (xorshift).
pub(crate) struct Scribbler {
    random: u32,
    /// Bytes at the beginning that it does not touch.
    spared: u32,
}

impl Scribbler {
    /// From a seed that is not 0. An even one spares [`WHO_IS_THERE`], so that the link stays up and its rings are
    /// hit: else it is soon over with it.
    pub fn new(seed: u32) -> Scribbler {
        Scribbler {
            random: seed,
            spared: if seed.is_multiple_of(2) {
                WHO_IS_THERE
            } else {
                0
            },
        }
    }

    fn next(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    /// Spoils one word of this side's segment and rings the peer; or, more often, does nothing, so that the link comes up
    /// in between.
    pub fn stroke<C: Chip>(&mut self, role: Role) {
        let (at, kind, value) = (self.next(), self.next(), self.next());
        if kind % 16 >= 4 {
            return;
        }
        chip::scribble::<C>(role, at, self.spared, |word| match kind % 4 {
            0 => value,
            1 => word ^ 1 << (value % 32),
            2 => word.wrapping_add(1),
            _ => value % 64,
        });
        C::DOORBELL.ring();
    }
}

//! What the search must find: a protocol with something left out. And memory that is cleared.

use std::cell::Cell;

use super::super::layout::{self, ENTRY, SESSION, session};
use super::world::{Arena, Mutant, Op, ROLES, World};

/// Stores that a mutant does not make: to these addresses and lengths, of this value or of any.
#[derive(Clone, Copy)]
struct LeftOut {
    places: [(usize, usize); 2],
    value: Option<u32>,
}

std::thread_local! {
    static LEFT_OUT: Cell<LeftOut> = const {
        Cell::new(LeftOut {
            places: [(0, 0); 2],
            value: None,
        })
    };
}

impl Arena {
    /// Whether a store is made, where a mutant leaves some out of a call.
    pub(super) fn keep(&self, index: usize, op: Op) -> Option<fn(usize, u32) -> bool> {
        let base = self.segments[index].base().addr().get();
        let word = |line: u32, word: usize| (base + line as usize + 4 * word, 4);
        let parts = layout::parts(&self.model.config, ROLES[index], 0);
        let ring = |at: u32, log2: u32| (base + at as usize, (ENTRY as usize) << log2);
        let is_opening = matches!(op, Op::Open | Op::Gone | Op::Renew);
        let (places, value) = match self.model.mutant {
            Mutant::Rings if op == Op::Look => {
                let packets = ring(parts.ring, parts.ring_log2);
                ([packets, ring(parts.returns, parts.returns_log2)], None)
            }
            Mutant::Acknowledgement if is_opening => {
                ([word(SESSION, session::ACKNOWLEDGED), (0, 0)], Some(0))
            }
            _ => return None,
        };
        LEFT_OUT.set(LeftOut { places, value });
        Some(|at, value| {
            let left_out = LEFT_OUT.get();
            let is_there = |&(from, len): &(usize, usize)| (from..from + len).contains(&at);
            let is_value = left_out.value.is_none_or(|other| other == value);
            !(is_value && left_out.places.iter().any(is_there))
        })
    }

    /// What a side that opens finds, where that is not what stood there.
    pub(super) fn before(&self, index: usize, op: Op) {
        if op != Op::Open {
            return;
        }
        let mine = self.plain(index);
        if self.model.forgets {
            mine.fill(0);
        }
        let session = &mut mine[SESSION as usize / 4 + session::SESSION];
        if self.model.mutant == Mutant::Session && *session != 0 {
            // So that the next one is the last one again, for which the peer must not know it.
            *session -= 1;
            self.plain(1 - index)[SESSION as usize / 4 + session::ACKNOWLEDGED] = 0;
        }
    }

    /// Puts back what [`Arena::before`] hid from the side that opened.
    pub(super) fn after(&self, world: &World, index: usize, op: Op) {
        if op == Op::Open && self.model.mutant == Mutant::Session {
            let at = SESSION as usize / 4 + session::ACKNOWLEDGED;
            self.plain(1 - index)[at] = world.words[1 - index][at];
        }
    }
}

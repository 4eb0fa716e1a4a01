//! One side of a state channel: its own value in four copies, and the peer's.
//!
//! The copies are two pairs. The writer writes into the pair that is not being read, and there into
//! the copy that is not the latest; the reader says which pair it reads before it looks which copy of
//! it is the latest. Words of the control line, each side its own:
//!
//! | word | says |
//! |---|---|
//! | latest | the pair with the latest value (bit 0) |
//! | reading | the pair of the peer's that this side reads (bit 0) |
//! | pairs | of each pair, the latest value: its copy (bits 0 and 1), that there is one (bit 2), its number (the others) |
//!
//! Whoever is neither side reads a copy and then looks at the word of its pair again. If that is the
//! same, the copy was not written meanwhile: the writer goes to the other copy of the pair first, and
//! says so, before it comes back to this one.

use super::super::config::{Channel, Pool, Role};
use super::super::layout::{Parts, state};
use super::super::memory::Memory;
use super::super::plan::ChannelPlan;
use super::super::port::{Cache, clean, invalidate};
use super::super::tally::Tally;
use crate::word::{
    CLEAR_FENCE, CopyArea, RESET_STORE, STATE_LOAD, STATE_READ_FENCE, STATE_STORE,
    STATE_WRITE_FENCE, Segment, Words, full_fence,
};

/// Each pair begins with its other copy.
const FIRST_COPIES: [u16; 2] = [0, 2];
/// A number that is one more.
const ONE: u32 = 1 << state::NUMBER_SHIFT;

pub(in crate::domain) struct StateEnd {
    pub(in crate::domain) id: u16,
    pub(in crate::domain) priority: u8,
    pub(in crate::domain) type_hash: u32,
    mine: CopyArea,
    peer: CopyArea,
    control: Words,
    theirs: Words,
    /// The latest copy of each pair of the own ones.
    latest: [u16; 2],
    /// The number of the latest value as it stands in the own words `pairs`, with the bit.
    number: u32,
    /// The copies may hold something before the first value is set.
    is_soiled: bool,
    tally: Tally,
}

impl StateEnd {
    /// The own side; `None` where the memory does not suffice.
    pub(in crate::domain) fn new(
        channel: &Channel,
        plan: &ChannelPlan,
        role: Role,
        memory: &Memory,
    ) -> Option<StateEnd> {
        let (ours, theirs) = (plan.ours, plan.theirs);
        let (pool, peer_pool) = (channel.pool(role), channel.pool(role.peer()));
        let area = |segment: &Segment, parts: &Parts, pool: Pool| match pool.blocks {
            0 => Some(CopyArea::NONE),
            _ => segment.copies(parts.pool, parts.stride, pool.size),
        };
        Some(StateEnd {
            id: channel.id,
            priority: channel.priority,
            type_hash: channel.type_hash,
            mine: area(&memory.mine, &ours, pool)?,
            peer: area(&memory.peer, &theirs, peer_pool)?,
            control: memory.mine.words(ours.control)?,
            theirs: memory.peer.words(theirs.control)?,
            latest: FIRST_COPIES,
            number: state::IS_SET,
            is_soiled: !memory.is_zeroed,
            tally: Tally::new(memory, ours.statistics)?,
        })
    }

    /// Bytes of the own value, and of the peer's; `None` where that side has none.
    pub(in crate::domain) fn sizes(&self) -> [Option<usize>; 2] {
        [self.mine, self.peer].map(|area| Some(area.size()).filter(|&size| size > 0))
    }

    /// Begins a session: there is no value yet. A reader that finds this finds the new session too.
    pub(in crate::domain) fn reset(&mut self, cache: &impl Cache) {
        let is_dirty = self.is_soiled || self.number != state::IS_SET;
        self.is_soiled = false;
        (self.latest, self.number) = (FIRST_COPIES, state::IS_SET);
        self.control.at(state::LATEST).store(0, RESET_STORE);
        self.control.at(state::READING).set(0);
        for pair in 0..2 {
            self.control.at(state::PAIRS + pair).store(0, RESET_STORE);
        }
        clean(&self.control, cache);
        if is_dirty {
            // Whoever copies from there looks at the session, or at the pair, afterwards.
            full_fence(CLEAR_FENCE);
            self.clear(cache);
        }
    }

    /// Clears the copies that hold something, so that the next peer does not find what was for another.
    #[cold]
    fn clear(&mut self, cache: &impl Cache) {
        for copy in 0..self.mine.count() {
            let span = self.mine.for_clearing(copy);
            if span.is_zero() {
                continue;
            }
            // SAFETY: only this side writes here, and nobody has a reference to it: both sides and
            // observers read by atomic words.
            let cleared = unsafe { span.clear(self.mine.size() as u32) };
            let (at, len) = self.mine.bytes(copy);
            cache.clean(at, len);
            self.tally.count_cleared(cleared);
        }
    }

    /// Makes this the own value. `None` where this side has none, or one of another size.
    ///
    /// Never a second attempt: which copy is free follows from one look at what is read.
    #[inline(always)]
    pub(in crate::domain) fn set(&mut self, value: &[u8], cache: &impl Cache) -> Option<()> {
        let (area, control) = (&self.mine, self.control);
        if value.is_empty() || area.size() != value.len() {
            return None;
        }
        // The value before this one comes before the look at what is read, and before the copy, for
        // observers.
        full_fence(STATE_WRITE_FENCE);
        invalidate(&self.theirs, cache);
        let pair = (!self.theirs.at(state::READING).load(STATE_LOAD) & 1) as usize;
        let copy = (self.latest[pair] ^ 1) & 3;
        // SAFETY: the peer, if it keeps to the protocol, does not read this copy: it reads the other
        // pair, or, where its word came too late for the look above, the other copy of this one,
        // because its fence then comes after the one above, and so it sees the value before this one
        // as the latest. Only this side writes here, under its lock; its memory lives as long as the
        // end. Foreign observers and peers read by atomic words, which these stores are as well.
        unsafe {
            area.for_writing(copy).copy_from(value);
        }
        let (at, len) = area.bytes(copy);
        cache.clean(at, len);
        self.latest[pair] = copy;
        self.number = self.number.wrapping_add(ONE);
        let word = control.at(state::PAIRS + pair);
        word.store(self.number | u32::from(copy), STATE_STORE);
        let latest = control.at(state::LATEST);
        latest.store(pair as u32, STATE_STORE);
        clean(&self.control, cache);
        Some(())
    }

    /// Copies the peer's value into `out`: its number; `None` where there is none yet, or one of
    /// another size.
    ///
    /// Never a second attempt: the copy that is found is not written before the next `get`.
    #[inline(always)]
    pub(in crate::domain) fn get(&self, out: &mut [u8], cache: &impl Cache) -> Option<u32> {
        let area = &self.peer;
        if out.is_empty() || area.size() != out.len() {
            return None;
        }
        invalidate(&self.theirs, cache);
        let latest = self.theirs.at(state::LATEST).get();
        let pair = (latest & 1) as usize;
        // After what was read from the other pair, before the look at this one.
        let reading = self.control.at(state::READING);
        reading.store(latest, STATE_STORE);
        clean(&self.control, cache);
        full_fence(STATE_READ_FENCE);
        invalidate(&self.theirs, cache);
        // Of a peer that begins anew: its session is looked at after this.
        let word = self.theirs.at(state::PAIRS + pair).load(STATE_LOAD);
        if word & state::IS_SET == 0 {
            return None;
        }
        let copy = (word & 3) as u16;
        let (at, len) = area.bytes(copy);
        cache.invalidate(at, len);
        area.for_reading(copy).copy_to(out);
        Some(word >> state::NUMBER_SHIFT)
    }
}

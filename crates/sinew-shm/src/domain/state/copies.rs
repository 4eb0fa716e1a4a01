//! One side of a state channel: its own value in four copies, and the peer's.
//!
//! The copies are two pairs. The writer writes into the pair that is not being read, and there into
//! the copy that is not the latest; the reader says which pair it reads before it looks which copy of
//! it is the latest. Words of the control line, each side its own:
//!
//! | word | says |
//! |---|---|
//! | latest | bit 2: the pair with the latest value; bits 0 and 1: the latest copy of each pair |
//! | reading | the pair of the peer's that this side reads |
//! | versions | the number of the value in each copy, from 1 on; 0 while it is written, and before |

use super::super::config::{Channel, Pool, Role};
use super::super::layout::{COPIES, Parts, state, statistics};
use super::super::memory::Memory;
use super::super::plan::ChannelPlan;
use super::super::port::Cache;
use crate::word::{
    BlockArea, RESET_STORE, STATE_LOAD, STATE_READ_FENCE, STATE_STORE, STATE_VERSION_FENCE,
    STATE_WRITE_FENCE, Segment, Words, full_fence,
};

pub(in crate::domain) struct StateEnd {
    pub(in crate::domain) id: u16,
    pub(in crate::domain) priority: u8,
    pub(in crate::domain) type_hash: u32,
    mine: BlockArea,
    peer: BlockArea,
    control: Words,
    theirs: Words,
    counts: Words,
    /// What the own word `latest` says.
    latest: u32,
    version: u32,
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
        // A side without a value has no copies, and no size.
        let copies = |pool: Pool| match pool.blocks {
            0 => (0, 0),
            _ => (pool.size, COPIES),
        };
        let area = |segment: &Segment, parts: &Parts, (size, copies)| {
            segment.blocks(parts.pool, parts.stride, size, copies)
        };
        let counts = memory.mine.words(ours.statistics)?;
        (0..16).for_each(|word| counts.at(word).set(0));
        Some(StateEnd {
            id: channel.id,
            priority: channel.priority,
            type_hash: channel.type_hash,
            mine: area(&memory.mine, &ours, copies(pool))?,
            peer: area(&memory.peer, &theirs, copies(peer_pool))?,
            control: memory.mine.words(ours.control)?,
            theirs: memory.peer.words(theirs.control)?,
            counts,
            latest: 0,
            version: 0,
        })
    }

    /// Bytes of the own value, and of the peer's; `None` where that side has none.
    pub(in crate::domain) fn sizes(&self) -> [Option<usize>; 2] {
        [self.mine, self.peer].map(|area| (area.count() > 0).then_some(area.size() as usize))
    }

    /// Begins a session: there is no value yet. A reader that finds this finds the new session too.
    pub(in crate::domain) fn reset(&mut self, cache: &impl Cache) {
        (self.latest, self.version) = (0, 0);
        self.control.at(state::LATEST).store(0, RESET_STORE);
        self.control.at(state::READING).set(0);
        for copy in 0..usize::from(COPIES) {
            let version = self.control.at(state::VERSIONS + copy);
            version.store(0, RESET_STORE);
        }
        self.counts.at(statistics::SENT).set(0);
        self.clean(cache);
    }

    /// Makes this the own value. `false` where this side has none, or one of another size.
    ///
    /// Never a second attempt: which copy is free follows from one look at what is read.
    #[inline(always)]
    pub(in crate::domain) fn set(&mut self, value: &[u8], cache: &impl Cache) -> bool {
        let area = self.mine;
        if value.is_empty() || area.size() as usize != value.len() {
            return false;
        }
        // Before the look at what is read: the value before this one.
        full_fence(STATE_WRITE_FENCE);
        invalidate(&self.theirs, cache);
        let pair = !self.theirs.at(state::READING).load(STATE_LOAD) & 1;
        let copy = pair * 2 + (!(self.latest >> pair) & 1);
        let version = self.control.at(state::VERSIONS + copy as usize);
        version.set(0);
        self.clean(cache);
        full_fence(STATE_VERSION_FENCE);
        // SAFETY: the peer, if it keeps to the protocol, does not read this copy: it reads the other
        // pair, or, where its word came too late for the look above, the other copy of this one,
        // because its fence then comes after the one above, and so it sees the value before this one
        // as the latest. Only this side writes here, under its lock; its memory lives as long as the
        // end. Foreign observers and peers read by atomic words, which these stores are as well.
        unsafe {
            area.for_writing(copy as u16).copy_from(value);
        }
        let (at, len) = area.bytes(copy as u16, area.size());
        cache.clean(at, len);
        // 0 says that there is none.
        self.version = self.version.wrapping_add(1).max(1);
        // After the copy, also for who looks at nothing else.
        version.store(self.version, STATE_STORE);
        self.latest = (self.latest ^ 1 << pair) & 3 | pair << 2;
        let latest = self.control.at(state::LATEST);
        latest.store(self.latest, STATE_STORE);
        self.counts.at(statistics::SENT).set(self.version);
        self.clean(cache);
        true
    }

    /// Copies the peer's value into `out`; its number, 0 where there is none yet, or one of another
    /// size.
    ///
    /// Never a second attempt: the copy that is found is not written before the next `get`.
    #[inline(always)]
    pub(in crate::domain) fn get(&self, out: &mut [u8], cache: &impl Cache) -> u32 {
        let area = self.peer;
        if out.is_empty() || area.size() as usize != out.len() {
            return 0;
        }
        invalidate(&self.theirs, cache);
        let latest = self.theirs.at(state::LATEST);
        let pair = latest.get() >> 2 & 1;
        // After what was read from the other pair, before the look at this one.
        self.control.at(state::READING).store(pair, STATE_STORE);
        self.clean(cache);
        full_fence(STATE_READ_FENCE);
        invalidate(&self.theirs, cache);
        let copy = pair * 2 + (latest.load(STATE_LOAD) >> pair & 1);
        let version = self.theirs.at(state::VERSIONS + copy as usize);
        // Of a peer that begins anew: its session is looked at after this.
        let version = version.load(STATE_LOAD);
        if version != 0 {
            let (at, len) = area.bytes(copy as u16, area.size());
            cache.invalidate(at, len);
            area.for_reading(copy as u16, area.size()).copy_to(out);
        }
        version
    }

    fn clean(&self, cache: &impl Cache) {
        let (at, len) = self.control.bytes();
        cache.clean(at, len);
    }
}

#[inline(always)]
fn invalidate(words: &Words, cache: &impl Cache) {
    let (at, len) = words.bytes();
    cache.invalidate(at, len);
}

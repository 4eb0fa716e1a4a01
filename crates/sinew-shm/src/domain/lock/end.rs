//! One side of a lock channel: its copy of the area, and who has the lock here.

use super::super::Violation;
use super::super::config::{Channel, Role};
use super::super::layout::{lock, lock_seal};
use super::super::memory::Memory;
use super::super::plan::ChannelPlan;
use super::super::port::{Cache, HardwareLock, clean, invalidate};
use super::super::tally::Tally;
use super::version;
use crate::waiters::{Waiters, Waits, Woken};
use crate::word::{WordArea, Words};

/// A semaphore of the chip.
pub(super) type Semaphore = &'static (dyn HardwareLock + Sync);

/// The version of the peer's that was brought over, if its copy was the newer one.
pub(in crate::domain) type Brought = Option<u64>;

pub(in crate::domain) struct LockEnd {
    pub(in crate::domain) id: u16,
    pub(in crate::domain) priority: u8,
    pub(in crate::domain) tally: Tally,
    pub(super) mine: WordArea,
    peer: WordArea,
    pub(super) control: Words,
    pub(super) theirs: Words,
    pub(super) role: Role,
    /// What stands in the own control line where the area is in use.
    pub(super) seal: u32,
    pub(super) hardware: Option<Semaphore>,
    /// Of the own copy.
    pub(super) version: u64,
    /// The own word on which versions are poisoned: all below.
    pub(super) poison: u64,
    /// The number of the hold that has the lock, 0 for none; and of the last one.
    pub(super) holder: u32,
    holds: u32,
    /// Of the present hold: all versions below are poisoned; the area is changed.
    floor: u64,
    is_changed: bool,
    /// The words of an earlier life were looked at.
    pub(super) is_known: bool,
    /// The own `want` is that of a hold that is over.
    pub(super) is_stale: bool,
    /// The area is new, and the peer may know an older one.
    pub(super) is_fresh: bool,
    /// What this side asked for last, and what it heeded last.
    armed: u32,
    pub(super) rung: u32,
    /// Who of this side waits.
    pub(in crate::domain) waiters: Waiters,
}

impl LockEnd {
    /// The own side; `None` where the memory does not suffice.
    pub(in crate::domain) fn new(
        channel: &Channel,
        plan: &ChannelPlan,
        (role, hash, hardware): (Role, u32, Option<Semaphore>),
        memory: &Memory,
    ) -> Option<LockEnd> {
        let (ours, theirs) = (plan.ours, plan.theirs);
        let size = channel.pool(role).size;
        Some(LockEnd {
            id: channel.id,
            priority: channel.priority,
            tally: Tally::new(memory, ours.statistics)?,
            mine: memory.mine.area(ours.pool, size)?,
            peer: memory.peer.area(theirs.pool, size)?,
            control: memory.mine.words(ours.control)?,
            theirs: memory.peer.words(theirs.control)?,
            role,
            seal: lock_seal(hash),
            hardware,
            version: 0,
            poison: 0,
            holder: 0,
            holds: 0,
            floor: 0,
            is_changed: false,
            is_known: false,
            is_stale: false,
            is_fresh: false,
            armed: 0,
            rung: 0,
            waiters: Waiters::new(),
        })
    }

    /// Bytes of the area.
    pub(in crate::domain) fn size(&self) -> usize {
        self.mine.size()
    }

    /// Whether somebody of this side has the lock.
    pub(in crate::domain) fn is_held(&self) -> bool {
        self.holder != 0
    }

    /// The lock is this side's: brings the newer copy over; its version, where it is the peer's.
    pub(in crate::domain) fn bring(&mut self, cache: &impl Cache) -> Result<Brought, Violation> {
        invalidate(&self.theirs, cache);
        let theirs = version::foreign(&self.theirs, lock::VERSION)?;
        self.floor = version::foreign(&self.theirs, lock::POISON)?.max(self.poison);
        if theirs <= self.version {
            return Ok(None);
        }
        let (at, len) = self.peer.bytes();
        cache.invalidate(at, len);
        self.mine.copy_from(&self.peer);
        self.clean_area(cache);
        Ok(Some(theirs))
    }

    /// What was brought over is of the present pairing, and the lock is the caller's: the number of the
    /// hold, and whether the area is poisoned.
    pub(in crate::domain) fn hold(&mut self, brought: Brought, cache: &impl Cache) -> (u32, bool) {
        if let Some(version) = brought {
            self.publish(version);
        }
        self.control.at(lock::HELD).set(1);
        clean(&self.control, cache);
        self.holds = self.holds.wrapping_add(1).max(1);
        (self.holder, self.is_changed) = (self.holds, false);
        (self.holder, self.version < self.floor)
    }

    /// What was brought over may be of another life of the peer's: the own copy is none any more. Gives
    /// the lock back.
    pub(in crate::domain) fn forget(&mut self, brought: Brought, cache: &impl Cache) {
        if brought.is_some() {
            self.mark(self.version, cache);
        }
        self.release(cache);
    }

    fn publish(&mut self, version: u64) {
        self.version = version;
        version::set(&self.control, lock::VERSION, version);
    }

    fn clean_area(&self, cache: &impl Cache) {
        let (at, len) = self.mine.bytes();
        cache.clean(at, len);
    }

    /// Everything that a later call depends on; first the versions, then who has the lock.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(in crate::domain) fn digest(&self) -> [u64; 11] {
        [
            self.version,
            self.poison,
            self.holder.into(),
            self.holds.into(),
            self.floor,
            self.is_changed.into(),
            self.is_known.into(),
            self.is_stale.into(),
            self.is_fresh.into(),
            self.armed.into(),
            self.rung.into(),
        ]
    }

    fn owns(&self, hold: u32) -> bool {
        hold != 0 && self.holder == hold
    }

    /// Copies out, for the hold with this number: whether the bytes lie in the area.
    pub(in crate::domain) fn read(&self, hold: u32, offset: usize, out: &mut [u8]) -> Option<bool> {
        self.owns(hold)
            .then(|| self.mine.read(offset, out).is_some())
    }

    /// Copies in, for the hold with this number: whether the bytes lie in the area.
    pub(in crate::domain) fn write(
        &mut self,
        hold: u32,
        offset: usize,
        bytes: &[u8],
    ) -> Option<bool> {
        if !self.owns(hold) {
            return None;
        }
        self.is_changed = true;
        Some(self.mine.write(offset, bytes).is_some())
    }

    /// The area is good again.
    pub(in crate::domain) fn accept(&mut self, hold: u32) {
        self.is_changed |= self.owns(hold);
    }

    /// Ends the hold with this number; `spoilt`: the area is poisoned by it. `None`: it is over already.
    pub(in crate::domain) fn unlock(
        &mut self,
        hold: u32,
        spoilt: bool,
        cache: &impl Cache,
    ) -> Option<()> {
        if !self.owns(hold) {
            return None;
        }
        if self.is_changed {
            self.clean_area(cache);
            self.publish(self.version.saturating_add(1).max(self.floor));
        }
        if spoilt {
            self.mark(self.version, cache);
        }
        self.release(cache);
        Some(())
    }

    /// What the peer is to ring for. The fence after it is the caller's.
    pub(in crate::domain) fn arm(&mut self, cache: &impl Cache) {
        self.armed = self.armed.wrapping_add(1);
        self.control.at(lock::WAKE).set(self.armed);
        clean(&self.control, cache);
    }

    pub(super) fn disarm(&mut self) {
        (self.armed, self.rung) = (0, 0);
        self.control.at(lock::WAKE).set(0);
    }

    /// Takes out who waits, if the lock is free, or everybody; whether somebody is left.
    pub(in crate::domain) fn wakers(
        &mut self,
        waits: Waits,
        all: bool,
        cache: &impl Cache,
        woken: &mut Woken,
    ) -> bool {
        if waits != Waits::Room || self.waiters.is_empty() {
            return false;
        }
        let is_free = all || self.is_free(cache);
        self.waiters.ready(|_| is_free, woken);
        !self.waiters.is_empty()
    }
}

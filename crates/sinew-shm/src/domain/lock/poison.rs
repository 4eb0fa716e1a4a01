//! What a lock channel keeps over sessions and deaths.

use super::super::layout::lock;
use super::super::port::{Cache, clean, invalidate};
use super::end::LockEnd;
use super::version;
use crate::word::LOCK_STORE;

impl LockEnd {
    /// Begins a session of this side's (`peer_session` 0), or one with a peer that is about to be
    /// acknowledged.
    pub(in crate::domain) fn reset(&mut self, peer_session: u32, cache: &impl Cache) {
        if !self.is_known {
            self.remember(cache);
        }
        if self.is_held() {
            // Its pairing is over in the middle of what it does. The own `want` stays.
            (self.holder, self.is_stale) = (0, true);
            self.mark(self.version, cache);
        }
        if peer_session != 0 {
            self.examine(peer_session, cache);
        }
        self.disarm();
        clean(&self.control, cache);
    }

    /// Looks at what an earlier life of this side left: the one look at own words.
    fn remember(&mut self, cache: &impl Cache) {
        self.is_known = true;
        invalidate(&self.control, cache);
        let word = |at: usize| self.control.at(at).get();
        let numbers = [lock::VERSION, lock::POISON].map(|at| version::get(&self.control, at));
        if word(lock::SEAL) != self.seal || !numbers.into_iter().all(version::is_one) {
            return self.begin(cache);
        }
        [self.version, self.poison] = numbers;
        self.is_fresh = word(lock::FRESH) != 0;
        if word(lock::WANT) != 0 {
            // It died as the owner, or as one who tried.
            self.is_stale = true;
            self.mark(self.version, cache);
        }
    }

    /// There is no area yet. The seal comes last: who dies before begins anew.
    fn begin(&mut self, cache: &impl Cache) {
        self.is_fresh = true;
        self.control.at(lock::SEAL).set(0);
        clean(&self.control, cache);
        (0..16).for_each(|word| self.control.at(word).set(0));
        self.mine.clear();
        let (at, len) = self.mine.bytes();
        cache.clean(at, len);
        self.control.at(lock::FRESH).set(1);
        self.control.at(lock::SEAL).store(self.seal, LOCK_STORE);
    }

    /// Looks what the peer's last life left, before its new one is acknowledged.
    fn examine(&mut self, peer_session: u32, cache: &impl Cache) {
        invalidate(&self.theirs, cache);
        let want = self.theirs.at(lock::WANT).get();
        // One of the session that is being acknowledged lives, and sees to its hold itself.
        let is_dead = want != 0 && want != peer_session;
        let theirs = version::foreign(&self.theirs, lock::VERSION).unwrap_or(0);
        let is_lost = (self.theirs.at(lock::FRESH).get() != 0 && self.version > 0)
            || (self.is_fresh && theirs > 0);
        if is_dead || is_lost {
            self.mark(self.version.max(theirs), cache);
        }
        if let Some(semaphore) = self.hardware
            && is_dead
            && semaphore.is_held_by_peer()
        {
            // Where the chip cannot, the peer gives it back when it comes up.
            semaphore.force_unlock();
        }
    }

    /// Every version up to this one is poisoned.
    pub(super) fn mark(&mut self, version: u64, cache: &impl Cache) {
        self.poison = self.poison.max(version.saturating_add(1));
        version::set(&self.control, lock::POISON, self.poison);
        clean(&self.control, cache);
    }

    /// The peer has seen what this side's last life left: whether there was a lock to give back.
    pub(in crate::domain) fn come_up(&mut self, cache: &impl Cache) -> bool {
        let is_stale = core::mem::take(&mut self.is_stale);
        if !is_stale && !self.is_fresh {
            return false;
        }
        self.is_fresh = false;
        self.control.at(lock::FRESH).set(0);
        if is_stale {
            self.release(cache);
        }
        clean(&self.control, cache);
        is_stale
    }
}

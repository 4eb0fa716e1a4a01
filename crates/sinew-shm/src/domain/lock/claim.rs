//! How two sides agree on who has the lock, with one word each.

use super::super::config::Role;
use super::super::layout::lock;
use super::super::port::{Cache, clean, invalidate};
use super::LOOKS;
use super::end::LockEnd;
use crate::word::{LOCK_FENCE, LOCK_LOAD, LOCK_LOOK_FENCE, LOCK_STORE, full_fence};

/// What came of asking for a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::domain) enum Claim {
    Mine,
    /// The peer wants it too, or has it; and it may have seen that this side wanted it.
    Withdrawn,
    /// It has an owner, and nothing was said.
    Refused,
}

impl LockEnd {
    /// Says that this side, in this session of its, wants the lock, and looks whether the peer does.
    /// If so it withdraws.
    ///
    /// Of two sides that want it, one at least sees the other: each has a full fence between its own word
    /// and its look. The looks after the first one find the same: once this side's word is out, the peer
    /// sees it whenever it begins anew.
    pub(in crate::domain) fn claim(&mut self, session: u32, cache: &impl Cache) -> Claim {
        if self.is_held() || self.hardware.is_some_and(|semaphore| !semaphore.try_lock()) {
            return Claim::Refused;
        }
        self.control.at(lock::WANT).set(session);
        clean(&self.control, cache);
        if self.hardware.is_some() || self.is_alone(cache) {
            return Claim::Mine;
        }
        self.release(cache);
        Claim::Withdrawn
    }

    fn is_alone(&self, cache: &impl Cache) -> bool {
        full_fence(LOCK_FENCE);
        let looks = match self.role {
            Role::First => 1 + LOOKS,
            Role::Second => 1,
        };
        (0..looks).any(|look| {
            if look > 0 {
                core::hint::spin_loop();
            }
            invalidate(&self.theirs, cache);
            self.theirs.at(lock::WANT).load(LOCK_LOAD) == 0
        })
    }

    /// This side does not want the lock any more.
    pub(super) fn release(&mut self, cache: &impl Cache) {
        self.holder = 0;
        self.control.at(lock::HELD).set(0);
        self.control.at(lock::WANT).store(0, LOCK_STORE);
        clean(&self.control, cache);
        if let Some(semaphore) = self.hardware {
            semaphore.unlock();
        }
    }

    /// After this side does not want it any more: whether the peer waits for that, and is to be rung.
    pub(in crate::domain) fn is_to_ring(&mut self, cache: &impl Cache) -> bool {
        full_fence(LOCK_LOOK_FENCE);
        invalidate(&self.theirs, cache);
        let wake = self.theirs.at(lock::WAKE).get();
        let is_new = wake != self.rung;
        self.rung = wake;
        is_new && self.tally.count_ring()
    }

    /// Whether nobody has the lock, as far as one look tells.
    pub(in crate::domain) fn is_free(&self, cache: &impl Cache) -> bool {
        if self.is_held() {
            return false;
        }
        if let Some(semaphore) = self.hardware {
            return !semaphore.is_held_by_peer();
        }
        invalidate(&self.theirs, cache);
        self.theirs.at(lock::WANT).get() == 0
    }
}

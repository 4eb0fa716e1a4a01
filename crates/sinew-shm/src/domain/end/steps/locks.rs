//! What the handles of lock channels ask of their end.

use core::task::Waker;

use super::super::super::Lost;
use super::super::super::lock::{Claim, LockEnd};
use super::super::super::port::Doorbell;
use super::super::End;
use super::super::platform::Platform;
use super::super::state::Inner;
use super::Slow;
use super::waiting::{Armed, tell};
use crate::waiters::{Waits, wake};

/// What came of trying to take a lock.
pub(in crate::domain) enum Tried {
    /// Somebody else has it.
    Busy,
    /// It is the caller's: the number of the hold, and whether the area is poisoned.
    Held(u32, bool),
}

impl<P: Platform> End<P> {
    /// The slot of a lock channel, the pairing of a handle made now, and the size of the area.
    pub(in crate::domain) fn find_lock(&self, id: u16) -> Option<(u16, u32, usize)> {
        const {
            assert!(
                P::USES.locks,
                "Platform::USES says that nobody has lock channels"
            )
        };
        let is_it = |channel: &LockEnd| channel.id == id;
        let (slot, pairing) = self.locate(|slot| slot.lock().is_some_and(is_it))?;
        let size = self.locked(|inner| Some(inner.lock(usize::from(slot))?.size()))?;
        Some((slot, pairing, size))
    }

    /// Tries to take a lock.
    pub(in crate::domain) fn try_lock(&self, slot: u16, pairing: u32) -> Result<Tried, Lost> {
        let (tried, ring) = self.locked(|inner| {
            if inner.sendable != pairing {
                return (Err(Slow::Look), false);
            }
            let (tried, is_released) = self.take_lock(inner, usize::from(slot));
            (
                tried,
                is_released && self.is_to_ring(inner, usize::from(slot)),
            )
        });
        if ring {
            self.doorbell.ring();
        }
        let slow = match tried {
            Ok(tried) => return Ok(tried),
            Err(slow) => slow,
        };
        self.slow(slot, pairing, slow)?;
        match self.locked(|inner| inner.sendable == pairing) {
            true => Ok(Tried::Busy),
            false => Err(Lost::Closed),
        }
    }

    /// Tries; and whether this side wanted the lock and wants it no more.
    fn take_lock(&self, inner: &mut Inner<P>, slot: usize) -> (Result<Tried, Slow>, bool) {
        let (me, cache) = (inner.session.me(), &self.cache);
        let Some(channel) = inner.lock(slot) else {
            return (Err(Slow::Look), false);
        };
        let claim = channel.claim(me, cache);
        if claim != Claim::Mine {
            let tried = match inner.is_still_up(cache) {
                true => Ok(Tried::Busy),
                false => Err(Slow::Look),
            };
            return (tried, claim == Claim::Withdrawn);
        }
        let brought = channel.bring(cache);
        // What was found may be of the peer's next life, if there is one.
        let is_still_up = inner.is_still_up(cache);
        let Some(channel) = inner.lock(slot) else {
            return (Err(Slow::Look), false);
        };
        match brought {
            Ok(brought) if is_still_up => {
                let (hold, is_poisoned) = channel.hold(brought, cache);
                (Ok(Tried::Held(hold, is_poisoned)), false)
            }
            Ok(brought) => {
                channel.forget(brought, cache);
                (Err(Slow::Look), true)
            }
            Err(violation) => {
                channel.forget(None, cache);
                (Err(Slow::Violation(violation)), true)
            }
        }
    }

    /// Whether the peer is to be rung, since this side does not want the lock any more.
    fn is_to_ring(&self, inner: &mut Inner<P>, slot: usize) -> bool {
        let channel = inner.lock(slot);
        channel.is_some_and(|channel| channel.is_to_ring(&self.cache))
    }

    /// Does something with the area, for a hold.
    #[inline]
    fn with_lock<R>(
        &self,
        slot: u16,
        pairing: u32,
        f: impl FnOnce(&mut LockEnd) -> Option<R>,
    ) -> Result<R, Lost> {
        let done = self.locked(|inner| match inner.live == pairing {
            true => f(inner.lock(usize::from(slot))?),
            false => None,
        });
        match done {
            Some(done) => Ok(done),
            None => Err(self.why_over(slot, pairing)),
        }
    }

    /// Why a hold is over that its holder has not ended.
    #[cold]
    fn why_over(&self, slot: u16, pairing: u32) -> Lost {
        let why = self.slow(slot, pairing, Slow::Look).err();
        why.unwrap_or(Lost::Restarted)
    }

    /// Copies out of the area; `false` where the bytes do not lie in it.
    pub(in crate::domain) fn read_locked(
        &self,
        (slot, pairing): (u16, u32),
        hold: u32,
        offset: usize,
        out: &mut [u8],
    ) -> Result<bool, Lost> {
        self.with_lock(slot, pairing, |channel| channel.read(hold, offset, out))
    }

    /// Copies into the area; `false` where the bytes do not lie in it.
    pub(in crate::domain) fn write_locked(
        &self,
        (slot, pairing): (u16, u32),
        hold: u32,
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool, Lost> {
        self.with_lock(slot, pairing, |channel| channel.write(hold, offset, bytes))
    }

    /// A poisoned area is good again, as soon as the hold ends.
    pub(in crate::domain) fn accept_locked(&self, slot: u16, pairing: u32, hold: u32) {
        let accept = |channel: &mut LockEnd| {
            channel.accept(hold);
            Some(())
        };
        // Where the pairing is over, so is the hold, and the area stays poisoned.
        let _ = self.with_lock(slot, pairing, accept);
    }

    /// Gives a lock back; `spoilt`: the area is poisoned.
    pub(in crate::domain) fn unlock(
        &self,
        (slot, pairing): (u16, u32),
        hold: u32,
        spoilt: bool,
    ) -> Result<(), Lost> {
        let unlocked = self.locked(|inner| {
            if inner.live != pairing {
                return None;
            }
            let channel = inner.lock(usize::from(slot))?;
            channel.unlock(hold, spoilt, &self.cache)?;
            let waits = P::USES.wakers && !channel.waiters.is_empty();
            Some((self.is_to_ring(inner, usize::from(slot)), waits))
        });
        let Some((ring, waits)) = unlocked else {
            return Err(self.why_over(slot, pairing));
        };
        if ring {
            self.doorbell.ring();
        }
        if waits {
            let ready = |inner: &mut _| self.ready(inner, usize::from(slot), Waits::Room, false);
            wake(self.locked(ready));
        }
        Ok(())
    }

    /// Wakes `waker` once when the lock may be free, at once where it is or the pairing is over.
    pub(in crate::domain) fn arm_lock(&self, slot: u16, pairing: u32, waker: &Waker) {
        const {
            assert!(
                P::USES.wakers,
                "Platform::USES says that nobody arms wakers"
            )
        };
        let mut mine = Some(waker.clone());
        let armed: Armed = self.locked(|inner| {
            let is_over = inner.is_over(pairing, &self.cache);
            let Some(channel) = inner.lock(usize::from(slot)).filter(|_| !is_over) else {
                return (None, Default::default(), true);
            };
            let evicted = channel.waiters.add(&mut mine, 0, u32::min);
            // While the link is down nobody is ready: who waits is woken when it comes up.
            let woken = self.ready(inner, usize::from(slot), Waits::Room, false);
            (evicted, woken, false)
        });
        tell(armed, waker);
    }
}

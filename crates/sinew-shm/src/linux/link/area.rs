//! The area of a lock channel, with a call that waits for the lock.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::handles::{Ref, place_of};
use super::{For, Link, WaitError};
use crate::domain::{self, Guard, LockError, Poisoned};
use crate::lock::{Lock, StdLock};

/// The lock, or that of an area whose last owner did not end its work.
pub type Locked<'a, L = StdLock> = Result<Guard<'a, Ref<L>>, Poisoned<'a, Ref<L>>>;

/// A [`domain::Area`] that can wait.
pub struct Area<L: Lock = StdLock> {
    link: Link<L>,
    at: usize,
    area: domain::Area<Ref<L>>,
}

impl<L: Lock> Clone for Area<L> {
    fn clone(&self) -> Self {
        Area {
            link: self.link.clone(),
            at: self.at,
            area: self.area.clone(),
        }
    }
}

impl<L: Lock> Deref for Area<L> {
    type Target = domain::Area<Ref<L>>;

    fn deref(&self) -> &Self::Target {
        &self.area
    }
}

impl<L: Lock> DerefMut for Area<L> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.area
    }
}

impl<L: Lock> Area<L> {
    pub(super) fn new(link: &Link<L>, channel: u16) -> Option<Area<L>> {
        Some(Area {
            at: place_of(link, channel)?,
            area: domain::Area::new(link.end(), channel)?,
            link: link.clone(),
        })
    }

    /// The link that it is of.
    pub fn link(&self) -> &Link<L> {
        &self.link
    }

    /// Waits for the lock. Not in any order: a side that unlocks and asks again may be first again.
    pub fn lock_within(&self, limit: Option<Duration>) -> Result<Locked<'_, L>, WaitError> {
        let queue = self.link.0.queue(self.at, For::Place);
        let attempt = || match self.area.try_lock() {
            Ok(guard) => Ok(Some(Ok(guard))),
            Err(LockError::Poisoned(poisoned)) => Ok(Some(Err(poisoned))),
            Err(LockError::Busy) => Ok(None),
            Err(LockError::Lost(lost)) => Err(WaitError::Lost(lost)),
        };
        let arm = |waker: &_| self.area.arm(waker);
        self.link.wait(queue, limit, attempt, arm)
    }
}

//! A bell: wakes one driver from any context.

use core::task::Waker;

use crate::cell::Cell;
use crate::lock::Lock;
use crate::word::{RING_LOAD, RING_STORE, Word};

/// Tells one driver that there is something to do, from threads, tasks and interrupt handlers.
///
/// It is sticky: rings between two looks are one ring, and none is lost. One driver takes and
/// arms; if several do, a ring may reach any of them.
pub struct Bell<L> {
    /// How often it was rung. Written under the lock.
    rung: Word,
    /// How much of that the driver has taken. Written by the driver.
    taken: Word,
    lock: L,
    waker: Cell<Option<Waker>>,
}

// SAFETY: `waker` is only reached under the lock; the rest are words.
unsafe impl<L: Lock + Sync> Sync for Bell<L> {}

/// Between two threads or tasks of one program: the peer's driver waits on it.
impl<L: Lock> crate::domain::Doorbell for Bell<L> {
    fn ring(&self) {
        Bell::ring(self);
    }
}

impl<L: Lock> Default for Bell<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Lock> Bell<L> {
    const_fn! {
        /// A bell that is silent.
        pub fn new() -> Self {
            Bell { rung: Word::new(), taken: Word::new(), lock: L::NEW, waker: Cell::new(None) }
        }
    }

    /// Rings: the driver's next [`Bell::take`] is true, and its waker is woken.
    pub fn ring(&self) {
        let waker = self.locked(|waker| {
            self.rung.store(self.rung.get().wrapping_add(1), RING_STORE);
            waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it was rung since the last look. Takes no lock.
    pub fn take(&self) -> bool {
        let rung = self.rung.load(RING_LOAD);
        let new = rung != self.taken.get();
        if new {
            self.taken.set(rung);
        }
        new
    }

    /// Wakes `waker` once at the next ring, or at once where a ring has not been taken yet.
    pub fn arm(&self, waker: &Waker) {
        let mut mine = Some(waker.clone());
        let waiting = self.locked(|slot| {
            let waiting = self.rung.get() != self.taken.get();
            if !waiting {
                core::mem::swap(slot, &mut mine);
            }
            waiting
        });
        if waiting {
            waker.wake_by_ref();
        }
        // `mine` is the waker before, if any: it is dropped out here, without the lock.
    }

    fn locked<R>(&self, f: impl FnOnce(&mut Option<Waker>) -> R) -> R {
        self.lock.with(|| {
            // SAFETY: the lock keeps every other context out of the cell.
            f(unsafe { &mut *self.waker.write() })
        })
    }
}

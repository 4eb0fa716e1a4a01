//! Who sleeps, and who wakes whom.
//!
//! Each thread that waits has a [`Parker`]. One of the threads that wait on a link *leads*: it alone
//! sleeps on the bell, looks when it rings and at each heartbeat, and so wakes the others, which sleep
//! on their own parkers. When it leaves it wakes one of them, which comes back here and leads.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::vec::Vec;

use crate::linux::Deadline;
use crate::linux::bell::Bell;

/// A lock whose holders do not panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One thread, as those see it who wake it.
pub(super) struct Parker {
    state: Mutex<Parked>,
    changed: Condvar,
}

struct Parked {
    is_woken: bool,
    /// What it sleeps on, if it leads.
    bell: Option<Arc<dyn Bell>>,
}

impl Parker {
    fn new() -> Arc<Parker> {
        Arc::new(Parker {
            state: Mutex::new(Parked {
                is_woken: false,
                bell: None,
            }),
            changed: Condvar::new(),
        })
    }

    /// That of the thread that calls.
    pub(super) fn of_this_thread() -> Arc<Parker> {
        std::thread_local! {
            static MINE: Arc<Parker> = Parker::new();
        }
        // While the thread ends there is none any more.
        MINE.try_with(Arc::clone).unwrap_or_else(|_| Parker::new())
    }

    /// Forgets wake-ups of before: to be called before the last look, and never after it.
    pub(super) fn reset(&self) {
        lock(&self.state).is_woken = false;
    }

    fn wake(&self) {
        let bell = {
            let mut state = lock(&self.state);
            state.is_woken = true;
            state.bell.clone()
        };
        match bell {
            Some(bell) => bell.interrupt(),
            None => self.changed.notify_one(),
        }
    }

    /// Sleeps until it is woken or the time is over.
    fn park(&self, deadline: Deadline) {
        let mut state = lock(&self.state);
        while !state.is_woken {
            state = match deadline.remaining() {
                Some(left) if left.is_zero() => return,
                Some(left) => {
                    let woken = self.changed.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = self.changed.wait(state);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// From now on it is woken by the bell; false where it has been woken already.
    pub(super) fn listen(&self, bell: &Arc<dyn Bell>) -> bool {
        let mut state = lock(&self.state);
        if !state.is_woken {
            state.bell = Some(bell.clone());
        }
        !state.is_woken
    }

    pub(super) fn listen_no_more(&self) {
        lock(&self.state).bell = None;
    }
}

/// The threads that wait for one thing, and the waker that wakes all of them.
#[derive(Default)]
pub(super) struct Queue(Mutex<Vec<Arc<Parker>>>);

impl Queue {
    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(self.clone())
    }

    /// Adds a thread, unless it is there.
    pub(super) fn add(&self, parker: &Arc<Parker>) {
        let mut parkers = lock(&self.0);
        if !parkers.iter().any(|known| Arc::ptr_eq(known, parker)) {
            parkers.push(parker.clone());
        }
    }

    pub(super) fn remove(&self, parker: &Arc<Parker>) {
        lock(&self.0).retain(|known| !Arc::ptr_eq(known, parker));
    }

    pub(super) fn wake_all(&self) {
        let parkers = std::mem::take(&mut *lock(&self.0));
        for parker in parkers {
            parker.wake();
        }
    }
}

impl Wake for Queue {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

/// All threads that sleep on a link.
#[derive(Default)]
pub(super) struct Crowd(Mutex<Sleepers>);

#[derive(Default)]
struct Sleepers {
    is_led: bool,
    /// Those that do not lead.
    others: Vec<Arc<Parker>>,
}

impl Crowd {
    /// Sleeps, by `lead` if nobody else leads.
    pub(super) fn sleep(&self, me: &Arc<Parker>, deadline: Deadline, lead: impl FnOnce()) {
        {
            let mut sleepers = lock(&self.0);
            if sleepers.is_led {
                sleepers.others.push(me.clone());
                drop(sleepers);
                me.park(deadline);
                let others = &mut lock(&self.0).others;
                others.retain(|other| !Arc::ptr_eq(other, me));
                return;
            }
            sleepers.is_led = true;
        }
        let _leader = Leader(self);
        lead();
    }

    /// Whoever leaves makes sure that somebody leads those who stay: the one that is woken does, or
    /// leaves in the same way.
    pub(super) fn leave(&self) {
        let first = {
            let sleepers = lock(&self.0);
            match sleepers.is_led {
                true => None,
                false => sleepers.others.first().cloned(),
            }
        };
        if let Some(first) = first {
            first.wake();
        }
    }
}

struct Leader<'a>(&'a Crowd);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        lock(&self.0.0).is_led = false;
        self.0.leave();
    }
}

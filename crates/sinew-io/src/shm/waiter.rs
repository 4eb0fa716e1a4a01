//! How a thread waits on a link whose doorbell other threads take as well.
//!
//! Whoever takes the doorbell wakes all who can go on: the reactor thread for halves that are armed, a
//! thread on another channel of the link, a program that calls [`Link::on_ready`]. Then the doorbell's
//! descriptor is silent again, so a thread that sleeps on it is woken by a descriptor of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use sinew_shm::linux::link::Link;

use super::spin::Spin;
use crate::sleep::{Sleeper, reading};

/// One thread's wait: it looks for a bounded time, then it sleeps.
pub(super) struct Waiter {
    spin: Spin,
    sleeper: Sleeper,
    woken: Arc<Woken>,
    /// Calls `woken`.
    waker: Waker,
}

impl Waiter {
    /// `spin`: how long it looks at the most.
    pub(super) fn new(spin: Duration) -> Waiter {
        let mut sleeper = Sleeper::default();
        let woken = Arc::new(Woken {
            is_woken: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            sleeper: sleeper.waker(),
        });
        Waiter {
            spin: Spin::new(spin),
            sleeper,
            waker: woken.clone().into(),
            woken,
        }
    }

    /// Ends a wait from anywhere.
    pub(super) fn waker(&mut self) -> Waker {
        self.sleeper.waker()
    }

    /// Looks until `is_ready` says so or the waker was called, for as long as is worth it; `false`:
    /// neither.
    pub(super) fn look(
        &mut self,
        timeout: Option<Duration>,
        mut is_ready: impl FnMut() -> bool,
    ) -> bool {
        let Waiter { spin, sleeper, .. } = self;
        spin.until(timeout, || sleeper.take_ring() || is_ready())
    }

    /// Sleeps until the peer rings, what `arm` has set is woken, or the waker is called, for a
    /// heartbeat at the most.
    pub(super) fn sleep(
        &mut self,
        link: &Link,
        timeout: Option<Duration>,
        arm: impl FnOnce(&Waker),
    ) {
        self.woken.is_woken.store(false, Ordering::Relaxed);
        arm(&self.waker);
        if !self.woken.falls_asleep() {
            return;
        }
        if let Some(doorbell) = link.descriptor() {
            // A sign of life now and then, for observers.
            let heartbeat = link.heartbeat();
            let timeout = timeout.map_or(heartbeat, |timeout| timeout.min(heartbeat));
            self.sleeper.sleep(reading(&doorbell), None, Some(timeout));
        }
        self.woken.is_asleep.store(false, Ordering::SeqCst);
        link.on_ready();
    }
}

/// Wakes the thread from its sleep. Awake it needs no ring, and most wake-ups are of its own making.
struct Woken {
    is_woken: AtomicBool,
    is_asleep: AtomicBool,
    sleeper: Waker,
}

impl Woken {
    /// Whether the thread may sleep now; `false`: it was woken already.
    fn falls_asleep(&self) -> bool {
        // One of the two sees what the other has stored.
        self.is_asleep.store(true, Ordering::SeqCst);
        let falls = !self.is_woken.load(Ordering::SeqCst);
        self.is_asleep.store(falls, Ordering::SeqCst);
        falls
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) {
            self.sleeper.wake_by_ref();
        }
    }
}

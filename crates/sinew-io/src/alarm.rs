//! Time-outs that hardly ever come due, without a kernel timer per sleep.
//!
//! To start and cancel a timer costs more than all of a call's own work. So one timer stays set
//! over many sleeps: it also serves every later sleep that may last at least as long as it was set
//! for. It may ring too early for that one, whose sleeper looks, and sleeps again.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::reactor::Ready;
use crate::sleep::timespec;

/// Shorter time-outs are not worth a ring that is too early.
const SHORTEST: Duration = Duration::from_secs(1);

/// Wakes one sleeper, by the reactor thread.
pub(crate) struct Alarm {
    ring: Arc<Ring>,
    waker: Waker,
    timer: Timer,
    /// How long it was set for, when it was.
    span: Duration,
}

enum Timer {
    /// Not needed so far.
    None,
    Ready(Arc<Ready<OwnedFd>>),
    /// There are no descriptors left.
    Failed,
}

struct Ring {
    /// Set, and it has not rung yet.
    is_set: AtomicBool,
    sleeper: Waker,
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.is_set.store(false, Ordering::Release);
        self.sleeper.wake_by_ref();
    }
}

impl Alarm {
    pub(crate) fn new(sleeper: Waker) -> Alarm {
        let is_set = AtomicBool::new(false);
        let ring = Arc::new(Ring { is_set, sleeper });
        Alarm {
            waker: ring.clone().into(),
            ring,
            timer: Timer::None,
            span: Duration::ZERO,
        }
    }

    /// Whether the sleeper will be woken within `span` from now, so that it needs no timer of its
    /// own.
    pub(crate) fn covers(&mut self, span: Duration) -> bool {
        if self.ring.is_set.load(Ordering::Acquire) {
            span >= self.span
        } else {
            span >= SHORTEST && self.set(span)
        }
    }

    fn set(&mut self, span: Duration) -> bool {
        if matches!(self.timer, Timer::None) {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            self.timer = match timerfd_create(TimerfdClockId::Monotonic, flags) {
                Ok(fd) => Timer::Ready(Ready::new(fd, EventFlags::IN)),
                Err(_) => Timer::Failed,
            };
        }
        let Timer::Ready(timer) = &self.timer else {
            return false;
        };
        let once = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(span),
        };
        if timerfd_settime(timer.inner(), TimerfdTimerFlags::empty(), &once).is_err() {
            return false;
        }
        self.span = span;
        self.ring.is_set.store(true, Ordering::Release);
        timer.arm(&self.waker);
        // What cannot be watched rings at once; it would do so every time.
        let is_set = self.ring.is_set.load(Ordering::Acquire);
        if !is_set {
            self.disarm();
            self.timer = Timer::Failed;
        }
        is_set
    }

    fn disarm(&self) {
        if let Timer::Ready(timer) = &self.timer {
            timer.disarm();
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.disarm();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    #[test]
    fn one_setting_serves_every_sleep_that_may_last_as_long() {
        let mut alarm = Alarm::new(Waker::noop().clone());
        assert!(!alarm.covers(SHORTEST / 2), "not worth it");
        assert!(alarm.covers(10 * SHORTEST));
        assert!(alarm.covers(10 * SHORTEST));
        assert!(alarm.covers(20 * SHORTEST));
        assert!(!alarm.covers(9 * SHORTEST), "it would ring too late");
    }

    #[test]
    fn it_rings_once_and_can_be_set_again() {
        let this = std::thread::current();
        let mut alarm = Alarm::new(Arc::new(Unpark(this)).into());
        assert!(alarm.covers(SHORTEST));
        while alarm.ring.is_set.load(Ordering::Acquire) {
            std::thread::park();
        }
        assert!(alarm.covers(20 * SHORTEST));
        assert!(!alarm.covers(10 * SHORTEST));
    }
}

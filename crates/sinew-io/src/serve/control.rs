//! What stops the threads of one listening endpoint.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use crate::lock;

/// Stops the threads of one endpoint.
#[derive(Default)]
pub(crate) struct Control {
    is_stopped: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Control {
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        for waker in lock(&self.wakers).drain(..) {
            waker.wake();
        }
    }

    /// Lets `stop` wake a thread for the time that it runs; also one that came before.
    pub(crate) fn during<T>(&self, waker: Waker, run: impl FnOnce() -> T) -> T {
        lock(&self.wakers).push(waker.clone());
        if self.is_stopped() {
            waker.wake_by_ref();
        }
        let result = run();
        lock(&self.wakers).retain(|other| !other.will_wake(&waker));
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn thread_that_begins_after_the_stop_does_not_sleep() {
        let control = Control::default();
        control.stop();
        let woken = Arc::new(Woken::default());
        control.during(woken.clone().into(), || {
            assert!(woken.0.load(Ordering::SeqCst));
        });
    }
}

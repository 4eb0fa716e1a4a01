//! A link whose halves wake whoever waits, for a thread that parks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use rustix::thread::futex;
use sinew::link::{RecvError, Rx, Tx};

use crate::alarm::Alarm;
use crate::apart::{Apart, Receive};
use crate::counted::{Counted, received, traffic};
use crate::link::{Link, Traffic, Want};
use crate::sleep::timespec;

/// One end of a link inside this program, of two halves that wake by themselves.
pub struct Parked<T, R> {
    tx: Counted<T>,
    rx: Counted<R>,
    parker: Arc<Parker>,
    waker: Waker,
    alarm: Alarm,
}

impl<T: Tx, R: Rx> Parked<T, R> {
    pub(crate) fn new((tx, rx): (T, R)) -> Self {
        let parker = Arc::new(Parker::default());
        let waker = Waker::from(parker.clone());
        Parked {
            tx: Counted::new(tx),
            rx: Counted::new(rx),
            alarm: Alarm::new(waker.clone()),
            parker,
            waker,
        }
    }

    /// The halves, for two threads.
    pub fn apart(self) -> Apart
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        Apart {
            tx: Box::new(self.tx.half),
            rx: Box::new(ParkedRx {
                rx: self.rx,
                parker: self.parker,
                waker: self.waker,
            }),
        }
    }

    /// The halves, for a driver that arms them instead of sleeping on the link.
    pub fn split(self) -> (T, R) {
        (self.tx.half, self.rx.half)
    }
}

impl<T: Tx, R: Rx> Link for Parked<T, R> {
    type Tx = Counted<T>;
    type Rx = Counted<R>;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        (&mut self.tx, &mut self.rx)
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        if want == Want::Place {
            self.tx.arm(&self.waker);
        }
        // The packet that the driver cannot take up yet would wake it again and again.
        if want != Want::Place || !self.rx.has_peeked() {
            self.rx.arm(&self.waker);
        }
        let timeout = timeout.filter(|&span| !self.alarm.covers(span));
        self.parker.park(timeout);
    }

    fn waker(&mut self) -> Waker {
        self.waker.clone()
    }

    fn traffic(&self) -> Traffic {
        traffic(&self.tx, &self.rx)
    }
}

/// The receiving half by itself.
struct ParkedRx<R> {
    rx: Counted<R>,
    parker: Arc<Parker>,
    waker: Waker,
}

impl<R: Rx> Receive for ParkedRx<R> {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.rx.arm(&self.waker);
        self.parker.park(timeout);
    }

    fn waker(&mut self) -> Waker {
        self.waker.clone()
    }

    fn traffic(&self) -> Traffic {
        received(&self.rx)
    }
}

impl<R: Rx> Rx for ParkedRx<R> {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.rx.peek()
    }

    fn release(&mut self) {
        self.rx.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.rx.arm(waker);
    }
}

/// Puts one thread to sleep on a word that the kernel watches: neither side takes a lock, and the
/// clock is not read.
#[derive(Default)]
struct Parker(AtomicU32);

const AWAKE: u32 = 0;
const PARKED: u32 = 1;
const WOKEN: u32 = 2;

impl Parker {
    /// May return early; whoever sleeps looks again.
    fn park(&self, timeout: Option<Duration>) {
        let awake = self
            .0
            .compare_exchange(AWAKE, PARKED, Ordering::Relaxed, Ordering::Relaxed);
        if awake.is_ok() {
            let timeout = timeout.map(timespec);
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, PARKED, timeout.as_ref());
        }
        // Reads what the waker that is swallowed here has published.
        self.0.swap(AWAKE, Ordering::Acquire);
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.0.swap(WOKEN, Ordering::Release) == PARKED {
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }
}

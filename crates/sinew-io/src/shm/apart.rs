//! The halves of a link to another process, for two threads.
//!
//! The thread that receives takes the doorbell, for both. Where the sending half waits for a place, the
//! reactor thread takes it as well: the other thread may be busy with what it received, or wait for
//! that very place; and for a receiving half that is armed instead of slept on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use sinew::link::{RecvError, Rx, SendError, Tx};
use sinew_shm::linux::link::Link;

use super::process::{ProcessLink, ProcessRx, ProcessTx};
use super::waiter::Waiter;
use super::watch;
use crate::apart::{Apart, Receive};
use crate::counted::{Counted, received};
use crate::link::Traffic;
use crate::lock;
use crate::reactor::{self, Source};

impl ProcessLink {
    /// The halves, for two threads; see [`apart`](crate::apart). The link closes with the receiving
    /// one.
    pub fn apart(self) -> Apart {
        Apart {
            tx: Box::new(ApartTx {
                tx: self.tx.half,
                watch: None,
                link: self.link.clone(),
            }),
            rx: Box::new(ApartRx {
                rx: self.rx,
                link: self.link,
                waiter: self.waiter,
                watch: None,
                _keep: self.keep,
            }),
        }
    }
}

struct ApartTx {
    tx: ProcessTx,
    /// Made when it is first needed.
    watch: Option<Arc<Watch>>,
    link: Link,
}

impl Tx for ApartTx {
    fn mtu(&self) -> usize {
        Tx::mtu(&self.tx)
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        Tx::place(&mut self.tx, min)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        Tx::commit(&mut self.tx, len)
    }

    fn flush(&mut self) {
        Tx::flush(&mut self.tx);
    }

    fn arm(&mut self, waker: &Waker) {
        let link = &self.link;
        let watch = self.watch.take().or_else(|| Watch::new(link));
        let Some(watch) = watch else {
            // Nobody could be told: he looks again himself.
            return waker.wake_by_ref();
        };
        *lock(&watch.waits) = Some(waker.clone());
        Tx::arm(&mut self.tx, &watch.clone().into());
        watch.go_on();
        self.watch = Some(watch);
    }
}

impl Drop for ApartTx {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            lock(&watch.waits).take();
            reactor::unwatch(&**watch);
        }
    }
}

/// Takes the doorbell while somebody waits for a place.
struct Watch {
    link: Link,
    bell: OwnedFd,
    key: u64,
    waits: Mutex<Option<Waker>>,
}

impl Watch {
    fn new(link: &Link) -> Option<Arc<Watch>> {
        let bell = link.descriptor()?.try_clone_to_owned().ok()?;
        Some(Arc::new(Watch {
            link: link.clone(),
            bell,
            key: reactor::new_key(),
            waits: Mutex::new(None),
        }))
    }

    /// Watches until nobody waits any more.
    fn go_on(self: &Arc<Self>) {
        let is_over = lock(&self.waits).is_none() || self.link.is_gone();
        if is_over || !reactor::watch(self.clone()) {
            self.wake_by_ref();
        }
    }
}

impl Source for Watch {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn events(&self) -> EventFlags {
        EventFlags::IN
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn ready(self: Arc<Self>) {
        // Wakes this, where a place has come back.
        self.link.on_ready();
        self.go_on();
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = lock(&self.waits).take();
        waker.inspect(Waker::wake_by_ref);
    }
}

struct ApartRx {
    rx: Counted<ProcessRx>,
    link: Link,
    waiter: Waiter,
    /// Made when it is first armed.
    watch: Option<watch::Watch>,
    _keep: Option<Box<dyn Send>>,
}

impl Receive for ApartRx {
    fn wait(&mut self, timeout: Option<Duration>) {
        let rx = &mut self.rx;
        let is_ready = || !matches!(Rx::peek(&mut rx.half), Ok(None));
        if !self.waiter.look(timeout, is_ready) {
            self.waiter
                .sleep(&self.link, timeout, |waker| rx.arm(waker));
        }
    }

    fn waker(&mut self) -> Waker {
        self.waiter.waker()
    }

    fn traffic(&self) -> Traffic {
        received(&self.rx)
    }
}

impl Rx for ApartRx {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.rx.peek()
    }

    fn release(&mut self) {
        self.rx.release();
    }

    fn arm(&mut self, waker: &Waker) {
        if self.watch.is_none() {
            self.watch = watch::Watch::start(self.link.clone());
        }
        if self.watch.is_none() {
            // Nobody could be told: he looks again himself.
            return waker.wake_by_ref();
        }
        self.rx.arm(waker);
    }
}

impl Drop for ApartRx {
    /// Without it nobody would hear of the peer.
    fn drop(&mut self) {
        self.link.end().close();
    }
}

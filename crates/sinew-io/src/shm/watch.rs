//! A link whose doorbell the reactor thread takes, for drivers that arm its halves.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use rustix::event::epoll::EventFlags;
use sinew::link::{RecvError, Rx, SendError, Tx};
use sinew_shm::linux::link::Link;

use crate::lock;
use crate::reactor::{self, Source};

/// Takes the doorbell of a link while it lives.
pub(crate) struct Watch(Arc<Bell>);

/// Half of a link that is watched as long as one of its halves lives.
pub struct Watched<T> {
    half: T,
    _watch: Arc<Watch>,
}

impl<T> Watched<T> {
    pub(crate) fn new(half: T, watch: Arc<Watch>) -> Watched<T> {
        Watched {
            half,
            _watch: watch,
        }
    }
}

impl<T: Tx> Tx for Watched<T> {
    fn mtu(&self) -> usize {
        self.half.mtu()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        self.half.place(min)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.half.commit(len)
    }

    fn flush(&mut self) {
        self.half.flush();
    }

    fn arm(&mut self, waker: &Waker) {
        self.half.arm(waker);
    }
}

impl<T: Rx> Rx for Watched<T> {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.half.peek()
    }

    fn release(&mut self) {
        self.half.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.half.arm(waker);
    }
}

struct Bell {
    link: Link,
    socket: OwnedFd,
    key: u64,
    is_open: Mutex<bool>,
}

impl Watch {
    /// `None` where the doorbell cannot be watched.
    pub(crate) fn start(link: Link) -> Option<Watch> {
        let socket = link.descriptor()?.try_clone_to_owned().ok()?;
        let bell = Arc::new(Bell {
            link,
            socket,
            key: reactor::new_key(),
            is_open: Mutex::new(true),
        });
        // The peer may be there already.
        bell.link.on_ready();
        reactor::watch(bell.clone()).then(|| Watch(bell))
    }
}

impl Source for Bell {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn events(&self) -> EventFlags {
        EventFlags::IN
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn ready(self: Arc<Self>) {
        self.link.on_ready();
        // A bell that has hung up is ready for ever.
        if self.link.is_gone() {
            return;
        }
        let is_open = lock(&self.is_open);
        if *is_open && !reactor::watch(self.clone()) {
            // Nobody would hear of the peer any more.
            self.link.end().close();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *lock(&self.0.is_open) = false;
        reactor::unwatch(&*self.0);
    }
}

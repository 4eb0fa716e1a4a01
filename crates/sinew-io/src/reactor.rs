//! Wakes wakers when descriptors become ready: what `arm` on a carrier of this crate rests on.
//!
//! One thread for the whole program, started when first needed. The blocking drivers sleep by
//! themselves; they reach it only when a peer does not take what is sent to it, and for a thread
//! link's time-outs.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::thread;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::lock;

/// A descriptor that is watched for one event at a time.
pub(crate) trait Source: Send + Sync {
    fn fd(&self) -> BorrowedFd<'_>;
    /// Which events: reading or writing.
    fn events(&self) -> epoll::EventFlags;
    fn key(&self) -> u64;
    /// The descriptor is ready, or has failed.
    fn ready(self: Arc<Self>);
}

/// A number for a [`Source`].
pub(crate) fn new_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

struct Reactor {
    epoll: OwnedFd,
    watched: Mutex<HashMap<u64, Arc<dyn Source>>>,
}

/// Calls `source.ready()` once when its event comes, from the reactor thread.
///
/// `false`: it cannot be watched (a regular file, no descriptors left), and `ready` is not called.
#[must_use]
pub(crate) fn watch(source: Arc<dyn Source>) -> bool {
    Reactor::get().is_some_and(|reactor| reactor.add(source).is_ok())
}

/// Ends the watch on a source that goes away.
pub(crate) fn unwatch(source: &dyn Source) {
    unwatch_key(source.key(), source.fd());
}

/// As [`unwatch`].
pub(crate) fn unwatch_key(key: u64, fd: BorrowedFd<'_>) {
    let Some(reactor) = Reactor::get() else {
        return;
    };
    let known = lock(&reactor.watched).remove(&key);
    let _ = epoll::delete(&reactor.epoll, fd);
    drop(known);
}

impl Reactor {
    fn get() -> Option<&'static Reactor> {
        static REACTOR: OnceLock<Option<&'static Reactor>> = OnceLock::new();
        *REACTOR.get_or_init(|| {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
            let reactor: &'static Reactor = Box::leak(Box::new(Reactor {
                epoll,
                watched: Mutex::default(),
            }));
            let thread = thread::Builder::new().name("sinew-reactor".into());
            thread.spawn(|| reactor.run()).ok()?;
            Some(reactor)
        })
    }

    fn add(&self, source: Arc<dyn Source>) -> Result<(), Errno> {
        let key = source.key();
        let data = epoll::EventData::new_u64(key);
        let flags = source.events() | epoll::EventFlags::ONESHOT;
        let mut watched = lock(&self.watched);
        let result = match epoll::modify(&self.epoll, source.fd(), data, flags) {
            Err(Errno::NOENT) => epoll::add(&self.epoll, source.fd(), data, flags),
            result => result,
        };
        if result.is_ok() {
            watched.insert(key, source);
        }
        result
    }

    fn run(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            let _ = epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            );
            for event in &events {
                let source = lock(&self.watched).remove(&event.data.u64());
                if let Some(source) = source {
                    source.ready();
                }
            }
        }
    }
}

/// A descriptor that wakes one waker; [`Ready::arm`] sets it.
pub(crate) struct Ready<F: AsFd> {
    key: u64,
    fd: F,
    events: epoll::EventFlags,
    waker: Mutex<Option<Waker>>,
}

impl<F: AsFd + Send + Sync + 'static> Ready<F> {
    pub(crate) fn new(fd: F, events: epoll::EventFlags) -> Arc<Ready<F>> {
        Arc::new(Ready {
            key: new_key(),
            fd,
            events,
            waker: Mutex::new(None),
        })
    }

    pub(crate) fn inner(&self) -> &F {
        &self.fd
    }

    /// Wakes `waker` once when the descriptor is ready, at once where it already is or cannot be
    /// watched.
    pub(crate) fn arm(self: &Arc<Self>, waker: &Waker) {
        *lock(&self.waker) = Some(waker.clone());
        if !watch(self.clone()) {
            self.clone().ready();
        }
    }

    /// Ends the watch; to be called before the last user drops it.
    pub(crate) fn disarm(&self) {
        unwatch(self);
    }
}

impl<F: AsFd + Send + Sync> Source for Ready<F> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn events(&self) -> epoll::EventFlags {
        self.events
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn ready(self: Arc<Self>) {
        let waker = lock(&self.waker).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

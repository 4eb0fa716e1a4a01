//! A link that the reactor thread looks after, for drivers that arm its halves: it takes the doorbell,
//! and gives the sign of life once in each heartbeat.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use sinew::link::{RecvError, Rx, SendError, Tx};
use sinew_shm::linux::link::Link;

use crate::lock;
use crate::reactor::{self, Source};
use crate::sleep::timespec;

/// Looks after a link while it lives.
pub(crate) struct Watch([Arc<Part>; 2]);

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

struct Watching {
    link: Link,
    is_open: Mutex<bool>,
}

/// One of the descriptors at which the link is looked at: the doorbell's, or a timer.
struct Part {
    watching: Arc<Watching>,
    fd: OwnedFd,
    key: u64,
    is_timer: bool,
}

impl Watch {
    /// `None` where the doorbell cannot be watched, or no descriptor is left.
    pub(crate) fn start(link: Link) -> Option<Watch> {
        let doorbell = link.descriptor()?.try_clone_to_owned().ok()?;
        let timer = timer(link.heartbeat())?;
        let watching = Arc::new(Watching {
            link,
            is_open: Mutex::new(true),
        });
        let part = |fd, is_timer| {
            Arc::new(Part {
                watching: watching.clone(),
                fd,
                key: reactor::new_key(),
                is_timer,
            })
        };
        let watch = Watch([part(doorbell, false), part(timer, true)]);
        // The peer may be there already.
        watching.link.on_ready();
        let mut parts = watch.0.iter();
        let is_watched = parts.all(|part| reactor::watch(part.clone()));
        is_watched.then_some(watch)
    }
}

/// Becomes readable again and again.
fn timer(interval: Duration) -> Option<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags).ok()?;
    // Zero would be no timer at all.
    let interval = timespec(interval.max(Duration::from_millis(1)));
    let again = Itimerspec {
        it_interval: interval,
        it_value: interval,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &again).ok()?;
    Some(timer)
}

impl Source for Part {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn events(&self) -> EventFlags {
        EventFlags::IN
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn ready(self: Arc<Self>) {
        if self.is_timer {
            // How often it ran out does not matter.
            let _ = rustix::io::read(&self.fd, &mut [0; 8][..]);
        }
        let link = &self.watching.link;
        link.on_ready();
        // A bell that has hung up is ready for ever.
        if link.is_gone() {
            return;
        }
        let is_open = lock(&self.watching.is_open);
        if *is_open && !reactor::watch(self.clone()) {
            // Nobody would hear of the peer any more.
            link.end().close();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let [doorbell, timer] = &self.0;
        *lock(&doorbell.watching.is_open) = false;
        reactor::unwatch(&**doorbell);
        reactor::unwatch(&**timer);
    }
}

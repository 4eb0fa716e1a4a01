//! Sleeping on descriptors, and being woken from elsewhere.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A time-out for the kernel.
pub(crate) fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: span.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: i64::from(span.subsec_nanos()),
    }
}

/// How often a sleeper looks that nobody can wake, for want of a descriptor.
const POLL: Duration = Duration::from_millis(20);

/// To sleep until `fd` can be read, or has ended.
pub(crate) fn reading(fd: &impl AsFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}

/// To sleep until `fd` can be written, or has ended.
pub(crate) fn writing(fd: &impl AsFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::OUT)
}

/// Sleeps in poll(2). The doorbell exists only where somebody asks for its waker.
#[derive(Default)]
pub(crate) struct Sleeper {
    bell: Option<Arc<EventBell>>,
}

impl Sleeper {
    /// Until one of the descriptors is ready, the waker was called, or time is up.
    pub(crate) fn sleep(
        &mut self,
        one: PollFd<'_>,
        other: Option<PollFd<'_>>,
        timeout: Option<Duration>,
    ) {
        let deaf = self.bell.as_ref().is_some_and(|bell| bell.fd.is_none());
        let timeout = if deaf {
            Some(timeout.map_or(POLL, |span| span.min(POLL)))
        } else {
            timeout
        };
        let timeout = timeout.map(timespec);
        let bell = self.bell.as_ref().and_then(|bell| bell.fd.as_ref());
        // Without an allocation: unused entries are copies of the first, and are not asked for.
        let mut fds = [one.clone(), one.clone(), one];
        let mut count = 1;
        let rest = bell.map(|bell| PollFd::new(bell, PollFlags::IN));
        for fd in rest.into_iter().chain(other) {
            fds[count] = fd;
            count += 1;
        }
        let _ = poll(&mut fds[..count], timeout.as_ref());
        let rung = bell.is_some() && fds[1].revents().contains(PollFlags::IN);
        if let Some(bell) = &self.bell {
            bell.clear(rung);
        }
    }

    /// Whether the waker was called since the last sleep or the last call of this.
    pub(crate) fn take_ring(&self) -> bool {
        let bell = self.bell.as_ref();
        let rung = bell.filter(|bell| bell.rung.load(Ordering::Relaxed));
        // A byte that comes after this ends one sleep early, no more.
        rung.inspect(|bell| bell.clear(true)).is_some()
    }

    pub(crate) fn waker(&mut self) -> Waker {
        self.bell
            .get_or_insert_with(|| Arc::new(EventBell::new()))
            .clone()
            .into()
    }
}

/// An eventfd that is written at most once between two looks.
struct EventBell {
    fd: Option<OwnedFd>,
    rung: AtomicBool,
}

impl EventBell {
    fn new() -> EventBell {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        EventBell {
            fd: eventfd(0, flags).ok(),
            rung: AtomicBool::new(false),
        }
    }

    /// Called awake, before the sleeper looks for what there is to do.
    fn clear(&self, rung: bool) {
        if rung && let Some(fd) = &self.fd {
            let _ = rustix::io::read(fd, &mut [0u8; 8]);
        }
        // Reads what a ring that is swallowed here has published.
        self.rung.swap(false, Ordering::AcqRel);
    }
}

impl Wake for EventBell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel)
            && let Some(fd) = &self.fd
        {
            let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
        }
    }
}

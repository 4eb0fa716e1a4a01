//! Bytes on their way out: written by the driver's flush or by the reactor thread, whichever
//! comes first, also after the sending half is dropped.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use sinew::link::SendError;

use crate::lock;
use crate::reactor::{self, Source};

pub(crate) mod queue;

/// Dropped links, in the whole program, whose last bytes may still wait for their peers.
const LINGERING: usize = 64;

/// What waits to be written.
pub(crate) trait Pending: Send + 'static {
    /// The bytes that one write may take; none where nothing waits.
    fn unsent(&self) -> &[u8];

    /// The descriptor has taken this many of them.
    fn sent(&mut self, count: usize);

    /// Drops everything.
    fn clear(&mut self);

    /// Whether one more packet may come, however long.
    fn has_room(&self) -> bool;
}

/// What the sending half shares with the reactor.
pub(crate) struct Out<P> {
    key: u64,
    pub(crate) fd: OwnedFd,
    state: Mutex<OutState<P>>,
    /// Copy of whether [`OutState::stuck`] says so, for who must not wait for the lock.
    is_stuck: AtomicBool,
}

pub(crate) struct OutState<P> {
    pub(crate) pending: P,
    pub(crate) written: u64,
    pub(crate) closed: bool,
    /// The reactor watches for room.
    watched: bool,
    waker: Option<Waker>,
    pub(crate) patience: Option<Duration>,
    /// Since when the descriptor has taken no byte of what waits; only known with a patience.
    stuck: Option<Instant>,
}

impl<P: Pending> OutState<P> {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.unsent().is_empty()
    }

    /// Whether the descriptor, which has just taken nothing, has done so for too long.
    fn is_given_up(&mut self) -> bool {
        let Some(patience) = self.patience else {
            return false;
        };
        self.stuck.get_or_insert_with(Instant::now).elapsed() >= patience
    }

    fn close(&mut self) {
        self.closed = true;
        self.stuck = None;
        self.pending.clear();
    }
}

impl<P: Pending> Out<P> {
    pub(crate) fn new(fd: OwnedFd, pending: P) -> Arc<Out<P>> {
        Arc::new(Out {
            key: reactor::new_key(),
            fd,
            state: Mutex::new(OutState {
                pending,
                written: 0,
                closed: false,
                watched: false,
                waker: None,
                patience: None,
                stuck: None,
            }),
            is_stuck: AtomicBool::new(false),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, OutState<P>> {
        lock(&self.state)
    }

    /// Writes as much as the descriptor takes.
    pub(crate) fn write(&self, state: &mut OutState<P>) {
        while !state.is_empty() {
            match rustix::io::write(&self.fd, state.pending.unsent()) {
                Ok(count) => {
                    state.pending.sent(count);
                    state.written += count as u64;
                    state.stuck = None;
                }
                // Refused: of an earlier datagram. This one has not left yet, and when it has, the
                // receiving half hears the same.
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(Errno::AGAIN) if !state.is_given_up() => break,
                Err(Errno::AGAIN) => {
                    // The receiving half ends as well. Fails on what is no socket.
                    let _ = shutdown(&self.fd, Shutdown::Both);
                    state.close();
                }
                Err(_) => state.close(),
            }
        }
        self.is_stuck
            .store(state.stuck.is_some(), Ordering::Relaxed);
    }

    /// A state in which a place may be given; else what a sender is told.
    pub(crate) fn with_room(&self) -> Result<MutexGuard<'_, OutState<P>>, SendError> {
        let mut state = self.state();
        if !state.pending.has_room() {
            self.write(&mut state);
        }
        match state.closed {
            true => Err(SendError::Closed),
            false if state.pending.has_room() => Ok(state),
            false => Err(SendError::Full),
        }
    }

    /// Writes what the descriptor takes; the reactor goes on with the rest.
    pub(crate) fn flush(self: &Arc<Self>) {
        let mut state = self.state();
        self.write(&mut state);
        self.hand_over(state);
    }

    /// As [`Out::flush`], and wakes `waker` when there is room or the end.
    pub(crate) fn arm(self: &Arc<Self>, waker: &Waker) {
        let mut state = self.state();
        self.write(&mut state);
        if state.closed || state.pending.has_room() {
            self.hand_over(state);
            return waker.wake_by_ref();
        }
        state.waker = Some(waker.clone());
        self.hand_over(state);
    }

    /// Writes what is left without the sending half, which is dropped. Of too many such, the
    /// oldest is given up.
    pub(crate) fn linger(self: &Arc<Self>) {
        static ALL: Mutex<VecDeque<Weak<dyn Abandon>>> = Mutex::new(VecDeque::new());
        self.flush();
        if self.state().is_empty() {
            return;
        }
        let mut all = lock(&ALL);
        all.retain(|other| other.strong_count() > 0);
        all.push_back(Arc::<Self>::downgrade(self));
        let oldest = (all.len() > LINGERING).then(|| all.pop_front()).flatten();
        drop(all);
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            oldest.abandon();
        }
    }

    /// Lets the reactor call [`Source::ready`] where something is unsent, unless it will already.
    pub(crate) fn hand_over(self: &Arc<Self>, mut state: MutexGuard<'_, OutState<P>>) {
        if state.is_empty() || std::mem::replace(&mut state.watched, true) {
            return;
        }
        drop(state);
        let watched = reactor::watch(self.clone());
        let mut state = self.state();
        if !watched {
            // Whoever waits tries again himself.
            state.watched = false;
            let waker = state.waker.take();
            drop(state);
            waker.inspect(Waker::wake_by_ref);
        } else if state.closed {
            // Given up meanwhile.
            drop(state);
            reactor::unwatch(&**self);
        }
    }
}

/// Bytes that can be given up.
trait Abandon: Send + Sync {
    fn abandon(&self);
}

impl<P: Pending> Abandon for Out<P> {
    fn abandon(&self) {
        self.state().close();
        reactor::unwatch(self);
    }
}

/// Gives up a peer that takes nothing, where somebody sleeps who would notice.
pub(crate) trait Patient: Send + Sync {
    /// Shortens a sleep so that a peer that takes nothing is given up in time.
    fn limit(&self, timeout: Option<Duration>) -> Option<Duration>;
}

impl<P: Pending> Patient for Out<P> {
    fn limit(&self, timeout: Option<Duration>) -> Option<Duration> {
        if !self.is_stuck.load(Ordering::Relaxed) {
            return timeout;
        }
        let mut state = self.state();
        let left =
            |state: &OutState<P>| Some(state.patience?.saturating_sub(state.stuck?.elapsed()));
        if left(&state) == Some(Duration::ZERO) {
            self.write(&mut state);
        }
        timeout.into_iter().chain(left(&state)).min()
    }
}

impl<P: Pending> Source for Out<P> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn events(&self) -> epoll::EventFlags {
        epoll::EventFlags::OUT
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn ready(self: Arc<Self>) {
        let mut state = self.state();
        state.watched = false;
        self.write(&mut state);
        let free = state.closed || state.pending.has_room();
        let waker = if free { state.waker.take() } else { None };
        self.hand_over(state);
        waker.inspect(Waker::wake_by_ref);
    }
}

impl<P> Drop for Out<P> {
    fn drop(&mut self) {
        reactor::unwatch_key(self.key, self.fd.as_fd());
        // So that the peer sees the end although the receiving half has a duplicate. Fails on what
        // is no socket, where nothing is to be done.
        let _ = shutdown(&self.fd, Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A byte that is always there.
    struct Byte;

    impl Pending for Byte {
        fn unsent(&self) -> &[u8] {
            &[1]
        }

        fn sent(&mut self, _count: usize) {}

        fn clear(&mut self) {}

        fn has_room(&self) -> bool {
            false
        }
    }

    #[test]
    fn what_cannot_be_watched_wakes_once_and_can_be_tried_again() {
        let null = std::fs::File::create("/dev/null").unwrap();
        let out = Out::new(null.into(), Byte);
        let count = Arc::new(Count::default());
        for times in 1..=2 {
            let mut state = out.state();
            state.waker = Some(count.clone().into());
            out.hand_over(state);
            assert_eq!(count.0.load(Ordering::SeqCst), times);
        }
    }
}

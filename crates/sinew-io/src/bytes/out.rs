//! Frames on their way out: written by the driver's flush or by the reactor thread, whichever
//! comes first, also after the sending half is dropped.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use crate::lock;
use crate::reactor::{self, Source};

/// Bytes that are framed and wait to be written, at least; room for several packets, so that one
/// write takes them all, and few enough that nothing urgent waits long behind them.
const BATCH: usize = 8192;
/// Dropped links, in the whole program, whose last bytes may still wait for their peers.
const LINGERING: usize = 64;

/// What the sending half shares with the reactor.
pub(super) struct Out {
    key: u64,
    pub(super) fd: OwnedFd,
    max_frame: usize,
    state: Mutex<OutState>,
}

pub(super) struct OutState {
    batch: Box<[u8]>,
    start: usize,
    end: usize,
    pub(super) written: u64,
    pub(super) closed: bool,
    /// The reactor watches for room.
    watched: bool,
    waker: Option<Waker>,
    pub(super) patience: Option<Duration>,
    /// Since when the descriptor has taken no byte of what waits; only known with a patience.
    stuck: Option<Instant>,
}

impl OutState {
    pub(super) fn unsent(&self) -> &[u8] {
        self.batch.get(self.start..self.end).unwrap_or_default()
    }

    /// The free end of the batch, all of it in one piece.
    pub(super) fn free(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.batch.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        self.batch.get_mut(self.end..).unwrap_or_default()
    }

    /// This many bytes have been written to the free end.
    pub(super) fn add(&mut self, framed: usize) {
        self.end += framed;
    }

    /// Writes as much as the descriptor takes.
    pub(super) fn write(&mut self, fd: &OwnedFd) {
        while !self.unsent().is_empty() {
            match rustix::io::write(fd, self.unsent()) {
                Ok(count) => {
                    self.start += count;
                    self.written += count as u64;
                    self.stuck = None;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !self.is_given_up() => return,
                Err(Errno::AGAIN) => {
                    // The receiving half ends as well. Fails on what is no socket.
                    let _ = shutdown(fd, Shutdown::Both);
                    return self.close();
                }
                Err(_) => return self.close(),
            }
        }
        (self.start, self.end) = (0, 0);
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
        (self.start, self.end) = (0, 0);
    }
}

impl Out {
    pub(super) fn new(fd: OwnedFd, max_frame: usize) -> Arc<Out> {
        Arc::new(Out {
            key: reactor::new_key(),
            fd,
            max_frame,
            state: Mutex::new(OutState {
                batch: vec![0; BATCH.max(2 * max_frame)].into(),
                start: 0,
                end: 0,
                written: 0,
                closed: false,
                watched: false,
                waker: None,
                patience: None,
                stuck: None,
            }),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, OutState> {
        lock(&self.state)
    }

    /// Whether one more frame fits, whatever its content.
    pub(super) fn has_room(&self, state: &OutState) -> bool {
        state.batch.len() - state.unsent().len() >= self.max_frame
    }

    /// Writes what the descriptor takes; the reactor goes on with the rest.
    pub(super) fn flush(self: &Arc<Self>) {
        let mut state = self.state();
        state.write(&self.fd);
        self.hand_over(state);
    }

    /// As [`Out::flush`], and wakes `waker` when there is room or the end.
    pub(super) fn arm(self: &Arc<Self>, waker: &Waker) {
        let mut state = self.state();
        state.write(&self.fd);
        if state.closed || self.has_room(&state) {
            drop(state);
            return waker.wake_by_ref();
        }
        state.waker = Some(waker.clone());
        self.hand_over(state);
    }

    /// Shortens a sleep so that a peer that takes nothing is given up in time.
    pub(super) fn limit(&self, timeout: Option<Duration>) -> Option<Duration> {
        let mut state = self.state();
        let left = |state: &OutState| Some(state.patience?.saturating_sub(state.stuck?.elapsed()));
        if left(&state) == Some(Duration::ZERO) {
            state.write(&self.fd);
        }
        timeout.into_iter().chain(left(&state)).min()
    }

    /// Writes what is left without the sending half, which is dropped. Of too many such, the
    /// oldest is given up.
    pub(super) fn linger(self: &Arc<Self>) {
        static ALL: Mutex<VecDeque<Weak<Out>>> = Mutex::new(VecDeque::new());
        self.flush();
        if self.state().unsent().is_empty() {
            return;
        }
        let mut all = lock(&ALL);
        all.retain(|other| other.strong_count() > 0);
        all.push_back(Arc::downgrade(self));
        let oldest = (all.len() > LINGERING).then(|| all.pop_front()).flatten();
        drop(all);
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            oldest.state().close();
            reactor::unwatch(&*oldest);
        }
    }

    /// Lets the reactor call [`Source::ready`] where something is unsent, unless it will already.
    fn hand_over(self: &Arc<Self>, mut state: MutexGuard<'_, OutState>) {
        if state.unsent().is_empty() || std::mem::replace(&mut state.watched, true) {
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

impl Source for Out {
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
        state.write(&self.fd);
        let free = state.closed || self.has_room(&state);
        let waker = if free { state.waker.take() } else { None };
        self.hand_over(state);
        waker.inspect(Waker::wake_by_ref);
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        reactor::unwatch(self);
        // So that the peer sees the end although the receiving half has a duplicate. Fails on what
        // is no socket, where nothing is to be done.
        let _ = shutdown(&self.fd, Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_cannot_be_watched_wakes_once_and_can_be_tried_again() {
        let null = std::fs::File::create("/dev/null").unwrap();
        let out = Out::new(null.into(), 64);
        let count = Arc::new(Count::default());
        for times in 1..=2 {
            let mut state = out.state();
            state.add(1);
            state.waker = Some(count.clone().into());
            out.hand_over(state);
            assert_eq!(count.0.load(Ordering::SeqCst), times);
        }
    }
}

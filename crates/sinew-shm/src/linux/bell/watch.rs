//! A thread that ends the wait on a futex when a socket hangs up.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use crate::linux::Deadline;

/// Watches one socket until it is dropped.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Ends the thread.
    stop: OwnedFd,
    state: Mutex<State>,
    left: Condvar,
}

struct State {
    hung_up: bool,
    inside: u32,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody is about to wait, or waits. Dropped when the wait is over.
pub(super) struct Inside<'a>(&'a Shared);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.inside = state.inside.saturating_sub(1);
        if state.hung_up {
            self.0.left.notify_all();
        }
    }
}

impl Watch {
    /// Calls `wake` after `socket` hung up, as often as it takes to get everybody out.
    pub(super) fn start(socket: OwnedFd, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            state: Mutex::new(State {
                hung_up: false,
                inside: 0,
            }),
            left: Condvar::new(),
        });
        let theirs = shared.clone();
        let thread = Builder::new()
            .name("sinew-watch".into())
            .spawn(move || watch(&theirs, &socket, wake))?;
        Ok(Watch {
            shared,
            thread: Some(thread),
        })
    }

    /// `None`: the socket hung up. Otherwise it is safe to wait: the wait will be ended.
    pub(super) fn enter(&self) -> Option<Inside<'_>> {
        let mut state = self.shared.state();
        if state.hung_up {
            return None;
        }
        state.inside = state.inside.saturating_add(1);
        Some(Inside(&self.shared))
    }
}

fn watch(shared: &Shared, socket: &OwnedFd, wake: impl Fn()) {
    let mut fds = [
        PollFd::new(socket, PollFlags::RDHUP),
        PollFd::new(&shared.stop, PollFlags::IN),
    ];
    let polled = Deadline::NEVER.poll(&mut fds);
    let [_, stop] = fds;
    if polled.is_ok() && !stop.revents().is_empty() {
        return;
    }
    let mut state = shared.state();
    state.hung_up = true;
    // Who entered may not be in the kernel yet when it is woken, so it is woken until it has left.
    while state.inside > 0 {
        wake();
        let again = Duration::from_millis(1);
        state = match shared.left.wait_timeout(state, again) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It never waits for anybody but those inside, and nobody is: they borrow this.
            let _ = thread.join();
        }
    }
}

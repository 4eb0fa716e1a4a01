//! Links over shared memory: one for each process that connects to the socket at a path.
//!
//! The exchange with each runs in a thread of its own, so that one that is silent holds nobody up. A
//! process that only observes keeps its thread until it goes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;

use sinew_shm::linux::exchange::{ExchangeError, Field, Refusal, turn_away};
use sinew_shm::linux::link::{LinkError, Listener};

use super::Accept;
use crate::apart::Apart;
use crate::endpoint::Endpoint;
use crate::lock;
use crate::serve::control::Control;
use crate::serve::listen::ListenError;
use crate::shm::call_link;
use crate::shm::config::{Chosen, chosen};
use crate::shm::greet::{Greeted, HangUp, Shown, greet};
use crate::sleep::{Sleeper, reading};

/// Threads for those who have not said yet what they want, and for observers.
const THREADS: usize = 8;

pub(super) struct Memory {
    listener: Listener,
    desk: Arc<Desk>,
}

/// What the threads share.
struct Desk {
    at: Endpoint,
    chosen: Chosen,
    shown: Arc<Shown>,
    control: Control,
    made: Mutex<Vec<Apart>>,
    threads: AtomicUsize,
    refused: AtomicU64,
}

impl Memory {
    pub(super) fn bind(path: &Path, at: &Endpoint) -> Result<Memory, ListenError> {
        let chosen = chosen(at)?;
        let listener = Listener::bind(path).map_err(|error| match error {
            LinkError::Socket(error) => ListenError::new(at, error),
            error => call_link::refused(at, error).into(),
        })?;
        let desk = Desk {
            at: at.clone(),
            chosen,
            shown: Arc::default(),
            control: Control::default(),
            made: Mutex::default(),
            threads: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        };
        Ok(Memory {
            listener,
            desk: Arc::new(desk),
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.desk.control.stop();
    }
}

impl Accept for Memory {
    fn accept(&mut self, waker: &Waker) -> io::Result<Apart> {
        loop {
            if let Some(apart) = lock(&self.desk.made).pop() {
                return Ok(apart);
            }
            let socket = self.listener.take()?;
            if self.desk.threads.fetch_add(1, Ordering::Relaxed) >= THREADS {
                self.desk.threads.fetch_sub(1, Ordering::Relaxed);
                self.desk.refused.fetch_add(1, Ordering::Relaxed);
                turn_away(socket, Refusal::of(Field::Busy));
                continue;
            }
            let (desk, waker) = (self.desk.clone(), waker.clone());
            let thread = thread::Builder::new().name("sinew-greet".into());
            let started = thread.spawn(move || {
                desk.greet(socket);
                desk.threads.fetch_sub(1, Ordering::Relaxed);
                waker.wake();
            });
            if started.is_err() {
                self.desk.threads.fetch_sub(1, Ordering::Relaxed);
                self.desk.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    fn refused(&self) -> u64 {
        self.desk.refused.load(Ordering::Relaxed)
    }
}

impl Desk {
    /// Whoever has connected: a peer, or an observer.
    fn greet(&self, socket: OwnedFd) {
        let refuse = || {
            self.refused.fetch_add(1, Ordering::Relaxed);
        };
        let Ok(hang_up) = HangUp::of(&socket) else {
            return refuse();
        };
        let greeted = self.control.during(Arc::new(hang_up).into(), || {
            match self.control.is_stopped() {
                true => Err(ExchangeError::HungUp.into()),
                false => greet(socket, self.chosen.config, &self.shown, || false),
            }
        });
        match greeted {
            Ok(Greeted::Client(link, shows)) => {
                match call_link::over(&self.at, link, self.chosen) {
                    Ok(link) => lock(&self.made).push(link.keeping(shows).apart()),
                    Err(_) => refuse(),
                }
            }
            Ok(Greeted::Observer(socket, _looks)) => {
                // The observer sees by the hang-up that this process has ended.
                let mut sleeper = Sleeper::default();
                self.control.during(sleeper.waker(), || {
                    if !self.control.is_stopped() {
                        sleeper.sleep(reading(&socket), None, None);
                    }
                });
            }
            // Nobody has asked for anything: another server that looks whether this one lives.
            Err(LinkError::Exchange(ExchangeError::HungUp)) => {}
            Err(_) => refuse(),
        }
    }
}

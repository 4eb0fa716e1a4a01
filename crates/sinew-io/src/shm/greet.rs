//! `shm:PATH`, as its server: what happens on a socket that has connected.
//!
//! Each runs in a thread of its own, so that one that is silent holds nobody up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Wake;

use rustix::net::{Shutdown, shutdown};
use sinew_shm::domain::{Config, Role};
use sinew_shm::linux::exchange::{
    self, DoorbellKind, ExchangeError, Field, Greeting, Refusal, TIMEOUT,
};
use sinew_shm::linux::link::{Link, LinkError};
use sinew_shm::linux::process::offer;

use super::call_link::options;
use crate::lock;

/// The segments of the links that are served at one path: what observers see.
#[derive(Default)]
pub(crate) struct Shown {
    links: Mutex<Vec<Arc<[OwnedFd; 2]>>>,
    observers: AtomicUsize,
}

/// Observers at the same time. One that never goes has a thread, which a client may need.
const OBSERVERS: usize = 4;

/// What came of a socket.
pub(crate) enum Greeted {
    /// A client, and what shows it to observers while it is kept.
    Client(Link, Shows),
    /// An observer, which has seen what there is. Its socket stays open as long as it is to know
    /// that this process lives.
    Observer(OwnedFd, Looks),
}

/// Shows one link as long as it lives.
pub(crate) struct Shows(Arc<Shown>, Arc<[OwnedFd; 2]>);

impl Drop for Shows {
    fn drop(&mut self) {
        lock(&self.0.links).retain(|shown| !Arc::ptr_eq(shown, &self.1));
    }
}

/// One of the observers that there may be.
pub(crate) struct Looks(Arc<Shown>);

impl Drop for Looks {
    fn drop(&mut self) {
        self.0.observers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Goes through the exchange. `is_full`: a client is told that there are too many.
pub(crate) fn greet(
    socket: OwnedFd,
    config: Config<'static>,
    shown: &Arc<Shown>,
    is_full: impl FnOnce() -> bool,
) -> Result<Greeted, LinkError> {
    let greeting = exchange::greet(socket, TIMEOUT)?;
    if greeting.is_observer() {
        let Some(looks) = shown.looks() else {
            return Err(busy(greeting));
        };
        return Ok(Greeted::Observer(show(greeting, shown)?, looks));
    }
    if is_full() {
        return Err(busy(greeting));
    }
    let offer = offer(&config, Role::First, DoorbellKind::Socket);
    let joined = greeting.join(&offer, TIMEOUT)?;
    let link = Link::joined(joined, config, Role::First, options())?;
    let shows = shown.add(&link).map_err(LinkError::Socket)?;
    Ok(Greeted::Client(link, shows))
}

fn busy(greeting: Greeting) -> LinkError {
    let busy = Refusal::of(Field::Busy);
    greeting.refuse(busy);
    ExchangeError::Refused(busy).into()
}

fn show(greeting: Greeting, shown: &Shown) -> Result<OwnedFd, ExchangeError> {
    let links = lock(&shown.links).clone();
    let links: Vec<(BorrowedFd<'_>, BorrowedFd<'_>)> = links
        .iter()
        .map(|files| (files[0].as_fd(), files[1].as_fd()))
        .collect();
    greeting.show(&links, TIMEOUT)
}

impl Shown {
    fn add(self: &Arc<Self>, link: &Link) -> io::Result<Shows> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let [first, second] = link.segments().ok_or_else(missing)?;
        let files = Arc::new([first.try_clone_to_owned()?, second.try_clone_to_owned()?]);
        lock(&self.links).push(files.clone());
        Ok(Shows(self.clone(), files))
    }

    fn looks(self: &Arc<Self>) -> Option<Looks> {
        let before = self.observers.fetch_add(1, Ordering::Relaxed);
        // Counted back when it is dropped, also if it is one too many.
        let looks = Looks(self.clone());
        (before < OBSERVERS).then_some(looks)
    }
}

/// Ends an exchange from elsewhere: whoever waits for the peer finds that it has hung up.
pub(crate) struct HangUp(OwnedFd);

impl HangUp {
    pub(crate) fn of(socket: &OwnedFd) -> io::Result<HangUp> {
        Ok(HangUp(socket.try_clone()?))
    }
}

impl Wake for HangUp {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

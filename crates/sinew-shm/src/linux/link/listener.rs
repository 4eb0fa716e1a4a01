//! Where processes connect.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use std::vec::Vec;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use super::wait::lock;
use super::{Link, LinkError, Options};
use crate::domain::{Config, Role};
use crate::linux::Deadline;
use crate::linux::exchange::{self, Accepted};
use crate::linux::place::SocketPath;
use crate::linux::process::offer;
use crate::lock::Lock;

/// A unix socket at a path, at which processes connect, each for a link of its own. Observers are shown
/// the links that were made here and that live.
///
/// The path is removed when it is dropped.
pub struct Listener {
    /// Goes before the socket.
    _place: SocketPath,
    socket: OwnedFd,
    shown: Mutex<Vec<Weak<[OwnedFd; 2]>>>,
}

impl Listener {
    /// Listens at `path`. What an ended process left there is replaced; where one still listens, that
    /// is an error.
    pub fn bind(path: impl AsRef<Path>) -> Result<Listener, LinkError> {
        let path = path.as_ref();
        let (socket, place) = bound(path).map_err(LinkError::Socket)?;
        Ok(Listener {
            _place: place,
            socket,
            shown: Mutex::default(),
        })
    }

    /// The socket of a process that has connected, for a program that goes through the exchange
    /// itself ([`exchange::greet`], [`Link::joined`]), in a thread of its own. `WouldBlock` where
    /// there is none now.
    pub fn take(&self) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(accept_with(&self.socket, flags)?)
    }

    /// Waits for a process to connect, and makes a link with it, as the first side. An error of one
    /// process ([`LinkError::Exchange`]) says nothing of the next: call it again.
    pub fn accept<L: Lock>(
        &self,
        config: Config<'static>,
        options: Options,
        limit: Option<Duration>,
    ) -> Result<Link<L>, LinkError> {
        let deadline = Deadline::within(limit);
        loop {
            let ready = deadline.ready(self.socket.as_fd(), PollFlags::IN);
            if !ready.map_err(LinkError::Socket)? {
                return Err(LinkError::Nobody);
            }
            let socket = match self.take() {
                Ok(socket) => socket,
                Err(error) => match Errno::from_io_error(&error) {
                    // It went again.
                    Some(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => continue,
                    _ => return Err(LinkError::Socket(error)),
                },
            };
            let offer = offer(&config, Role::First, options.doorbell);
            let shown = self.shown();
            let shown: Vec<(BorrowedFd<'_>, BorrowedFd<'_>)> = shown
                .iter()
                .map(|files| (files[0].as_fd(), files[1].as_fd()))
                .collect();
            match exchange::accept(socket, &offer, &shown, options.exchange)? {
                Accepted::Observer(_) => {}
                Accepted::Joined(joined) => {
                    let link = Link::joined(joined, config, Role::First, options)?;
                    if let Some(files) = &link.0.files {
                        lock(&self.shown).push(Arc::downgrade(files));
                    }
                    return Ok(link);
                }
            }
        }
    }

    /// The segments of links that live.
    fn shown(&self) -> Vec<Arc<[OwnedFd; 2]>> {
        let mut shown = lock(&self.shown);
        shown.retain(|files| files.strong_count() > 0);
        shown.iter().filter_map(Weak::upgrade).collect()
    }
}

impl AsFd for Listener {
    /// Readable when somebody has connected.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn bound(path: &Path) -> io::Result<(OwnedFd, SocketPath)> {
    let address = SocketAddrUnix::new(path)?;
    // So that `accept` never waits for somebody who went again.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let make = || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let listening = || {
        let socket = make()?;
        bind(&socket, &address)?;
        listen(&socket, 64)?;
        Ok(socket)
    };
    let is_dead = || {
        let refused = |socket| connect(socket, &address) == Err(Errno::CONNREFUSED);
        make().is_ok_and(refused)
    };
    SocketPath::bind(path, listening, is_dead)
}

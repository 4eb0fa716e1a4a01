//! What an endpoint names, as its server: halves of a link for each that comes.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::listen as accept_up_to;
use sinew_shm::linux::place::SocketPath;

use super::Apart;
use super::open::{open, over_stream, over_tcp};
use crate::endpoint::{Address, Endpoint};
use crate::open::addresses;
use crate::serve::listen::{BACKLOG, ListenError, bind_unix};
use crate::sleep::{Sleeper, reading};

mod datagrams;
mod memory;

use datagrams::Datagrams;
use memory::Memory;

/// How long to wait after an error that says nothing of the next one who comes: the client has gone
/// already, or there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(10);

/// Serves the endpoint: `tcp`, `unix`, `udp` and `shm` for any number of peers; a serial line, a
/// child process, the standard streams, the memory of another core (`doorbell=`) and an emulated board are
/// opened, and are the one peer.
///
/// On `udp` the first datagram of an address makes a link, and is its first packet.
pub fn listen(endpoint: &Endpoint) -> Result<Listener, ListenError> {
    let fail = |error| ListenError::new(endpoint, error);
    let mut endpoint = endpoint.clone();
    let at = endpoint.clone();
    let source: Box<dyn Accept> = match &mut endpoint.address {
        Address::Tcp(host, port) => {
            let listener = TcpListener::bind(&addresses(&at, host, *port)?[..]).map_err(fail)?;
            accept_up_to(&listener, BACKLOG).map_err(|error| fail(error.into()))?;
            listener.set_nonblocking(true).map_err(fail)?;
            *port = listener.local_addr().map_err(fail)?.port();
            Box::new(Tcp { listener, at })
        }
        Address::Unix(path) => {
            let (listener, place) = bind_unix(path).map_err(fail)?;
            listener.set_nonblocking(true).map_err(fail)?;
            let _place = place;
            Box::new(Unix {
                _place,
                listener,
                at,
            })
        }
        Address::Udp(host, port) => {
            let datagrams = Datagrams::bind(&addresses(&at, host, *port)?[..], at.mtu);
            let datagrams = datagrams.map_err(fail)?;
            *port = datagrams.port().map_err(fail)?;
            Box::new(datagrams)
        }
        Address::Shm(path) if at.doorbell.is_none() => Box::new(Memory::bind(path, &at)?),
        _ => {
            let never = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| fail(error.into()))?;
            Box::new(One(Some(open(&at)?), never))
        }
    };
    let mut sleeper = Sleeper::default();
    Ok(Listener {
        endpoint,
        source,
        called: Arc::new(Called {
            is_called: AtomicBool::new(false),
            wakes: sleeper.waker(),
        }),
        sleeper,
        refused: 0,
    })
}

/// An endpoint that is being served. Dropping it frees the address; the links stay.
pub struct Listener {
    endpoint: Endpoint,
    source: Box<dyn Accept>,
    sleeper: Sleeper,
    called: Arc<Called>,
    refused: u64,
}

/// Whether somebody wants the listener to look up.
struct Called {
    is_called: AtomicBool,
    wakes: Waker,
}

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        self.is_called.store(true, Release);
        self.wakes.wake_by_ref();
    }
}

impl Listener {
    /// The endpoint, with the port that was found where 0 was asked for.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A link with the next one who comes; `None` after the limit (`None`: never), or where the
    /// [waker](Listener::waker) was called.
    pub fn accept_within(&mut self, limit: Option<Duration>) -> Option<Apart> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            match self.source.accept(&self.called.wakes) {
                Ok(apart) => return Some(apart),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    self.refused += 1;
                    thread::sleep(PAUSE);
                }
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) || self.called.is_called.swap(false, Acquire) {
                return None;
            }
            let fd = self.source.fd();
            self.sleeper.sleep(reading(&fd), None, left);
        }
    }

    /// Ends [`Listener::accept_within`] from anywhere.
    pub fn waker(&self) -> Waker {
        self.called.clone().into()
    }

    /// How many have come and got no link.
    pub fn refused(&self) -> u64 {
        self.refused + self.source.refused()
    }
}

/// Where links come from.
trait Accept: Send {
    /// The next link; `WouldBlock` where there is none now. What happens in other threads calls the
    /// waker.
    fn accept(&mut self, waker: &Waker) -> io::Result<Apart>;

    /// Becomes readable when somebody comes.
    fn fd(&self) -> BorrowedFd<'_>;

    fn refused(&self) -> u64 {
        0
    }
}

struct Tcp {
    listener: TcpListener,
    at: Endpoint,
}

impl Accept for Tcp {
    fn accept(&mut self, _waker: &Waker) -> io::Result<Apart> {
        over_tcp(self.listener.accept()?.0, &self.at)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

struct Unix {
    /// Goes before the listener.
    _place: SocketPath,
    listener: UnixListener,
    at: Endpoint,
}

impl Accept for Unix {
    fn accept(&mut self, _waker: &Waker) -> io::Result<Apart> {
        over_stream(self.listener.accept()?.0.into(), &self.at)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// The one peer that there is, and what never becomes readable.
struct One(Option<Apart>, OwnedFd);

impl Accept for One {
    fn accept(&mut self, _waker: &Waker) -> io::Result<Apart> {
        self.0.take().ok_or(io::ErrorKind::WouldBlock.into())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
}

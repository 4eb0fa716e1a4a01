//! Listens where an endpoint says, and starts a thread for each link.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sinew::rpc::Service;
use sinew_shm::linux::exchange::{ExchangeError, Field, Refusal, turn_away};
use sinew_shm::linux::link::{LinkError, Listener, connected};
use sinew_shm::linux::place::SocketPath;

use super::control::Control;
use super::seat::Promise;
use super::{Server, Why, udp};
use crate::bytes::ByteLink;
use crate::endpoint::{Address, Endpoint};
use crate::link::Link;
use crate::open::{self, ConnectError};
use crate::shm::call_link;
use crate::shm::config::{Chosen, chosen};
use crate::shm::greet::{Greeted, HangUp, Shown, greet};
use crate::sleep::{Sleeper, reading};

/// Clients that may wait to be accepted; the system may allow fewer. One that comes to a full queue
/// over TCP tries again only after a second.
pub(crate) const BACKLOG: i32 = 4096;

/// Threads beyond those of the links: for observers of shared memory, and for clients that have not
/// said yet what they want, or that are being refused.
const SPARE: usize = 8;

/// What is done with one who has connected, in a thread of its own; or without waiting, where there
/// is none left for it.
type Job = Box<dyn FnOnce(Room) + Send>;

/// Whether there is a thread.
enum Room {
    Free,
    None,
}

/// Why an endpoint cannot be served.
pub enum ListenError {
    /// Another server listens there, or the path is a file that is no socket.
    InUse(Endpoint),
    /// The operating system refuses access.
    Permission(Endpoint),
    /// The address is none of this machine.
    NotLocal(Endpoint),
    /// The device, command or host could not be opened.
    Open(ConnectError),
    /// Something else went wrong.
    Io(Endpoint, io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::InUse(at) => write!(
                f,
                "{at}: already in use: end the other server, or choose another address (a path \
                 that is no socket is never replaced)"
            ),
            ListenError::Permission(at) => write!(
                f,
                "{at}: access denied: choose a port above 1023 or a folder of your own"
            ),
            ListenError::NotLocal(at) => write!(
                f,
                "{at}: this machine does not have the address: use 0.0.0.0 for all of its own"
            ),
            ListenError::Open(error) => fmt::Display::fmt(error, f),
            ListenError::Io(at, error) => write!(f, "{at}: {error}"),
        }
    }
}

/// As [`fmt::Display`]: a program that returns the error from `main` then shows its cause and
/// remedy.
impl fmt::Debug for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ListenError {}

impl From<ConnectError> for ListenError {
    fn from(error: ConnectError) -> Self {
        ListenError::Open(error)
    }
}

impl ListenError {
    pub(crate) fn new(at: &Endpoint, error: io::Error) -> ListenError {
        let at = at.clone();
        match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(at),
            io::ErrorKind::PermissionDenied => ListenError::Permission(at),
            io::ErrorKind::AddrNotAvailable => ListenError::NotLocal(at),
            _ => ListenError::Io(at, error),
        }
    }
}

/// An endpoint that is being served. Dropping it stops that.
pub struct Listening {
    endpoint: Endpoint,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// The endpoint, with the port that was found where 0 was asked for.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Waits until there is nothing to serve any more: a serial line or child process has gone.
    pub fn wait(mut self) {
        self.join();
    }

    /// Ends every link and frees the address.
    pub fn stop(self) {
        drop(self);
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.control.stop();
        self.join();
    }
}

impl<S: Service + Send + 'static, const CALLS: usize> Server<S, CALLS> {
    /// Serves the endpoint in threads of its own, on the endpoint's channel.
    pub fn listen(&self, endpoint: &Endpoint) -> Result<Listening, ListenError> {
        let fail = |error| ListenError::new(endpoint, error);
        let mut endpoint = endpoint.clone();
        let control = Arc::new(Control::default());
        let (server, inner) = (self.clone(), control.clone());
        let at = endpoint.clone();
        let run: Box<dyn FnOnce() + Send> = match &endpoint.address {
            Address::Tcp(host, port) => {
                let addresses = open::addresses(&endpoint, host, *port)?;
                let listener = TcpListener::bind(&addresses[..]).map_err(fail)?;
                rustix::net::listen(&listener, BACKLOG).map_err(|error| fail(error.into()))?;
                let port = listener.local_addr().map_err(fail)?.port();
                endpoint.address = Address::Tcp(host.clone(), port);
                listener.set_nonblocking(true).map_err(fail)?;
                Box::new(move || {
                    let accept = || {
                        let link = open::tcp_link(listener.accept()?.0, &at)?;
                        Ok(server.job(&inner, link, at.channel))
                    };
                    server.accept(&inner, listener.as_fd(), accept);
                })
            }
            Address::Shm(_) if endpoint.doorbell.is_some() => {
                let one = "the core that shares this memory is the one peer: open the link, and \
                           serve it by Server::serve";
                let error = io::Error::new(io::ErrorKind::Unsupported, one);
                return Err(ListenError::Io(endpoint, error));
            }
            Address::Shm(path) => {
                let chosen = chosen(&endpoint)?;
                let listener = Listener::bind(path).map_err(|error| match error {
                    LinkError::Socket(error) => fail(error),
                    error => call_link::refused(&endpoint, error).into(),
                })?;
                let shown = Arc::new(Shown::default());
                Box::new(move || {
                    let accept = || {
                        let socket = listener.take()?;
                        let (server, control) = (server.clone(), inner.clone());
                        let (at, shown) = (at.clone(), shown.clone());
                        let job = move |room| match room {
                            Room::Free => {
                                server.serve_shm(&control, socket, (&at, chosen), &shown);
                            }
                            Room::None => turn_away(socket, Refusal::of(Field::Busy)),
                        };
                        Ok(Box::new(job) as Job)
                    };
                    server.accept(&inner, listener.as_fd(), accept);
                })
            }
            Address::Unix(path) => {
                let (listener, place) = bind_unix(path).map_err(fail)?;
                listener.set_nonblocking(true).map_err(fail)?;
                Box::new(move || {
                    // Goes before the listener.
                    let _place = place;
                    let accept = || {
                        let link = open::unix_link(listener.accept()?.0, &at)?;
                        Ok(server.job(&inner, link, at.channel))
                    };
                    server.accept(&inner, listener.as_fd(), accept);
                })
            }
            Address::Udp(host, port) => {
                let addresses = open::addresses(&endpoint, host, *port)?;
                let socket = std::net::UdpSocket::bind(&addresses[..]).map_err(fail)?;
                let port = socket.local_addr().map_err(fail)?.port();
                endpoint.address = Address::Udp(host.clone(), port);
                socket.set_nonblocking(true).map_err(fail)?;
                crate::udp::enlarge(&socket);
                Box::new(move || udp::run(&server, &socket, &at, &inner))
            }
            Address::Qemu(_) => {
                let mut link = open::open(&endpoint)?;
                Box::new(move || server.serve_one(&inner, &mut link, at.channel, None))
            }
            _ => {
                let mut link = open::open_bytes(&endpoint)?;
                Box::new(move || server.serve_one(&inner, &mut link, at.channel, None))
            }
        };
        let thread = thread::Builder::new()
            .name("sinew-listen".into())
            .spawn(run);
        let thread = Some(thread.map_err(|error| ListenError::Io(endpoint.clone(), error))?);
        Ok(Listening {
            endpoint,
            control,
            thread,
        })
    }

    /// Accepts clients until told to stop, then waits for their threads.
    fn accept(
        &self,
        control: &Arc<Control>,
        listener: BorrowedFd<'_>,
        accept: impl Fn() -> io::Result<Job>,
    ) {
        let mut sleeper = Sleeper::default();
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        control.during(sleeper.waker(), || {
            while !control.is_stopped() {
                threads.retain(|thread| !thread.is_finished());
                match accept() {
                    Ok(job) => threads.extend(self.start(job, threads.len())),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        sleeper.sleep(reading(&listener), None, None);
                    }
                    // The client has gone already, or there are no descriptors left: not at once
                    // again.
                    Err(_) => thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        control.stop();
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// A thread for one client; none, and counted, where there are too many.
    fn start(&self, job: Job, threads: usize) -> Option<JoinHandle<()>> {
        if threads >= self.max_links() + SPARE {
            self.refuse_for(Why::TooMany);
            job(Room::None);
            return None;
        }
        let thread = thread::Builder::new().name("sinew-link".into());
        let started = thread.spawn(|| job(Room::Free));
        if started.is_err() {
            self.refuse_for(Why::Trouble);
        }
        started.ok()
    }

    fn job(&self, control: &Arc<Control>, mut link: ByteLink, channel: u32) -> Job {
        let (server, control) = (self.clone(), control.clone());
        Box::new(move |room| match room {
            Room::Free => server.serve_one(&control, &mut link, channel, None),
            Room::None => {}
        })
    }

    /// Whoever has connected to the socket of shared memory: a client, or an observer.
    fn serve_shm(
        &self,
        control: &Control,
        socket: OwnedFd,
        (at, chosen): (&Endpoint, Chosen),
        shown: &Arc<Shown>,
    ) {
        let Ok(hang_up) = HangUp::of(&socket) else {
            return self.refuse_for(Why::Trouble);
        };
        let mut promise = None;
        let is_full = || {
            promise = self.shared.promise();
            promise.is_none()
        };
        let greeted = control.during(Arc::new(hang_up).into(), || match control.is_stopped() {
            true => Err(ExchangeError::HungUp.into()),
            false => greet(socket, chosen.config, shown, is_full),
        });
        match greeted {
            Ok(Greeted::Client(link, _shows)) => match call_link::over(at, link, chosen) {
                Ok(mut link) => self.serve_one(control, &mut link, at.channel, promise),
                Err(_) => self.refuse_for(Why::Trouble),
            },
            Ok(Greeted::Observer(socket, _looks)) => {
                // The observer sees by the hang-up that this server has ended.
                let mut sleeper = Sleeper::default();
                control.during(sleeper.waker(), || {
                    if !control.is_stopped() {
                        sleeper.sleep(reading(&socket), None, None);
                    }
                });
            }
            // Nobody has asked for anything: another server that looks whether this one lives.
            Err(LinkError::Exchange(ExchangeError::HungUp)) => {}
            Err(error) => self.refuse_for(Why::of(&error)),
        }
    }

    fn serve_one(
        &self,
        control: &Control,
        link: &mut impl Link,
        channel: u32,
        promise: Option<Promise<S, CALLS>>,
    ) {
        control.during(link.waker(), || {
            self.serve_until(link, channel, promise, || control.is_stopped());
        });
    }
}

/// Binds a socket at this path; one that an ended server has left behind is replaced.
pub(crate) fn bind_unix(path: &Path) -> io::Result<(UnixListener, SocketPath)> {
    let is_refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    SocketPath::bind(
        path,
        || UnixListener::bind(path),
        // Of the other kind, so that it never waits for a place in the queue of a server.
        || connected(path, Duration::ZERO).is_err_and(is_refused),
    )
}

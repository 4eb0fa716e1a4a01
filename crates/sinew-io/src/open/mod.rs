//! Opens what an endpoint names: one short file per carrier that needs more than a socket call.
//!
//! A TCP peer that vanishes without a word (power, cable) is noticed on both sides: a silent
//! connection is probed after 30 s and given up after three probes 10 s apart; one with unsent or
//! unacknowledged bytes is given up when the peer has taken none of them for 60 s.

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt;
use sinew::link::{Rx, Tx};
use sinew_shm::linux::exchange::Refusal;
use sinew_shm::linux::link::connected_stream;

use crate::bytes::ByteLink;
use crate::client::Client;
use crate::endpoint::{Address, Endpoint};
use crate::link::{AnyLink, Erased};
use crate::shm::dial;
use crate::udp::UdpLink;

mod exec;
pub mod serial;

/// How long a connection may take to come about.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that the kernel keeps per direction. Few, so that an urgent packet does not wait behind a
/// bulk stream; the kernel doubles it.
const BUFFER: usize = 16 * 1024;
/// How long a TCP peer may be silent before it is probed, the time between probes, and how many.
const KEEP_IDLE: Duration = Duration::from_secs(30);
const KEEP_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_PROBES: u32 = 3;
/// How long a peer may take none of what waits to be sent to it: as long as the probes take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why an endpoint could not be opened. Says the likely cause and the remedy.
pub enum ConnectError {
    /// There is no such host.
    NoHost(Endpoint, io::Error),
    /// Nobody listens there, or there is no such file.
    NoServer(Endpoint),
    /// The process at the path hung up before the link was there: it is ending, or is no server of
    /// links over shared memory.
    HungUp(Endpoint),
    /// The server could not do its part: why.
    Trouble(Endpoint, io::Error),
    /// The connection did not come about in time.
    TimedOut(Endpoint),
    /// The operating system refuses access.
    Permission(Endpoint),
    /// The device is in use by another program, or the server over shared memory has too many
    /// clients.
    Busy(Endpoint),
    /// The path is no socket, or no serial device.
    WrongKind(Endpoint),
    /// The serial device does not know this speed.
    Baud(Endpoint, u32),
    /// The link file of shared memory cannot be used: why.
    Config(Endpoint, String),
    /// The two sides of shared memory do not fit: what differs.
    Differs(Endpoint, Refusal),
    /// Something else went wrong.
    Io(Endpoint, io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NoHost(at, error) => {
                write!(
                    f,
                    "{at}: the host name has no address ({error}): check its spelling"
                )
            }
            ConnectError::HungUp(at) => write!(
                f,
                "{at}: the process there hung up: it is ending, or is no server of links over \
                 shared memory; look at it, and try again"
            ),
            ConnectError::Trouble(at, error) => write!(
                f,
                "{at}: the server could not do its part ({error}): {}",
                remedy(error).unwrap_or("look at its process")
            ),
            ConnectError::NoServer(at) => match (&at.doorbell, &at.address) {
                (Some(bell), _) => write!(
                    f,
                    "{at}: there is no such file, or nobody listens at the doorbell {}: start the \
                     core or emulator that has both, or check the paths",
                    bell.socket.display()
                ),
                (_, Address::Serial(..)) => write!(
                    f,
                    "{at}: there is no such device: check the cable and the path (`ls /dev/tty*`)"
                ),
                _ => write!(
                    f,
                    "{at}: no server listens there: start it, or check the address (`sinew serve \
                     {at}`)"
                ),
            },
            ConnectError::TimedOut(at) if matches!(at.address, Address::Shm(_)) => write!(
                f,
                "{at}: the server does not answer within {} s: it is stopped, or overloaded",
                CONNECT_TIMEOUT.as_secs()
            ),
            ConnectError::TimedOut(at) => write!(
                f,
                "{at}: no answer within {} s: check the address, the route and the firewall",
                CONNECT_TIMEOUT.as_secs()
            ),
            ConnectError::Permission(at) => match at.address {
                Address::Serial(..) => write!(
                    f,
                    "{at}: access denied: add yourself to the group that owns the device (often \
                     `dialout`) and log in again"
                ),
                _ => write!(
                    f,
                    "{at}: access denied: check the owner and the mode of the path"
                ),
            },
            ConnectError::Busy(at) if matches!(at.address, Address::Shm(_)) => {
                write!(f, "{at}: the server has too many clients: end one of them")
            }
            ConnectError::Busy(at) => {
                write!(f, "{at}: another program has it open: end that program")
            }
            ConnectError::WrongKind(at) => match at.address {
                Address::Serial(..) => write!(f, "{at}: this is no serial device or terminal"),
                _ => write!(f, "{at}: this is no socket, or one of another kind"),
            },
            ConnectError::Baud(at, baud) => {
                write!(
                    f,
                    "{at}: the device does not know the speed of {baud} baud: choose another"
                )
            }
            ConnectError::Config(at, why) => write!(f, "{at}: the link file: {why}"),
            ConnectError::Differs(at, refusal) => write!(
                f,
                "{at}: the two sides do not fit ({refusal}): give both the same mtu or link \
                 file, and build both from the same release"
            ),
            ConnectError::Io(at, error) => match remedy(error) {
                Some(remedy) => write!(f, "{at}: {error}: {remedy}"),
                None => write!(f, "{at}: {error}"),
            },
        }
    }
}

/// As [`fmt::Display`]: a program that returns the error from `main` then shows its cause and
/// remedy.
impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConnectError {}

impl ConnectError {
    pub(crate) fn new(at: &Endpoint, error: io::Error) -> ConnectError {
        use io::ErrorKind::*;
        use rustix::io::Errno;
        let at = at.clone();
        match error.kind() {
            ConnectionRefused | NotFound => ConnectError::NoServer(at),
            // Nobody took the connection up.
            TimedOut | WouldBlock => ConnectError::TimedOut(at),
            PermissionDenied => ConnectError::Permission(at),
            ResourceBusy => ConnectError::Busy(at),
            _ => match Errno::from_io_error(&error) {
                Some(Errno::NOTTY | Errno::PROTOTYPE | Errno::NOTSOCK) => {
                    ConnectError::WrongKind(at)
                }
                _ => ConnectError::Io(at, error),
            },
        }
    }
}

/// What to do about an error of the operating system that says nothing of the peer.
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    Some(match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => "raise its limit of open files (`ulimit -n`)",
        Errno::NOMEM | Errno::NOSPC => "free memory, or choose fewer or smaller blocks",
        Errno::NAMETOOLONG => "choose a shorter path: that of a socket has at most 107 bytes",
        Errno::NOTDIR => "check the path: a part of it is no folder",
        Errno::ISDIR => "check the path: it is a folder",
        Errno::LOOP => "check the path: its symbolic links go round in a circle",
        Errno::ROFS => "choose a folder that can be written",
        _ => return None,
    })
}

/// A blocking client over the link that the endpoint names.
pub fn connect(endpoint: &Endpoint) -> Result<Client<AnyLink>, ConnectError> {
    Ok(Client::new(open(endpoint)?, endpoint.channel))
}

/// The link that the endpoint names, as its client.
pub fn open(endpoint: &Endpoint) -> Result<AnyLink, ConnectError> {
    Ok(match &endpoint.address {
        Address::Udp(host, port) => Box::new(Erased(open_udp_link(endpoint, host, *port)?)),
        Address::Shm(path) => Box::new(Erased(dial::open(endpoint, path)?)),
        _ => Box::new(Erased(open_bytes(endpoint)?)),
    })
}

/// Owned halves of a link, for drivers that arm them.
pub struct Halves {
    /// The sending half.
    pub tx: Box<dyn Tx + Send>,
    /// The receiving half.
    pub rx: Box<dyn Rx + Send>,
    /// What lives as long as the link, to be dropped after the halves: a child process.
    pub keep: Option<Box<dyn Send>>,
}

/// As [`open`], but gives the halves.
pub fn open_halves(endpoint: &Endpoint) -> Result<Halves, ConnectError> {
    match &endpoint.address {
        Address::Udp(host, port) => {
            let (tx, rx) = open_udp_link(endpoint, host, *port)?.split();
            return Ok(Halves {
                tx: Box::new(tx),
                rx: Box::new(rx),
                keep: None,
            });
        }
        Address::Shm(path) => return dial::open_halves(endpoint, path),
        _ => {}
    }
    let (tx, rx, keep) = open_bytes(endpoint)?.split();
    Ok(Halves {
        tx: Box::new(tx),
        rx: Box::new(rx),
        keep,
    })
}

/// As [`open`], for the endpoints whose carrier is a stream of bytes.
pub(crate) fn open_bytes(endpoint: &Endpoint) -> Result<ByteLink, ConnectError> {
    let fail = |error| ConnectError::new(endpoint, error);
    let &Endpoint { framing, mtu, .. } = endpoint;
    match &endpoint.address {
        Address::Tcp(host, port) => tcp_link(open_tcp(endpoint, host, *port)?, endpoint),
        Address::Unix(path) => connected_stream(path, CONNECT_TIMEOUT)
            .and_then(|socket| unix_link(socket.into(), endpoint)),
        Address::Serial(path, baud) => {
            let line = serial::open(path, *baud).map_err(|error| match error {
                serial::SerialError::Baud => ConnectError::Baud(endpoint.clone(), *baud),
                serial::SerialError::Io(error) => fail(error),
            })?;
            ByteLink::duplex(line, framing, mtu)
        }
        Address::Exec(command) => exec::start(command, framing, mtu),
        Address::Stdio => stdio(framing, mtu),
        // They carry packets, and are opened elsewhere.
        Address::Shm(_) | Address::Udp(..) => Err(io::ErrorKind::Unsupported.into()),
    }
    .map_err(fail)
}

/// A link over an accepted or connected TCP socket.
pub(crate) fn tcp_link(socket: TcpStream, endpoint: &Endpoint) -> io::Result<ByteLink> {
    socket.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
    sockopt::set_socket_recv_buffer_size(&socket, 2 * BUFFER)?;
    sockopt::set_tcp_keepidle(&socket, KEEP_IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, KEEP_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, KEEP_PROBES)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_user_timeout(&socket, PATIENCE.as_millis() as u32)?;
    let link = ByteLink::duplex(socket.into(), endpoint.framing, endpoint.mtu)?;
    Ok(link.with_patience(PATIENCE))
}

/// A link over an accepted or connected unix socket.
pub(crate) fn unix_link(socket: UnixStream, endpoint: &Endpoint) -> io::Result<ByteLink> {
    sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
    let link = ByteLink::duplex(socket.into(), endpoint.framing, endpoint.mtu)?;
    Ok(link.with_patience(PATIENCE))
}

/// A link over standard input and output.
fn stdio(framing: sinew::frame::Framing, mtu: usize) -> io::Result<ByteLink> {
    let read: OwnedFd = rustix::io::dup(rustix::stdio::stdin())?;
    let write: OwnedFd = rustix::io::dup(rustix::stdio::stdout())?;
    ByteLink::pipes(read, write, framing, mtu)
}

pub(crate) fn addresses(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
) -> Result<Vec<std::net::SocketAddr>, ConnectError> {
    let no_host = |error| ConnectError::NoHost(endpoint.clone(), error);
    let found: Vec<_> = (host, port).to_socket_addrs().map_err(no_host)?.collect();
    if found.is_empty() {
        return Err(no_host(io::ErrorKind::NotFound.into()));
    }
    Ok(found)
}

fn open_tcp(endpoint: &Endpoint, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let mut last = ConnectError::NoServer(endpoint.clone());
    for address in addresses(endpoint, host, port)? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = ConnectError::new(endpoint, error),
        }
    }
    Err(last)
}

pub(crate) fn open_udp_link(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
) -> Result<UdpLink, ConnectError> {
    let link = UdpLink::new(open_udp(endpoint, host, port)?, endpoint.mtu);
    link.map_err(|error| ConnectError::new(endpoint, error))
}

fn open_udp(endpoint: &Endpoint, host: &str, port: u16) -> Result<UdpSocket, ConnectError> {
    let mut last = ConnectError::NoServer(endpoint.clone());
    for address in addresses(endpoint, host, port)? {
        let any = if address.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(any).and_then(|socket| {
            socket.connect(address)?;
            Ok(socket)
        });
        match socket {
            Ok(socket) => return Ok(socket),
            Err(error) => last = ConnectError::new(endpoint, error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_takes_nobody_up_is_called_silent() {
        let at: Endpoint = "shm:/x".parse().unwrap();
        let error = ConnectError::new(&at, rustix::io::Errno::AGAIN.into());
        assert!(matches!(error, ConnectError::TimedOut(_)), "{error}");
    }

    #[test]
    fn want_of_descriptors_and_a_long_path_have_their_remedies() {
        let text = |at: String| {
            let at: Endpoint = at.parse().unwrap();
            let error = ConnectError::new(&at, rustix::io::Errno::MFILE.into());
            assert!(error.to_string().contains("ulimit -n"), "{error}");
            open(&at).err().unwrap().to_string()
        };
        for kind in ["shm", "unix"] {
            let text = text(format!("{kind}:/{}", "x".repeat(200)));
            assert!(text.contains("at most 107 bytes"), "{text}");
        }
    }

    #[test]
    fn tcp_link_notices_a_peer_that_vanishes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let endpoint: Endpoint = format!("tcp:{at}").parse().unwrap();
        let near = TcpStream::connect(at).unwrap();
        let socket = near.try_clone().unwrap();
        let _link = tcp_link(near, &endpoint).unwrap();
        assert!(sockopt::socket_keepalive(&socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&socket).unwrap(), KEEP_IDLE);
        assert_eq!(sockopt::tcp_keepintvl(&socket).unwrap(), KEEP_INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&socket).unwrap(), KEEP_PROBES);
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 60_000);
    }
}

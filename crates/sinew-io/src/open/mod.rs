//! Opens what an endpoint names: one short file per carrier that needs more than a socket call.
//!
//! A TCP peer that vanishes without a word (power, cable) is noticed on both sides: a silent
//! connection is probed after 30 s and given up after three probes 10 s apart; one with unsent or
//! unacknowledged bytes is given up when the peer has taken none of them for 60 s.

use std::io;
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt;
use sinew_shm::linux::link::connected_stream;

pub use crate::connect_error::{CONNECT_TIMEOUT, ConnectError};
pub use crate::link::Halves;
pub use crate::remedy::remedy;

use crate::bytes::ByteLink;
use crate::client::Client;
use crate::endpoint::{Address, Endpoint};
use crate::link::{AnyLink, Erased};
use crate::qemu;
use crate::shm::dial;
use crate::udp::UdpLink;

mod exec;
pub mod serial;

/// Bytes that the kernel keeps per direction. Few, so that an urgent packet does not wait behind a
/// bulk stream; the kernel doubles it.
const BUFFER: usize = 16 * 1024;
/// How long a TCP peer may be silent before it is probed, the time between probes, and how many.
const KEEP_IDLE: Duration = Duration::from_secs(30);
const KEEP_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_PROBES: u32 = 3;
/// How long a peer may take none of what waits to be sent to it: as long as the probes take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A blocking client over the link that the endpoint names.
pub fn connect(endpoint: &Endpoint) -> Result<Client<AnyLink>, ConnectError> {
    Ok(Client::new(open(endpoint)?, endpoint.channel))
}

/// The link that the endpoint names, as its client.
pub fn open(endpoint: &Endpoint) -> Result<AnyLink, ConnectError> {
    Ok(match &endpoint.address {
        Address::Udp(host, port) => Box::new(Erased(open_udp_link(endpoint, host, *port)?)),
        Address::Shm(path) => Box::new(Erased(dial::open(endpoint, path)?)),
        Address::Qemu(emulated) => match qemu::link(endpoint, emulated)? {
            qemu::Link::Uart(link) => Box::new(Erased(link)),
            qemu::Link::Shm(link) => Box::new(Erased(link)),
        },
        _ => Box::new(Erased(open_bytes(endpoint)?)),
    })
}

/// As [`open`], but gives the halves.
pub fn open_halves(endpoint: &Endpoint) -> Result<Halves, ConnectError> {
    let bytes = match &endpoint.address {
        Address::Udp(host, port) => {
            let (tx, rx) = open_udp_link(endpoint, host, *port)?.split();
            return Ok(Halves {
                tx: Box::new(tx),
                rx: Box::new(rx),
                keep: None,
            });
        }
        Address::Shm(path) => return dial::open_halves(endpoint, path),
        Address::Qemu(emulated) => match qemu::link(endpoint, emulated)? {
            qemu::Link::Uart(link) => link,
            qemu::Link::Shm(link) => return dial::halves(endpoint, link),
        },
        _ => open_bytes(endpoint)?,
    };
    let (tx, rx, keep) = bytes.split();
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
        // They carry packets, or may do so, and are opened elsewhere.
        Address::Shm(_) | Address::Udp(..) | Address::Qemu(_) => {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
    .map_err(fail)
}

/// A link over an accepted or connected TCP socket.
pub(crate) fn tcp_link(socket: TcpStream, endpoint: &Endpoint) -> io::Result<ByteLink> {
    prepare_tcp(&socket)?;
    sockopt::set_socket_send_buffer_size(&socket, BUFFER)?;
    sockopt::set_socket_recv_buffer_size(&socket, 2 * BUFFER)?;
    let link = ByteLink::duplex(socket.into(), endpoint.framing, endpoint.mtu)?;
    Ok(link.with_patience(PATIENCE))
}

/// What every TCP socket gets: each packet leaves at once, and a peer that vanishes is noticed.
pub(crate) fn prepare_tcp(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(socket, KEEP_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEP_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEP_PROBES)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_user_timeout(socket, PATIENCE.as_millis() as u32)?;
    Ok(())
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

pub(crate) fn open_tcp(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
) -> Result<TcpStream, ConnectError> {
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

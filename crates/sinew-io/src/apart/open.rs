//! What an endpoint names, as its client.

use std::os::fd::OwnedFd;

use sinew_shm::linux::link::connected_stream;

use super::Apart;
use crate::endpoint::{Address, Endpoint};
use crate::open::{self, CONNECT_TIMEOUT, ConnectError};
use crate::shm::dial;
use crate::{bytes, qemu, stream};

/// Connects to, or opens, what the endpoint names.
pub fn open(endpoint: &Endpoint) -> Result<Apart, ConnectError> {
    let fail = |error| ConnectError::new(endpoint, error);
    match &endpoint.address {
        Address::Tcp(host, port) => {
            let socket = open::open_tcp(endpoint, host, *port)?;
            over_tcp(socket, endpoint).map_err(fail)
        }
        Address::Unix(path) => connected_stream(path, CONNECT_TIMEOUT)
            .and_then(|socket| over_stream(socket, endpoint))
            .map_err(fail),
        Address::Udp(host, port) => Ok(open::open_udp_link(endpoint, host, *port)?.apart()),
        Address::Shm(path) => Ok(dial::open(endpoint, path)?.apart()),
        Address::Qemu(emulated) => Ok(match qemu::link(endpoint, emulated)? {
            qemu::Link::Uart(link) => link.apart(),
            qemu::Link::Shm(link) => link.apart(),
        }),
        Address::Serial(..) | Address::Exec(_) | Address::Stdio => {
            Ok(open::open_bytes(endpoint)?.apart())
        }
    }
}

/// Over a connected TCP socket.
///
/// The kernel chooses how much it buffers: what is fastest for packets of 64 KiB, and nothing here is
/// more urgent than the rest.
pub(super) fn over_tcp(socket: std::net::TcpStream, endpoint: &Endpoint) -> std::io::Result<Apart> {
    open::prepare_tcp(&socket)?;
    over_stream(socket.into(), endpoint)
}

/// Over a connected socket: without a copy where only a length stands before a packet.
pub(super) fn over_stream(socket: OwnedFd, endpoint: &Endpoint) -> std::io::Result<Apart> {
    let &Endpoint { framing, mtu, .. } = endpoint;
    match framing.width() {
        Some(width) => {
            let (mut tx, rx) = stream::link(socket, width, mtu)?;
            tx.set_patience(open::PATIENCE);
            Ok(stream::apart(tx, rx))
        }
        None => {
            let link = bytes::ByteLink::duplex(socket, framing, mtu)?;
            Ok(link.with_patience(open::PATIENCE).apart())
        }
    }
}

//! Links over UDP: one for each address from which a datagram comes.
//!
//! Each link has a socket of its own, connected to its peer and bound to the same port, so that the
//! kernel sorts the datagrams and each thread sleeps on its own descriptor. Until a new socket is
//! connected, it may get what is for others; that is handed on.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};
use std::task::Waker;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use sinew::link::{RecvError, Rx};

use super::Accept;
use crate::apart::{Apart, Receive};
use crate::link::Traffic;
use crate::lock;
use crate::udp::{UdpLink, enlarge};

/// Datagrams of one address that are kept until its link reads them. More are dropped.
const EARLY: usize = 16;
/// Datagrams of other addresses that a new socket got, and that are looked at next.
const STRAYS: usize = 64;

/// A bound socket, and who has come.
pub(super) struct Datagrams {
    socket: UdpSocket,
    mtu: usize,
    peers: HashMap<SocketAddr, Weak<Early>>,
    strays: VecDeque<(SocketAddr, Vec<u8>)>,
    buffer: Box<[u8]>,
    refused: u64,
}

/// What came before the kernel knew where a peer's datagrams belong.
struct Early {
    packets: Mutex<VecDeque<Vec<u8>>>,
    /// The thread that sleeps, and who has armed the half instead.
    wakes: Waker,
    armed: Mutex<Option<Waker>>,
}

impl Datagrams {
    pub(super) fn bind(addresses: &[SocketAddr], mtu: usize) -> io::Result<Datagrams> {
        let socket = UdpSocket::bind(addresses)?;
        socket.set_nonblocking(true)?;
        enlarge(&socket);
        Ok(Datagrams {
            socket,
            mtu,
            peers: HashMap::new(),
            strays: VecDeque::new(),
            buffer: vec![0; mtu + 1].into(),
            refused: 0,
        })
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// The next datagram, and from where.
    fn next(&mut self) -> io::Result<(SocketAddr, Vec<u8>)> {
        if let Some(stray) = self.strays.pop_front() {
            return Ok(stray);
        }
        let (len, from) = self.socket.recv_from(&mut self.buffer)?;
        let packet = self.buffer.get(..len).unwrap_or_default();
        Ok((from, packet.to_vec()))
    }

    /// A socket for this peer alone.
    fn connect(&self, peer: SocketAddr) -> io::Result<UdpSocket> {
        let family = match peer {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket: OwnedFd = socket_with(family, SocketType::DGRAM, flags, None)?;
        let at = self.socket.local_addr()?;
        // All on the port must allow it, but this one only now, so that no other program can take
        // the port over.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseaddr(&self.socket, true)?;
        let bound = bind(&socket, &at);
        sockopt::set_socket_reuseaddr(&self.socket, false)?;
        bound?;
        let socket = UdpSocket::from(socket);
        socket.connect(peer)?;
        Ok(socket)
    }

    /// The link with a peer of whom this is the first packet.
    fn link(&mut self, peer: SocketAddr, first: Vec<u8>) -> io::Result<Apart> {
        let socket = self.connect(peer)?;
        let mut early = VecDeque::from([first]);
        // From here on it gets nothing of others any more.
        while let Ok((len, from)) = socket.recv_from(&mut self.buffer) {
            let packet = self.buffer.get(..len).unwrap_or_default().to_vec();
            match from == peer {
                true if early.len() < EARLY => early.push_back(packet),
                false if self.strays.len() < STRAYS => self.strays.push_back((from, packet)),
                _ => self.refused += 1,
            }
        }
        let Apart { tx, mut rx } = UdpLink::new(socket, self.mtu)?.apart();
        let early = Arc::new(Early {
            packets: Mutex::new(early),
            wakes: rx.waker(),
            armed: Mutex::new(None),
        });
        self.peers.retain(|_, early| early.strong_count() > 0);
        self.peers.insert(peer, Arc::downgrade(&early));
        let rx = Greeted {
            early,
            packet: None,
            mtu: self.mtu,
            rx,
            arrived: Traffic::default(),
        };
        Ok(Apart {
            tx,
            rx: Box::new(rx),
        })
    }
}

impl Accept for Datagrams {
    fn accept(&mut self, _waker: &Waker) -> io::Result<Apart> {
        loop {
            let (from, packet) = match self.next() {
                // What an earlier datagram met.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                next => next?,
            };
            let Some(early) = self.peers.get(&from).and_then(Weak::upgrade) else {
                return self.link(from, packet);
            };
            let mut packets = lock(&early.packets);
            match packets.len() < EARLY {
                true => packets.push_back(packet),
                false => self.refused += 1,
            }
            drop(packets);
            early.wakes.wake_by_ref();
            let armed = lock(&early.armed).take();
            armed.inspect(Waker::wake_by_ref);
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

/// A receiving half whose first packets came elsewhere.
struct Greeted {
    early: Arc<Early>,
    /// The early packet that the driver looks at.
    packet: Option<Vec<u8>>,
    mtu: usize,
    rx: Box<dyn Receive + Send>,
    /// Of the early packets.
    arrived: Traffic,
}

impl Greeted {
    /// Takes the next early packet up.
    fn fill(&mut self) {
        while self.packet.is_none() {
            let Some(packet) = lock(&self.early.packets).pop_front() else {
                return;
            };
            self.arrived.bytes_in += packet.len() as u64;
            if packet.len() > self.mtu {
                self.arrived.frames.too_large += 1;
            } else {
                self.arrived.frames.frames += 1;
                self.packet = Some(packet);
            }
        }
    }
}

impl Rx for Greeted {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.fill();
        match &self.packet {
            Some(packet) => Ok(Some(packet)),
            None => self.rx.peek(),
        }
    }

    fn release(&mut self) {
        if self.packet.take().is_none() {
            self.rx.release();
        }
    }

    fn arm(&mut self, waker: &Waker) {
        *lock(&self.early.armed) = Some(waker.clone());
        self.fill();
        match &self.packet {
            Some(_) => waker.wake_by_ref(),
            None => self.rx.arm(waker),
        }
    }
}

impl Receive for Greeted {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.fill();
        if self.packet.is_none() {
            self.rx.wait(timeout);
        }
    }

    fn waker(&mut self) -> Waker {
        self.rx.waker()
    }

    fn traffic(&self) -> Traffic {
        let mut traffic = self.rx.traffic();
        traffic.bytes_in += self.arrived.bytes_in;
        traffic.frames.frames += self.arrived.frames.frames;
        traffic.frames.too_large += self.arrived.frames.too_large;
        traffic
    }
}

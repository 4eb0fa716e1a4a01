//! The packet link over UDP: one packet per datagram.
//!
//! Datagrams can be lost, repeated and overtaken; calls then end at their deadline. What this
//! socket itself drops is counted.

use std::net::UdpSocket;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use sinew::link::{RecvError, Rx, SendError, Tx};

use crate::link::{Link, Traffic, Want};
use crate::reactor::Ready;
use crate::sleep::{Sleeper, reading, writing};

/// A link to one peer over a connected socket.
pub struct UdpLink {
    tx: UdpTx,
    rx: UdpRx,
    sleeper: Sleeper,
}

impl UdpLink {
    /// A link over a connected socket. It becomes non-blocking.
    pub fn new(socket: UdpSocket, mtu: usize) -> std::io::Result<UdpLink> {
        socket.set_nonblocking(true)?;
        let write = socket.try_clone()?;
        Ok(UdpLink {
            tx: UdpTx {
                fd: Ready::new(write, EventFlags::OUT),
                place: vec![0; mtu].into(),
                in_hand: false,
                unsent: None,
                closed: false,
                bytes: 0,
            },
            rx: UdpRx {
                fd: Ready::new(socket, EventFlags::IN),
                place: vec![0; mtu + 1].into(),
                packet: None,
                peeked: false,
                closed: false,
                traffic: Traffic::default(),
            },
            sleeper: Sleeper::default(),
        })
    }

    /// The halves, for a driver that arms them instead of sleeping on the link.
    pub fn split(self) -> (UdpTx, UdpRx) {
        (self.tx, self.rx)
    }
}

impl Link for UdpLink {
    type Tx = UdpTx;
    type Rx = UdpRx;

    fn halves(&mut self) -> (&mut UdpTx, &mut UdpRx) {
        (&mut self.tx, &mut self.rx)
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        let (read, write) = (reading(self.rx.fd.inner()), writing(self.tx.fd.inner()));
        match want {
            Want::Packet => self.sleeper.sleep(read, None, timeout),
            // The packet that the driver cannot take up yet would wake it again and again.
            Want::Place if self.rx.peeked => self.sleeper.sleep(write, None, timeout),
            Want::Place | Want::Idle => self.sleeper.sleep(read, Some(write), timeout),
        }
    }

    fn waker(&mut self) -> Waker {
        self.sleeper.waker()
    }

    fn is_idle(&self) -> bool {
        self.tx.unsent.is_none()
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            bytes_out: self.tx.bytes,
            ..self.rx.traffic
        }
    }
}

/// The sending half.
pub struct UdpTx {
    fd: Arc<Ready<UdpSocket>>,
    place: Box<[u8]>,
    in_hand: bool,
    /// Length of a packet in the place that the socket has not taken yet.
    unsent: Option<usize>,
    closed: bool,
    bytes: u64,
}

impl UdpTx {
    fn send(&mut self) {
        use std::io::ErrorKind::{Interrupted, WouldBlock};
        let Some(packet) = self.unsent.and_then(|len| self.place.get(..len)) else {
            return;
        };
        match self.fd.inner().send(packet) {
            Ok(count) => self.bytes += count as u64,
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => return,
            Err(_) => self.closed = true,
        }
        self.unsent = None;
    }
}

impl Tx for UdpTx {
    fn mtu(&self) -> usize {
        self.place.len()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if min > self.place.len() {
            return Err(SendError::TooLarge);
        }
        self.send();
        if self.closed {
            return Err(SendError::Closed);
        }
        if self.unsent.is_some() {
            return Err(SendError::Full);
        }
        self.in_hand = true;
        Ok(&mut self.place)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        if !std::mem::take(&mut self.in_hand) || len > self.place.len() {
            return Err(SendError::TooLarge);
        }
        if len > 0 {
            self.unsent = Some(len);
            self.send();
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.send();
    }

    fn arm(&mut self, waker: &Waker) {
        if self.closed || self.unsent.is_none() {
            return waker.wake_by_ref();
        }
        self.fd.arm(waker);
    }
}

/// The receiving half.
pub struct UdpRx {
    fd: Arc<Ready<UdpSocket>>,
    /// One byte more than the mtu, so that a larger datagram shows.
    place: Box<[u8]>,
    packet: Option<usize>,
    /// The driver has looked at it, so that `release` means it.
    peeked: bool,
    closed: bool,
    traffic: Traffic,
}

impl UdpRx {
    /// Receives one datagram, if there is no packet in the place.
    fn fill(&mut self) -> Result<(), RecvError> {
        use std::io::ErrorKind::{Interrupted, WouldBlock};
        if self.packet.is_some() {
            return Ok(());
        }
        if self.closed {
            return Err(RecvError::Closed);
        }
        match self.fd.inner().recv(&mut self.place) {
            Ok(count) => {
                self.traffic.bytes_in += count as u64;
                if count < self.place.len() {
                    self.traffic.frames.frames += 1;
                    self.packet = Some(count);
                } else {
                    self.traffic.frames.too_large += 1;
                }
            }
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => {}
            // The other machine says that nobody listens there.
            Err(_) => {
                self.closed = true;
                return Err(RecvError::Closed);
            }
        }
        Ok(())
    }
}

impl Rx for UdpRx {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.fill()?;
        self.peeked = self.packet.is_some();
        Ok(self.packet.and_then(|len| self.place.get(..len)))
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.peeked) {
            self.packet = None;
        }
    }

    fn arm(&mut self, waker: &Waker) {
        if self.fill().is_err() || self.packet.is_some() {
            return waker.wake_by_ref();
        }
        self.fd.arm(waker);
    }
}

impl Drop for UdpTx {
    fn drop(&mut self) {
        self.fd.disarm();
    }
}

impl Drop for UdpRx {
    fn drop(&mut self) {
        self.fd.disarm();
    }
}

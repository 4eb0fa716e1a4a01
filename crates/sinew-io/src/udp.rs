//! The packet link over UDP: one packet per datagram.
//!
//! Datagrams can be lost, repeated and overtaken; calls then end at their deadline, and a stream can
//! miss items. What this socket itself drops is counted.

use std::net::UdpSocket;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;
use sinew::link::{RecvError, Rx, SendError, Tx};

use crate::apart::Apart;
use crate::apart::polled::Polled;
use crate::link::{Link, Traffic, Want};
use crate::out::Out;
use crate::out::queue::{Chunk, Queue};
use crate::reactor::Ready;
use crate::sleep::{Sleeper, reading, writing};

/// Datagrams that wait for the socket; with so many the link is full.
const DEPTH: usize = 2;

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
        enlarge(&socket);
        let write = socket.try_clone()?;
        Ok(UdpLink {
            tx: UdpTx {
                mtu,
                chunk: None,
                in_hand: false,
                out: Out::new(write.into(), Queue::new(mtu, DEPTH)),
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

    /// The halves, for two threads.
    pub fn apart(self) -> Apart {
        Apart {
            tx: Box::new(self.tx),
            rx: Box::new(Polled::new(self.rx)),
        }
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
        let (read, write) = (reading(self.rx.fd.inner()), writing(&self.tx.out.fd));
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
        self.tx.out.state().is_empty()
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            bytes_out: self.tx.out.state().written,
            ..self.rx.traffic()
        }
    }
}

/// Bytes that arrive while nobody reads: some thousand small packets, each with its own overhead.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Gives the socket as much of [`RECEIVE_BUFFER`] as this process is allowed: what does not fit in
/// is lost without a trace on the wire.
pub(crate) fn enlarge(socket: &UdpSocket) {
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    }
}

/// Datagrams that the kernel dropped before this socket; 0 where it does not say.
fn dropped(socket: &UdpSocket) -> u64 {
    let Ok(stat) = rustix::fs::fstat(socket) else {
        return 0;
    };
    let inode = stat.st_ino.to_string();
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"];
    let found = tables.iter().find_map(|path| {
        let table = std::fs::read_to_string(path).ok()?;
        drops_of(&inode, &table)
    });
    found.unwrap_or(0)
}

/// The last column of the line whose tenth is the inode; see proc_net_udp(5).
fn drops_of(inode: &str, table: &str) -> Option<u64> {
    let mut lines = table.lines();
    let line = lines.find(|line| line.split_whitespace().nth(9) == Some(inode))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The sending half.
pub struct UdpTx {
    mtu: usize,
    /// The place, and the next datagram.
    chunk: Option<Chunk>,
    in_hand: bool,
    out: Arc<Out<Queue>>,
}

impl Tx for UdpTx {
    fn mtu(&self) -> usize {
        self.mtu
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if min > self.mtu {
            return Err(SendError::TooLarge);
        }
        if !self.in_hand {
            let mut state = self.out.with_room()?;
            self.chunk.get_or_insert_with(|| state.pending.take());
            self.in_hand = true;
        }
        let chunk = self.chunk.as_mut().ok_or(SendError::Full)?;
        Ok(chunk.free())
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        if !std::mem::take(&mut self.in_hand) || len > self.mtu {
            return Err(SendError::TooLarge);
        }
        if len > 0
            && let Some(mut chunk) = self.chunk.take()
        {
            chunk.add(len);
            let mut state = self.out.state();
            state.pending.push(chunk);
            self.out.write(&mut state);
            self.chunk = state.pending.spare();
            self.out.hand_over(state);
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.out.flush();
    }

    fn arm(&mut self, waker: &Waker) {
        self.out.arm(waker);
    }
}

/// The receiving half.
pub struct UdpRx {
    pub(crate) fd: Arc<Ready<UdpSocket>>,
    /// One byte more than the mtu, so that a larger datagram shows.
    place: Box<[u8]>,
    packet: Option<usize>,
    /// The driver has looked at it, so that `release` means it.
    peeked: bool,
    /// The peer is gone; what came before may wait still.
    closed: bool,
    traffic: Traffic,
}

impl UdpRx {
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            dropped: dropped(self.fd.inner()),
            ..self.traffic
        }
    }

    /// Receives one datagram, if there is no packet in the place.
    fn fill(&mut self) -> Result<(), RecvError> {
        use std::io::ErrorKind::{Interrupted, WouldBlock};
        if self.packet.is_some() {
            return Ok(());
        }
        loop {
            match self.fd.inner().recv(&mut self.place) {
                Ok(count) => {
                    self.traffic.bytes_in += count as u64;
                    if count < self.place.len() {
                        self.traffic.frames.frames += 1;
                        self.packet = Some(count);
                    } else {
                        self.traffic.frames.too_large += 1;
                    }
                    return Ok(());
                }
                Err(_) if self.closed => return Err(RecvError::Closed),
                Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => return Ok(()),
                // The other machine says that nobody listens there. This overtakes what waits.
                Err(_) => self.closed = true,
            }
        }
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
        self.out.linger();
    }
}

impl Drop for UdpRx {
    fn drop(&mut self) {
        self.fd.disarm();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_drops_is_counted() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        let mut link = UdpLink::new(near, 64).unwrap();
        assert_eq!(link.traffic().dropped, 0);
        // Every datagram takes more of the buffer than its own bytes, so this is far too much.
        let sent = RECEIVE_BUFFER as u64 / 128;
        for _ in 0..sent {
            far.send(&[0; 16]).unwrap();
        }
        let (_, rx) = link.halves();
        while rx.peek().unwrap().is_some() {
            rx.release();
        }
        let traffic = link.traffic();
        assert!(traffic.dropped > 0);
        assert_eq!(u64::from(traffic.frames.frames) + traffic.dropped, sent);
    }

    #[test]
    fn what_a_peer_sent_before_it_went_is_received_first() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        let mut link = UdpLink::new(near, 64).unwrap();
        let (tx, rx) = link.halves();
        for byte in 0..3 {
            far.send(&[byte]).unwrap();
        }
        drop(far);
        // Each is refused, which the next system call says, whatever it is.
        for _ in 0..3 {
            tx.place(1).unwrap();
            tx.commit(1).unwrap();
        }
        for byte in 0..3 {
            assert_eq!(rx.peek(), Ok(Some(&[byte][..])));
            rx.release();
        }
        assert_eq!(rx.peek(), Err(RecvError::Closed));
        assert_eq!(rx.peek(), Err(RecvError::Closed));
    }

    #[test]
    fn a_table_without_the_socket_says_nothing() {
        let table = "  sl  local_address ...\n  42: 0100007F:1F90 00000000:0000 07 \
                     00000000:00000000 00:00000000 00000000 0 0 4711 2 0000000000000000 9\n";
        assert_eq!(drops_of("4711", table), Some(9));
        assert_eq!(drops_of("4712", table), None);
        assert_eq!(drops_of("4711", "nonsense\n"), None);
    }
}

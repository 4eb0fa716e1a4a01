//! The packet link over any stream of bytes: a socket, a serial line, two pipes.
//!
//! The place is a plain packet buffer. `commit` frames it in one pass into a bounded batch, and
//! `flush` writes as much of that as the descriptor takes. What it does not take is written when
//! it does, by the driver's next `flush` or by the reactor thread, whichever comes first. The
//! reactor also goes on for a sending half that is dropped, for up to 64 of them in the program: of
//! more, the oldest loses what its peer has not taken. `peek` decodes from a bounded buffer and reads at most once,
//! so its work is bounded whatever arrives.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use sinew::frame::{Decoder, FrameStats, Framing};
use sinew::link::{RecvError, Rx, SendError, Tx};

use crate::apart::polled::Polled;
use crate::apart::{Apart, Keep};
use crate::link::{Link, Traffic, Want};
use crate::nonblocking;
use crate::out::{Out, Patient};
use crate::reactor::Ready;
use crate::sleep::{Sleeper, reading, writing};

mod batch;

use batch::Batch;

/// Bytes that one read takes at most.
const READ: usize = 8192;
/// A link over one descriptor (its duplicate for the other half) or two.
pub struct ByteLink {
    tx: ByteTx,
    rx: ByteRx,
    sleeper: Sleeper,
    /// Dropped with the link, after its descriptors: a child process.
    _keep: Option<Box<dyn Send>>,
}

impl ByteLink {
    /// A link that reads from and writes to one descriptor. It becomes non-blocking.
    pub fn duplex(fd: OwnedFd, framing: Framing, mtu: usize) -> std::io::Result<ByteLink> {
        let write = fd.try_clone()?;
        ByteLink::pipes(fd, write, framing, mtu)
    }

    /// A link over a descriptor to read from and one to write to. They become non-blocking.
    pub fn pipes(
        read: OwnedFd,
        write: OwnedFd,
        framing: Framing,
        mtu: usize,
    ) -> std::io::Result<ByteLink> {
        nonblocking(&read)?;
        nonblocking(&write)?;
        Ok(ByteLink {
            tx: ByteTx::new(write, framing, mtu),
            rx: ByteRx::new(read, framing, mtu),
            sleeper: Sleeper::default(),
            _keep: None,
        })
    }

    /// Keeps something alive as long as the link.
    pub fn keeping(mut self, keep: impl Send + 'static) -> ByteLink {
        self._keep = Some(Box::new(keep));
        self
    }

    /// Closes the link when the peer takes not one byte for this long while something waits to be
    /// sent. Without this, as on a line whose other end may come back, it waits for ever.
    ///
    /// Drivers that arm the halves instead of sleeping on the link find out when they next send.
    pub fn with_patience(self, patience: Duration) -> ByteLink {
        self.tx.out.state().patience = Some(patience);
        self
    }

    /// The halves, for two threads.
    pub fn apart(self) -> Apart {
        let keep = self._keep.map(|keep| Arc::new(Mutex::new(keep)));
        let mut tx = self.tx;
        tx._keep = keep.clone();
        let rx = Polled::new(self.rx)
            .watching(Arc::<Out<Batch>>::downgrade(&tx.out))
            .keeping(keep);
        Apart {
            tx: Box::new(tx),
            rx: Box::new(rx),
        }
    }

    /// The halves, for a driver that arms them instead of sleeping on the link.
    pub fn split(self) -> (ByteTx, ByteRx, Option<Box<dyn Send>>) {
        (self.tx, self.rx, self._keep)
    }
}

impl Link for ByteLink {
    type Tx = ByteTx;
    type Rx = ByteRx;

    fn halves(&mut self) -> (&mut ByteTx, &mut ByteRx) {
        (&mut self.tx, &mut self.rx)
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        let timeout = self.tx.out.limit(timeout);
        let (read, write) = (reading(self.rx.inp.inner()), writing(&self.tx.out.fd));
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

/// The sending half.
pub struct ByteTx {
    framing: Framing,
    place: Box<[u8]>,
    in_hand: bool,
    out: Arc<Out<Batch>>,
    /// Behind the descriptor.
    _keep: Option<Keep>,
}

impl ByteTx {
    fn new(fd: OwnedFd, framing: Framing, mtu: usize) -> ByteTx {
        ByteTx {
            framing,
            place: vec![0; mtu].into(),
            in_hand: false,
            out: Out::new(fd, Batch::new(framing.max_encoded_len(mtu))),
            _keep: None,
        }
    }
}

impl Tx for ByteTx {
    fn mtu(&self) -> usize {
        self.place.len()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if min > self.place.len() {
            return Err(SendError::TooLarge);
        }
        if !self.in_hand {
            drop(self.out.with_room()?);
            self.in_hand = true;
        }
        Ok(&mut self.place)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let in_hand = std::mem::take(&mut self.in_hand);
        let packet = self
            .place
            .get(..len)
            .filter(|_| in_hand)
            .ok_or(SendError::TooLarge)?;
        if len == 0 {
            return Ok(());
        }
        let mut state = self.out.state();
        if state.closed {
            return Err(SendError::Closed);
        }
        let framed = self
            .framing
            .encode(packet, state.pending.free())
            .ok_or(SendError::TooLarge)?;
        state.pending.add(framed);
        Ok(())
    }

    fn flush(&mut self) {
        self.out.flush();
    }

    fn arm(&mut self, waker: &Waker) {
        self.out.arm(waker);
    }
}

impl Drop for ByteTx {
    fn drop(&mut self) {
        self.out.linger();
    }
}

/// The receiving half.
pub struct ByteRx {
    pub(crate) inp: Arc<Ready<OwnedFd>>,
    decoder: Decoder,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    bytes: u64,
    /// The last read did not fill the buffer, so the next one would most likely find nothing.
    drained: bool,
    ended: bool,
    place: Box<[u8]>,
    /// Length of the packet in the place.
    packet: Option<usize>,
    /// The driver has looked at it, so that `release` means it.
    peeked: bool,
}

impl ByteRx {
    fn new(fd: OwnedFd, framing: Framing, mtu: usize) -> ByteRx {
        ByteRx {
            inp: Ready::new(fd, epoll::EventFlags::IN),
            decoder: framing.decoder(),
            buffer: vec![0; READ].into(),
            start: 0,
            end: 0,
            bytes: 0,
            drained: false,
            ended: false,
            place: vec![0; mtu].into(),
            packet: None,
            peeked: false,
        }
    }

    /// What became of the bytes received so far.
    pub fn stats(&self) -> &FrameStats {
        self.decoder.stats()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            bytes_in: self.bytes,
            bytes_out: 0,
            frames: *self.stats(),
            dropped: 0,
        }
    }

    /// The length of the next packet, now in the place.
    fn receive(&mut self) -> Result<Option<usize>, RecvError> {
        let found = self.decode();
        if found.is_some() {
            return Ok(found);
        }
        if self.ended {
            return Err(RecvError::Closed);
        }
        if std::mem::take(&mut self.drained) {
            return Ok(None);
        }
        match rustix::io::read(self.inp.inner(), &mut self.buffer[..]) {
            Ok(0) => self.ended = true,
            Ok(count) => {
                (self.start, self.end) = (0, count);
                self.bytes += count as u64;
                self.drained = count < self.buffer.len();
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.ended = true,
        }
        let found = self.decode();
        if found.is_none() && self.ended {
            return Err(RecvError::Closed);
        }
        Ok(found)
    }

    fn decode(&mut self) -> Option<usize> {
        let mut input = self.buffer.get(self.start..self.end).unwrap_or_default();
        let found = self.decoder.decode(&mut self.place, &mut input);
        let len = match found {
            Ok(packet) => packet.map(<[u8]>::len),
            // The next packet cannot be found any more.
            Err(_) => {
                self.ended = true;
                input = &[];
                None
            }
        };
        self.start = self.end - input.len();
        len
    }
}

impl ByteRx {
    /// Receives until there is a packet in the place, or nothing more to receive now.
    fn fill(&mut self) -> Result<(), RecvError> {
        if self.packet.is_none() {
            self.packet = self.receive()?;
        }
        Ok(())
    }
}

impl Rx for ByteRx {
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
        self.inp.arm(waker);
    }
}

impl Drop for ByteRx {
    fn drop(&mut self) {
        self.inp.disarm();
    }
}

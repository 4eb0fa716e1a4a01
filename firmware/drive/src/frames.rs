//! Packets on a UART: each is a frame of HDLC.
//!
//! There is no queue: a packet has left when `commit`, or `send` of a port, returns. So there is always a place,
//! and whoever sends waits for the UART: at 115,200 baud 87 us a byte. An image that cannot wait so long puts a
//! queue of `sinew::link::queue` in front, as `queued` of the board mps2-an385 does.
//!
//! One context sends, or several that do not interrupt each other (tasks of one executor): a handler that
//! sent would put its frame into the middle of another.

use core::task::Waker;

use sinew::frame::FrameStats;
use sinew::frame::hdlc::{Decoder, RPC_ADDRESS, put_frame};
use sinew::link::{Port, RecvError, Rx, SendError, Tx};

use crate::bytes::Bytes;
use crate::serving::Renew;

/// Escapes a packet straight into the UART.
pub fn send(bytes: impl Bytes, packet: &[u8]) {
    put_frame(RPC_ADDRESS, packet, &mut |byte| put(bytes, byte));
}

#[inline(never)] // one copy: a closure behind `dyn` has two
fn put(bytes: impl Bytes, byte: u8) {
    bytes.send(byte);
}

/// A packet of at most `N` bytes, while it arrives and until it is read.
pub(crate) struct Arriving<const N: usize> {
    decoder: Decoder,
    /// Of the packet in the place; 0 where there is none, as no frame is empty.
    len: usize,
    place: [u8; N],
}

impl<const N: usize> Arriving<N> {
    /// At the start of the stream.
    pub(crate) const fn new() -> Self {
        Arriving {
            decoder: Decoder::new(RPC_ADDRESS),
            len: 0,
            place: [0; N],
        }
    }

    /// Takes the byte that `receive` gives; `false` where it gives none, or is not asked because a packet waits.
    pub(crate) fn take(&mut self, receive: impl FnOnce() -> Option<u8>) -> bool {
        if self.len > 0 {
            return false;
        }
        let byte = receive();
        let packet = self.decoder.decode(&mut self.place, &mut byte.as_slice());
        self.len = packet.map_or(0, <[u8]>::len);
        byte.is_some()
    }

    /// What has arrived so far.
    pub(crate) const fn stats(&self) -> &FrameStats {
        self.decoder.stats()
    }

    /// The packet that waits, until [`Arriving::release`].
    pub(crate) fn packet(&self) -> Option<&[u8]> {
        match self.len {
            0 => None,
            len => self.place.get(..len),
        }
    }

    pub(crate) fn release(&mut self) {
        self.len = 0;
    }
}

/// The receiving half, for packets of at most `N` bytes.
pub struct Receiver<B, const N: usize> {
    bytes: B,
    arriving: Arriving<N>,
}

impl<B: Bytes, const N: usize> Receiver<B, N> {
    /// A receiver at the start of the stream.
    pub const fn new(bytes: B) -> Self {
        Receiver {
            bytes,
            arriving: Arriving::new(),
        }
    }

    /// What has arrived so far.
    pub const fn stats(&self) -> &FrameStats {
        self.arriving.stats()
    }

    /// The oldest packet, the same one until [`Rx::release`], if the bytes that have arrived complete one.
    pub fn packet(&mut self) -> Option<&[u8]> {
        while self.arriving.take(|| self.bytes.receive()) {}
        self.arriving.packet()
    }
}

impl<B: Bytes, const N: usize> Rx for Receiver<B, N> {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        Ok(self.packet())
    }

    fn release(&mut self) {
        self.arriving.release();
    }

    fn arm(&mut self, waker: &Waker) {
        match self.arriving.packet() {
            None => self.bytes.arm(waker),
            Some(_) => waker.wake_by_ref(),
        }
    }
}

/// The sending half, for packets of at most `N` bytes.
pub struct Sender<B, const N: usize> {
    bytes: B,
    place: [u8; N],
}

impl<B: Bytes, const N: usize> Sender<B, N> {
    /// A sender with an empty place.
    pub const fn new(bytes: B) -> Self {
        Sender {
            bytes,
            place: [0; N],
        }
    }
}

impl<B: Bytes, const N: usize> Tx for Sender<B, N> {
    fn mtu(&self) -> usize {
        N
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        match min > N {
            true => Err(SendError::TooLarge),
            false => Ok(&mut self.place),
        }
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let packet = self.place.get(..len).ok_or(SendError::TooLarge)?;
        if !packet.is_empty() {
            send(self.bytes, packet);
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

/// The way out for late answers and streams, of at most `N` bytes.
pub struct Direct<B, const N: usize>(pub B);

impl<B: Bytes + Sync, const N: usize> Port for Direct<B, N> {
    fn mtu(&self) -> usize {
        N
    }

    #[inline(never)] // its place is on the stack only while it sends
    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut place = [0; N];
        if min > N {
            return Err(SendError::TooLarge);
        }
        let len = fill(&mut place);
        if len > 0 {
            send(self.0, place.get(..len).ok_or(SendError::TooLarge)?);
        }
        Ok(())
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    fn ring(&self) {
        self.0.ring();
    }
}

/// A UART is never lost.
impl<B, const N: usize> Renew for Receiver<B, N> {
    const CLOSES: bool = false;
    fn renew(&mut self) {}
}

/// A UART is never lost.
impl<B, const N: usize> Renew for Sender<B, N> {
    const CLOSES: bool = false;
    fn renew(&mut self) {}
}

//! Frames on UART0.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use core::task::Waker;

use sinew::frame::hdlc::{Decoder, RPC_ADDRESS, put_frame};
use sinew::link::{Port, SendError, Tx};

use crate::{MTU, board};

/// Bytes that arrived while the core was sending: the UART itself keeps only one.
///
/// Atomics for a static without unsafe code; there is one context.
struct Arrived {
    bytes: [AtomicU8; SIZE],
    /// Free-running counts.
    put: AtomicUsize,
    taken: AtomicUsize,
}

const SIZE: usize = 128;

static ARRIVED: Arrived = Arrived {
    bytes: [const { AtomicU8::new(0) }; SIZE],
    put: AtomicUsize::new(0),
    taken: AtomicUsize::new(0),
};

/// Takes what the UART has received. Where there is no room it stays there, and the next byte
/// overruns it: the frame's CRC then tells.
#[inline(never)]
fn collect() {
    let put = ARRIVED.put.load(Relaxed);
    if put.wrapping_sub(ARRIVED.taken.load(Relaxed)) < SIZE
        && let Some(byte) = board::receive()
    {
        ARRIVED.bytes[put % SIZE].store(byte, Relaxed);
        ARRIVED.put.store(put.wrapping_add(1), Relaxed);
    }
}

fn next() -> Option<u8> {
    collect();
    let taken = ARRIVED.taken.load(Relaxed);
    (taken != ARRIVED.put.load(Relaxed)).then(|| {
        ARRIVED.taken.store(taken.wrapping_add(1), Relaxed);
        ARRIVED.bytes[taken % SIZE].load(Relaxed)
    })
}

/// Escapes a packet straight into the UART.
pub fn send(packet: &[u8]) {
    put_frame(RPC_ADDRESS, packet, &mut |byte| put(byte));
}

#[inline(never)] // one copy: a closure behind `dyn` has two
fn put(byte: u8) {
    board::send(byte, collect);
}

/// Packets from the UART, of at most `N` bytes.
pub struct Receiver<const N: usize = MTU> {
    decoder: Decoder,
    place: [u8; N],
}

impl<const N: usize> Receiver<N> {
    /// A receiver at the start of the stream.
    pub const fn new() -> Self {
        Receiver {
            decoder: Decoder::new(RPC_ADDRESS),
            place: [0; N],
        }
    }

    /// The next packet, if the bytes that have arrived complete one.
    pub fn receive(&mut self) -> Option<&[u8]> {
        let len = loop {
            let byte = [next()?];
            if let Some(packet) = self.decoder.decode(&mut self.place, &mut &byte[..]) {
                break packet.len();
            }
        };
        self.place.get(..len)
    }
}

impl<const N: usize> Default for Receiver<N> {
    fn default() -> Self {
        Receiver::new()
    }
}

/// The sending half of a link over the UART, for packets of at most `N` bytes. A packet has left when
/// `commit` returns, so there is always a place.
pub struct Sender<const N: usize> {
    place: [u8; N],
}

impl<const N: usize> Sender<N> {
    /// A sender with an empty place.
    pub const fn new() -> Self {
        Sender { place: [0; N] }
    }
}

impl<const N: usize> Default for Sender<N> {
    fn default() -> Self {
        Sender::new()
    }
}

impl<const N: usize> Tx for Sender<N> {
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
            send(packet);
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

/// The way to the UART without a queue: a packet has left when `send` returns, so there is always
/// a place.
pub struct Direct;

impl Port for Direct {
    fn mtu(&self) -> usize {
        MTU
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut place = [0; MTU];
        if min > MTU {
            return Err(SendError::TooLarge);
        }
        let len = fill(&mut place);
        if len > 0 {
            send(place.get(..len).ok_or(SendError::TooLarge)?);
        }
        Ok(())
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    /// The driver looks at every turn of its loop.
    fn ring(&self) {}
}

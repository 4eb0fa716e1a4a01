//! Halves of a link that count the bytes of their packets.

use std::task::Waker;

use sinew::frame::FrameStats;
use sinew::link::{RecvError, Rx, SendError, Tx};

use crate::link::Traffic;

/// A half of a link, and the bytes of the packets that it has carried.
pub struct Counted<T> {
    pub(crate) half: T,
    pub(crate) bytes: u64,
    pub(crate) packets: u32,
    /// Bytes of the packet that was peeked last.
    peeked: usize,
}

/// What has passed over both halves of a link.
pub(crate) fn traffic<T, R>(tx: &Counted<T>, rx: &Counted<R>) -> Traffic {
    Traffic {
        bytes_out: tx.bytes,
        ..received(rx)
    }
}

/// What has passed over the receiving half.
pub(crate) fn received<R>(rx: &Counted<R>) -> Traffic {
    let frames = FrameStats {
        frames: rx.packets,
        ..FrameStats::default()
    };
    Traffic {
        bytes_in: rx.bytes,
        bytes_out: 0,
        frames,
        dropped: 0,
    }
}

impl<T> Counted<T> {
    pub(crate) fn new(half: T) -> Self {
        Counted {
            half,
            bytes: 0,
            packets: 0,
            peeked: 0,
        }
    }

    /// Whether the driver has a packet in hand.
    pub(crate) fn has_peeked(&self) -> bool {
        self.peeked > 0
    }

    fn count(&mut self, len: usize) {
        self.bytes += len as u64;
        self.packets = self.packets.wrapping_add(u32::from(len > 0));
    }
}

impl<T: Tx> Tx for Counted<T> {
    fn mtu(&self) -> usize {
        self.half.mtu()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        self.half.place(min)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.half.commit(len)?;
        self.count(len);
        Ok(())
    }

    fn flush(&mut self) {
        self.half.flush();
    }

    fn arm(&mut self, waker: &Waker) {
        self.half.arm(waker);
    }
}

impl<R: Rx> Rx for Counted<R> {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        let packet = self.half.peek()?;
        self.peeked = packet.map_or(0, <[u8]>::len);
        Ok(packet)
    }

    fn release(&mut self) {
        let len = std::mem::take(&mut self.peeked);
        self.count(len);
        self.half.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.half.arm(waker);
    }
}

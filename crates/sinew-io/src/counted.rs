//! Halves of a link that count the bytes of their packets.

use std::task::Waker;

use sinew::link::{RecvError, Rx, SendError, Tx};

/// A half of a link, and the bytes of the packets that it has carried.
pub struct Counted<T> {
    pub(crate) half: T,
    pub(crate) bytes: u64,
    pub(crate) packets: u32,
}

impl<T> Counted<T> {
    pub(crate) fn new(half: T) -> Self {
        Counted {
            half,
            bytes: 0,
            packets: 0,
        }
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
        self.half.peek()
    }

    fn release(&mut self) {
        if let Ok(Some(packet)) = self.half.peek() {
            let len = packet.len();
            self.count(len);
        }
        self.half.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.half.arm(waker);
    }
}

//! The receiving half: packets are lent from where they have arrived.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Waker;

use rustix::event::epoll;
use rustix::io::Errno;
use sinew::frame::FrameStats;
use sinew::frame::length::{Width, encoded_len, split};
use sinew::link::{RecvError, Rx};

use crate::link::Traffic;
use crate::reactor::Ready;

/// Bytes that one read takes at most, at least: many small packets, and some large ones.
const READ: usize = 256 * 1024;
/// Moving so few bytes to the front costs less than a read that is cut short by the end.
const FEW: usize = 4096;

/// The receiving half.
pub struct StreamRx {
    pub(crate) inp: Arc<Ready<OwnedFd>>,
    width: Width,
    mtu: usize,
    buffer: Box<[u8]>,
    /// Where the next frame begins, and where the bytes end that have arrived.
    start: usize,
    end: usize,
    /// Length of the packet in the next frame, which is complete.
    packet: Option<usize>,
    /// The driver has looked at it, so that `release` means it.
    peeked: bool,
    /// The last read did not fill the buffer, so the next one would most likely find nothing.
    drained: bool,
    ended: bool,
    traffic: Traffic,
}

impl StreamRx {
    pub(super) fn new(fd: OwnedFd, width: Width, mtu: usize) -> StreamRx {
        StreamRx {
            inp: Ready::new(fd, epoll::EventFlags::IN),
            width,
            mtu,
            buffer: vec![0; READ.max(2 * encoded_len(width, mtu))].into(),
            start: 0,
            end: 0,
            packet: None,
            peeked: false,
            drained: false,
            ended: false,
            traffic: Traffic::default(),
        }
    }

    /// What has arrived so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// What became of the bytes received so far.
    pub fn stats(&self) -> &FrameStats {
        &self.traffic.frames
    }

    /// Receives until there is a packet, or nothing more to receive now.
    fn fill(&mut self) -> Result<(), RecvError> {
        if self.packet.is_some() {
            return Ok(());
        }
        self.find();
        if self.packet.is_none() && !self.ended && !std::mem::take(&mut self.drained) {
            self.read();
            self.find();
        }
        match self.packet {
            None if self.ended => Err(RecvError::Closed),
            _ => Ok(()),
        }
    }

    /// Looks for a packet in what has arrived.
    fn find(&mut self) {
        let arrived = self.buffer.get(self.start..self.end).unwrap_or_default();
        match split(self.width, arrived, self.mtu) {
            Ok(packet) => self.packet = packet.map(<[u8]>::len),
            // The next packet cannot be found any more.
            Err(_) => {
                self.traffic.frames.too_large += 1;
                self.ended = true;
                self.start = self.end;
            }
        }
    }

    fn read(&mut self) {
        self.make_room();
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        match rustix::io::read(self.inp.inner(), &mut *free) {
            Ok(0) => self.ended = true,
            Ok(count) => {
                self.drained = count < free.len();
                self.end += count;
                self.traffic.bytes_in += count as u64;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.ended = true,
        }
    }

    /// Moves a part of a frame to the front, where the largest would not fit behind it, or where
    /// that costs next to nothing.
    fn make_room(&mut self) {
        let rest = self.end - self.start;
        let largest = encoded_len(self.width, self.mtu);
        if rest <= FEW || self.buffer.len() - self.start < largest {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, rest);
        }
    }
}

impl Rx for StreamRx {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.fill()?;
        self.peeked = self.packet.is_some();
        let Some(len) = self.packet else {
            return Ok(None);
        };
        let packet = self.start + self.width.bytes();
        Ok(self.buffer.get(packet..packet + len))
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.peeked)
            && let Some(len) = self.packet.take()
        {
            self.start += encoded_len(self.width, len);
            self.traffic.frames.frames = self.traffic.frames.frames.wrapping_add(1);
        }
    }

    fn arm(&mut self, waker: &Waker) {
        if self.fill().is_err() || self.packet.is_some() {
            return waker.wake_by_ref();
        }
        self.inp.arm(waker);
    }
}

impl Drop for StreamRx {
    fn drop(&mut self) {
        self.inp.disarm();
    }
}

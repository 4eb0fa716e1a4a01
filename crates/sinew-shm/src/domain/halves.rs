//! The two halves of a channel as a packet link wants them: one place and one packet at a time.

use core::task::Waker;

use super::handles::{EndRef, Receiver, Sender};
use super::{Lost, Refused};
use crate::word::Span;

/// The sending half: `sinew::link::Tx` in all but name.
pub struct Outgoing<R: EndRef> {
    sender: Sender<R>,
    /// The block in hand, or `NONE`, and its bytes. Not an option of both: that is stored in parts
    /// and loaded as a whole, which waits until the parts are in the cache, behind every store before
    /// them.
    block: u32,
    bytes: Span,
}

const NONE: u32 = u32::MAX;

impl<R: EndRef> Outgoing<R> {
    /// The half of a sender.
    pub fn new(sender: Sender<R>) -> Outgoing<R> {
        Outgoing {
            sender,
            block: NONE,
            bytes: Span::EMPTY,
        }
    }

    /// The sender.
    pub fn sender(&self) -> &Sender<R> {
        &self.sender
    }

    /// Takes the half over into the present pairing, or the next one. A place in hand goes back.
    pub fn renew(&mut self) {
        if let Some(block) = self.take() {
            self.sender.cancel(block);
        }
        self.sender.renew();
    }

    /// The longest packet.
    pub fn mtu(&self) -> usize {
        self.sender.size()
    }

    /// The place for the next packet, the same one until [`Outgoing::commit`].
    #[inline]
    pub fn place(&mut self, min: usize) -> Result<&mut [u8], Refused> {
        let bytes = self.hold(min)?;
        // SAFETY: the block was taken and neither sent nor given back, the handle keeps the end, and
        // `&mut self` keeps every other view away.
        Ok(unsafe { bytes.slice_mut() })
    }

    /// Has a block in the hand.
    #[inline(always)]
    fn hold(&mut self, min: usize) -> Result<Span, Refused> {
        if self.block == NONE {
            let (block, bytes) = self.sender.take(min)?;
            (self.block, self.bytes) = (u32::from(block), bytes);
        } else if min > self.bytes.len() {
            return Err(Refused::TooLarge);
        }
        Ok(self.bytes)
    }

    /// Publishes the first `len` bytes; 0 gives the place back.
    #[inline]
    pub fn commit(&mut self, len: usize) -> Result<(), Refused> {
        let block = self.take().ok_or(Refused::TooLarge)?;
        if len == 0 {
            self.sender.cancel(block);
            return Ok(());
        }
        self.sender.publish(block, len, false).map(drop)
    }

    /// Rings the peer if it waits for what was published.
    #[inline]
    pub fn flush(&mut self) {
        self.sender.flush();
    }

    /// Wakes `waker` once when a place is there, or the pairing ends.
    pub fn arm(&mut self, waker: &Waker) {
        if self.block != NONE {
            waker.wake_by_ref();
        } else {
            self.sender.arm(waker);
        }
    }

    /// Takes the block out of the hand.
    #[inline]
    fn take(&mut self) -> Option<u16> {
        u16::try_from(core::mem::replace(&mut self.block, NONE)).ok()
    }
}

impl<R: EndRef> Drop for Outgoing<R> {
    fn drop(&mut self) {
        if let Some(block) = self.take() {
            self.sender.cancel(block);
        }
    }
}

/// [`Outgoing`] on memory that takes nothing but whole aligned words: Device memory on Arm, as which
/// Linux maps `/dev/mem` and UIO there.
///
/// A packet is written into the buffer `B`, and copied from there by words when it is committed.
pub struct Staged<R: EndRef, B> {
    outgoing: Outgoing<R>,
    buffer: B,
}

impl<R: EndRef, B: AsMut<[u8]>> Staged<R, B> {
    /// The half of a sender; `None` where `buffer` has less than [`Sender::size`] bytes.
    pub fn new(sender: Sender<R>, mut buffer: B) -> Option<Staged<R, B>> {
        let fits = buffer.as_mut().len() >= sender.size();
        let outgoing = Outgoing::new(sender);
        fits.then_some(Staged { outgoing, buffer })
    }

    /// The sender.
    pub fn sender(&self) -> &Sender<R> {
        self.outgoing.sender()
    }

    /// As [`Outgoing::renew`].
    pub fn renew(&mut self) {
        self.outgoing.renew();
    }

    /// The longest packet.
    pub fn mtu(&self) -> usize {
        self.outgoing.mtu()
    }

    /// As [`Outgoing::place`].
    pub fn place(&mut self, min: usize) -> Result<&mut [u8], Refused> {
        let len = self.outgoing.hold(min)?.len();
        let place = self.buffer.as_mut().get_mut(..len);
        place.ok_or(Refused::TooLarge)
    }

    /// As [`Outgoing::commit`].
    pub fn commit(&mut self, len: usize) -> Result<(), Refused> {
        if let Some(packet) = self.buffer.as_mut().get(..len)
            && self.outgoing.block != NONE
        {
            // SAFETY: as in `Outgoing::place`.
            unsafe { self.outgoing.bytes.copy_from(packet) };
        }
        self.outgoing.commit(len)
    }

    /// As [`Outgoing::flush`].
    pub fn flush(&mut self) {
        self.outgoing.flush();
    }

    /// As [`Outgoing::arm`].
    pub fn arm(&mut self, waker: &Waker) {
        self.outgoing.arm(waker);
    }
}

/// The receiving half: `sinew::link::Rx` in all but name.
///
/// Of a trusted peer, packets are read where they lie. Of another one each is copied, once, into the
/// buffer `B`, so that it cannot change under its reader.
pub struct Incoming<R: EndRef, B> {
    receiver: Receiver<R>,
    buffer: B,
    /// The packet at hand. Where it was copied, the block has gone back.
    packet: Option<(u16, Span)>,
    peeked: bool,
}

impl<R: EndRef, B: AsMut<[u8]>> Incoming<R, B> {
    /// The half of a receiver. `buffer` holds [`Receiver::size`] bytes where the end is not trusted
    /// ([`super::End::is_trusted`]), else it may be empty; `None` where it is too small.
    pub fn new(receiver: Receiver<R>, mut buffer: B) -> Option<Incoming<R, B>> {
        let fits = receiver.end().is_trusted() || buffer.as_mut().len() >= receiver.size();
        fits.then_some(Incoming {
            receiver,
            buffer,
            packet: None,
            peeked: false,
        })
    }

    /// The receiver.
    pub fn receiver(&self) -> &Receiver<R> {
        &self.receiver
    }

    /// Takes the half over into the present pairing, or the next one. A packet at hand is dropped.
    pub fn renew(&mut self) {
        self.peeked = self.packet.is_some();
        self.release();
        self.receiver.renew();
    }

    /// The oldest packet, the same one until [`Incoming::release`].
    #[inline]
    pub fn peek(&mut self) -> Result<Option<&[u8]>, Lost> {
        let is_trusted = self.receiver.end().is_trusted();
        let bytes = match self.packet {
            Some((_, bytes)) => bytes,
            None => {
                let Some((block, bytes)) = self.receiver.take()? else {
                    return Ok(None);
                };
                if !is_trusted {
                    let copied = self.receiver.copy(bytes, self.buffer.as_mut());
                    self.receiver.release(block, None);
                    copied?;
                }
                self.packet = Some((block, bytes));
                bytes
            }
        };
        self.peeked = true;
        if is_trusted {
            // SAFETY: the block is not released before `release`, which needs `&mut self`; for the
            // rest see `Packet::trusted`.
            Ok(Some(unsafe { bytes.slice() }))
        } else {
            Ok(self.buffer.as_mut().get(..bytes.len()))
        }
    }

    /// Gives the peeked packet's block back. Without one: nothing.
    #[inline]
    pub fn release(&mut self) {
        if !core::mem::take(&mut self.peeked) {
            return;
        }
        if let Some((block, _)) = self.packet.take()
            && self.receiver.end().is_trusted()
        {
            self.receiver.release(block, None);
        }
    }

    /// Whether a packet was looked at and not released.
    pub fn has_peeked(&self) -> bool {
        self.peeked
    }

    /// Wakes `waker` once when a packet is there, or the pairing ends.
    pub fn arm(&mut self, waker: &Waker) {
        if self.packet.is_some() {
            waker.wake_by_ref();
        } else {
            self.receiver.arm(waker);
        }
    }
}

impl<R: EndRef, B> Drop for Incoming<R, B> {
    fn drop(&mut self) {
        if let Some((block, _)) = self.packet.take()
            && self.receiver.end().is_trusted()
        {
            self.receiver.release(block, None);
        }
    }
}

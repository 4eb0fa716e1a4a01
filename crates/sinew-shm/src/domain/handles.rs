//! What users hold: a sender and its places, a receiver and its packets.
//!
//! A place and a packet are the block itself. Dropping an unsent place frees it; dropping a packet
//! gives the block back to the peer. Each handle belongs to one pairing (see [`End`](super::End)); when that is
//! over every call says [`Lost`], and `renew` takes the handle over into the next one.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::task::Waker;

use super::end::{End, Platform, What};
use super::filter::Predicate;
use super::{Lost, Refused};
use crate::word::Span;

/// How handles reach their end: `&End`, `&'static End`, `Rc<End>` or `Arc<End>`.
///
/// # Safety
/// A value and all of its clones give the same end, each time, as long as one of them lives: a handle
/// keeps the memory of a block by it.
pub unsafe trait EndRef: Deref<Target = End<Self::Platform>> + Clone {
    /// What the end is made of.
    type Platform: Platform;
}

// SAFETY: it is the reference that gives the end.
unsafe impl<P: Platform> EndRef for &End<P> {
    type Platform = P;
}

// SAFETY: clones share one end, which lives as long as they.
#[cfg(feature = "std")]
unsafe impl<P: Platform> EndRef for std::rc::Rc<End<P>> {
    type Platform = P;
}

// SAFETY: as above.
#[cfg(feature = "std")]
unsafe impl<P: Platform> EndRef for std::sync::Arc<End<P>> {
    type Platform = P;
}

/// Sends on one channel. Clone it for other tasks and threads.
pub struct Sender<R: EndRef> {
    end: R,
    slot: u16,
    pairing: u32,
    reserve: u16,
}

impl<R: EndRef> Clone for Sender<R> {
    fn clone(&self) -> Self {
        Sender {
            end: self.end.clone(),
            ..*self
        }
    }
}

impl<R: EndRef> Sender<R> {
    /// A sender on the channel with this id; `None` where the link has no such channel.
    pub fn new(end: &R, channel: u16) -> Option<Sender<R>> {
        let (slot, pairing) = end.find(channel)?;
        Some(Sender {
            end: end.clone(),
            slot,
            pairing,
            reserve: 0,
        })
    }

    /// Leaves so many blocks free for others: 1 for urgent answers, more for bulk.
    pub fn with_reserve(mut self, reserve: u16) -> Sender<R> {
        self.reserve = reserve;
        self
    }

    /// The end it sends from.
    pub fn end(&self) -> &R {
        &self.end
    }

    /// Takes the handle over into the present pairing, or the next one. What a peer that has ended
    /// sent before, on any channel, is dropped with it.
    pub fn renew(&mut self) {
        self.pairing = self.end.renew();
    }

    /// Bytes of a block: the longest packet.
    pub fn size(&self) -> usize {
        self.end.sizes(self.slot).0 as usize
    }

    /// Takes a block for a packet of at least `min` bytes; its content is unspecified.
    #[inline]
    pub fn place(&self, min: usize) -> Result<Place<'_, R>, Refused> {
        let (block, bytes) = self.take(min)?;
        Ok(Place {
            sender: self,
            block,
            bytes,
        })
    }

    /// Copies a packet into a block and sends it, in one step: what is cheapest for small packets.
    /// `false` where the receiver does not want it.
    ///
    /// The end's lock is held for the copy. Where it masks interrupts, [`Sender::place`] is for
    /// packets of more than some hundred bytes.
    ///
    /// ```
    /// # use sinew_shm::domain::{EndRef, Refused, Sender};
    /// # fn demo<R: EndRef>(sender: &Sender<R>) -> Result<(), Refused> {
    /// sender.send(b"ping")?;          // copied, or
    /// let mut place = sender.place(4)?;
    /// place[..4].copy_from_slice(b"pong"); // written where it leaves from
    /// place.send(4)?;
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn send(&self, packet: &[u8]) -> Result<bool, Refused> {
        self.end.post(self.slot, self.pairing, packet, self.reserve)
    }

    /// Shows the peer what was published, and rings it if it waits: once, after a batch of
    /// [`Place::publish`].
    #[inline]
    pub fn flush(&self) {
        self.end.flush(self.slot);
    }

    /// Asks the peer to ring once when it gives a block back; `true` where there is a place already,
    /// and it may not ring. For loops without wakers, before they sleep.
    pub fn ring_at_return(&self) -> Result<bool, Lost> {
        self.end
            .ring_at_return(self.slot, self.pairing, self.reserve)
    }

    /// The oldest answer that came back in a block of this channel.
    pub fn reply(&self) -> Result<Option<Reply<'_, R>>, Lost> {
        let answer = self.end.take_answer(self.slot, self.pairing)?;
        Ok(answer.map(|(block, bytes)| Reply {
            sender: self,
            block,
            bytes,
        }))
    }

    /// Wakes `waker` once when a block may be free for this handle, at once where one is, or when
    /// the pairing ends.
    pub fn arm(&self, waker: &Waker) {
        let what = What::Place(self.reserve);
        self.end.arm(self.slot, self.pairing, what, waker);
    }

    /// As [`Sender::arm`], for [`Sender::reply`].
    pub fn arm_reply(&self, waker: &Waker) {
        self.end.arm(self.slot, self.pairing, What::Reply, waker);
    }

    #[inline]
    pub(super) fn take(&self, min: usize) -> Result<(u16, Span), Refused> {
        self.end.take(self.slot, self.pairing, min, self.reserve)
    }

    #[inline]
    pub(super) fn publish(&self, block: u16, len: usize, flush: bool) -> Result<bool, Refused> {
        self.end.send(self.slot, self.pairing, block, len, flush)
    }

    pub(super) fn cancel(&self, block: u16) {
        self.end.cancel(self.slot, block);
    }
}

/// A block in a sender's hands. Dropping it gives it back unsent.
pub struct Place<'a, R: EndRef> {
    sender: &'a Sender<R>,
    block: u16,
    bytes: Span,
}

impl<R: EndRef> Place<'_, R> {
    /// Copies a packet to the front by whole aligned machine words, as many bytes as fit; how many.
    /// The bytes up to the next whole word become 0.
    ///
    /// For memory that takes no other accesses (Device memory on Arm); elsewhere copying into the
    /// slice is faster for large packets.
    #[cfg(not(loom))]
    pub fn copy_from(&mut self, packet: &[u8]) -> usize {
        // SAFETY: as in `deref_mut`.
        unsafe { self.bytes.copy_from(packet) }
    }

    /// Sends the first `len` bytes; rings the peer if it waits. `false` where the receiver does not
    /// want the packet. Never [`Refused::Full`]; with `len` beyond the block nothing is sent.
    #[inline]
    pub fn send(self, len: usize) -> Result<bool, Refused> {
        let place = ManuallyDrop::new(self);
        place.sender.publish(place.block, len, true)
    }

    /// As [`Place::send`], but for a batch: the peer sees the packets and is rung at the next
    /// [`Sender::flush`] or [`Place::send`] on this channel, whoever calls it, or when a place is
    /// asked for in vain.
    #[inline]
    pub fn publish(self, len: usize) -> Result<bool, Refused> {
        let place = ManuallyDrop::new(self);
        place.sender.publish(place.block, len, false)
    }
}

impl<R: EndRef> Deref for Place<'_, R> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block was taken and is this place's alone until it is sent or dropped; the
        // handle keeps the end, and so the memory; `&self` keeps `deref_mut` away.
        unsafe { self.bytes.slice() }
    }
}

impl<R: EndRef> DerefMut for Place<'_, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` keeps every other view away.
        unsafe { self.bytes.slice_mut() }
    }
}

impl<R: EndRef> Drop for Place<'_, R> {
    fn drop(&mut self) {
        self.sender.cancel(self.block);
    }
}

/// An answer, in the block in which the request went. Dropping it frees the block.
pub struct Reply<'a, R: EndRef> {
    sender: &'a Sender<R>,
    block: u16,
    bytes: Span,
}

impl<'a, R: EndRef> Reply<'a, R> {
    /// The block as the place of the next packet.
    pub fn into_place(self) -> Place<'a, R> {
        let Reply {
            sender,
            block,
            bytes,
        } = *ManuallyDrop::new(self);
        let bytes = sender.end.own_block(sender.slot, block).unwrap_or(bytes);
        Place {
            sender,
            block,
            bytes,
        }
    }
}

impl<R: EndRef> Deref for Reply<'_, R> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block came back and is this reply's until it is dropped; replies need trust:
        // the peer writes a block only while it is lent.
        unsafe { self.bytes.slice() }
    }
}

impl<R: EndRef> Drop for Reply<'_, R> {
    fn drop(&mut self) {
        self.sender.cancel(self.block);
    }
}

/// Receives on one channel. Clone it for other tasks and threads: each packet reaches one.
pub struct Receiver<R: EndRef> {
    end: R,
    slot: u16,
    pairing: u32,
}

impl<R: EndRef> Clone for Receiver<R> {
    fn clone(&self) -> Self {
        Receiver {
            end: self.end.clone(),
            ..*self
        }
    }
}

impl<R: EndRef> Receiver<R> {
    /// A receiver on the channel with this id; `None` where the link has no such channel.
    pub fn new(end: &R, channel: u16) -> Option<Receiver<R>> {
        let (slot, pairing) = end.find(channel)?;
        Some(Receiver {
            end: end.clone(),
            slot,
            pairing,
        })
    }

    /// The end it receives at.
    pub fn end(&self) -> &R {
        &self.end
    }

    /// Takes the handle over into the present pairing, or the next one. What a peer that has ended
    /// sent before, on any channel, is dropped with it.
    pub fn renew(&mut self) {
        self.pairing = self.end.renew();
    }

    /// Bytes of a block of the peer's: the longest packet.
    pub fn size(&self) -> usize {
        self.end.sizes(self.slot).1 as usize
    }

    /// The oldest packet; `None` where there is none now.
    #[inline]
    pub fn receive(&self) -> Result<Option<Packet<'_, R>>, Lost> {
        let received = self.take()?;
        Ok(received.map(|(block, bytes)| Packet {
            receiver: self,
            block,
            bytes,
        }))
    }

    /// Copies the oldest packet out and gives its block back, in one step: what is cheapest for small
    /// packets. Its length, which is more than that of `out` where it was cut; `None` where there is
    /// none now.
    ///
    /// The end's lock is held for the copy, see [`Sender::send`]. What the peer changes meanwhile is
    /// a mixture.
    #[inline]
    pub fn receive_into(&self, out: &mut [u8]) -> Result<Option<usize>, Lost> {
        self.end.receive_into(self.slot, self.pairing, out)
    }

    /// Asks the peer to ring once when `count` packets are there; `true` where they are there already,
    /// and it may not ring. For loops without wakers, before they sleep.
    pub fn ring_at(&self, count: u32) -> Result<bool, Lost> {
        self.end.ring_at(self.slot, self.pairing, count)
    }

    /// Whether `count` packets wait; more than the peer has blocks counts as all of them.
    pub fn has(&self, count: u32) -> Result<bool, Lost> {
        self.end.has_packets(self.slot, self.pairing, count)
    }

    /// Sets which packets are wanted; the sender drops and counts the others.
    pub fn set_filter(&self, predicate: Predicate) {
        self.end.set_filter(self.slot, predicate);
    }

    /// Wakes `waker` once when a packet is there, at once where one is, or when the pairing ends.
    pub fn arm(&self, waker: &Waker) {
        self.arm_at(1, waker);
    }

    /// As [`Receiver::arm`], when `count` packets are there: fewer wake-ups for many small packets.
    /// With a deadline of the caller's it is "k pending, or after t". More than the peer has blocks
    /// counts as all of them.
    pub fn arm_at(&self, count: u32, waker: &Waker) {
        let what = What::Packets(count);
        self.end.arm(self.slot, self.pairing, what, waker);
    }

    #[inline]
    pub(super) fn take(&self) -> Result<Option<(u16, Span)>, Lost> {
        self.end.receive(self.slot, self.pairing)
    }

    /// Copies from a received block; what the peer changes meanwhile is a mixture. `Lost` where the
    /// pairing ended before the copy did.
    #[inline]
    pub(super) fn copy(&self, bytes: Span, out: &mut [u8]) -> Result<usize, Lost> {
        let copied = bytes.copy_to(out);
        if self.end.is_current(self.pairing) {
            Ok(copied)
        } else {
            Err(Lost::Restarted)
        }
    }

    #[inline]
    pub(super) fn release(&self, block: u16, reply: Option<u32>) {
        self.end.release(self.slot, self.pairing, block, reply);
    }
}

/// A block of the peer's in a receiver's hands. Dropping it gives it back.
pub struct Packet<'a, R: EndRef> {
    receiver: &'a Receiver<R>,
    block: u16,
    bytes: Span,
}

impl<R: EndRef> Packet<'_, R> {
    /// Bytes of it, at most those of a block.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies it out, as many bytes as fit; how many. This is the way to read what a peer wrote that
    /// is not trusted: each byte is read once. [`Lost`] where the peer went meanwhile, and the
    /// bytes may be of its next life.
    #[inline]
    pub fn copy_to(&self, out: &mut [u8]) -> Result<usize, Lost> {
        self.receiver.copy(self.bytes, out)
    }

    /// The bytes where they lie, as machine words, each read once; the last one is filled up with
    /// whatever follows. For sums and searches over a peer's bytes without a copy.
    #[inline]
    #[cfg(not(loom))]
    pub fn words(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        // SAFETY: the handle keeps the end, and so the memory.
        unsafe { self.bytes.words() }
    }

    /// As [`Packet::words`], a line of 64 bytes at a time, which processors do faster.
    #[inline]
    #[cfg(not(loom))]
    pub fn lines(&self) -> impl ExactSizeIterator<Item = [usize; 64 / size_of::<usize>()]> + '_ {
        // SAFETY: as above.
        unsafe { self.bytes.lines() }
    }

    /// The packet where it lies; `None` where the peer is not trusted
    /// ([`End::is_trusted`](super::End::is_trusted)).
    #[inline]
    pub fn trusted(&self) -> Option<&[u8]> {
        // SAFETY: the block is this packet's until it is dropped. The peer is trusted to write it
        // only after it came back, and after a restart of its own only when this side has
        // acknowledged that, which it does when no packet is held any more. The handle keeps the
        // end, and so the memory.
        let bytes = || unsafe { self.bytes.slice() };
        self.receiver.end.is_trusted().then(bytes)
    }

    /// The whole block, for an answer in it; `None` where the channel has no replies.
    #[inline]
    pub fn place(&mut self) -> Option<&mut [u8]> {
        let block = self.receiver.end.answer(self.receiver.slot, self.block)?;
        // SAFETY: as in `trusted` (replies need trust), the pool lies in the exchange segment, which
        // this side may write, and `&mut self` keeps every other view away.
        Some(unsafe { block.slice_mut() })
    }

    /// Gives the block back with an answer of `len` bytes, written by [`Packet::place`]. Without
    /// replies in the channel, or beyond the block, it goes back without an answer: `false`.
    #[inline]
    pub fn reply(self, len: usize) -> bool {
        let block = self.receiver.end.answer(self.receiver.slot, self.block);
        if block.is_none_or(|block| len > block.len()) {
            return false;
        }
        let packet = ManuallyDrop::new(self);
        packet.receiver.release(packet.block, Some(len as u32));
        true
    }
}

impl<R: EndRef> Drop for Packet<'_, R> {
    #[inline]
    fn drop(&mut self) {
        self.receiver.release(self.block, None);
    }
}

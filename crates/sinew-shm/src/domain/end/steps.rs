//! What the handles ask of their end: one locked step each, and what comes after it without the lock.

use core::task::Waker;

use super::super::filter::Predicate;
use super::super::inbox::Received;
use super::super::outbox::Denied;
use super::super::port::{Doorbell, Platform};
use super::super::{Lost, Refused, Violation};
use super::{End, Status};
use crate::waiters::{Woken, wake};
use crate::word::{Foreign, SLEEP_FENCE, full_fence};

/// What somebody waits for.
#[derive(Clone, Copy)]
pub(in super::super) enum What {
    /// So many packets.
    Packets(u32),
    /// A place, with so many left free.
    Place(u16),
    /// An answer in an own block.
    Reply,
}

/// Why a call leaves the usual way.
pub(super) enum Slow {
    /// Nothing is there: look whether the peer is.
    Look,
    TooLarge,
    Violation(Violation),
    Lost(Lost),
}

impl<P: Platform> End<P> {
    /// The slot of a channel, and the pairing that a handle made now belongs to.
    pub(in super::super) fn find(&self, id: u16) -> Option<(u16, u32)> {
        self.locked(|inner| {
            let pairing = inner.pairing;
            let mut slots = inner.slots.as_mut().iter().flat_map(|slot| &slot.0);
            let at = slots.position(|channel| channel.id == id)?;
            Some((at as u16, pairing))
        })
    }

    /// Bytes of an own block, and of one of the peer's.
    pub(in super::super) fn sizes(&self, slot: u16) -> (u32, u32) {
        self.locked(|inner| {
            let channel = inner.channel(usize::from(slot));
            channel.map_or((0, 0), |(channel, ..)| {
                (channel.outbox.size(), channel.inbox.size())
            })
        })
    }

    #[inline]
    pub(in super::super) fn take(
        &self,
        slot: u16,
        pairing: u32,
        min: usize,
        reserve: u16,
    ) -> Result<u16, Refused> {
        let taken = self.locked(|inner| {
            inner.check(pairing)?;
            if inner.status != Status::Up {
                return Err(Slow::Look);
            }
            if inner.is_draining {
                return Err(Slow::Lost(Lost::Closed));
            }
            let (channel, own, _) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            match channel.outbox.take(own, min, reserve, &self.cache) {
                Ok(block) => Ok(block),
                Err(Denied::TooLarge) => Err(Slow::TooLarge),
                Err(Denied::Full) => Err(Slow::Look),
                Err(Denied::Violation(violation)) => Err(Slow::Violation(violation)),
            }
        });
        match taken {
            Ok(block) => Ok(block),
            Err(Slow::TooLarge) => Err(Refused::TooLarge),
            Err(slow) => {
                self.slow(slot, pairing, slow).map_err(Refused::Lost)?;
                Err(Refused::Full)
            }
        }
    }

    /// A taken block.
    ///
    /// # Safety
    /// The block was given by [`End::take`] or with a reply, and not sent or freed since, and no
    /// other reference to it lives.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(in super::super) unsafe fn place(&self, slot: u16, block: u16) -> &mut [u8] {
        self.locked(|inner| {
            inner
                .channel(usize::from(slot))
                // SAFETY: as the caller says.
                .map(|(channel, ..)| unsafe { channel.outbox.place(block) })
        })
        .unwrap_or_default()
    }

    /// Publishes a taken block. `false` where the receiver does not want it.
    #[inline]
    pub(in super::super) fn send(
        &self,
        slot: u16,
        pairing: u32,
        block: u16,
        len: usize,
    ) -> Result<bool, Refused> {
        let sent = self.locked(|inner| {
            let lost = match inner.check(pairing) {
                Ok(()) if inner.status == Status::Up => None,
                Ok(()) => Some(Slow::Look),
                Err(lost) => Some(lost),
            };
            let (channel, own, _) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            if let Some(lost) = lost {
                channel.outbox.cancel(own, block);
                return Err(lost);
            }
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            let sent = channel.outbox.send(own, block, len, &self.cache);
            sent.map_err(|_| Slow::TooLarge)
        });
        match sent {
            Ok(sent) => Ok(sent),
            Err(Slow::TooLarge) => Err(Refused::TooLarge),
            Err(slow) => {
                self.slow(slot, pairing, slow).map_err(Refused::Lost)?;
                Err(Refused::Lost(Lost::Restarted))
            }
        }
    }

    /// Gives a taken block, or one with a reply, back; who waits for one is woken.
    pub(in super::super) fn cancel(&self, slot: u16, block: u16) {
        wake(self.locked(|inner| {
            let is_up = inner.status == Status::Up;
            let Some((channel, own, _)) = inner.channel(usize::from(slot)) else {
                return Woken::default();
            };
            channel.outbox.cancel(own, block);
            if is_up {
                channel.places(&self.cache)
            } else {
                Woken::default()
            }
        }));
    }

    /// Rings the peer if it waits for what was published on this channel.
    #[inline]
    pub(in super::super) fn flush(&self, slot: u16) {
        let ring = self.locked(|inner| inner.flush(slot, &self.cache));
        if ring {
            self.doorbell.ring();
        }
    }

    /// Takes a packet up: its block and length. `None` where there is none now.
    #[inline]
    pub(in super::super) fn receive(
        &self,
        slot: u16,
        pairing: u32,
    ) -> Result<Option<(u16, u32)>, Lost> {
        let received = self.locked(|inner| {
            inner.check(pairing)?;
            if inner.status != Status::Up {
                return Err(Slow::Look);
            }
            let is_still_up = inner.session.is_still_up(&self.cache);
            let (channel, _, theirs) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            // Each round takes one entry up, and there are no more than blocks.
            for _ in 0..=theirs.len() {
                match channel.inbox.receive(theirs, &self.cache) {
                    Ok(Received::Packet(block, len)) => return Ok(Some((block, len))),
                    Ok(Received::Nothing) if is_still_up => return Ok(None),
                    Ok(Received::Nothing) => return Err(Slow::Look),
                    Ok(Received::Filtered) => {}
                    Err(violation) => return Err(Slow::Violation(violation)),
                }
            }
            Ok(None)
        });
        match received {
            Ok(received) => Ok(received),
            Err(slow) => self.slow(slot, pairing, slow).map(|()| None),
        }
    }

    /// What a received block holds, as bytes that may change.
    #[inline]
    pub(in super::super) fn foreign(&self, slot: u16, block: u16, len: u32) -> Option<Foreign<'_>> {
        self.locked(|inner| {
            let (channel, _, theirs) = inner.channel(usize::from(slot))?;
            // SAFETY: there are books on the block, so it is below the count.
            (usize::from(block) < theirs.len())
                .then(|| unsafe { channel.inbox.foreign(block, len) })
        })
    }

    /// What a received block of a trusted peer holds.
    ///
    /// # Safety
    /// The block was given by [`End::receive`], is not released while the reference lives, and
    /// [`End::is_trusted`].
    #[inline]
    pub(in super::super) unsafe fn trusted(&self, slot: u16, block: u16, len: u32) -> &[u8] {
        self.locked(|inner| {
            inner
                .channel(usize::from(slot))
                // SAFETY: as the caller says; a trusted peer writes a block again only after it
                // came back, and after a restart of its own only when this side has acknowledged
                // that, which it does when no block is held any more.
                .map(|(channel, ..)| unsafe { channel.inbox.trusted(block, len) })
        })
        .unwrap_or_default()
    }

    /// A received block for the answer; `None` where the channel has no replies.
    ///
    /// # Safety
    /// As for [`End::trusted`], and no other reference to the block lives.
    #[allow(clippy::mut_from_ref)]
    pub(in super::super) unsafe fn answer(&self, slot: u16, block: u16) -> Option<&mut [u8]> {
        self.locked(|inner| {
            let (channel, ..) = inner.channel(usize::from(slot))?;
            // SAFETY: as the caller says; the pool lies in the exchange segment.
            channel
                .has_replies
                .then(|| unsafe { channel.inbox.answer(block) })
        })
    }

    /// Whether a pairing is the present one.
    #[inline]
    pub(in super::super) fn is_current(&self, pairing: u32) -> bool {
        self.locked(|inner| inner.pairing == pairing && inner.session.is_still_up(&self.cache))
    }

    /// Gives a received block back, with an answer where there is one, and rings if the peer waits.
    #[inline]
    pub(in super::super) fn release(
        &self,
        slot: u16,
        pairing: u32,
        block: u16,
        reply: Option<u32>,
    ) {
        let ring = self.locked(|inner| {
            let is_current = inner.pairing == pairing && inner.status == Status::Up;
            let is_trusted = self.is_trusted;
            let Some((channel, _, theirs)) = inner.channel(usize::from(slot)) else {
                return false;
            };
            if is_current {
                channel.inbox.release(theirs, block, reply, &self.cache);
                return inner.flush(slot, &self.cache);
            }
            // Of a trusted peer the marks stay until the views are gone.
            if is_trusted {
                channel.inbox.forget(theirs, block);
            }
            false
        });
        if ring {
            self.doorbell.ring();
        }
    }

    /// Takes an answer up that came back in an own block, which is then held.
    pub(in super::super) fn take_answer(
        &self,
        slot: u16,
        pairing: u32,
    ) -> Result<Option<(u16, u32)>, Lost> {
        let taken = self.locked(|inner| {
            inner.check(pairing)?;
            if inner.status != Status::Up {
                return Err(Slow::Look);
            }
            let is_still_up = inner.session.is_still_up(&self.cache);
            let (channel, own, _) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            match channel.outbox.take_answer(own, &self.cache) {
                Ok(None) if !is_still_up => Err(Slow::Look),
                Ok(answer) => Ok(answer),
                Err(violation) => Err(Slow::Violation(violation)),
            }
        });
        match taken {
            Ok(answer) => Ok(answer),
            Err(slow) => self.slow(slot, pairing, slow).map(|()| None),
        }
    }

    /// An answer in an own block.
    ///
    /// # Safety
    /// The block was given by [`End::take_answer`] and not freed since.
    pub(in super::super) unsafe fn read_answer(&self, slot: u16, block: u16, len: u32) -> &[u8] {
        self.locked(|inner| {
            inner
                .channel(usize::from(slot))
                // SAFETY: as the caller says; replies need trust.
                .map(|(channel, ..)| unsafe { channel.outbox.answer(block, len) })
        })
        .unwrap_or_default()
    }

    /// Sets the receiver's filter.
    pub(in super::super) fn set_filter(&self, slot: u16, predicate: Predicate) {
        self.locked(|inner| {
            if let Some((channel, ..)) = inner.channel(usize::from(slot)) {
                channel.inbox.set_filter(predicate, &self.cache);
            }
        });
    }

    /// Wakes `waker` once when something `what` is there, at once where it is or the pairing is over.
    pub(in super::super) fn arm(&self, slot: u16, pairing: u32, what: What, waker: &Waker) {
        let mut mine = Some(waker.clone());
        let (evicted, woken, now) = self.locked(|inner| {
            let is_up = inner.status == Status::Up;
            let over = inner.check(pairing).is_err();
            let has_barrier = inner.session.has_barrier();
            let is_still_up = inner.session.is_still_up(&self.cache);
            let Some((channel, ..)) = inner.channel(usize::from(slot)) else {
                return (None, Default::default(), true);
            };
            if over || (is_up && !is_still_up) {
                return (None, Default::default(), true);
            }
            let evicted = match what {
                What::Packets(count) => {
                    // Who waits for fewer decides.
                    let others = channel.wanted.min(count);
                    channel.wanted = match channel.for_packet.is_empty() {
                        true => count,
                        false => others,
                    };
                    channel.inbox.arm(channel.wanted);
                    channel.for_packet.add(&mut mine, 0)
                }
                What::Place(reserve) => {
                    channel.outbox.arm();
                    channel.for_place.add(&mut mine, u32::from(reserve))
                }
                What::Reply => {
                    channel.outbox.arm();
                    channel.for_reply.add(&mut mine, 0)
                }
            };
            if !is_up {
                // Who waits is woken when the link comes up.
                return (evicted, Default::default(), false);
            }
            channel.inbox.clean_control(&self.cache);
            if has_barrier {
                self.platform.barrier();
            } else {
                full_fence(SLEEP_FENCE);
            }
            let woken = match what {
                What::Packets(_) => channel.packets(&self.cache),
                What::Place(_) => channel.places(&self.cache),
                What::Reply => channel.replies(&self.cache),
            };
            (evicted, woken, false)
        });
        if let Some(evicted) = evicted {
            evicted.wake();
        }
        wake(woken);
        if now {
            waker.wake_by_ref();
        }
        // `mine`, if it was not needed, is dropped out here, without the lock.
    }

    /// Whatever is not the usual: a link that is not up, a violation. `Ok`: there is nothing now.
    #[cold]
    fn slow(&self, slot: u16, pairing: u32, slow: Slow) -> Result<(), Lost> {
        if let Slow::Lost(lost) = slow {
            return Err(lost);
        }
        let cache = &self.cache;
        let (after, result) = self.locked(|inner| {
            let mut after = inner.step(self.is_trusted, cache);
            if let Slow::Violation(violation) = slow
                && inner.check(pairing).is_ok()
                && inner.status == Status::Up
            {
                after.wake |= inner.violated(slot, violation, cache);
            }
            let result = match inner.check(pairing) {
                Err(Slow::Lost(lost)) => Err(lost),
                _ => Ok(()),
            };
            (after, result)
        });
        self.after(&after);
        result
    }
}

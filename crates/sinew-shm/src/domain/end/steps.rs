//! What the handles ask of their end: one locked step each, and what comes after it without the lock.

use core::task::Waker;

use super::super::filter::Predicate;
use super::super::inbox::{Copied, Received};
use super::super::outbox::Denied;
use super::super::port::Doorbell;
use super::super::{Lost, Refused, Violation};
use super::End;
use super::channel::{Kind, What};
use super::platform::Platform;
use super::state::Inner;
use crate::waiters::{Woken, wake};
use crate::word::{SLEEP_FENCE, Span, full_fence};

/// Why a call leaves the usual way.
pub(super) enum Slow {
    /// Nothing is there: look whether the peer is.
    Look,
    TooLarge,
    Violation(Violation),
}

impl From<Denied> for Slow {
    fn from(denied: Denied) -> Slow {
        match denied {
            Denied::Full => Slow::Look,
            Denied::TooLarge => Slow::TooLarge,
            Denied::Violation(violation) => Slow::Violation(violation),
        }
    }
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

    /// Takes a block for a packet of at least `min` bytes, leaving `reserve` free ones to others.
    #[inline]
    pub(in super::super) fn take(
        &self,
        slot: u16,
        pairing: u32,
        min: usize,
        reserve: u16,
    ) -> Result<(u16, Span), Refused> {
        let taken = self.locked(|inner| {
            if inner.sendable != pairing {
                return Err(Slow::Look);
            }
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            Ok(channel
                .outbox
                .take::<P>(blocks, min, reserve, &self.cache)?)
        });
        taken.map_err(|slow| self.no_place(slot, pairing, min, slow))
    }

    #[cold]
    fn no_place(&self, slot: u16, pairing: u32, min: usize, slow: Slow) -> Refused {
        match self.refused(slot, pairing, slow) {
            // Waiting does not help, also while nobody is there.
            Refused::Full if min > self.sizes(slot).0 as usize => Refused::TooLarge,
            refused => refused,
        }
    }

    /// Copies a packet into a block, publishes it, and rings the peer if it waits. `false` where the
    /// receiver does not want it.
    #[inline]
    pub(in super::super) fn post(
        &self,
        slot: u16,
        pairing: u32,
        packet: &[u8],
        reserve: u16,
    ) -> Result<bool, Refused> {
        let sent = self.locked(|inner| {
            if inner.sendable != pairing {
                return Err(Slow::Look);
            }
            let fence = inner.session.fence();
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            let outbox = &mut channel.outbox;
            let (sent, ring) = outbox.post::<P>(blocks, packet, reserve, fence, &self.cache)?;
            outbox.top_up::<P>(blocks, &self.cache);
            Ok((sent, ring && channel.count_ring()))
        });
        match sent {
            Ok((sent, ring)) => {
                if ring {
                    self.doorbell.ring();
                }
                Ok(sent)
            }
            Err(slow) => Err(self.no_place(slot, pairing, packet.len(), slow)),
        }
    }

    /// Publishes a taken block; with `flush` the peer is shown it, and rung if it waits. `false`
    /// where the receiver does not want the packet.
    #[inline]
    pub(in super::super) fn send(
        &self,
        slot: u16,
        pairing: u32,
        block: u16,
        len: usize,
        flush: bool,
    ) -> Result<bool, Refused> {
        let sent = self.locked(|inner| {
            // Of a peer that has ended only the rest is read.
            let is_live = inner.live == pairing && inner.rest.is_none();
            let fence = inner.session.fence();
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            if !is_live {
                channel.outbox.cancel::<P>(blocks, block);
                return Err(Slow::Look);
            }
            let sent = channel.outbox.send::<P>(blocks, block, len, &self.cache)?;
            let ring =
                flush && channel.outbox.flush::<P>(fence, &self.cache) && channel.count_ring();
            Ok((sent, ring))
        });
        match sent {
            Ok((sent, ring)) => {
                if ring {
                    self.doorbell.ring();
                }
                Ok(sent)
            }
            Err(slow) => Err(match self.refused(slot, pairing, slow) {
                Refused::Full => Refused::Lost(Lost::Restarted),
                refused => refused,
            }),
        }
    }

    /// Gives a taken block, or one with a reply, back; who waits for one is woken.
    pub(in super::super) fn cancel(&self, slot: u16, block: u16) {
        wake(self.locked(|inner| {
            let is_up = inner.live != 0;
            let Some((channel, blocks)) = inner.channel(usize::from(slot)) else {
                return Woken::default();
            };
            channel.outbox.cancel::<P>(blocks, block);
            if P::USES.wakers && is_up {
                channel.wakers(Kind::Place, false, &self.cache)
            } else {
                Woken::default()
            }
        }));
    }

    /// Shows the peer what was published on this channel, and rings it if it waits.
    #[inline]
    pub(in super::super) fn flush(&self, slot: u16) {
        let ring = self.locked(|inner| inner.flush_packets(slot, &self.cache));
        if ring {
            self.doorbell.ring();
        }
    }

    /// Takes a packet up: its block and bytes. `None` where there is none now.
    #[inline]
    pub(in super::super) fn receive(
        &self,
        slot: u16,
        pairing: u32,
    ) -> Result<Option<(u16, Span)>, Lost> {
        let received = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            let mut was_filtered = false;
            // Past packets that are not wanted: no more than blocks.
            for _ in 0..channel.inbox.looks::<P>() {
                let received = channel.inbox.receive::<P>(blocks, &self.cache);
                match received.map_err(Slow::Violation)? {
                    Received::Packet(block, bytes) => {
                        return Ok((Some((block, bytes)), was_filtered));
                    }
                    Received::Nothing => break,
                    Received::Filtered => was_filtered = true,
                }
            }
            match inner.is_still_up(&self.cache) {
                true => Ok((None, was_filtered)),
                false => Err(Slow::Look),
            }
        });
        match received {
            Ok((found, was_filtered)) => {
                if was_filtered {
                    self.flush_returns(slot);
                }
                Ok(found)
            }
            Err(slow) => self.slow(slot, pairing, slow).map(|()| None),
        }
    }

    /// Rings the peer if it waits for what went back meanwhile.
    #[cold]
    fn flush_returns(&self, slot: u16) {
        let ring = self.locked(|inner| inner.flush_returns(slot, &self.cache));
        if ring {
            self.doorbell.ring();
        }
    }

    /// Takes a packet up, copies as much of it as fits, and gives its block back: its length. `None`
    /// where there is none now.
    #[inline]
    pub(in super::super) fn receive_into(
        &self,
        slot: u16,
        pairing: u32,
        out: &mut [u8],
    ) -> Result<Option<usize>, Lost> {
        let received = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            let fence = inner.session.fence();
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            let mut found = None;
            // Past packets that are not wanted: no more than blocks.
            for _ in 0..channel.inbox.looks::<P>() {
                let copied = channel.inbox.receive_into::<P>(blocks, out, &self.cache);
                match copied.map_err(Slow::Violation)? {
                    Copied::Packet(len) => {
                        found = Some(len as usize);
                        break;
                    }
                    Copied::Nothing => break,
                    Copied::Filtered => {}
                }
            }
            let ring = channel.inbox.flush(fence, &self.cache) && channel.count_ring();
            // What was copied may be of the peer's next life, if there is one.
            let is_valid = match found {
                Some(_) => inner.session.is_same_pairing(&self.cache),
                None => inner.is_still_up(&self.cache),
            };
            match is_valid {
                true => Ok((found, ring)),
                false => Err(Slow::Look),
            }
        });
        match received {
            Ok((found, ring)) => {
                if ring {
                    self.doorbell.ring();
                }
                Ok(found)
            }
            Err(slow) => self.slow(slot, pairing, slow).map(|()| None),
        }
    }

    /// Asks the peer to ring when `count` packets are there; whether they are already.
    pub(in super::super) fn ring_at(
        &self,
        slot: u16,
        pairing: u32,
        count: u32,
    ) -> Result<bool, Lost> {
        self.locked(|inner| {
            if let Some((channel, _)) = inner.channel(usize::from(slot)) {
                channel.inbox.arm(count);
            }
            self.settle(inner, usize::from(slot));
        });
        self.has_packets(slot, pairing, count)
    }

    /// Asks the peer to ring when it gives a block back; whether there is a place already.
    pub(in super::super) fn ring_at_return(
        &self,
        slot: u16,
        pairing: u32,
        reserve: u16,
    ) -> Result<bool, Lost> {
        // What the peer has not been shown it cannot give back.
        self.flush(slot);
        let found = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            if let Some((channel, _)) = inner.channel(usize::from(slot)) {
                channel.outbox.arm();
            }
            self.settle(inner, usize::from(slot));
            let (channel, _) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            let outbox = &channel.outbox;
            match outbox.room() > reserve || outbox.has_returns(&self.cache) {
                false if !inner.is_still_up(&self.cache) => Err(Slow::Look),
                found => Ok(found),
            }
        });
        found.or_else(|slow| self.slow(slot, pairing, slow).map(|()| false))
    }

    /// Makes the peer see what this side waits for, before this side looks a last time.
    fn settle(&self, inner: &mut Inner<P>, slot: usize) {
        let has_barrier = inner.session.fence().is_light();
        if let Some((channel, _)) = inner.channel(slot) {
            channel.inbox.clean_control(&self.cache);
        }
        if has_barrier {
            self.platform.barrier();
        } else {
            full_fence(SLEEP_FENCE);
        }
    }

    /// Whether `count` packets wait.
    pub(in super::super) fn has_packets(
        &self,
        slot: u16,
        pairing: u32,
        count: u32,
    ) -> Result<bool, Lost> {
        let found = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            let (channel, _) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            match channel.inbox.has_news(count, &self.cache) {
                false if !inner.is_still_up(&self.cache) => Err(Slow::Look),
                found => Ok(found),
            }
        });
        found.or_else(|slow| self.slow(slot, pairing, slow).map(|()| false))
    }

    /// The whole of an own block that is held.
    pub(in super::super) fn own_block(&self, slot: u16, block: u16) -> Option<Span> {
        self.locked(|inner| inner.channel(usize::from(slot))?.0.outbox.block(block))
    }

    /// A received block for the answer; `None` where the channel has no replies.
    pub(in super::super) fn answer(&self, slot: u16, block: u16) -> Option<Span> {
        self.locked(|inner| {
            let (channel, _) = inner.channel(usize::from(slot))?;
            channel
                .has_replies
                .then(|| channel.inbox.answer(block))
                .flatten()
        })
    }

    /// Whether a pairing is the present one, and the peer is still in it, or ended in it: then it
    /// has written nothing since to what it sent.
    #[inline]
    pub(in super::super) fn is_current(&self, pairing: u32) -> bool {
        self.locked(|inner| inner.live == pairing && inner.session.is_same_pairing(&self.cache))
    }

    /// The pairing to which a handle belongs from now on. One of which only the rest was read ends.
    pub fn renew(&self) -> u32 {
        let (after, pairing) = self.locked(|inner| {
            let after = match inner.rest {
                Some(lost) => inner.give_up(lost, self.is_trusted, &self.cache),
                None => Default::default(),
            };
            (after, inner.pairing)
        });
        self.after(&after);
        pairing
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
            let is_live = inner.live == pairing;
            let fence = inner.session.fence();
            let Some((channel, blocks)) = inner.channel(usize::from(slot)) else {
                return false;
            };
            if is_live {
                return channel
                    .inbox
                    .release::<P>(blocks, block, reply, &self.cache)
                    && channel.inbox.flush(fence, &self.cache)
                    && channel.count_ring();
            }
            // Of a trusted peer the marks stay until the views are gone.
            if self.is_trusted {
                channel.inbox.forget(blocks, block);
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
    ) -> Result<Option<(u16, Span)>, Lost> {
        let taken = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            let answer = channel.outbox.take_answer::<P>(blocks, &self.cache);
            match answer.map_err(Slow::Violation)? {
                None if !inner.is_still_up(&self.cache) => Err(Slow::Look),
                answer => Ok(answer),
            }
        });
        taken.or_else(|slow| self.slow(slot, pairing, slow).map(|()| None))
    }

    /// Sets the receiver's filter.
    pub(in super::super) fn set_filter(&self, slot: u16, predicate: Predicate) {
        const {
            assert!(
                P::USES.filters,
                "Platform::USES says that nobody sets filters"
            )
        };
        self.locked(|inner| {
            if let Some((channel, ..)) = inner.channel(usize::from(slot)) {
                channel.inbox.set_filter(predicate, &self.cache);
            }
        });
    }

    /// Wakes `waker` once when something `what` is there, at once where it is or the pairing is over.
    pub(in super::super) fn arm(&self, slot: u16, pairing: u32, what: What, waker: &Waker) {
        const {
            assert!(
                P::USES.wakers,
                "Platform::USES says that nobody arms wakers"
            )
        };
        if !matches!(what, What::Packets(_)) {
            // What the peer has not been shown it cannot give back.
            self.flush(slot);
        }
        let mut mine = Some(waker.clone());
        let (evicted, woken, now) = self.locked(|inner| {
            let is_up = inner.live != 0;
            let over = inner.check(pairing).is_err();
            let is_still_up = inner.is_still_up(&self.cache);
            let Some((channel, ..)) = inner.channel(usize::from(slot)) else {
                return (None, Default::default(), true);
            };
            if over || (is_up && !is_still_up) {
                return (None, Default::default(), true);
            }
            let (kind, reserve) = match what {
                What::Packets(count) => {
                    // Who waits for fewer decides.
                    let is_alone = channel.waiters[Kind::Packet as usize].is_empty();
                    channel.wanted = if is_alone {
                        count
                    } else {
                        channel.wanted.min(count)
                    };
                    channel.inbox.arm(channel.wanted);
                    (Kind::Packet, 0)
                }
                What::Place(reserve) => (Kind::Place, u32::from(reserve)),
                What::Reply => (Kind::Reply, 0),
            };
            if !matches!(kind, Kind::Packet) {
                channel.outbox.arm();
            }
            let evicted = channel.waiters[kind as usize].add(&mut mine, reserve);
            if !is_up {
                // Who waits is woken when the link comes up.
                return (evicted, Default::default(), false);
            }
            self.settle(inner, usize::from(slot));
            let woken = inner.wakers(usize::from(slot), kind, false, &self.cache);
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

    /// Why there is no block, or a packet did not go.
    #[cold]
    fn refused(&self, slot: u16, pairing: u32, slow: Slow) -> Refused {
        if matches!(slow, Slow::TooLarge) {
            return Refused::TooLarge;
        }
        // What the peer has not been shown it cannot give back.
        self.flush(slot);
        match self.slow(slot, pairing, slow) {
            Err(lost) => Refused::Lost(lost),
            Ok(()) if self.locked(|inner| inner.live == pairing && inner.is_draining) => {
                Refused::Lost(Lost::Closed)
            }
            Ok(()) => Refused::Full,
        }
    }

    /// Whatever is not the usual: a link that is not up, a violation. `Ok`: there is nothing now.
    #[cold]
    fn slow(&self, slot: u16, pairing: u32, slow: Slow) -> Result<(), Lost> {
        let cache = &self.cache;
        let (after, result) = self.locked(|inner| {
            let after = match slow {
                Slow::Violation(violation) => {
                    let mut after = inner.judge((slot, pairing), violation, self.is_trusted, cache);
                    // A packet that is too long goes back.
                    after.ring |= inner.flush_returns(slot, cache);
                    after
                }
                _ => inner.step(self.is_trusted, cache),
            };
            // What is left of an ended peer may be on another channel.
            let result = inner.check(pairing).and(inner.rest.map_or(Ok(()), Err));
            (after, result)
        });
        self.after(&after);
        result
    }
}

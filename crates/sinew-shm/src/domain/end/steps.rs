//! What the handles ask of their end: one locked step each, and what comes after it without the lock.

use core::task::Waker;

use super::super::config::MAX_BLOCKS;
use super::super::filter::Predicate;
use super::super::inbox::Received;
use super::super::outbox::Denied;
use super::super::port::{Doorbell, Platform};
use super::super::{Lost, Refused, Violation};
use super::End;
use super::channel::Kind;
use crate::waiters::{Woken, wake};
use crate::word::{SLEEP_FENCE, Span, full_fence};

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
            Ok(channel.outbox.take(blocks, min, reserve, &self.cache)?)
        });
        taken.map_err(|slow| match self.refused(slot, pairing, slow) {
            // Waiting does not help, also while nobody is there.
            Refused::Full if min > self.sizes(slot).0 as usize => Refused::TooLarge,
            refused => refused,
        })
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
                channel.outbox.cancel(blocks, block);
                return Err(Slow::Look);
            }
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            let sent = channel.outbox.send(blocks, block, len, &self.cache)?;
            let ring = flush && channel.outbox.flush(fence, &self.cache) && channel.count_ring();
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
            channel.outbox.cancel(blocks, block);
            if is_up {
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
            // Past packets that are not wanted: no more than blocks.
            for _ in 0..MAX_BLOCKS {
                match channel.inbox.receive(blocks, &self.cache) {
                    Ok(Received::Packet(block, bytes)) => return Ok(Some((block, bytes))),
                    Ok(Received::Nothing) => break,
                    Ok(Received::Filtered) => {}
                    Err(violation) => return Err(Slow::Violation(violation)),
                }
            }
            match inner.is_still_up(&self.cache) {
                true => Ok(None),
                false => Err(Slow::Look),
            }
        });
        received.or_else(|slow| self.slow(slot, pairing, slow).map(|()| None))
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
                return channel.inbox.release(blocks, block, reply, &self.cache)
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
            let answer = channel.outbox.take_answer(blocks, &self.cache);
            match answer.map_err(Slow::Violation)? {
                None if !inner.is_still_up(&self.cache) => Err(Slow::Look),
                answer => Ok(answer),
            }
        });
        taken.or_else(|slow| self.slow(slot, pairing, slow).map(|()| None))
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
        if !matches!(what, What::Packets(_)) {
            // What the peer has not been shown it cannot give back.
            self.flush(slot);
        }
        let mut mine = Some(waker.clone());
        let (evicted, woken, now) = self.locked(|inner| {
            let is_up = inner.live != 0;
            let over = inner.check(pairing).is_err();
            let has_barrier = inner.session.fence().is_light();
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
            channel.inbox.clean_control(&self.cache);
            if has_barrier {
                self.platform.barrier();
            } else {
                full_fence(SLEEP_FENCE);
            }
            let woken = channel.wakers(kind, false, &self.cache);
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
                    inner.judge((slot, pairing), violation, self.is_trusted, cache)
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

//! What senders ask of their end.

use super::super::super::port::Doorbell;
use super::super::super::{Lost, Refused};
use super::super::End;
use super::super::platform::Platform;
use super::Slow;
use crate::waiters::{Waits, wake};
use crate::word::Span;

impl<P: Platform> End<P> {
    /// Takes a block for a packet of at least `min` bytes, leaving `reserve` free ones to others.
    #[inline]
    pub(in crate::domain) fn take(
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
    pub(in crate::domain) fn post(
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
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            let outbox = &mut channel.outbox;
            let (sent, ring) = outbox.post::<P>(blocks, packet, reserve, &self.cache)?;
            outbox.top_up::<P>(blocks, &self.cache);
            Ok((sent, ring && channel.tally.count_ring()))
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
    pub(in crate::domain) fn send(
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
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Look)?;
            if !is_live {
                let cleared = channel.outbox.cancel::<P>(blocks, block, &self.cache);
                channel.tally.count_cleared(cleared);
                return Err(Slow::Look);
            }
            let sent = channel.outbox.send::<P>(blocks, block, len, &self.cache)?;
            let ring =
                flush && channel.outbox.flush::<P>(&self.cache) && channel.tally.count_ring();
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
    pub(in crate::domain) fn cancel(&self, slot: u16, block: u16) {
        wake(self.locked(|inner| {
            if let Some((channel, blocks)) = inner.channel(usize::from(slot)) {
                let cleared = channel.outbox.cancel::<P>(blocks, block, &self.cache);
                channel.tally.count_cleared(cleared);
            }
            self.ready(inner, usize::from(slot), Waits::Room, false)
        }));
    }

    /// Shows the peer what was published on this channel, and rings it if it waits.
    #[inline]
    pub(in crate::domain) fn flush(&self, slot: u16) {
        let ring = self.locked(|inner| inner.flush_packets(slot, &self.cache));
        if ring {
            self.doorbell.ring();
        }
    }

    /// The whole of an own block that is held.
    pub(in crate::domain) fn own_block(&self, slot: u16, block: u16) -> Option<Span> {
        self.locked(|inner| inner.channel(usize::from(slot))?.0.outbox.block(block))
    }

    /// Takes an answer up that came back in an own block, which is then held.
    pub(in crate::domain) fn take_answer(
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
                None => inner.nothing(&self.cache).map(|()| None),
                answer => Ok(answer),
            }
        });
        taken.or_else(|slow| self.slow(slot, pairing, slow).map(|()| None))
    }
}

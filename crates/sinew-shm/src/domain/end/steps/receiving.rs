//! What receivers ask of their end.

use super::super::super::Lost;
use super::super::super::filter::Predicate;
use super::super::super::inbox::{Copied, Received};
use super::super::super::port::Doorbell;
use super::super::End;
use super::super::platform::Platform;
use super::Slow;
use crate::word::Span;

impl<P: Platform> End<P> {
    /// Takes a packet up: its block and bytes. `None` where there is none now.
    #[inline]
    pub(in crate::domain) fn receive(
        &self,
        slot: u16,
        pairing: u32,
    ) -> Result<Option<(u16, Span)>, Lost> {
        let received = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Nothing);
            }
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Nothing)?;
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
            inner.nothing(&self.cache).map(|()| (None, was_filtered))
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
    pub(in crate::domain) fn receive_into(
        &self,
        slot: u16,
        pairing: u32,
        out: &mut [u8],
    ) -> Result<Option<usize>, Lost> {
        let received = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Nothing);
            }
            let (channel, blocks) = inner.channel(usize::from(slot)).ok_or(Slow::Nothing)?;
            // Past packets that are not wanted: no more than blocks.
            for _ in 0..channel.inbox.looks::<P>() {
                let copied = channel.inbox.receive_into::<P>(blocks, out, &self.cache);
                match copied.map_err(Slow::Violation)? {
                    Copied::Packet(len) => {
                        let ring =
                            channel.inbox.look_after(&self.cache) && channel.tally.count_ring();
                        // What was copied may be of the peer's next life, if there is one.
                        return match inner.session.is_of_this_pairing(&self.cache) {
                            true => Ok((Some(len as usize), ring)),
                            false => Err(Slow::Nothing),
                        };
                    }
                    Copied::Nothing => break,
                    Copied::Filtered => {}
                }
            }
            let ring =
                P::USES.filters && channel.inbox.flush(&self.cache) && channel.tally.count_ring();
            inner.nothing(&self.cache).map(|()| (None, ring))
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

    /// Whether `count` packets wait.
    pub(in crate::domain) fn has_packets(
        &self,
        slot: u16,
        pairing: u32,
        count: u32,
    ) -> Result<bool, Lost> {
        let found = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Nothing);
            }
            let (channel, _) = inner.channel(usize::from(slot)).ok_or(Slow::Nothing)?;
            match channel.inbox.has_news::<P>(count, &self.cache) {
                true => Ok(true),
                false => inner.nothing(&self.cache).map(|()| false),
            }
        });
        found.or_else(|slow| self.slow(slot, pairing, slow).map(|()| false))
    }

    /// A received block for the answer; `None` where the channel has no replies.
    pub(in crate::domain) fn answer(&self, slot: u16, block: u16) -> Option<Span> {
        self.locked(|inner| {
            let (channel, _) = inner.channel(usize::from(slot))?;
            channel
                .has_replies
                .then(|| channel.inbox.answer(block))
                .flatten()
        })
    }

    /// Gives a received block back, with an answer where there is one, and rings if the peer waits.
    #[inline]
    pub(in crate::domain) fn release(
        &self,
        slot: u16,
        pairing: u32,
        block: u16,
        reply: Option<u32>,
    ) {
        let ring = self.locked(|inner| {
            let is_live = inner.live == pairing;
            let Some((channel, blocks)) = inner.channel(usize::from(slot)) else {
                return false;
            };
            if is_live {
                return channel
                    .inbox
                    .release::<P>(blocks, block, reply, &self.cache)
                    && channel.inbox.look_after(&self.cache)
                    && channel.tally.count_ring();
            }
            // Of a trusted peer the marks stay until the views are gone.
            if self.is_trusted {
                channel.inbox.forget::<P>(blocks, block, &self.cache);
            }
            false
        });
        if ring {
            self.doorbell.ring();
        }
    }

    /// Sets the receiver's filter.
    pub(in crate::domain) fn set_filter(&self, slot: u16, predicate: Predicate) {
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
}

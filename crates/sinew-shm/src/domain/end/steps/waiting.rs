//! How who has nothing to do comes to be told.

use core::task::Waker;

use super::super::super::Lost;
use super::super::End;
use super::super::channel::{Kind, What};
use super::super::platform::Platform;
use super::super::state::Inner;
use super::Slow;
use crate::waiters::{Woken, wake};
use crate::word::{SLEEP_FENCE, full_fence};

impl<P: Platform> End<P> {
    /// Asks the peer to ring when `count` packets are there; whether they are already.
    pub(in crate::domain) fn ring_at(
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
    pub(in crate::domain) fn ring_at_return(
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
        if let Some((channel, _)) = inner.channel(slot) {
            channel.inbox.clean_control(&self.cache);
        }
        self.before_last_look(inner.session.fence().is_light());
    }

    /// Keeps what this side waits for before its last look.
    pub(super) fn before_last_look(&self, has_barrier: bool) {
        if has_barrier {
            self.platform.barrier();
        } else {
            full_fence(SLEEP_FENCE);
        }
    }

    /// Wakes `waker` once when something `what` is there, at once where it is or the pairing is over.
    pub(in crate::domain) fn arm(&self, slot: u16, pairing: u32, what: What, waker: &Waker) {
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
        let armed: Armed = self.locked(|inner| {
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
        tell(armed, waker);
        // `mine`, if it was not needed, is dropped out here, without the lock.
    }
}

/// What arming a waker came to: one that had to make room, who can go on, and whether the waker itself
/// is to be woken now.
pub(super) type Armed = (Option<Waker>, Woken, bool);

/// Wakes them, without the lock.
pub(super) fn tell((evicted, woken, now): Armed, waker: &Waker) {
    if let Some(evicted) = evicted {
        evicted.wake();
    }
    wake(woken);
    if now {
        waker.wake_by_ref();
    }
}

//! How who has nothing to do comes to be told.

use core::task::Waker;

use super::super::super::Lost;
use super::super::End;
use super::super::channel::What;
use super::super::opening::Status;
use super::super::platform::Platform;
use super::super::state::Inner;
use super::Slow;
use crate::waiters::{Waits, Woken, wake};
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
                channel.inbox.arm::<P>(count);
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
        self.show_all(slot);
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
            match outbox.room() > u32::from(reserve) || outbox.has_returns::<P>(&self.cache) {
                true => Ok(true),
                false => inner.nothing(&self.cache).map(|()| false),
            }
        });
        found.or_else(|slow| self.slow(slot, pairing, slow).map(|()| false))
    }

    /// Makes the peer see what this side waits for, before this side looks a last time.
    fn settle(&self, inner: &mut Inner<P>, slot: usize) {
        if let Some((channel, _)) = inner.channel(slot) {
            channel.inbox.clean_control(&self.cache);
        }
        full_fence(SLEEP_FENCE);
    }

    /// Takes out who waits on a channel for this and can go on, or everybody. For who is left the
    /// peer is asked to ring, again and again: what it rang for may be in another thread's hands.
    pub(in super::super) fn ready(
        &self,
        inner: &mut Inner<P>,
        slot: usize,
        waits: Waits,
        all: bool,
    ) -> Woken {
        let mut woken = Woken::default();
        let is_up = inner.status == Status::Up;
        if !P::USES.wakers || !(all || is_up) {
            return woken;
        }
        let cache = &self.cache;
        if let Some((channel, _)) = inner.channel(slot) {
            if channel.wakers::<P>(waits, all, cache, &mut woken) {
                channel.arm::<P>(waits, cache);
                full_fence(SLEEP_FENCE);
                channel.wakers::<P>(waits, all, cache, &mut woken);
            }
        } else if P::USES.messages
            && let Some((channel, books)) = inner.messages(slot)
            && channel.wakers(waits, all, books, cache, &mut woken)
        {
            channel.arm(waits, cache);
            full_fence(SLEEP_FENCE);
            channel.wakers(waits, all, books, cache, &mut woken);
        } else if P::USES.locks
            && let Some(channel) = inner.lock(slot)
            && channel.wakers(waits, all, cache, &mut woken)
        {
            channel.arm(cache);
            full_fence(SLEEP_FENCE);
            channel.wakers(waits, all, cache, &mut woken);
        }
        woken
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
            self.show_all(slot);
        }
        let mut mine = Some(waker.clone());
        let armed: Armed = self.locked(|inner| {
            let is_over = inner.is_over(pairing, &self.cache);
            let Some((channel, _)) = inner.channel(usize::from(slot)).filter(|_| !is_over) else {
                return (None, Default::default(), true);
            };
            let (waits, reserve) = match what {
                What::Packets(count) => {
                    // Who waits for fewer decides.
                    let is_alone = channel.waiters[Waits::Incoming as usize].is_empty();
                    channel.wanted = if is_alone {
                        count
                    } else {
                        channel.wanted.min(count)
                    };
                    (Waits::Incoming, 0)
                }
                What::Place(reserve) => (Waits::Room, u32::from(reserve)),
                What::Reply => (Waits::Answer, 0),
            };
            let evicted = channel.waiters[waits as usize].add(&mut mine, reserve, u32::min);
            // While the link is down nobody is ready: who waits is woken when it comes up.
            let woken = self.ready(inner, usize::from(slot), waits, false);
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

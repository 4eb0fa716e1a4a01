//! Who waits: for a place, or for a packet.

use core::task::Waker;

/// How many wait at the same time without waking each other for nothing.
const SLOTS: usize = 4;

/// For what somebody waits on a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// A packet, or a message.
    Incoming,
    /// A place for a packet; room for a message, or for a call.
    Room,
    /// An answer: whose, who is woken looks.
    Answer,
}

impl Waits {
    pub(crate) const ALL: [Waits; 3] = [Waits::Incoming, Waits::Room, Waits::Answer];
}

/// Wakers on their way out of the lock.
pub(crate) type Woken = [Option<Waker>; SLOTS];

struct Waiter {
    waker: Waker,
    reserve: u32,
}

/// A small table of wakers.
///
/// When it is full, the oldest entry makes room and is woken: it looks, and arms again.
pub(crate) struct Waiters {
    slots: [Option<Waiter>; SLOTS],
    oldest: usize,
}

impl Waiters {
    pub(crate) const fn new() -> Self {
        Waiters {
            slots: [const { None }; SLOTS],
            oldest: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    /// Registers the waker, which leaves `waker`, unless it is registered already: then `both` says what
    /// is enough for it now. Returns one that had to make room: wake it.
    pub(crate) fn add(
        &mut self,
        waker: &mut Option<Waker>,
        reserve: u32,
        both: fn(u32, u32) -> u32,
    ) -> Option<Waker> {
        let new = waker.as_ref()?;
        if let Some(known) = self
            .slots
            .iter_mut()
            .flatten()
            .find(|w| w.waker.will_wake(new))
        {
            known.reserve = both(known.reserve, reserve);
            return None;
        }
        let free = self.slots.iter().position(Option::is_none);
        let at = free.unwrap_or(self.oldest % SLOTS);
        if free.is_none() {
            self.oldest = at + 1;
        }
        let slot = self.slots.get_mut(at)?;
        let before = slot.take();
        *slot = waker.take().map(|waker| Waiter { waker, reserve });
        before.map(|waiter| waiter.waker)
    }

    /// Takes out everybody whose `reserve` is one for whom there is enough, also again under the same
    /// lock.
    pub(crate) fn ready(&mut self, is_enough: impl Fn(u32) -> bool, woken: &mut Woken) {
        for (slot, out) in self.slots.iter_mut().zip(woken) {
            if slot
                .as_ref()
                .is_some_and(|waiter| is_enough(waiter.reserve))
            {
                *out = slot.take().map(|waiter| waiter.waker);
            }
        }
    }
}

pub(crate) fn wake(woken: Woken) {
    for waker in woken.into_iter().flatten() {
        waker.wake();
    }
}

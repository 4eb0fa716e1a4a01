//! What the handles ask of their end: one locked step each, and what comes after it without the lock.

use super::super::outbox::Denied;
use super::super::{Lost, Refused, Violation};
use super::End;
use super::channel::Slot;
use super::platform::Platform;
use super::state::{After, Inner};

mod locks;
mod messages;
mod receiving;
mod sending;
mod states;
mod waiting;

/// Why a call leaves the usual way.
pub(super) enum Slow {
    /// Nothing is there: look whether the peer is.
    Look,
    /// The same, before this side knew that the peer has ended: what came after the look that found nothing
    /// is there at the next one.
    Nothing,
    TooLarge,
    Violation(Violation),
}

pub(in super::super) use locks::Tried;

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
    /// The slot of a queue, and the pairing that a handle made now belongs to.
    pub(in crate::domain) fn find(&self, id: u16) -> Option<(u16, u32)> {
        if let Some(known) = Inner::<P>::KNOWN {
            let found = |inner: &mut Inner<P>| (0, inner.pairing);
            return (known.id == id).then(|| self.locked(found));
        }
        self.locate(|slot| slot.queue().is_some_and(|channel| channel.id == id))
    }

    /// The first slot that is the one, and the pairing that a handle made now belongs to.
    fn locate(&self, is_it: impl Fn(&Slot) -> bool) -> Option<(u16, u32)> {
        self.locked(|inner| {
            let pairing = inner.pairing;
            let at = inner.slots.as_mut().iter().position(is_it)?;
            Some((at as u16, pairing))
        })
    }

    /// Bytes of an own block, and of one of the peer's.
    pub(in crate::domain) fn sizes(&self, slot: u16) -> (u32, u32) {
        self.locked(|inner| {
            let channel = inner.channel(usize::from(slot));
            channel.map_or((0, 0), |(channel, ..)| {
                (channel.outbox.size::<P>(), channel.inbox.size::<P>())
            })
        })
    }

    /// Whether a pairing is the present one, and the peer is still in it, or ended in it: then it
    /// has written nothing since to what it sent.
    #[inline]
    pub(in crate::domain) fn is_current(&self, pairing: u32) -> bool {
        self.locked(|inner| inner.live == pairing && inner.session.is_of_this_pairing(&self.cache))
    }

    /// The pairing to which a handle belongs from now on. One of which only the rest was read ends.
    #[cold]
    #[inline(never)]
    pub fn renew(&self) -> u32 {
        let (after, pairing) = self.locked(|inner| {
            let after = match inner.rest {
                Some(lost) => inner.give_up(lost, self.is_trusted, &self.cache),
                None => After::NOTHING,
            };
            (after, inner.pairing)
        });
        self.after(after);
        pairing
    }

    /// As `flush`, before this side waits: what the peer has not been shown it cannot give back.
    #[cold]
    #[inline(never)]
    fn show_all(&self, slot: u16) {
        self.flush(slot);
    }

    /// Why there is no block, or a packet did not go.
    #[cold]
    fn refused(&self, slot: u16, pairing: u32, slow: Slow) -> Refused {
        if matches!(slow, Slow::TooLarge) {
            return Refused::TooLarge;
        }
        self.show_all(slot);
        match self.slow(slot, pairing, slow) {
            Err(lost) => Refused::Lost(lost),
            Ok(()) if self.locked(|inner| inner.live == pairing && inner.sendable == 0) => {
                Refused::Lost(Lost::Closed)
            }
            Ok(()) => Refused::Full,
        }
    }

    /// Whatever is not the usual: a link that is not up, a violation. `Ok`: there is nothing now.
    #[cold]
    fn slow(&self, slot: u16, pairing: u32, slow: Slow) -> Result<(), Lost> {
        let cache = &self.cache;
        let looked = !matches!(slow, Slow::Nothing);
        let (after, result) = self.locked(|inner| {
            let violation = match slow {
                Slow::Violation(violation) => Some(violation),
                Slow::Look | Slow::Nothing | Slow::TooLarge => None,
            };
            let mut after = inner.judge((slot, pairing), violation, self.is_trusted, cache);
            // A packet that is too long went back.
            after.add(After::ring_if(inner.flush_returns(slot, cache)));
            // What is left of an ended peer is on another channel, or has come after the last look.
            let rest = inner.rest.filter(|_| looked);
            let result = inner.check(pairing).and(rest.map_or(Ok(()), Err));
            (after, result)
        });
        self.after(after);
        result
    }
}

//! What the handles of state channels ask of their end.

use super::super::super::Lost;
use super::super::End;
use super::super::platform::Platform;
use super::Slow;

impl<P: Platform> End<P> {
    /// The slot of a state channel of this type and size, and the pairing of a handle made now.
    pub(in crate::domain) fn find_state(
        &self,
        id: u16,
        type_hash: u32,
        size: usize,
    ) -> Option<(u16, u32)> {
        const {
            assert!(
                P::USES.states,
                "Platform::USES says that nobody has state channels"
            )
        };
        self.locked(|inner| {
            let pairing = inner.pairing;
            let slot = (0..inner.slots.as_mut().len()).find(|&slot| {
                inner.state(slot).is_some_and(|channel| {
                    let is_it = |one: Option<usize>| one.is_none_or(|one| one == size);
                    channel.id == id
                        && channel.type_hash == type_hash
                        && channel.sizes().into_iter().all(is_it)
                })
            })?;
            Some((slot as u16, pairing))
        })
    }

    /// Sets the own value; `false` where this side has none.
    #[inline]
    pub(in crate::domain) fn set_state(
        &self,
        slot: u16,
        pairing: u32,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Lost> {
        let set = self.locked(|inner| {
            if inner.sendable != pairing {
                return Err(Slow::Look);
            }
            let channel = inner.state(usize::from(slot)).ok_or(Slow::Look)?;
            Ok(channel.set(fill, &self.cache))
        });
        set.or_else(|slow| self.slow(slot, pairing, slow).and(Err(Lost::Closed)))
    }

    /// Copies the peer's value; its number, 0 where there is none.
    #[inline]
    pub(in crate::domain) fn get_state(
        &self,
        slot: u16,
        pairing: u32,
        out: &mut [u8],
    ) -> Result<u32, Lost> {
        let found = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            let channel = inner.state(usize::from(slot)).ok_or(Slow::Look)?;
            let version = channel.get(out, &self.cache);
            // What was copied may be of the peer's next life, if there is one.
            match inner.session.is_same_pairing(&self.cache) {
                true => Ok(version),
                false => Err(Slow::Look),
            }
        });
        found.or_else(|slow| self.slow(slot, pairing, slow).map(|()| 0))
    }
}

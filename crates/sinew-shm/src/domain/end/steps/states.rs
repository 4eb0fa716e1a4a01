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
    #[inline(always)]
    pub(in crate::domain) fn set_state(
        &self,
        slot: u16,
        pairing: u32,
        value: &[u8],
    ) -> Result<bool, Lost> {
        match self.try_set_state(slot, pairing, value) {
            Some(set) => Ok(set),
            None => self.set_state_late(slot, pairing, value),
        }
    }

    /// The peer's value in bytes like `zero`, and its number; `None` where there is none.
    #[inline(always)]
    pub(in crate::domain) fn get_state<B: AsMut<[u8]>>(
        &self,
        slot: u16,
        pairing: u32,
        zero: impl Fn() -> B,
    ) -> Result<Option<(B, u32)>, Lost> {
        match self.try_get_state(slot, pairing, &zero) {
            Some(found) => Ok(found),
            None => self.get_state_late(slot, pairing, zero),
        }
    }

    #[inline(always)]
    fn try_set_state(&self, slot: u16, pairing: u32, value: &[u8]) -> Option<bool> {
        self.locked(|inner| {
            if inner.sendable != pairing {
                return None;
            }
            let channel = inner.state(usize::from(slot))?;
            Some(channel.set(value, &self.cache))
        })
    }

    #[inline(always)]
    fn try_get_state<B: AsMut<[u8]>>(
        &self,
        slot: u16,
        pairing: u32,
        zero: impl Fn() -> B,
    ) -> Option<Option<(B, u32)>> {
        self.locked(|inner| {
            if inner.live != pairing {
                return None;
            }
            let channel = inner.state(usize::from(slot))?;
            let mut bytes = zero();
            let number = channel.get(bytes.as_mut(), &self.cache);
            // What was found may be of the peer's next life, if there is one.
            let is_valid = inner.session.is_same_pairing(&self.cache);
            is_valid.then(|| number.map(|number| (bytes, number)))
        })
    }

    /// The link is not up, or draining, or was not up at the last look.
    #[cold]
    fn set_state_late(&self, slot: u16, pairing: u32, value: &[u8]) -> Result<bool, Lost> {
        self.slow(slot, pairing, Slow::Look)?;
        let set = self.try_set_state(slot, pairing, value);
        set.ok_or(Lost::Closed)
    }

    /// As [`End::set_state_late`], or the peer begins anew.
    #[cold]
    fn get_state_late<B: AsMut<[u8]>>(
        &self,
        slot: u16,
        pairing: u32,
        zero: impl Fn() -> B,
    ) -> Result<Option<(B, u32)>, Lost> {
        self.slow(slot, pairing, Slow::Look)?;
        match self.try_get_state(slot, pairing, zero) {
            Some(found) => Ok(found),
            // It was changing its session during the look.
            None if self.locked(|inner| inner.live == pairing) => Err(Lost::Restarted),
            None => Ok(None),
        }
    }
}

//! What the handles of state channels ask of their end.

use super::super::super::Lost;
use super::super::super::state::Value;
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
        self.locate(|slot| {
            slot.state().is_some_and(|channel| {
                let is_it = |one: Option<usize>| one.is_none_or(|one| one == size);
                channel.id == id
                    && channel.type_hash == type_hash
                    && channel.sizes().into_iter().all(is_it)
            })
        })
    }

    /// Sets the own value; `false` where this side has none.
    #[inline(always)]
    pub(in crate::domain) fn set_state<T: Value>(
        &self,
        slot: u16,
        pairing: u32,
        value: &T,
    ) -> Result<bool, Lost> {
        match self.try_set_state(slot, pairing, value) {
            Some(()) => Ok(true),
            None => self.set_state_late(slot, pairing, value),
        }
    }

    /// What `make` makes of the peer's value and its number; `None` where there is none.
    #[inline(always)]
    pub(in crate::domain) fn get_state<T: Value, R>(
        &self,
        slot: u16,
        pairing: u32,
        make: impl Fn(T, u32) -> R,
    ) -> Result<Option<R>, Lost> {
        match self.try_get_state(slot, pairing, &make) {
            Some(found) => Ok(Some(found)),
            None => self.get_state_late(slot, pairing, make),
        }
    }

    /// `None` where it is not the usual.
    #[inline(always)]
    fn try_set_state<T: Value>(&self, slot: u16, pairing: u32, value: &T) -> Option<()> {
        let mut bytes = T::ZERO;
        value.put(bytes.as_mut());
        self.locked(|inner| {
            if inner.sendable != pairing {
                return None;
            }
            inner
                .state(usize::from(slot))?
                .set(bytes.as_ref(), &self.cache)
        })
    }

    /// `None` where it is not the usual.
    #[inline(always)]
    fn try_get_state<T: Value, R>(
        &self,
        slot: u16,
        pairing: u32,
        make: impl Fn(T, u32) -> R,
    ) -> Option<R> {
        self.locked(|inner| {
            if inner.live != pairing {
                return None;
            }
            let mut bytes = T::ZERO;
            let channel = inner.state(usize::from(slot))?;
            let number = channel.get(bytes.as_mut(), &self.cache)?;
            // What was found may be of the peer's next life, if there is one.
            let is_valid = inner.session.is_of_this_pairing(&self.cache);
            is_valid.then(|| make(T::take(bytes.as_ref()), number))
        })
    }

    /// The link is not up, or draining, or was not up at the last look; or this side has no value.
    #[cold]
    fn set_state_late<T: Value>(&self, slot: u16, pairing: u32, value: &T) -> Result<bool, Lost> {
        self.slow(slot, pairing, Slow::Look)?;
        match self.try_set_state(slot, pairing, value) {
            Some(()) => Ok(true),
            None if self.locked(|inner| inner.sendable == pairing) => Ok(false),
            None => Err(Lost::Closed),
        }
    }

    /// The link is not up, or was not up at the last look; or the peer begins anew, or has no value.
    #[cold]
    fn get_state_late<T: Value, R>(
        &self,
        slot: u16,
        pairing: u32,
        make: impl Fn(T, u32) -> R,
    ) -> Result<Option<R>, Lost> {
        self.slow(slot, pairing, Slow::Look)?;
        if let Some(found) = self.try_get_state(slot, pairing, make) {
            return Ok(Some(found));
        }
        self.locked(|inner| {
            // It was changing its session during the look.
            let is_over = inner.live == pairing && !inner.session.is_same_pairing(&self.cache);
            if is_over {
                Err(Lost::Restarted)
            } else {
                Ok(None)
            }
        })
    }
}

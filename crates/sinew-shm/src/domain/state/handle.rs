//! What users hold of a state channel.

use core::marker::PhantomData;

use super::super::Lost;
use super::super::config::{Channel, Kind, Pool};
use super::super::handles::EndRef;
use super::value::Value;

/// The latest value of each side of a state channel. Clone it for other tasks and threads.
///
/// ```
/// use sinew_shm::domain::{Channel, Config, EndRef, Lost, State};
///
/// const LINK: Config = Config::new(&[Channel::of::<u64>(7, "speed")]);
///
/// fn step<R: EndRef>(speed: &State<R, u64>) -> Result<(), Lost> {
///     if let Some(wanted) = speed.get()? {   // the peer's
///         speed.set(&wanted)?;               // the own one
///     }
///     Ok(())
/// }
/// ```
pub struct State<R: EndRef, T: Value> {
    end: R,
    slot: u16,
    pairing: u32,
    value: PhantomData<fn(T) -> T>,
}

impl<R: EndRef, T: Value> Clone for State<R, T> {
    fn clone(&self) -> Self {
        State {
            end: self.end.clone(),
            ..*self
        }
    }
}

impl<R: EndRef, T: Value> State<R, T> {
    /// The values of the channel with this id; `None` where the link has no such channel, or its
    /// values are of another type or size.
    pub fn new(end: &R, channel: u16) -> Option<State<R, T>> {
        let (slot, pairing) = end.find_state(channel, T::HASH, T::SIZE)?;
        Some(State {
            end: end.clone(),
            slot,
            pairing,
            value: PhantomData,
        })
    }

    /// The end of this side.
    pub fn end(&self) -> &R {
        &self.end
    }

    /// Takes the handle over into the present pairing, or the next one.
    pub fn renew(&mut self) {
        self.pairing = self.end.renew();
    }

    /// Makes this the own value. `false` where this side has none. Values of the time before the link
    /// came up are not kept: [`Lost`], and the next one counts.
    #[inline]
    pub fn set(&self, value: &T) -> Result<bool, Lost> {
        self.end.set_state(self.slot, self.pairing, value)
    }

    /// The peer's latest value; `None` where it has set none yet.
    #[inline]
    pub fn get(&self) -> Result<Option<T>, Lost> {
        self.end
            .get_state(self.slot, self.pairing, |value, _| value)
    }

    /// As [`State::get`], with the number of the value: the first of a session is 1, and each later
    /// one has one more (after 2^29 - 1 comes 0). So it can be told from the one before.
    #[inline]
    pub fn get_with_version(&self) -> Result<Option<(T, u32)>, Lost> {
        self.end
            .get_state(self.slot, self.pairing, |value, number| (value, number))
    }
}

impl Channel {
    /// A state channel of values of this type on both sides; with `pools` of one side only.
    ///
    /// # Panics
    /// As [`Channel::new`], and where the value has no bytes.
    pub const fn of<T: Value>(id: u16, name: &str) -> Channel {
        let mut channel = Channel::state(id, name, T::SIZE as u32);
        channel.type_hash = T::HASH;
        channel
    }

    /// A state channel in which only this side has a value.
    pub const fn only(mut self, role: super::super::Role) -> Channel {
        assert!(
            matches!(self.kind, Kind::State),
            "only a state channel has values"
        );
        match role {
            super::super::Role::First => self.second = Pool::new(0, 0),
            super::super::Role::Second => self.first = Pool::new(0, 0),
        }
        self
    }
}

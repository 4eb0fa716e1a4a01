//! What users hold of a lock channel.

use core::fmt;
use core::task::Waker;

use super::super::Lost;
use super::super::end::Tried;
use super::super::handles::EndRef;
use super::super::state::Value;

/// The area of a lock channel, which both sides read and write, each alone while it has the lock. Clone it
/// for other tasks and threads: of one side, too, one has the lock.
///
/// ```
/// use sinew_shm::domain::{AccessError, Area, Channel, Config, EndRef, LockError};
///
/// const LINK: Config = Config::new(&[Channel::lock(9, "account", 8)]);
///
/// /// Moves some from the first number to the second. `false`: somebody has the lock now.
/// fn pay<R: EndRef>(account: &Area<R>, amount: u32) -> Result<bool, AccessError> {
///     let mut account = match account.try_lock() {
///         Ok(account) => account,
///         Err(LockError::Busy) => return Ok(false),
///         // Its owner died, perhaps between the two writes.
///         Err(LockError::Poisoned(poisoned)) => {
///             let mut account = poisoned.accept();
///             account.write(0, &[0; 8])?;
///             account
///         }
///         Err(LockError::Lost(lost)) => return Err(AccessError::Lost(lost)),
///     };
///     let (from, to) = (account.get::<u32>(0)?, account.get::<u32>(4)?);
///     account.set(0, &from.wrapping_sub(amount))?;
///     account.set(4, &to.wrapping_add(amount))?;
///     account.unlock()?;
///     Ok(true)
/// }
/// ```
pub struct Area<R: EndRef> {
    end: R,
    slot: u16,
    pairing: u32,
    size: usize,
}

impl<R: EndRef> Clone for Area<R> {
    fn clone(&self) -> Self {
        Area {
            end: self.end.clone(),
            ..*self
        }
    }
}

impl<R: EndRef> Area<R> {
    /// The area of the lock channel with this id; `None` where the link has no such channel.
    pub fn new(end: &R, channel: u16) -> Option<Area<R>> {
        let (slot, pairing, size) = end.find_lock(channel)?;
        Some(Area {
            end: end.clone(),
            slot,
            pairing,
            size,
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

    /// Bytes of the area.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.size
    }

    /// Takes the lock, if nobody has it: a bounded number of steps, of which the longest is to copy the
    /// area, where the other side has changed it. That is done under the lock of this side's end.
    pub fn try_lock(&self) -> Result<Guard<'_, R>, LockError<'_, R>> {
        match self.end.try_lock(self.slot, self.pairing) {
            Ok(Tried::Held(hold, is_poisoned)) => {
                let guard = Guard {
                    area: self,
                    hold,
                    was_panicking: is_panicking(),
                };
                match is_poisoned {
                    true => Err(LockError::Poisoned(Poisoned { guard })),
                    false => Ok(guard),
                }
            }
            Ok(Tried::Busy) => Err(LockError::Busy),
            Err(lost) => Err(LockError::Lost(lost)),
        }
    }

    /// Wakes `waker` once when the lock may be free, at once where it is, or when the pairing ends: then
    /// try again, and arm again where another one was faster.
    pub fn arm(&self, waker: &Waker) {
        self.end.arm_lock(self.slot, self.pairing, waker);
    }

    fn at(&self) -> (u16, u32) {
        (self.slot, self.pairing)
    }
}

/// The lock: as long as it is there, the area is its owner's alone. Dropping it unlocks, and shows the
/// other side what was written.
///
/// Where its thread panics meanwhile, the area is poisoned (with the feature `std`).
#[must_use = "dropped, it unlocks"]
pub struct Guard<'a, R: EndRef> {
    area: &'a Area<R>,
    /// The number of the hold; 0 after it has ended.
    hold: u32,
    was_panicking: bool,
}

impl<R: EndRef> Guard<'_, R> {
    /// Bytes of the area.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.area.size
    }

    /// Copies the bytes from `offset` on into all of `out`.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), AccessError> {
        let Area { end, .. } = self.area;
        inside(end.read_locked(self.area.at(), self.hold, offset, out))
    }

    /// Writes all of `bytes` from `offset` on.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), AccessError> {
        let Area { end, .. } = self.area;
        inside(end.write_locked(self.area.at(), self.hold, offset, bytes))
    }

    /// The value whose bytes are at `offset`.
    pub fn get<T: Value>(&self, offset: usize) -> Result<T, AccessError> {
        let mut bytes = T::ZERO;
        self.read(offset, bytes.as_mut())?;
        Ok(T::take(bytes.as_ref()))
    }

    /// Writes a value at `offset`.
    pub fn set<T: Value>(&mut self, offset: usize, value: &T) -> Result<(), AccessError> {
        let mut bytes = T::ZERO;
        value.put(bytes.as_mut());
        self.write(offset, bytes.as_ref())
    }

    /// Unlocks, as dropping does. [`Lost`]: the pairing ended before; what was written is no version, and
    /// the area is poisoned.
    pub fn unlock(mut self) -> Result<(), Lost> {
        self.end_hold()
    }

    fn end_hold(&mut self) -> Result<(), Lost> {
        let hold = core::mem::take(&mut self.hold);
        let is_spoilt = is_panicking() && !self.was_panicking;
        self.area.end.unlock(self.area.at(), hold, is_spoilt)
    }
}

impl<R: EndRef> Drop for Guard<'_, R> {
    fn drop(&mut self) {
        if self.hold != 0 {
            // Whoever wants to know calls `unlock`.
            let _ = self.end_hold();
        }
    }
}

/// The lock of an area whose last owner did not end its work: it died, was started again or lost its
/// pairing in the middle, or panicked. Dropped, it unlocks, and the area stays as it is.
#[must_use = "dropped, it unlocks, and the area stays poisoned"]
pub struct Poisoned<'a, R: EndRef> {
    guard: Guard<'a, R>,
}

impl<'a, R: EndRef> Poisoned<'a, R> {
    /// The lock: what is in the area is good, or will be when the guard is dropped.
    pub fn accept(self) -> Guard<'a, R> {
        let Area {
            end, slot, pairing, ..
        } = self.guard.area;
        end.accept_locked(*slot, *pairing, self.guard.hold);
        self.guard
    }

    /// Copies the bytes from `offset` on into all of `out`, to see what there is.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), AccessError> {
        self.guard.read(offset, out)
    }

    /// The value whose bytes are at `offset`.
    pub fn get<T: Value>(&self, offset: usize) -> Result<T, AccessError> {
        self.guard.get(offset)
    }
}

/// Why there is no lock to be had.
pub enum LockError<'a, R: EndRef> {
    /// Somebody has it, or tried at the same moment. Wait with [`Area::arm`], then retry.
    Busy,
    /// It is there; the area may be half written: see to it, and [`Poisoned::accept`].
    Poisoned(Poisoned<'a, R>),
    /// The pairing is over: [`Area::renew`].
    Lost(Lost),
}

impl<R: EndRef> fmt::Debug for Guard<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl<R: EndRef> fmt::Debug for Poisoned<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poisoned").finish_non_exhaustive()
    }
}

impl<R: EndRef> fmt::Debug for LockError<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Busy => f.write_str("Busy"),
            LockError::Poisoned(_) => f.write_str("Poisoned"),
            LockError::Lost(lost) => f.debug_tuple("Lost").field(lost).finish(),
        }
    }
}

impl<R: EndRef> fmt::Display for LockError<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Busy => f.write_str("somebody has the lock: wait, and try again"),
            LockError::Poisoned(_) => f.write_str(
                "the last owner of the area did not end its work: look at it, and accept it",
            ),
            LockError::Lost(lost) => lost.fmt(f),
        }
    }
}

impl<R: EndRef> core::error::Error for LockError<'_, R> {}

/// Why bytes of an area cannot be read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessError {
    /// They do not all lie in the area: nothing was read or written.
    Outside,
    /// The pairing is over, and with it the hold.
    Lost(Lost),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Outside => f.write_str(
                "the bytes do not lie in the area: make it larger on both sides, or correct the \
                 offset",
            ),
            AccessError::Lost(lost) => lost.fmt(f),
        }
    }
}

impl core::error::Error for AccessError {}

impl From<Lost> for AccessError {
    fn from(lost: Lost) -> AccessError {
        AccessError::Lost(lost)
    }
}

fn inside(done: Result<bool, Lost>) -> Result<(), AccessError> {
    match done? {
        true => Ok(()),
        false => Err(AccessError::Outside),
    }
}

/// Without threads a panic is the end of the image.
fn is_panicking() -> bool {
    #[cfg(feature = "std")]
    return std::thread::panicking();
    #[cfg(not(feature = "std"))]
    false
}

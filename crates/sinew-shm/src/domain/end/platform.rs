//! Which types an end is made of.

use super::super::books::Block;
use super::super::plan::{Known, Plan};
use super::super::port::{Cache, Doorbell, HardwareLock, Uses, Ways};
use super::channel::Slot;
use crate::lock::Lock;

/// Room that an end has for itself: an array, a vector, or a reference to either for ever.
///
/// # Safety
/// `as_mut` gives the same elements each time, as they were left.
pub unsafe trait Store<T>: AsMut<[T]> {}

// SAFETY: these are their own elements.
unsafe impl<T, const N: usize> Store<T> for [T; N] {}
// SAFETY: as above.
unsafe impl<T> Store<T> for &'static mut [T] {}
// SAFETY: as above.
#[cfg(feature = "std")]
unsafe impl<T> Store<T> for std::vec::Vec<T> {}
// SAFETY: as above.
#[cfg(feature = "std")]
unsafe impl<T> Store<T> for std::boxed::Box<[T]> {}

/// The types an end is made of, bundled under one name.
///
/// For a microcontroller, with everything in statics (`mailbox` being its doorbell):
///
/// ```
/// use sinew_shm::{CriticalSectionLock, domain::{Block, Coherent, Doorbell, Platform, Slot}};
/// # struct Mailbox;
/// # impl Doorbell for Mailbox { fn ring(&self) {} }
/// struct Board;
///
/// impl Platform for Board {
///     type Lock = CriticalSectionLock;
///     type Doorbell = Mailbox;
///     type Cache = Coherent;
///     type Slots = [Slot; 2];    // channels
///     type Blocks = [Block; 24]; // Config::blocks()
/// }
/// ```
pub trait Platform: Sized {
    /// What makes several contexts of this side one writer.
    type Lock: Lock;
    /// How the peer is rung.
    type Doorbell: Doorbell;
    /// Cache maintenance; [`Coherent`](crate::domain::Coherent) where none is needed.
    type Cache: Cache;
    /// Room for the channels: an array or a vector.
    type Slots: Store<Slot>;
    /// Room for the books on the blocks: an array or a vector.
    type Blocks: Store<Block>;

    /// The configuration and the side, where they are constants and flash is scarce: the end is then
    /// opened by [`End::open_planned`](super::End::open_planned).
    const PLAN: Option<Plan<'static>> = None;

    /// What of the end is used. The rest is not linked.
    const USES: Uses = Uses::ALL;

    /// The hardware semaphore with this number, for lock channels that name it
    /// ([`Channel::with_semaphore`](crate::domain::Channel::with_semaphore)). It outlives the end.
    fn hardware_lock(&self, number: u16) -> Option<&'static (dyn HardwareLock + Sync)> {
        let _ = number;
        None
    }
}

impl<P: Platform> Ways for P {
    type Cache = <P as Platform>::Cache;
    const USES: Uses = <P as Platform>::USES;
    const KNOWN: Option<Known> = match &P::PLAN {
        Some(plan) => plan.known(),
        None => None,
    };
}

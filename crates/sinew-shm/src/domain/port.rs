//! What a system gives to a link: three small traits, and which types an end is made of.
//!
//! Porting to a new chip is implementing [`Doorbell`], and [`Cache`] where the sides do not see each
//! other's caches, and [`HardwareLock`] where the chip has one. The page "Porting to a new SoC" of
//! the book goes through it.

use core::ops::Deref;
use core::ptr::NonNull;

use super::end::{End, Slot};
use super::outbox::Block;
use super::plan::Plan;
use crate::lock::Lock;

/// Tells the other side that there is something.
///
/// # Contract
/// * Sticky: a ring that the peer has not taken yet is not lost by another; any number of rings may
///   be taken as one.
/// * Never waits for the peer, and returns after a bounded time, whatever the peer does.
/// * Everything written to the shared memory before `ring` is visible to the peer when it takes
///   the doorbell. (A barrier before the device's register, where that is not coherent with memory.)
/// * May be called from any context that uses the link, several at the same time.
///
/// The other half is the system's: where the doorbell arrives (interrupt, signal, readable
/// descriptor), it is cleared first, and then [`End::look`] is called.
pub trait Doorbell {
    /// Rings.
    fn ring(&self);
}

impl<D: Doorbell + ?Sized> Doorbell for &D {
    fn ring(&self) {
        (**self).ring();
    }
}

#[cfg(feature = "std")]
impl<D: Doorbell + ?Sized> Doorbell for std::sync::Arc<D> {
    fn ring(&self) {
        (**self).ring();
    }
}

#[cfg(feature = "std")]
impl<D: Doorbell + ?Sized> Doorbell for std::boxed::Box<D> {
    fn ring(&self) {
        (**self).ring();
    }
}

/// No doorbell: both sides poll.
#[derive(Clone, Copy, Default, Debug)]
pub struct Silent;

impl Doorbell for Silent {
    fn ring(&self) {}
}

/// Makes the two sides see the same memory, where their caches do not.
///
/// # Contract
/// * `clean(range)`: when it returns, what this side wrote to the range is in memory.
/// * `invalidate(range)`: a later read of the range comes from memory.
/// * Ranges are rounded outwards to whole lines by the implementation. No line holds words of both
///   sides, so neither call can lose what the other side wrote. The exchange segment's blocks are
///   whole lines of one owner at a time.
/// * Both are no barrier for other memory; the fences around them are the link's.
pub trait Cache {
    /// Writes back.
    fn clean(&self, at: NonNull<u8>, len: usize);
    /// Forgets.
    fn invalidate(&self, at: NonNull<u8>, len: usize);
    /// Whether [`Cache::prefetch`] does something. Then blocks are used in turns, and each packet names
    /// the next block; else the block that came back last is used next.
    const PREFETCHES: bool = false;
    /// Begins to fetch the line at `at`, which may be read soon. A hint, and by default nothing.
    #[inline(always)]
    fn prefetch(&self, at: NonNull<u8>) {
        let _ = at;
    }
}

/// The caches see each other, or there are none, or the memory is not cached: nothing to do.
#[derive(Clone, Copy, Default, Debug)]
pub struct Coherent;

impl Cache for Coherent {
    const PREFETCHES: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    #[inline(always)]
    fn clean(&self, _: NonNull<u8>, _: usize) {}
    #[inline(always)]
    fn invalidate(&self, _: NonNull<u8>, _: usize) {}
    #[inline(always)]
    fn prefetch(&self, at: NonNull<u8>) {
        crate::word::prefetch(at);
    }
}

/// A lock of the chip that both sides reach: a hardware semaphore.
///
/// Queue channels need none, because every word has one writer. It is for data of the application
/// that both sides change in place, in the exchange segment or beside the link.
///
/// # Contract
/// * Between a `try_lock` of one side that returned `true` and its `unlock`, every `try_lock` of
///   the other side returns `false`. `try_lock` returns after a bounded time.
/// * What was written before `unlock` is visible after the next successful `try_lock`.
/// * `unlock` by a side that does not hold it does nothing.
/// * `is_held_by_peer` tells a lock that a dead peer has left behind; whether the chip can take it
///   back (`force_unlock`) is the port's to say.
pub trait HardwareLock {
    /// Takes it, if it is free.
    fn try_lock(&self) -> bool;
    /// Gives it back.
    fn unlock(&self);
    /// Whether the other side has it.
    fn is_held_by_peer(&self) -> bool;
    /// Takes it away from a peer that is known to be dead; `false` where the chip cannot.
    fn force_unlock(&self) -> bool;
}

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
    /// Cache maintenance; [`Coherent`] where none is needed.
    type Cache: Cache;
    /// Room for the channels: an array or a vector.
    type Slots: AsMut<[Slot]>;
    /// Room for the books on the blocks: an array or a vector.
    type Blocks: AsMut<[Block]>;

    /// The configuration and the side, where they are constants and flash is scarce: the end is then
    /// opened by [`End::open_planned`].
    const PLAN: Option<Plan<'static>> = None;

    /// What of the end is used. The rest is not linked.
    const USES: Uses = Uses::ALL;

    /// Whether this side can order memory for the peer's processor as well, see
    /// [`Platform::barrier`]. It is offered to the peer, and used where both sides offer it.
    fn offers_barrier(&self) -> bool {
        false
    }

    /// A full barrier on this processor and on every one that runs the peer: the side that goes to
    /// sleep pays for both, so that the side that sends needs no fence (membarrier(2) on Linux).
    ///
    /// A peer that offers it and does not do it loses its own wake-ups, nothing else.
    fn barrier(&self) {}
}

/// What of an end is used, where flash is scarce: see [`Platform::USES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uses {
    /// Filters: of this side ([`Receiver::set_filter`](super::Receiver::set_filter)), and heeding the
    /// peer's. Without it what the peer does not want is sent, and dropped there.
    pub filters: bool,
    /// Channels with replies.
    pub replies: bool,
    /// Wakers (`arm` of the handles). Without them: [`Receiver::ring_at`](super::Receiver::ring_at).
    pub wakers: bool,
}

impl Uses {
    /// Everything.
    pub const ALL: Uses = Uses {
        filters: true,
        replies: true,
        wakers: true,
    };
    /// Packets in both directions, by polling and doorbells.
    pub const PACKETS: Uses = Uses {
        filters: false,
        replies: false,
        wakers: false,
    };
}

/// How handles reach their end: `&End`, `&'static End`, `Rc<End>` or `Arc<End>`.
pub trait EndRef: Deref<Target = End<Self::Platform>> + Clone {
    /// What the end is made of.
    type Platform: Platform;
}

impl<R, P> EndRef for R
where
    R: Deref<Target = End<P>> + Clone,
    P: Platform,
{
    type Platform = P;
}

//! What a system gives to a link: three small traits.
//!
//! Porting to a new chip is implementing [`Doorbell`], and [`Cache`] where the sides do not see each
//! other's caches, and [`HardwareLock`] where the chip has one. The page "Porting to a new SoC" of
//! the book goes through it.

use core::ptr::NonNull;

use super::plan::Known;
use crate::word::Words;

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
/// descriptor), it is cleared first, and then [`End::look`](super::End::look) is called.
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
///
/// # Safety
/// Its calls use no end of a link, nor anything that does: they are made under an end's lock.
pub unsafe trait Cache {
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

// SAFETY: it does nothing, or one instruction.
unsafe impl Cache for Coherent {
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
/// No channel needs one, because every word has one writer. A lock channel whose configuration names a
/// semaphore ([`Channel::with_semaphore`](super::Channel::with_semaphore)) takes it instead of asking
/// the peer: one register access, and no second look. It is also for data of the application that both
/// sides change in place beside the link.
///
/// # Contract
/// * Between a `try_lock` of one side that returned `true` and its `unlock`, every `try_lock` of
///   the other side returns `false`. `try_lock` returns after a bounded time.
/// * What was written before `unlock` is visible after the next successful `try_lock`.
/// * `unlock` by a side that does not hold it does nothing; one that holds it from an earlier life
///   gives it back.
/// * `is_held_by_peer` tells a lock that a dead peer has left behind; whether the chip can take it
///   back (`force_unlock`) is the port's to say. Where it cannot, a lock channel stays busy until the
///   peer, started again, gives it back itself.
/// * A semaphore guards one lock channel of one link, and nothing else.
///
/// # Safety
/// Its calls use no end of a link, nor anything that does: they are made under an end's lock.
pub unsafe trait HardwareLock {
    /// Takes it, if it is free.
    fn try_lock(&self) -> bool;
    /// Gives it back.
    fn unlock(&self);
    /// Whether the other side has it.
    fn is_held_by_peer(&self) -> bool;
    /// Takes it away from a peer that is known to be dead; `false` where the chip cannot.
    fn force_unlock(&self) -> bool;
}

/// What of an end is used, where flash is scarce: see [`Platform::USES`](super::Platform::USES).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Uses {
    /// Filters: of this side ([`Receiver::set_filter`](super::Receiver::set_filter)), and heeding the
    /// peer's. Without it what the peer does not want is sent, and dropped there.
    pub filters: bool,
    /// Channels with replies.
    pub replies: bool,
    /// State channels.
    pub states: bool,
    /// Lock channels.
    pub locks: bool,
    /// Message channels.
    pub messages: bool,
    /// Wakers (`arm` of the handles). Without them: [`Receiver::ring_at`](super::Receiver::ring_at).
    pub wakers: bool,
}

impl Uses {
    /// Everything.
    pub const ALL: Uses = Uses {
        filters: true,
        replies: true,
        states: true,
        locks: true,
        messages: true,
        wakers: true,
    };
    /// Packets in both directions, by polling and doorbells.
    pub const PACKETS: Uses = Uses {
        filters: false,
        replies: false,
        states: false,
        locks: false,
        messages: false,
        wakers: false,
    };
}

/// What queues need to know of the platform that they are part of.
pub(super) trait Ways {
    type Cache: Cache;
    const USES: Uses;
    /// What the compiler knows of the end's one queue.
    #[cfg_attr(loom, allow(dead_code))]
    const KNOWN: Option<Known>;
}

/// Writes a line of words back.
#[inline(always)]
pub(super) fn clean(words: &Words, cache: &impl Cache) {
    let (at, len) = words.bytes();
    cache.clean(at, len);
}

/// Forgets a line of words, so that the next look finds what the other side wrote.
#[inline(always)]
pub(super) fn invalidate(words: &Words, cache: &impl Cache) {
    let (at, len) = words.bytes();
    cache.invalidate(at, len);
}

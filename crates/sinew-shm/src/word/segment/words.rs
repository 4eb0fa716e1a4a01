//! Words, and lines and rings of them: what one side writes and both read.

use core::ptr::NonNull;

use super::super::{AtomicU32, Ordering, Point};
#[cfg(not(loom))]
use super::BlockArea;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// A word that one side writes and both read.
#[repr(transparent)]
pub(crate) struct SharedWord(pub(super) AtomicU32);

impl SharedWord {
    /// Reads a word that orders nothing.
    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        #[cfg(all(test, not(any(loom, miri))))]
        super::super::trial::access();
        u32::from_le(self.0.load(Ordering::Relaxed))
    }

    /// Writes a word that orders nothing.
    #[inline(always)]
    pub(crate) fn set(&self, value: u32) {
        #[cfg(all(test, not(any(loom, miri))))]
        if !super::super::trial::store(core::ptr::from_ref(self).addr(), value) {
            return;
        }
        self.0.store(value.to_le(), Ordering::Relaxed);
    }

    /// Reads a word of the other side, and orders what comes after it.
    ///
    /// A relaxed load and a fence, because the memory may be mapped read-only, where the language
    /// allows relaxed loads only (core::sync::atomic, "Atomic accesses to read-only memory").
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn load(&self, point: Point) -> u32 {
        let value = self.get();
        let order = point.order();
        if !matches!(order, Ordering::Relaxed) {
            super::super::fence(order);
        }
        value
    }

    /// As the other one, and weaker, so that what holds here holds there: nothing that was read before
    /// is ordered. A fence costs loom a walk over all words.
    #[cfg(loom)]
    pub(crate) fn load(&self, point: Point) -> u32 {
        u32::from_le(self.0.load(point.order()))
    }

    /// Publishes a word of one's own.
    #[inline(always)]
    pub(crate) fn store(&self, value: u32, point: Point) {
        #[cfg(all(test, not(any(loom, miri))))]
        if !super::super::trial::store(core::ptr::from_ref(self).addr(), value) {
            return;
        }
        self.0.store(value.to_le(), point.order());
    }

    /// For the kernel, which sleeps on it.
    #[cfg(all(feature = "std", not(loom)))]
    #[allow(dead_code)]
    pub(crate) fn as_atomic(&self) -> &AtomicU32 {
        &self.0
    }
}

/// The 16 words of one line.
#[derive(Clone, Copy)]
pub(crate) struct Words(pub(super) NonNull<[SharedWord; 16]>);

// SAFETY: words are atomic; that their memory lives on is the contract of the segment.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// The word at an index of `layout`; indices wrap at 16.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> &SharedWord {
        // SAFETY: the place was checked when the view was made, and its memory lives as long as
        // the segment is used; the words are atomic, so that foreign writers are no data race.
        let words = unsafe { self.0.as_ref() };
        &words[index & 15]
    }

    /// The bytes, for cache maintenance.
    pub(crate) fn bytes(&self) -> (NonNull<u8>, usize) {
        (self.0.cast(), 64)
    }

    /// The line `distance` bytes behind this one.
    ///
    /// # Safety
    /// It lies in the same segment, and `distance` is a multiple of 64.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) unsafe fn behind(&self, distance: u32) -> Words {
        // SAFETY: as the caller says.
        Words(unsafe { self.0.byte_add(distance as usize) })
    }

    /// The ring of `1 << log2` entries `distance` bytes behind this line.
    ///
    /// # Safety
    /// As for [`Words::behind`], of the whole ring.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) unsafe fn ring_behind(&self, distance: u32, log2: u32) -> RingArea {
        RingArea {
            // SAFETY: as the caller says.
            first: unsafe { self.behind(distance) }.0.cast(),
            mask: (1 << log2) - 1,
        }
    }

    /// The `count` blocks of `size` bytes, `stride` apart, `distance` bytes behind this line.
    ///
    /// # Safety
    /// As for [`Words::behind`], of all blocks, and `size` is at most `stride`, a multiple of 64.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) unsafe fn blocks_behind(
        &self,
        distance: u32,
        stride: u32,
        (size, count): (u32, u16),
    ) -> BlockArea {
        BlockArea {
            // SAFETY: as the caller says.
            first: unsafe { self.behind(distance) }.0.cast(),
            stride,
            size,
            count,
        }
    }
}

/// The entries of a ring.
#[derive(Clone, Copy)]
pub(crate) struct RingArea {
    pub(super) first: NonNull<[SharedWord; 4]>,
    pub(super) mask: u32,
}

// SAFETY: words are atomic; that their memory lives on is the contract of the segment.
unsafe impl Send for RingArea {}
// SAFETY: as above.
unsafe impl Sync for RingArea {}

impl RingArea {
    pub(crate) fn capacity(&self) -> u32 {
        self.mask.wrapping_add(1)
    }

    /// The entry of a position; positions wrap at the capacity.
    #[inline(always)]
    pub(crate) fn entry(&self, position: u32) -> &[SharedWord; 4] {
        // SAFETY: the mask keeps the index below the capacity, which was checked to fit when the
        // view was made; the words are atomic.
        unsafe { self.first.add((position & self.mask) as usize).as_ref() }
    }

    /// The bytes of an entry, for cache maintenance.
    #[inline(always)]
    pub(crate) fn bytes(&self, position: u32) -> (NonNull<u8>, usize) {
        (NonNull::from(self.entry(position)).cast(), 16)
    }
}

/// Lines, one after the other.
#[derive(Clone, Copy)]
pub(crate) struct LineArea {
    pub(super) first: NonNull<[SharedWord; 16]>,
    pub(super) mask: u32,
    #[cfg(loom)]
    pub(super) uses: NonNull<UnsafeCell<()>>,
}

// SAFETY: words are atomic; that their memory lives on is the contract of the segment.
unsafe impl Send for LineArea {}
// SAFETY: as above.
unsafe impl Sync for LineArea {}

impl LineArea {
    pub(crate) fn count(&self) -> u32 {
        self.mask.wrapping_add(1)
    }

    /// The line of a position, which this side is about to write; the other side reads nothing of it
    /// now but the word that says so.
    #[inline(always)]
    pub(crate) fn for_writing(&self, position: u32) -> Words {
        self.track(position, true);
        self.line(position)
    }

    /// The line of a position, which this side is about to read, and the other side does not write.
    #[inline(always)]
    pub(crate) fn for_reading(&self, position: u32) -> Words {
        self.track(position, false);
        self.line(position)
    }

    #[inline(always)]
    fn track(&self, position: u32, write: bool) {
        #[cfg(loom)]
        {
            // SAFETY: there is one for each line.
            let cell = unsafe { self.uses.add((position & self.mask) as usize).as_ref() };
            if write {
                cell.with_mut(|_| ());
            } else {
                cell.with(|_| ());
            }
        }
        let _ = (position, write);
    }

    /// The line of a position; positions wrap at the count.
    #[inline(always)]
    pub(crate) fn line(&self, position: u32) -> Words {
        // SAFETY: the mask keeps the index below the count, which was checked to fit when the view
        // was made.
        Words(unsafe { self.first.add((position & self.mask) as usize) })
    }
}

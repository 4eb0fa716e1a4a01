//! Blocks of a pool, and copies of a value: where they lie.

use core::ptr::NonNull;

#[cfg(loom)]
use super::super::AtomicU32;
use super::Span;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// The blocks of a pool.
#[derive(Clone, Copy)]
pub(crate) struct BlockArea {
    pub(super) first: NonNull<u8>,
    pub(super) stride: u32,
    pub(super) size: u32,
    pub(super) count: u16,
    #[cfg(loom)]
    pub(super) uses: NonNull<UnsafeCell<()>>,
    #[cfg(loom)]
    pub(super) words: NonNull<AtomicU32>,
}

// SAFETY: it is only an address; see `Segment`.
unsafe impl Send for BlockArea {}
// SAFETY: as above.
unsafe impl Sync for BlockArea {}

impl BlockArea {
    /// No blocks.
    pub(crate) const NONE: BlockArea = BlockArea {
        first: NonNull::dangling(),
        stride: 0,
        size: 0,
        count: 0,
        #[cfg(loom)]
        uses: NonNull::dangling(),
        #[cfg(loom)]
        words: NonNull::dangling(),
    };

    /// Bytes of one block.
    #[inline(always)]
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Blocks.
    #[inline(always)]
    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    #[inline(always)]
    pub(super) fn at(&self, block: u16) -> NonNull<u8> {
        debug_assert!(block < self.count);
        // SAFETY: callers give blocks below the count, for which the place was checked.
        unsafe { self.first.add(block as usize * self.stride as usize) }
    }

    #[cfg(loom)]
    fn words_at(&self, block: u16) -> NonNull<AtomicU32> {
        // SAFETY: as above; there is one for each four bytes.
        unsafe { self.words.add(block as usize * self.stride as usize / 4) }
    }

    /// The first `len` bytes of a block are written, by a reference or not, and are about to be shown.
    #[inline(always)]
    pub(crate) fn is_written(&self, block: u16, len: u32) {
        #[cfg(loom)]
        Span {
            first: self.at(block),
            len: len.min(self.size),
            words: self.words_at(block),
        }
        .write_words();
        let _ = (block, len);
    }

    /// A block that this side is about to clear, whoever still reads it: by words, which is no race.
    pub(crate) fn for_clearing(&self, block: u16) -> Span {
        Span {
            first: self.at(block),
            len: self.size,
            #[cfg(loom)]
            words: self.words_at(block),
        }
    }

    /// The first `len` bytes of a block, for cache maintenance.
    #[inline(always)]
    pub(crate) fn bytes(&self, block: u16, len: u32) -> (NonNull<u8>, usize) {
        (self.at(block), len.min(self.size) as usize)
    }

    /// A block that this side is about to write; the block is below the count.
    #[inline(always)]
    pub(crate) fn for_writing(&self, block: u16) -> Span {
        self.track(block, true);
        Span {
            first: self.at(block),
            len: self.size,
            #[cfg(loom)]
            words: self.words_at(block),
        }
    }

    /// The first `len` bytes of a block that this side is about to read; the block is below the
    /// count.
    #[inline(always)]
    pub(crate) fn for_reading(&self, block: u16, len: u32) -> Span {
        self.track(block, false);
        Span {
            first: self.at(block),
            len: len.min(self.size),
            #[cfg(loom)]
            words: self.words_at(block),
        }
    }

    /// Where a block begins; `None` where there is no such block.
    #[inline(always)]
    pub(crate) fn start(&self, block: u16) -> Option<NonNull<u8>> {
        (block < self.count).then(|| self.at(block))
    }

    #[inline(always)]
    fn track(&self, block: u16, write: bool) {
        #[cfg(loom)]
        {
            let line = block as usize * self.stride as usize / 64;
            // SAFETY: there is one for each 64 bytes of the place.
            let cell = unsafe { self.uses.add(line).as_ref() };
            if write {
                cell.with_mut(|_| ());
            } else {
                cell.with(|_| ());
            }
        }
        let _ = (block, write);
    }
}

/// The four copies of a value.
#[derive(Clone, Copy)]
pub(crate) struct CopyArea {
    pub(super) copies: [NonNull<u8>; 4],
    pub(super) size: u32,
    #[cfg(loom)]
    pub(super) blocks: Option<BlockArea>,
}

// SAFETY: it is only addresses; see `Segment`.
unsafe impl Send for CopyArea {}
// SAFETY: as above.
unsafe impl Sync for CopyArea {}

impl CopyArea {
    /// No copies.
    pub(crate) const NONE: CopyArea = CopyArea {
        copies: [NonNull::dangling(); 4],
        size: 0,
        #[cfg(loom)]
        blocks: None,
    };

    /// Bytes of one copy; 0 where there is none.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// Copies: four, or none.
    pub(crate) fn count(&self) -> u16 {
        if self.size > 0 { 4 } else { 0 }
    }

    /// A copy, for cache maintenance; copies wrap at 4.
    #[inline(always)]
    pub(crate) fn bytes(&self, copy: u16) -> (NonNull<u8>, usize) {
        (self.copies[usize::from(copy & 3)], self.size())
    }

    /// A copy that this side is about to write.
    #[inline(always)]
    pub(crate) fn for_writing(&self, copy: u16) -> Span {
        self.span(copy, true)
    }

    /// A copy that this side is about to clear, whoever still reads it.
    pub(crate) fn for_clearing(&self, copy: u16) -> Span {
        #[cfg(loom)]
        if let Some(blocks) = &self.blocks {
            return blocks.for_clearing(copy & 3);
        }
        Span {
            first: self.bytes(copy).0,
            len: self.size,
            #[cfg(loom)]
            words: NonNull::dangling(),
        }
    }

    /// A copy that this side is about to read.
    #[inline(always)]
    pub(crate) fn for_reading(&self, copy: u16) -> Span {
        self.span(copy, false)
    }

    #[inline(always)]
    fn span(&self, copy: u16, write: bool) -> Span {
        #[cfg(loom)]
        if let Some(blocks) = &self.blocks {
            return match write {
                true => blocks.for_writing(copy & 3),
                false => blocks.for_reading(copy & 3, self.size),
            };
        }
        let _ = write;
        Span {
            first: self.bytes(copy).0,
            len: self.size,
            #[cfg(loom)]
            words: NonNull::dangling(),
        }
    }
}

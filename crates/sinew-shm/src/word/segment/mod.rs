//! Memory that two domains share: words, rings and blocks at checked places of a segment.
//!
//! A place is checked once, when a view of it is made; the views reach nothing outside of it,
//! whatever index they are given. Words are little-endian on every core.

use core::ptr::NonNull;

use super::AtomicU32;
#[cfg(loom)]
use loom::cell::UnsafeCell;

mod area;
mod blocks;
mod span;
mod words;

pub(crate) use area::WordArea;
pub(crate) use blocks::{BlockArea, CopyArea};
pub(crate) use span::Span;
pub(crate) use words::{LineArea, RingArea, SharedWord, Words};

/// Memory for one segment inside a program, aligned as a segment must be.
#[derive(Clone, Copy)]
#[repr(C, align(256))]
pub struct Line([u8; 256]);

impl Line {
    /// Bytes of one line.
    pub const SIZE: usize = 256;
    /// A line of zeros.
    pub const ZERO: Line = Line([0; 256]);

    /// How many lines hold `bytes` bytes.
    pub const fn count(bytes: usize) -> usize {
        bytes.div_ceil(Line::SIZE)
    }
}

/// Memory of one segment: an address and a length. Copies are the same memory.
#[derive(Clone, Copy)]
pub struct Segment {
    words: NonNull<AtomicU32>,
    bytes: NonNull<u8>,
    len: u32,
    /// For loom, which has to see each use of a block.
    #[cfg(loom)]
    uses: NonNull<UnsafeCell<()>>,
}

// SAFETY: a segment is only an address; what may be done with it is up to who uses it: words are
// atomic, and blocks are reached by the code of `domain` alone, which says whose they are.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// The bytes of a line to which every segment is aligned.
    pub const ALIGN: usize = 64;

    /// Memory at an address, for maps of an operating system and regions of a chip.
    ///
    /// `None` where the address is not aligned to [`Segment::ALIGN`] or the length is 2 GiB or more.
    ///
    /// # Safety
    /// * `len` bytes at `base` can be read, and written where this segment is used as the own one
    ///   or as the exchange segment, for as long as any copy of it is used.
    /// * Nothing else in this program makes references into them. Other programs and cores may
    ///   read and write them at any time, as the protocol says or not.
    #[cfg(not(loom))]
    pub unsafe fn from_raw(base: NonNull<u8>, len: usize) -> Option<Segment> {
        let len = u32::try_from(len).ok().filter(|&len| len <= 1 << 31)?;
        base.addr()
            .get()
            .is_multiple_of(Self::ALIGN)
            .then_some(Segment {
                words: base.cast(),
                bytes: base,
                len,
            })
    }

    /// Memory of this program, for a link between two of its threads, tasks or images.
    #[cfg(not(loom))]
    pub fn from_lines(lines: &'static mut [Line]) -> Segment {
        // SAFETY: they can be written for ever, and whoever had the reference has it no more.
        unsafe { Segment::from_heap(NonNull::from(lines)) }
    }

    /// The same, of memory that may end.
    ///
    /// # Safety
    /// The lines can be read and written for as long as any copy of the segment is used, and nothing
    /// else makes references to them.
    #[cfg(not(loom))]
    pub(crate) unsafe fn from_heap(lines: NonNull<[Line]>) -> Segment {
        let bytes = lines.cast::<u8>();
        Segment {
            words: bytes.cast(),
            bytes,
            len: (lines.len() * Line::SIZE).min(1 << 31) as u32,
        }
    }

    /// As the other one; loom keeps words, bytes and uses apart.
    #[cfg(loom)]
    pub fn from_lines(lines: &'static mut [Line]) -> Segment {
        use std::boxed::Box;
        let len = size_of_val(lines) as u32;
        let words: std::vec::Vec<_> = (0..len / 4).map(|_| AtomicU32::new(0)).collect();
        let uses: std::vec::Vec<_> = (0..len / 64).map(|_| UnsafeCell::new(())).collect();
        Segment {
            words: NonNull::from(Box::leak(words.into_boxed_slice())).cast(),
            bytes: NonNull::from(lines).cast(),
            len,
            uses: NonNull::from(Box::leak(uses.into_boxed_slice())).cast(),
        }
    }

    /// Frees what [`Segment::from_lines`] made, and the lines: a model makes thousands.
    ///
    /// # Safety
    /// The lines came from a leaked `Box<[Line]>`, and no copy of this segment is used any more.
    #[cfg(loom)]
    #[doc(hidden)]
    pub unsafe fn free(self) {
        use std::boxed::Box;
        let len = self.len as usize;
        let words = NonNull::slice_from_raw_parts(self.words, len / 4);
        let uses = NonNull::slice_from_raw_parts(self.uses, len / 64);
        let lines = NonNull::slice_from_raw_parts(self.bytes.cast::<Line>(), len / Line::SIZE);
        // SAFETY: the first two are the boxes of `from_lines`; the rest is as the caller says.
        unsafe {
            drop(Box::from_raw(words.as_ptr()));
            drop(Box::from_raw(uses.as_ptr()));
            drop(Box::from_raw(lines.as_ptr()));
        }
    }

    /// Bytes of it.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The address of its first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.bytes
    }

    fn holds(&self, offset: u32, len: u64, align: u32) -> bool {
        offset.is_multiple_of(align) && u64::from(offset) + len <= u64::from(self.len)
    }

    fn word_at(&self, offset: u32) -> NonNull<AtomicU32> {
        // SAFETY: callers have checked that the offset lies inside.
        unsafe { self.words.add(offset as usize / 4) }
    }

    /// The 16 words at an offset that is aligned to 64 bytes.
    pub(crate) fn words(&self, offset: u32) -> Option<Words> {
        self.holds(offset, 64, 64)
            .then(|| Words(self.word_at(offset).cast()))
    }

    /// A ring of `1 << log2` entries of four words.
    pub(crate) fn ring(&self, offset: u32, log2: u32) -> Option<RingArea> {
        let count = 1u64.checked_shl(log2)?;
        self.holds(offset, count * 16, 64).then(|| RingArea {
            first: self.word_at(offset).cast(),
            mask: (count - 1) as u32,
        })
    }

    /// `1 << log2` lines of 16 words.
    pub(crate) fn lines(&self, offset: u32, log2: u32) -> Option<LineArea> {
        let count = 1u64.checked_shl(log2)?;
        self.holds(offset, count * 64, 64).then(|| LineArea {
            first: self.word_at(offset).cast(),
            mask: (count - 1) as u32,
            #[cfg(loom)]
            // SAFETY: there is one for each 64 bytes.
            uses: unsafe { self.uses.add(offset as usize / 64) },
        })
    }

    /// `count` blocks of `size` bytes, `stride` apart.
    pub(crate) fn blocks(
        &self,
        offset: u32,
        stride: u32,
        size: u32,
        count: u16,
    ) -> Option<BlockArea> {
        let fits = size <= stride
            && stride.is_multiple_of(64)
            && self.holds(offset, u64::from(stride) * u64::from(count), 64);
        fits.then(|| BlockArea {
            // SAFETY: just checked that it lies inside.
            first: unsafe { self.bytes.add(offset as usize) },
            #[cfg(loom)]
            // SAFETY: there is one for each 64 bytes.
            uses: unsafe { self.uses.add(offset as usize / 64) },
            #[cfg(loom)]
            words: self.word_at(offset),
            stride,
            size,
            count,
        })
    }

    /// The four copies of a value of `size` bytes, `stride` apart.
    pub(crate) fn copies(&self, offset: u32, stride: u32, size: u32) -> Option<CopyArea> {
        let blocks = self.blocks(offset, stride, size, 4)?;
        Some(CopyArea {
            copies: [0, 1, 2, 3].map(|copy| blocks.at(copy)),
            size,
            #[cfg(loom)]
            blocks: Some(blocks),
        })
    }
}

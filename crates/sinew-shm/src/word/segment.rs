//! Memory that two domains share: words, rings and blocks at checked places of a segment.
//!
//! A place is checked once, when a view of it is made; the views reach nothing outside of it,
//! whatever index they are given. Words are little-endian on every core.

use core::ptr::NonNull;

#[cfg(not(loom))]
use core::sync::atomic::AtomicUsize;

use super::{AtomicU32, Ordering, Point};
#[cfg(loom)]
use loom::cell::UnsafeCell;

mod area;

pub(crate) use area::WordArea;

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

/// A word that one side writes and both read.
#[repr(transparent)]
pub(crate) struct SharedWord(AtomicU32);

impl SharedWord {
    /// Reads a word that orders nothing.
    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        #[cfg(all(test, not(any(loom, miri))))]
        super::trial::access();
        u32::from_le(self.0.load(Ordering::Relaxed))
    }

    /// Writes a word that orders nothing.
    #[inline(always)]
    pub(crate) fn set(&self, value: u32) {
        #[cfg(all(test, not(any(loom, miri))))]
        if !super::trial::store(core::ptr::from_ref(self).addr(), value) {
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
            super::fence(order);
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
        if !super::trial::store(core::ptr::from_ref(self).addr(), value) {
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
pub(crate) struct Words(NonNull<[SharedWord; 16]>);

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
}

/// The entries of a ring.
#[derive(Clone, Copy)]
pub(crate) struct RingArea {
    first: NonNull<[SharedWord; 4]>,
    mask: u32,
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
    first: NonNull<[SharedWord; 16]>,
    mask: u32,
    #[cfg(loom)]
    uses: NonNull<UnsafeCell<()>>,
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

/// The blocks of a pool.
#[derive(Clone, Copy)]
pub(crate) struct BlockArea {
    first: NonNull<u8>,
    stride: u32,
    size: u32,
    count: u16,
    #[cfg(loom)]
    uses: NonNull<UnsafeCell<()>>,
    #[cfg(loom)]
    words: NonNull<AtomicU32>,
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
    fn at(&self, block: u16) -> NonNull<u8> {
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
    copies: [NonNull<u8>; 4],
    size: u32,
    #[cfg(loom)]
    blocks: Option<BlockArea>,
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

/// The bytes of a block: an address and a length.
///
/// Whoever may change them meanwhile, they can be copied out and read word by word, each once; a
/// reference to them is for blocks that nobody else writes.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    first: NonNull<u8>,
    len: u32,
    /// Of what a state channel's copies are for observers; loom keeps words and bytes apart.
    #[cfg(loom)]
    words: NonNull<AtomicU32>,
}

// SAFETY: it is only an address; see `Segment`.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Span {
    /// No bytes.
    pub(crate) const EMPTY: Span = Span {
        first: NonNull::dangling(),
        len: 0,
        #[cfg(loom)]
        words: NonNull::dangling(),
    };

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// The bytes, for writing.
    ///
    /// # Safety
    /// This side may write the block, its memory lives, and there is no other reference to it and
    /// no other writer for as long as this one is used.
    #[inline(always)]
    pub(crate) unsafe fn slice_mut<'a>(self) -> &'a mut [u8] {
        // SAFETY: the place was checked when the view of the pool was made; the rest is as the
        // caller says.
        unsafe { core::slice::from_raw_parts_mut(self.first.as_ptr(), self.len()) }
    }

    /// The bytes.
    ///
    /// # Safety
    /// The block's memory lives, and nobody writes it for as long as the reference is used.
    #[inline(always)]
    pub(crate) unsafe fn slice<'a>(self) -> &'a [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.len()) }
    }

    /// Copies from the start into `out`: as many bytes as both have.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn copy_to(&self, out: &mut [u8]) -> usize {
        const WIDTH: usize = size_of::<usize>();
        let len = out.len().min(self.len());
        let out = out.get_mut(..len).unwrap_or_default();
        // Whole lines at a time, where the registers suffice for that.
        let in_lines = if WIDTH == 8 { len / 64 * 64 } else { 0 };
        let (front, back) = out.split_at_mut_checked(in_lines).unwrap_or_default();
        let whole_lines = Span {
            first: self.first,
            len: in_lines as u32,
        };
        // SAFETY: a span is used only while its memory lives.
        let lines = unsafe { whole_lines.lines() };
        for (to, from) in front.chunks_exact_mut(64).zip(lines) {
            let words = to.as_chunks_mut::<WIDTH>().0;
            for (to, from) in words.iter_mut().zip(from) {
                *to = from.to_ne_bytes();
            }
        }
        let whole = Span {
            first: self.first,
            len: (len / WIDTH * WIDTH) as u32,
        };
        let (words, rest) = back.as_chunks_mut::<WIDTH>();
        // SAFETY: as above.
        let from = unsafe { whole.words() }.skip(in_lines / WIDTH);
        for (to, from) in words.iter_mut().zip(from) {
            *to = from.to_ne_bytes();
        }
        if !rest.is_empty() {
            let last = self.load(len / WIDTH).to_ne_bytes();
            for (to, from) in rest.iter_mut().zip(last) {
                *to = from;
            }
        }
        len
    }

    /// As [`Span::copy_to`], from byte `offset` on.
    #[inline]
    pub(crate) fn copy_range(&self, offset: usize, out: &mut [u8]) -> usize {
        const WIDTH: usize = size_of::<usize>();
        let len = self.len().saturating_sub(offset).min(out.len());
        let out = out.get_mut(..len).unwrap_or_default();
        // Up to a machine word, and from there on as if the block began there.
        let head = (offset.next_multiple_of(WIDTH) - offset).min(len);
        let (front, back) = out.split_at_mut_checked(head).unwrap_or_default();
        for (at, to) in (offset..).zip(front) {
            *to = self.byte(at);
        }
        if !back.is_empty() {
            self.behind(offset.saturating_add(head)).copy_to(back);
        }
        len
    }

    /// What lies from `offset` on, where a machine word begins.
    fn behind(&self, offset: usize) -> Span {
        let offset = offset.min(self.len()) as u32;
        Span {
            // SAFETY: at most the end of the bytes.
            first: unsafe { self.first.add(offset as usize) },
            len: self.len - offset,
            #[cfg(loom)]
            // SAFETY: as above.
            words: unsafe { self.words.add(offset as usize / 4) },
        }
    }

    /// Where it begins.
    #[inline(always)]
    pub(crate) fn first(&self) -> NonNull<u8> {
        self.first
    }

    /// As the other one, by the words that loom keeps beside the bytes.
    #[cfg(loom)]
    pub(crate) fn copy_to(&self, out: &mut [u8]) -> usize {
        let len = out.len().min(self.len());
        for (at, to) in out[..len].chunks_mut(4).enumerate() {
            // SAFETY: there is one for each four bytes of the place.
            let word = unsafe { self.words.add(at).as_ref() }.load(Ordering::Relaxed);
            to.copy_from_slice(&word.to_ne_bytes()[..to.len()]);
        }
        len
    }

    /// Its first bytes were written through a reference: loom's words beside them are to say the same.
    #[cfg(loom)]
    fn write_words(&self) {
        // SAFETY: whoever wrote them has just finished, and nobody else has them.
        let bytes = unsafe { self.slice() };
        for (at, bytes) in bytes.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            // SAFETY: there is one for each four bytes of the place.
            let place = unsafe { self.words.add(at).as_ref() };
            place.store(u32::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// Copies from the start of `from`, the quickest way: as many bytes as both have. By words, as
    /// `copy_from`, where a call of memcpy takes longer for small packets.
    ///
    /// # Safety
    /// As for [`Span::slice_mut`].
    #[inline(always)]
    pub(crate) unsafe fn fill_from(self, from: &[u8]) {
        #[cfg(all(target_pointer_width = "32", not(loom)))]
        // SAFETY: as the caller says.
        unsafe {
            self.copy_from(from);
        }
        #[cfg(any(not(target_pointer_width = "32"), loom))]
        // SAFETY: as the caller says.
        if let Some(front) = unsafe { self.slice_mut() }.get_mut(..from.len()) {
            front.copy_from_slice(from);
        }
    }

    /// Whether all bytes are 0.
    pub(crate) fn is_zero(&self) -> bool {
        (0..self.len()).all(|at| self.byte(at) == 0)
    }

    /// The first `len` of the bytes.
    #[inline(always)]
    pub(crate) fn up_to(&self, len: usize) -> Span {
        Span {
            len: self.len.min(u32::try_from(len).unwrap_or(u32::MAX)),
            ..*self
        }
    }

    /// Writes zeros over the first `len` bytes, and over what is left of the last machine word: how many
    /// bytes were to be cleared.
    ///
    /// # Safety
    /// This side may write the block, its memory lives, and there is no reference to it in this program
    /// as long as this takes.
    #[cfg(not(loom))]
    pub(crate) unsafe fn clear(&self, len: u32) -> u32 {
        let len = len.min(self.len);
        let words = len.div_ceil(size_of::<usize>() as u32);
        #[cfg(all(test, not(any(loom, miri))))]
        if super::trial::is_over() {
            return len;
        }
        // SAFETY: blocks begin at a line and have whole lines, so a word that begins inside the
        // length is aligned and ends inside the block; the words are written atomically.
        let places: &[AtomicUsize] =
            unsafe { core::slice::from_raw_parts(self.first.cast().as_ptr(), words as usize) };
        for place in places {
            place.store(0, Ordering::Relaxed);
        }
        len
    }

    /// As the other one; loom keeps words and bytes apart.
    ///
    /// # Safety
    /// As there.
    #[cfg(loom)]
    pub(crate) unsafe fn clear(&self, len: u32) -> u32 {
        let len = len.min(self.len);
        // SAFETY: as the caller says.
        unsafe { self.copy_from(&std::vec![0; len as usize]) };
        len
    }

    /// Copies from the start of `from` by whole aligned machine words, the last one filled up with
    /// zeros: as many bytes as both have.
    ///
    /// # Safety
    /// As for [`Span::slice_mut`].
    #[cfg(not(loom))]
    #[inline]
    pub(crate) unsafe fn copy_from(&self, from: &[u8]) -> usize {
        const WIDTH: usize = size_of::<usize>();
        let len = from.len().min(self.len());
        let (words, rest) = from.get(..len).unwrap_or_default().as_chunks::<WIDTH>();
        // SAFETY: blocks begin at a line and have whole lines, so a word that begins inside the
        // length is aligned and ends inside the block, which is this side's alone.
        let places: &[AtomicUsize] =
            unsafe { core::slice::from_raw_parts(self.first.cast().as_ptr(), len.div_ceil(WIDTH)) };
        for (place, word) in places.iter().zip(words) {
            place.store(usize::from_ne_bytes(*word), Ordering::Relaxed);
        }
        if let (false, Some(place)) = (rest.is_empty(), places.last()) {
            let mut word = [0; WIDTH];
            for (to, from) in word.iter_mut().zip(rest) {
                *to = *from;
            }
            place.store(usize::from_ne_bytes(word), Ordering::Relaxed);
        }
        len
    }

    /// As the other one. The words, which loom keeps apart, get the same, for observers.
    ///
    /// # Safety
    /// As for [`Span::slice_mut`].
    #[cfg(loom)]
    pub(crate) unsafe fn copy_from(&self, from: &[u8]) -> usize {
        let len = from.len().min(self.len());
        // SAFETY: as the caller says.
        let bytes = unsafe { self.slice_mut() };
        bytes[..len].copy_from_slice(&from[..len]);
        self.up_to(len).write_words();
        len
    }

    /// The little-endian word at byte `offset`, where the bytes have one.
    pub(crate) fn word(&self, offset: usize) -> Option<u32> {
        let end = offset.checked_add(4).filter(|&end| end <= self.len())?;
        let mut bytes = [0; 4];
        for (at, byte) in (offset..end).zip(&mut bytes) {
            *byte = self.byte(at);
        }
        Some(u32::from_le_bytes(bytes))
    }

    #[cfg(not(loom))]
    fn byte(&self, at: usize) -> u8 {
        const WIDTH: usize = size_of::<usize>();
        self.load(at / WIDTH).to_ne_bytes()[at % WIDTH]
    }

    #[cfg(loom)]
    fn byte(&self, at: usize) -> u8 {
        // SAFETY: the block lives, and loom has checked that nobody writes it.
        unsafe { *self.first.add(at.min(self.len() - 1)).as_ref() }
    }

    /// Its machine words, each read once; what follows the last byte in its word is read too.
    ///
    /// # Safety
    /// The block's memory lives as long as the iterator.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) unsafe fn words<'a>(self) -> impl ExactSizeIterator<Item = usize> + 'a {
        let count = self.len().div_ceil(size_of::<usize>());
        // SAFETY: blocks begin at a line and have whole lines, so the words are aligned and inside;
        // they are read atomically, and every bit pattern is a number. They live, says the caller.
        let words: &'a [AtomicUsize] =
            unsafe { core::slice::from_raw_parts(self.first.cast().as_ptr(), count) };
        words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// As `words`, a line at a time.
    ///
    /// # Safety
    /// As for `words`.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) unsafe fn lines<'a>(
        self,
    ) -> impl ExactSizeIterator<Item = [usize; 64 / size_of::<usize>()]> + 'a {
        let count = self.len().div_ceil(64);
        // SAFETY: as for `words`: blocks have whole lines.
        let lines: &'a [[AtomicUsize; 64 / size_of::<usize>()]] =
            unsafe { core::slice::from_raw_parts(self.first.cast().as_ptr(), count) };
        let load = |word: &AtomicUsize| word.load(Ordering::Relaxed);
        lines.iter().map(move |line| line.each_ref().map(load))
    }

    /// The machine word at `index`.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn load(&self, index: usize) -> usize {
        // A word that begins inside the length ends inside the block's lines.
        let index = index.min(self.len().saturating_sub(1) / size_of::<usize>());
        // SAFETY: blocks begin at a line and have whole lines, so the word is aligned and inside;
        // it is read atomically, and every bit pattern is a number.
        unsafe {
            let words = self.first.cast::<AtomicUsize>();
            words.add(index).as_ref().load(Ordering::Relaxed)
        }
    }
}

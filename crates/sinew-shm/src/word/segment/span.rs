//! The bytes of a block: how they are read, written and cleared.

use core::ptr::NonNull;

#[cfg(not(loom))]
use core::sync::atomic::AtomicUsize;

#[cfg(loom)]
use super::super::AtomicU32;
use super::super::Ordering;

/// Whether words that are not known to be aligned are read and written byte by byte: too much code to have
/// it four times over.
#[cfg(not(loom))]
const BY_BYTES: bool = cfg!(target_arch = "riscv32");

/// The bytes of a block: an address and a length.
///
/// Whoever may change them meanwhile, they can be copied out and read word by word, each once; a
/// reference to them is for blocks that nobody else writes.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(super) first: NonNull<u8>,
    pub(super) len: u32,
    /// Of what a state channel's copies are for observers; loom keeps words and bytes apart.
    #[cfg(loom)]
    pub(super) words: NonNull<AtomicU32>,
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
    ///
    /// On cores of 32 bits four words at a time, which a compiler that saves space leaves one by one.
    #[cfg(all(not(loom), target_pointer_width = "32"))]
    #[inline]
    pub(crate) fn copy_to(&self, out: &mut [u8]) -> usize {
        let len = out.len().min(self.len());
        let out = out.get_mut(..len).unwrap_or_default();
        let mut at = self.first.cast::<AtomicUsize>();
        let mut next = || {
            // SAFETY: it is called once for each word of `out`, which is no longer than the block, and
            // blocks begin at a line and have whole lines; a span is used only while its memory lives.
            unsafe {
                let word = at.as_ref().load(Ordering::Relaxed);
                at = at.add(1);
                word
            }
        };
        let (words, last) = out.as_chunks_mut::<4>();
        if BY_BYTES && words.as_ptr().cast::<usize>().is_aligned() {
            for to in words {
                // SAFETY: `to` has the bytes of a word, and is aligned as the first one is.
                unsafe { to.as_mut_ptr().cast::<usize>().write(next()) };
            }
        } else {
            let (groups, words) = match BY_BYTES {
                true => (&mut [][..], words),
                false => words.as_chunks_mut::<4>(),
            };
            for group in groups {
                *group = [next(), next(), next(), next()].map(usize::to_ne_bytes);
            }
            for word in words {
                *word = next().to_ne_bytes();
            }
        }
        if !last.is_empty() {
            let mut word = next().to_le();
            for to in last {
                *to = word as u8;
                word >>= 8;
            }
        }
        len
    }

    /// As the other one, whole lines at a time.
    #[cfg(all(not(loom), not(target_pointer_width = "32")))]
    #[inline]
    pub(crate) fn copy_to(&self, out: &mut [u8]) -> usize {
        const WIDTH: usize = size_of::<usize>();
        let len = out.len().min(self.len());
        let out = out.get_mut(..len).unwrap_or_default();
        let in_lines = len / 64 * 64;
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
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    #[cfg_attr(not(target_pointer_width = "32"), inline)]
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
    pub(super) fn write_words(&self) {
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
        if super::super::trial::is_over() {
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
        let mut at = self.first.cast::<AtomicUsize>();
        let mut put = |word| {
            // SAFETY: it is called once for each word of the first `len` bytes, and blocks begin at a
            // line and have whole lines, so the word is aligned and ends inside the block, which is
            // this side's alone.
            unsafe {
                at.as_ref().store(word, Ordering::Relaxed);
                at = at.add(1);
            }
        };
        let (words, last) = from.get(..len).unwrap_or_default().as_chunks::<WIDTH>();
        // Four at a time, which a compiler that saves space leaves one by one.
        let (groups, words) = match BY_BYTES {
            true => (&[][..], words),
            false => words.as_chunks::<4>(),
        };
        for [a, b, c, d] in groups {
            put(usize::from_ne_bytes(*a));
            put(usize::from_ne_bytes(*b));
            put(usize::from_ne_bytes(*c));
            put(usize::from_ne_bytes(*d));
        }
        for word in words {
            put(usize::from_ne_bytes(*word));
        }
        if !last.is_empty() {
            let bytes = last.iter().rev();
            put(bytes
                .fold(0, |word, byte| word << 8 | usize::from(*byte))
                .to_le());
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

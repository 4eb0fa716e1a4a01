//! The area of a lock channel: bytes that are read and written by words, at any place.
//!
//! One side writes a copy, and the other reads it; who is whose turn the lock says. Whoever breaks that
//! rule can tear what is read, and do nothing else: every access is one of a whole word.

use core::ptr::NonNull;

use super::{Segment, SharedWord};
#[cfg(loom)]
use loom::cell::UnsafeCell;

const WORD: usize = 4;

/// One copy of an area.
#[derive(Clone, Copy)]
pub(crate) struct WordArea {
    first: NonNull<SharedWord>,
    size: u32,
    #[cfg(loom)]
    uses: NonNull<UnsafeCell<()>>,
}

// SAFETY: words are atomic; that their memory lives on is the contract of the segment.
unsafe impl Send for WordArea {}
// SAFETY: as above.
unsafe impl Sync for WordArea {}

impl Segment {
    /// An area of `size` bytes.
    pub(crate) fn area(&self, offset: u32, size: u32) -> Option<WordArea> {
        let len = u64::from(size).next_multiple_of(WORD as u64);
        self.holds(offset, len, 64).then(|| WordArea {
            first: self.word_at(offset).cast(),
            size,
            #[cfg(loom)]
            // SAFETY: there is one for each 64 bytes.
            uses: unsafe { self.uses.add(offset as usize / 64) },
        })
    }
}

impl WordArea {
    /// Bytes of it.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// The bytes, for cache maintenance.
    pub(crate) fn bytes(&self) -> (NonNull<u8>, usize) {
        (self.first.cast(), self.size())
    }

    fn word(&self, index: usize) -> Option<&SharedWord> {
        let is_inside = index < self.size().div_ceil(WORD);
        // SAFETY: the place was checked when the view was made, whole words of it, and its memory lives
        // as long as the segment is used; the words are atomic.
        is_inside.then(|| unsafe { self.first.add(index).as_ref() })
    }

    /// Copies the bytes from `offset` on into all of `out`; `None` where they do not lie inside.
    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) -> Option<()> {
        let end = offset.checked_add(out.len())?;
        if end > self.size() {
            return None;
        }
        self.track(false);
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let (index, skip) = (at / WORD, at % WORD);
            let word = self.word(index)?.get().to_le_bytes();
            let part = word.get(skip..)?;
            let count = part.len().min(rest.len());
            let (front, back) = rest.split_at_mut_checked(count)?;
            front
                .iter_mut()
                .zip(part)
                .for_each(|(to, from)| *to = *from);
            (at, rest) = (at + count, back);
        }
        Some(())
    }

    /// Writes all of `bytes` from `offset` on, into a copy of one's own; `None` where they do not fit.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Option<()> {
        let end = offset.checked_add(bytes.len())?;
        if end > self.size() {
            return None;
        }
        self.track(true);
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (index, skip) = (at / WORD, at % WORD);
            let place = self.word(index)?;
            let mut word = match rest.len() < WORD || skip > 0 {
                // Beside what is written, the word stays as this side wrote it.
                true => place.get().to_le_bytes(),
                false => [0; WORD],
            };
            let part = word.get_mut(skip..)?;
            let count = part.len().min(rest.len());
            let (front, back) = rest.split_at_checked(count)?;
            part.iter_mut()
                .zip(front)
                .for_each(|(to, from)| *to = *from);
            place.set(u32::from_le_bytes(word));
            (at, rest) = (at + count, back);
        }
        Some(())
    }

    /// Copies all of another copy into this one, which is one's own: each word once.
    pub(crate) fn copy_from(&self, other: &WordArea) {
        other.track(false);
        self.track(true);
        let words = (0..).map_while(|index| Some((self.word(index)?, other.word(index)?)));
        words.for_each(|(to, from)| to.set(from.get()));
    }

    /// Makes all of it 0.
    pub(crate) fn clear(&self) {
        self.track(true);
        let words = (0..).map_while(|index| self.word(index));
        words.for_each(|word| word.set(0));
    }

    fn track(&self, write: bool) {
        #[cfg(loom)]
        {
            // SAFETY: there is one for each 64 bytes of the place.
            let cell = unsafe { self.uses.as_ref() };
            match write {
                true => cell.with_mut(|_| ()),
                false => cell.with(|_| ()),
            }
        }
        let _ = write;
    }
}

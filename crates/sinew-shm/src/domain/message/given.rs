//! Messages with memory, as their receiver sees them.

use core::ops::Range;

use super::super::Lost;
use super::super::handles::EndRef;
use super::super::layout::{LEND, LEND_MUT, MOVE};
use super::handle::Messages;
use super::status;
use crate::word::Span;

/// How memory was passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// For good: nobody waits for it.
    Move,
    /// To be read: the answer is words.
    Lend,
    /// To be read and answered in memory.
    LendMut,
}

/// Memory that came with a message: kept as long as it takes, by any task or thread. Dropped, it goes
/// back, and where somebody waits for an answer he is told that there is none.
#[must_use = "dropped, it goes back without an answer"]
pub struct Given<R: EndRef> {
    channel: Messages<R>,
    token: u32,
    kind: u32,
    valid: Range<usize>,
    bytes: Span,
    is_writer: bool,
    /// Bytes of the block for the answer, from when this is its writer on.
    room: u32,
}

impl<R: EndRef> Given<R> {
    pub(super) fn new(
        channel: Messages<R>,
        (token, kind): (u32, u32),
        (offset, len): (u32, u32),
        bytes: Span,
    ) -> Given<R> {
        let offset = offset as usize;
        Given {
            channel,
            token,
            kind,
            valid: offset..offset.wrapping_add(len as usize),
            bytes,
            is_writer: false,
            room: 0,
        }
    }

    /// How it was passed.
    pub fn passing(&self) -> Passing {
        match self.kind {
            LEND => Passing::Lend,
            LEND_MUT => Passing::LendMut,
            _ => Passing::Move,
        }
    }

    /// Where in the block the bytes lie; always inside of it.
    pub fn valid(&self) -> Range<usize> {
        self.valid.clone()
    }

    /// How many bytes came.
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    /// Whether none came.
    pub fn is_empty(&self) -> bool {
        self.valid.is_empty()
    }

    /// Copies it out, as many bytes as fit; how many. This is the way to read what a peer wrote that
    /// is not trusted: each byte is read once. [`Lost`] where the pairing ended before the copy did.
    #[inline]
    pub fn copy_to(&self, out: &mut [u8]) -> Result<usize, Lost> {
        let copied = self.bytes.copy_range(self.valid.start, out);
        match self.channel.end.is_current(self.channel.pairing) {
            true => Ok(copied),
            false => Err(Lost::Restarted),
        }
    }

    /// The bytes where they lie; `None` where the peer is not trusted.
    #[inline]
    pub fn trusted(&self) -> Option<&[u8]> {
        // SAFETY: the block is this message's until it is dropped. The peer is trusted to write it only
        // after the answer, and after a restart of its own only when this side has acknowledged that,
        // which it does when no view is left; `in_place` and `blank` want `&mut self`. The handle
        // keeps the end, and so the memory.
        let bytes = || unsafe { self.bytes.slice() };
        let is_trusted = self.channel.end.is_trusted();
        is_trusted.then(bytes)?.get(self.valid.clone())
    }

    /// The block for the answer up to the end of what came, which stands there where it stood: as if the
    /// sender's memory were changed in place. Without replies in the channel it is copied. `None` as
    /// for [`Given::blank`].
    #[inline]
    pub fn in_place(&mut self) -> Option<&mut [u8]> {
        let (bytes, valid) = (self.bytes, self.valid.clone());
        let is_same = |place: &[u8]| core::ptr::eq(place.as_ptr(), bytes.first().as_ptr());
        let place = self.blank(valid.end)?;
        if !is_same(place) {
            bytes.copy_range(valid.start, place.get_mut(valid)?);
        }
        Some(place)
    }

    /// The first `len` bytes of the block for the answer, with whatever stands there. `None` where no
    /// answer in memory is asked for, the block is smaller ([`Messages::memory_sizes`]), the pairing is
    /// over, or somebody writes there still who answers to an earlier peer.
    #[inline]
    pub fn blank(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.kind != LEND_MUT {
            return None;
        }
        let Messages { end, slot, pairing } = &self.channel;
        let writer = (self.token, self.is_writer);
        let (place, room) = end.answer_memory(*slot, *pairing, writer, len)?;
        (self.is_writer, self.room) = (true, room);
        // SAFETY: the block for the answer belongs to this open call, and this is its one writer until
        // it is dropped, whatever becomes of the pairing: a block of the own segment, or the one that
        // was lent, in the exchange segment, which only a trusted peer shares and does not touch before
        // the answer. `&mut self` keeps every other view away.
        Some(unsafe { place.slice_mut() })
    }

    /// Answers a lent message with 1 to 5 words; to one that asks for an answer in memory it is none,
    /// and to one that was given for good nobody listens. `false` where nobody takes it.
    pub fn answer<const N: usize>(self, words: [u32; N]) -> bool {
        const { assert!(N >= 1 && N <= 5, "an answer has 1 to 5 words") };
        match self.kind {
            LEND => self.say(status::DONE, &words),
            _ => false,
        }
    }

    /// Answers with these bytes of the block that [`Given::in_place`] or [`Given::blank`] gave. `false`
    /// where they lie beyond it, no answer in memory is asked for, or the caller is gone.
    pub fn answer_with(self, valid: Range<usize>) -> bool {
        // Who never wrote there is rare, and asks.
        let size = match self.is_writer {
            true => self.room as usize,
            false => self.channel.memory_sizes().1,
        };
        let is_inside = valid.start <= valid.end && valid.end <= size;
        match (self.kind, is_inside) {
            (LEND_MUT, true) => self.say(status::DONE, &[valid.start as u32, valid.len() as u32]),
            _ => false,
        }
    }

    /// Says that there is no such opcode, if an answer is asked for.
    pub(super) fn unknown(self) {
        self.say(status::UNKNOWN_OPCODE, &[]);
    }

    fn say(mut self, status: u8, words: &[u32]) -> bool {
        let token = core::mem::take(&mut self.token);
        let Messages { end, slot, pairing } = &self.channel;
        let given = (token, self.kind, self.is_writer);
        end.answer_message(*slot, *pairing, given, (status, words))
    }
}

impl<R: EndRef> Drop for Given<R> {
    fn drop(&mut self) {
        if self.token != 0 {
            let said = match self.kind {
                MOVE => status::DONE,
                _ => status::DROPPED,
            };
            let Messages { end, slot, pairing } = &self.channel;
            let given = (self.token, self.kind, self.is_writer);
            end.answer_message(*slot, *pairing, given, (said, &[]));
        }
    }
}

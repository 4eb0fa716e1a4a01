//! Messages with memory, as their sender sees them.
//!
//! A [`Buffer`] is a block in the sender's hands. It goes for good ([`Buffer::give`]), to be read
//! ([`Buffer::lend`]), or to be read and answered in memory ([`Buffer::lend_mut`]). What is lent cannot
//! be touched before the answer has come: the buffer is gone,
//!
//! ```compile_fail,E0382
//! # use sinew_shm::domain::{EndRef, Messages, Refused};
//! fn lend<R: EndRef>(messages: &Messages<R>) -> Result<(), Refused> {
//!     let mut buffer = messages.memory(53)?;
//!     let loan = buffer.lend_mut(1, 0..53, [0; 3])?;
//!     buffer[0] = 1;
//!     drop(loan);
//!     Ok(())
//! }
//! ```
//! no view of it outlives it,
//! ```compile_fail,E0505
//! # use sinew_shm::domain::{EndRef, Messages, Refused};
//! fn keep<R: EndRef>(messages: &Messages<R>) -> Result<u8, Refused> {
//!     let mut buffer = messages.memory(53)?;
//!     let view = &mut buffer[..];
//!     let loan = buffer.lend(1, 0..53, [0; 3])?;
//!     view[0] = 1;
//!     drop(loan);
//!     Ok(0)
//! }
//! ```
//! and a [`Loan`] has no bytes.
//! ```compile_fail,E0608
//! # use sinew_shm::domain::{EndRef, Loan};
//! fn touch<R: EndRef>(loan: &Loan<R>) -> u8 {
//!     loan[0]
//! }
//! ```

use core::ops::{Deref, DerefMut, Range};
use core::task::Waker;

use super::super::handles::EndRef;
use super::super::layout::{LEND, LEND_MUT, MOVE};
use super::super::{Lost, Refused};
use super::handle::{CallError, Messages, Pending};
use crate::waiters::Waits;
use crate::word::Span;

/// A place with memory that this side has taken: in its hands, or under way.
struct Hold<R: EndRef> {
    channel: Messages<R>,
    place: u16,
    /// Of the message that is under way, 0 where none is.
    token: u32,
    /// An answer in the peer's memory is read.
    has_view: bool,
    /// It has gone for good, or was taken back.
    is_gone: bool,
}

impl<R: EndRef> Drop for Hold<R> {
    fn drop(&mut self) {
        let Messages { end, slot, pairing } = &self.channel;
        if self.token != 0 {
            end.forget_call(*slot, *pairing, self.token);
        } else if !self.is_gone {
            end.free_memory(*slot, *pairing, self.place, self.has_view);
        }
    }
}

/// Memory for a message: a block of the channel's, in the hands of who writes it. Dropping it frees it.
pub struct Buffer<R: EndRef> {
    hold: Hold<R>,
    bytes: Span,
}

/// A message that has not gone, with its memory.
pub struct Unsent<R: EndRef> {
    /// Why it has not gone.
    pub refused: Refused,
    /// The memory, as it was.
    pub buffer: Buffer<R>,
}

impl<R: EndRef> core::fmt::Debug for Unsent<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.refused.fmt(f)
    }
}

impl<R: EndRef> core::fmt::Display for Unsent<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.refused.fmt(f)
    }
}

impl<R: EndRef> core::error::Error for Unsent<R> {}

impl<R: EndRef> From<Unsent<R>> for Refused {
    fn from(unsent: Unsent<R>) -> Refused {
        unsent.refused
    }
}

impl<R: EndRef> Buffer<R> {
    pub(super) fn new(channel: Messages<R>, place: u16, bytes: Span) -> Buffer<R> {
        let hold = Hold {
            channel,
            place,
            token: 0,
            has_view: false,
            is_gone: false,
        };
        Buffer { hold, bytes }
    }

    /// Sends these bytes of it for good, with three words: what Xous calls move. The block is free
    /// again when the receiver has dropped the message.
    ///
    /// [`Refused::TooLarge`] where the bytes lie beyond the block, [`Refused::Full`] where too many
    /// messages wait; the memory is handed back then, as with the other two.
    pub fn give(
        mut self,
        opcode: u32,
        valid: Range<usize>,
        words: [u32; 3],
    ) -> Result<(), Unsent<R>> {
        match self.ask(MOVE, opcode, valid, words) {
            Ok(_) => {
                self.hold.is_gone = true;
                Ok(())
            }
            Err(refused) => Err(Unsent {
                refused,
                buffer: self,
            }),
        }
    }

    /// Lends these bytes of it to be read, with three words. The answer is words.
    pub fn lend(
        self,
        opcode: u32,
        valid: Range<usize>,
        words: [u32; 3],
    ) -> Result<Loan<R>, Unsent<R>> {
        self.lent(LEND, opcode, valid, words)
    }

    /// Lends these bytes of it to be read and answered in memory, with three words. For the answer the
    /// receiver has a whole block: this one where the channel has replies, else one of its own.
    pub fn lend_mut(
        self,
        opcode: u32,
        valid: Range<usize>,
        words: [u32; 3],
    ) -> Result<Loan<R>, Unsent<R>> {
        self.lent(LEND_MUT, opcode, valid, words)
    }

    #[inline]
    fn lent(
        mut self,
        kind: u32,
        opcode: u32,
        valid: Range<usize>,
        words: [u32; 3],
    ) -> Result<Loan<R>, Unsent<R>> {
        match self.ask(kind, opcode, valid, words) {
            Ok(token) => {
                self.hold.token = token;
                Ok(Loan {
                    hold: Some(self.hold),
                    kind,
                    own: self.bytes,
                })
            }
            Err(refused) => Err(Unsent {
                refused,
                buffer: self,
            }),
        }
    }

    #[inline]
    fn ask(
        &self,
        kind: u32,
        opcode: u32,
        valid: Range<usize>,
        [first, second, third]: [u32; 3],
    ) -> Result<u32, Refused> {
        let Hold { channel, place, .. } = &self.hold;
        let len = valid.end.checked_sub(valid.start);
        let words = (u32::try_from(valid.start), len.map(u32::try_from));
        let (Ok(offset), Some(Ok(len))) = words else {
            return Err(Refused::TooLarge);
        };
        channel.ask(kind, opcode, &[offset, len, first, second, third], *place)
    }
}

impl<R: EndRef> Deref for Buffer<R> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block is this buffer's alone until it is sent or dropped, also when the pairing
        // ends: a session of this side's leaves what is held alone. The handle keeps the end, and so
        // the memory; `&self` keeps `deref_mut` away.
        unsafe { self.bytes.slice() }
    }
}

impl<R: EndRef> DerefMut for Buffer<R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` keeps every other view away.
        unsafe { self.bytes.slice_mut() }
    }
}

/// Memory that is lent. Dropping it gives the answer up; the block is free when that has come.
#[must_use = "dropped, it gives the answer up"]
pub struct Loan<R: EndRef> {
    /// Until the answer is taken up.
    hold: Option<Hold<R>>,
    kind: u32,
    /// What was lent.
    own: Span,
}

impl<R: EndRef> Loan<R> {
    /// The answer, with the memory; `None` while there is none. After an answer the loan is over, and
    /// after an error the memory is free.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Returned<R>>, CallError> {
        let Some(hold) = &mut self.hold else {
            return Ok(None);
        };
        let Messages { end, slot, pairing } = &hold.channel;
        let call = (hold.token, self.kind);
        let taken = end.take_memory_answer(*slot, *pairing, call);
        let Some((answered, bytes)) = (match taken {
            Err(error) if !matches!(error, CallError::Lost(_)) => {
                (hold.token, hold.is_gone) = (0, true);
                self.hold = None;
                return Err(error);
            }
            taken => taken?,
        }) else {
            return Ok(None);
        };
        hold.token = 0;
        let said = CallError::of(answered.status);
        let is_in_memory = self.kind == LEND_MUT && said.is_ok();
        hold.has_view = is_in_memory;
        let hold = self.hold.take();
        said?;
        let [offset, len, ..] = answered.words.map(|word| word as usize);
        let (words, valid) = match is_in_memory {
            true => ([0; 5], offset..offset.wrapping_add(len)),
            false => (answered.words, 0..0),
        };
        Ok(hold.map(|hold| Returned {
            hold,
            words,
            valid,
            bytes,
            own: self.own,
        }))
    }

    /// Wakes `waker` once when there may be an answer, at once where there is one, or when the pairing
    /// ends.
    pub fn arm(&self, waker: &Waker) {
        match &self.hold {
            Some(hold) => {
                let Messages { end, slot, pairing } = &hold.channel;
                end.arm_messages(*slot, *pairing, (Waits::Answer, hold.token), waker);
            }
            None => waker.wake_by_ref(),
        }
    }
}

impl<R: EndRef> Pending for Loan<R> {
    type Answer = Returned<R>;

    fn poll(&mut self) -> Result<Option<Returned<R>>, CallError> {
        Loan::poll(self)
    }

    fn arm(&self, waker: &Waker) {
        Loan::arm(self, waker);
    }
}

/// An answer, with the memory that was lent. Dropping it frees the memory.
pub struct Returned<R: EndRef> {
    hold: Hold<R>,
    /// Of [`Buffer::lend`], what was answered; those that the answer does not have are 0.
    pub words: [u32; 5],
    valid: Range<usize>,
    bytes: Span,
    own: Span,
}

impl<R: EndRef> Returned<R> {
    /// Of [`Buffer::lend_mut`], where in the block the answer lies; always inside of it.
    pub fn valid(&self) -> Range<usize> {
        self.valid.clone()
    }

    /// Copies the answer out, as many bytes as fit; how many. This is the way to read what a peer wrote
    /// that is not trusted: each byte is read once. [`Lost`] where the pairing ended before the copy
    /// did.
    #[inline]
    pub fn copy_to(&self, out: &mut [u8]) -> Result<usize, Lost> {
        let copied = self.bytes.copy_range(self.valid.start, out);
        let Messages { end, pairing, .. } = &self.hold.channel;
        match end.is_current(*pairing) {
            true => Ok(copied),
            false => Err(Lost::Restarted),
        }
    }

    /// The answer where it lies; `None` where the peer is not trusted.
    #[inline]
    pub fn trusted(&self) -> Option<&[u8]> {
        // SAFETY: the answer was given, and its place is held: the peer is trusted to write it only
        // for the next message of this place, and after a restart of its own only when this side has
        // acknowledged that, which it does when no view is left. The handle keeps the end, and so
        // the memory.
        let bytes = || unsafe { self.bytes.slice() };
        let is_trusted = self.hold.channel.end.is_trusted();
        is_trusted.then(bytes)?.get(self.valid.clone())
    }

    /// The memory for the next message: as much as before.
    pub fn into_buffer(self) -> Buffer<R> {
        let Hold { channel, place, .. } = &self.hold;
        let bytes =
            channel
                .end
                .reuse_memory(channel.slot, channel.pairing, *place, self.hold.has_view);
        let mut hold = self.hold;
        hold.has_view = false;
        let bytes = bytes.up_to(self.own.len());
        Buffer { hold, bytes }
    }
}

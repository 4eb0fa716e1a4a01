//! The side that is asked: messages that come in, and calls of the peer's that are open.
//!
//! A book for each place of the peer's calls, in private memory: held (open, `len` is its token) or
//! free. Somebody may write the answer in a block of this side, also when the pairing is over: then `next`
//! is `WRITTEN`, and nobody else writes there. A peer that opens more calls than it may, or one twice, breaks the protocol, and so does one
//! whose message has memory beyond its block.

use super::super::Violation;
use super::super::books::{Block, NONE, State};
use super::super::layout::{CALL, LEND, LEND_MUT, MOVE, SCALAR, answer, line, message};
use super::super::port::{Cache, clean, invalidate};
use super::super::ring::{passes, tag};
use super::{fetch, place};
use crate::word::{
    ANSWER_STORE, BlockArea, CLEAR_FENCE, CLEAR_LOOK, ENTRY_LOAD, LineArea, RESET_STORE,
    RETURN_LOOK_FENCE, Span, TAKEN_STORE, Words, full_fence,
};

/// In `next` of the book on a place: somebody writes the answer.
const WRITTEN: u16 = 0;

/// A message that came in.
pub(in crate::domain) struct Asked {
    /// One of the kinds of the layout.
    pub(in crate::domain) kind: u32,
    pub(in crate::domain) opcode: u32,
    pub(in crate::domain) words: [u32; 5],
    /// Of a call; 0 where no answer is asked for.
    pub(in crate::domain) token: u32,
    /// The block of one with memory.
    pub(in crate::domain) memory: Span,
}

pub(in crate::domain) struct Answering {
    pub(super) messages: LineArea,
    pub(super) answers: LineArea,
    pub(super) control: Words,
    pub(super) theirs: Words,
    /// Calls of the peer that can be open: the first of them with memory.
    pub(super) places: u16,
    /// The peer's blocks.
    pub(in crate::domain) pool: BlockArea,
    /// Where this side answers in memory: in its own blocks, or in those of the message.
    pub(super) answer_in: BlockArea,
    /// The pool is the exchange segment's, which both sides write.
    pub(super) is_shared: bool,
    /// Who had the memory before is not known.
    pub(super) is_soiled: bool,
    /// Where the books on the peer's calls begin.
    pub(super) first: usize,
    pub(super) tag: u32,
    pub(super) peer_tag: u32,
    /// Position of the next message.
    pub(super) taken: u32,
    /// Who calls one by one has always the same place: the token of the last message with memory.
    pub(super) likely: u32,
    /// The peer's wake word for answers, when it was rung last.
    pub(super) rung: u32,
}

impl Answering {
    /// Begins a session. Bytes that were cleared. The control line is cleaned by the caller.
    pub(super) fn reset(
        &mut self,
        (me, peer): (u32, u32),
        books: &mut [Block],
        cache: &impl Cache,
    ) -> u32 {
        (self.tag, self.peer_tag) = (tag(me), tag(peer));
        (self.taken, self.rung) = (0, 0);
        for call in 0..self.answers.count() {
            let line = self.answers.line(call);
            line.at(answer::TOKEN).store(0, RESET_STORE);
            let book = match call < u32::from(self.places) {
                true => books.get_mut(self.first + call as usize),
                false => None,
            };
            if let Some(book) = book {
                book.state = State::Free;
            }
            line.at(answer::STATUS).store(0, RESET_STORE);
            clean(&line, cache);
        }
        // Whoever reads them looks at the status afterwards.
        full_fence(CLEAR_FENCE);
        let mut used = 0u32;
        for call in 0..self.places {
            let book = books.get_mut(self.first + usize::from(call));
            let is_used = book.is_some_and(|book| core::mem::take(&mut book.len) != 0);
            if is_used || self.is_soiled {
                let line = self.answers.line(call.into());
                (0..5).for_each(|word| line.at(answer::WORDS + word).set(0));
                clean(&line, cache);
                used = used.wrapping_add(1);
            }
        }
        self.is_soiled = false;
        self.control.at(message::WAKE_MESSAGES).set(u32::MAX);
        self.control.at(message::TAKEN).store(0, RESET_STORE);
        used * 4 * 5
    }

    /// Clears what was answered in own blocks, so that the next peer does not find what was for another:
    /// how many bytes. No view of them is left with a peer that is trusted.
    #[cold]
    pub(super) fn clear(&self, books: &mut [Block], cache: &impl Cache) -> u32 {
        let mut cleared = 0u32;
        if self.is_shared {
            return cleared;
        }
        for call in 0..self.answer_in.count() {
            let book = books.get_mut(self.first + usize::from(call));
            // Who writes there since before does so until he drops it.
            if let Some(book) = book.filter(|book| book.next == NONE) {
                cleared = cleared.wrapping_add(book.clear(&self.answer_in, call, cache));
            }
        }
        cleared
    }

    /// Takes up one message; whether the peer is to be rung because there is room for another.
    #[inline]
    pub(super) fn receive(
        &mut self,
        books: &mut [Block],
        cache: &impl Cache,
    ) -> Result<Option<(Asked, bool)>, Violation> {
        // The memory of the next message, likely, comes together with its line.
        fetch(&self.pool, self.likely, cache);
        let line = self.messages.line(self.taken);
        invalidate(&line, cache);
        let sequence = line.at(line::SEQUENCE).load(ENTRY_LOAD);
        if sequence != self.taken.wrapping_add(1) {
            return match sequence == self.last_lap() {
                true => Ok(None),
                false => Err(Violation::Sequence),
            };
        }
        let line = self.messages.for_reading(self.taken);
        // The line may have been fetched before its other words were there.
        invalidate(&line, cache);
        let mut asked = Asked {
            kind: SCALAR,
            opcode: line.at(line::OPCODE).get(),
            words: core::array::from_fn(|index| line.at(line::WORDS + index).get()),
            token: line.at(line::TOKEN).get(),
            memory: Span::EMPTY,
        };
        let token = asked.token;
        fetch(&self.pool, token, cache);
        // A peer that begins anew clears first this and then the others.
        full_fence(CLEAR_LOOK);
        let kind = line.at(line::KIND).get();
        asked.kind = kind & 0xFFFF;
        let from = self.taken;
        self.taken = from.wrapping_add(1);
        self.control
            .at(message::TAKEN)
            .store(self.taken, TAKEN_STORE);
        clean(&self.control, cache);
        full_fence(RETURN_LOOK_FENCE);
        invalidate(&self.theirs, cache);
        let wake = self.theirs.at(message::WAKE_TAKEN).get();
        let ring = passes(wake, from, self.taken);
        if kind & 0xFFFF_0000 != self.peer_tag {
            return Err(Violation::Session);
        }
        match asked.kind {
            SCALAR => asked.token = 0,
            CALL => self.open(books, token, self.pool.count())?,
            MOVE | LEND | LEND_MUT => asked.memory = self.open_memory(books, &asked, cache)?,
            _ => return Err(Violation::Kind),
        }
        Ok(Some((asked, ring)))
    }

    fn last_lap(&self) -> u32 {
        self.taken
            .wrapping_add(1)
            .wrapping_sub(self.messages.count())
    }

    /// Notes a call as open, in one of the places from `first` on.
    #[inline]
    fn open(&self, books: &mut [Block], token: u32, first: u16) -> Result<(), Violation> {
        let call = place(token);
        if call < first || call >= self.places || token >> 16 == 0 {
            return Err(Violation::Token);
        }
        let book = books.get_mut(self.first + usize::from(call));
        let book = book
            .filter(|book| book.state == State::Free)
            .ok_or(Violation::Token)?;
        (book.state, book.len) = (State::Held, token);
        Ok(())
    }

    /// Notes a call with memory as open: its block.
    fn open_memory(
        &mut self,
        books: &mut [Block],
        asked: &Asked,
        cache: &impl Cache,
    ) -> Result<Span, Violation> {
        let (call, [offset, len, ..]) = (place(asked.token), asked.words);
        self.likely = asked.token;
        if call >= self.pool.count() {
            return Err(Violation::Token);
        }
        // What is refused is no open call: nobody would answer it.
        let end = offset
            .checked_add(len)
            .filter(|end| *end <= self.pool.size());
        let end = end.ok_or(Violation::Length)?;
        self.open(books, asked.token, 0)?;
        let (at, bytes) = self.pool.bytes(call, end);
        cache.invalidate(at, bytes);
        Ok(self.pool.for_reading(call, end))
    }

    /// Where the answer to an open call with memory is to be written; `None` where there is no such
    /// call.
    pub(in crate::domain) fn answer_in(
        &self,
        books: &mut [Block],
        (token, is_writer): (u32, bool),
        len: usize,
    ) -> Option<Span> {
        let call = place(token);
        let book = books.get_mut(self.first + usize::from(call))?;
        let is_open =
            call < self.answer_in.count() && book.state == State::Held && book.len == token;
        let is_written = book.next != NONE;
        if !is_open || is_written != is_writer || len > self.answer_in.size() as usize {
            return None;
        }
        book.next = WRITTEN;
        book.soil(len as u32);
        Some(self.answer_in.for_writing(call).up_to(len))
    }

    /// Who wrote an answer does so no more. Bytes that were cleared, because it was for an earlier
    /// peer.
    #[cold]
    pub(in crate::domain) fn end_writing(
        &self,
        books: &mut [Block],
        call: u16,
        is_live: bool,
        cache: &impl Cache,
    ) -> u32 {
        let Some(book) = books.get_mut(self.first + usize::from(call)) else {
            return 0;
        };
        book.next = NONE;
        match (is_live, self.is_shared) {
            (false, false) => book.clear(&self.answer_in, call, cache),
            (false, true) if call < self.answer_in.count() => {
                // Written back later, it would go over a message of the next pairing.
                let (at, bytes) = self.answer_in.bytes(call, self.answer_in.size());
                cache.clean(at, bytes);
                0
            }
            _ => 0,
        }
    }

    /// Shows the peer what was written into the memory of an answer.
    fn clean_memory(&self, call: u16, kind: u32, words: &[u32], cache: &impl Cache) {
        let len = match (kind, words) {
            // All of it, answered or not: written back later, it would go over the next message.
            (LEND_MUT, _) if self.is_shared => self.answer_in.size(),
            (LEND_MUT, [offset, len, ..]) => offset.saturating_add(*len),
            _ => return,
        };
        self.answer_in.is_written(call, len);
        let (at, bytes) = self.answer_in.bytes(call, len);
        cache.clean(at, bytes);
    }

    /// Whether everything of the peer's is taken up and answered.
    pub(super) fn is_drained(&self, books: &[Block], cache: &impl Cache) -> bool {
        let all = self.first..self.first + usize::from(self.places);
        let mut books = books.get(all).unwrap_or_default().iter();
        !self.has_message(cache) && books.all(|book| book.state == State::Free)
    }

    /// Whether a message waits.
    pub(in crate::domain) fn has_message(&self, cache: &impl Cache) -> bool {
        let line = self.messages.line(self.taken);
        invalidate(&line, cache);
        line.at(line::SEQUENCE).get() != self.last_lap()
    }

    /// Answers a call; whether the peer is to be rung, `None` where there is no such call.
    #[inline]
    pub(in crate::domain) fn answer(
        &mut self,
        books: &mut [Block],
        (token, kind): (u32, u32),
        (status, words): (u8, &[u32]),
        cache: &impl Cache,
    ) -> Option<bool> {
        let call = place(token);
        if call >= self.places {
            return None;
        }
        let book = books.get_mut(self.first + usize::from(call))?;
        if book.state != State::Held || book.len != token {
            return None;
        }
        book.state = State::Free;
        if call < self.pool.count() {
            self.clean_memory(call, kind, words, cache);
        }
        let line = self.answers.for_writing(u32::from(call));
        let count = words.len().min(5) as u32;
        line.at(answer::STATUS)
            .set(u32::from(status) | count << 8 | self.tag);
        // What an earlier answer left there is not told.
        for index in 0..5 {
            let word = words.get(index).copied().unwrap_or(0);
            line.at(answer::WORDS + index).set(word);
        }
        clean(&line, cache);
        line.at(answer::TOKEN).store(token, ANSWER_STORE);
        clean(&line, cache);
        full_fence(RETURN_LOOK_FENCE);
        invalidate(&self.theirs, cache);
        let wake = self.theirs.at(message::WAKE_ANSWERS).get();
        let ring = wake != self.rung;
        self.rung = wake;
        Some(ring)
    }

    /// Asks to be rung at the next message.
    pub(super) fn arm(&self) {
        self.control.at(message::WAKE_MESSAGES).set(self.taken);
    }
}

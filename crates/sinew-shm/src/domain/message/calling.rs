//! The side that asks: messages on their way, and calls that wait for their answers.
//!
//! Calls are noted in private memory, one book for each place: free (`next` is the next free place),
//! held (open), or lent (open, and nobody wants the answer any more). `len` is the token last used.

use super::super::Violation;
use super::super::books::{Block, NONE, State, free_line};
use super::super::layout::{CALL, SCALAR, answer, line, message};
use super::super::outbox::Denied;
use super::super::port::{Cache, clean, invalidate};
use super::super::ring::{passes, tag};
use super::place;
use crate::word::{
    ANSWER_LOAD, ENTRY_STORE, LineArea, PUBLISH_FENCE, PublishFence, RESET_STORE, TAKEN_LOAD, Words,
};

/// What came back: what the answer says, and its words.
pub(in crate::domain) struct Answered {
    pub(in crate::domain) status: u8,
    pub(in crate::domain) words: [u32; 5],
}

pub(in crate::domain) struct Calling {
    pub(super) messages: LineArea,
    pub(super) answers: LineArea,
    pub(super) control: Words,
    pub(super) theirs: Words,
    /// Messages that wait, and calls that are open, at most.
    pub(super) requests: u32,
    pub(super) calls: u16,
    /// Where the books on calls begin.
    pub(super) first: usize,
    pub(super) tag: u32,
    pub(super) peer_tag: u32,
    /// Position of the next message.
    pub(super) sent: u32,
    /// What the peer had taken up when this side looked last.
    pub(super) taken: u32,
    pub(super) free: u16,
    /// Of the own wake word for answers.
    pub(super) epoch: u32,
}

impl Calling {
    /// Begins a session: no message is under way, and no call is open.
    pub(super) fn reset(
        &mut self,
        (me, peer): (u32, u32),
        books: &mut [Block],
        cache: &impl Cache,
    ) {
        (self.tag, self.peer_tag) = (tag(me), tag(peer));
        (self.sent, self.taken, self.epoch, self.free) = (0, 0, 0, NONE);
        for call in (0..self.calls).rev() {
            if let Some(book) = books.get_mut(self.first + usize::from(call)) {
                (book.state, book.next) = (State::Free, self.free);
                self.free = call;
            }
        }
        for position in 0u32..self.messages.count() {
            let line = self.messages.line(position);
            line.at(line::KIND).store(0, RESET_STORE);
            let last_lap = position.wrapping_add(1).wrapping_sub(self.messages.count());
            line.at(line::SEQUENCE).store(last_lap, RESET_STORE);
            clean(&line, cache);
        }
        self.control.at(message::WAKE_ANSWERS).set(0);
        self.control.at(message::WAKE_TAKEN).set(u32::MAX);
    }

    /// Sends a message, and opens a call where an answer is asked for: its token, 0 without one.
    /// Whether the peer is to be rung.
    #[inline]
    pub(super) fn send(
        &mut self,
        books: &mut [Block],
        (opcode, words): (u32, &[u32; 5]),
        asks: bool,
        fence: PublishFence,
        cache: &impl Cache,
    ) -> Result<(u32, bool), Denied> {
        if self.sent.wrapping_sub(self.taken) >= self.requests {
            self.refresh(cache)?;
        }
        let (kind, token) = match asks {
            true => (CALL, self.open(books, cache)?),
            false => (SCALAR, 0),
        };
        let line = self.messages.for_writing(self.sent);
        line.at(line::KIND).set(kind | self.tag);
        line.at(line::OPCODE).set(opcode);
        line.at(line::TOKEN).set(token);
        for (index, word) in words.iter().enumerate() {
            line.at(line::WORDS + index).set(*word);
        }
        clean(&line, cache);
        let from = self.sent;
        self.sent = from.wrapping_add(1);
        line.at(line::SEQUENCE).store(self.sent, ENTRY_STORE);
        clean(&line, cache);
        fence.run(PUBLISH_FENCE);
        invalidate(&self.theirs, cache);
        let wake = self.theirs.at(message::WAKE_MESSAGES).get();
        Ok((token, passes(wake, from, self.sent)))
    }

    /// Looks how many messages the peer has taken up.
    #[cold]
    fn refresh(&mut self, cache: &impl Cache) -> Result<(), Denied> {
        let taken = self.peer_taken(cache);
        // No more than was sent, and no fewer than before.
        let waiting = self.sent.wrapping_sub(taken);
        if waiting > self.sent.wrapping_sub(self.taken) {
            return Err(Denied::Violation(Violation::Sequence));
        }
        self.taken = taken;
        match waiting < self.requests {
            true => Ok(()),
            false => Err(Denied::Full),
        }
    }

    fn peer_taken(&self, cache: &impl Cache) -> u32 {
        invalidate(&self.theirs, cache);
        self.theirs.at(message::TAKEN).load(TAKEN_LOAD)
    }

    /// Opens a call: its token.
    #[inline]
    fn open(&mut self, books: &mut [Block], cache: &impl Cache) -> Result<u32, Denied> {
        if self.free == NONE {
            self.forget_answered(books, cache);
        }
        let call = self.free;
        let book = match call < self.calls {
            true => books.get_mut(self.first + usize::from(call)),
            false => None,
        };
        let book = book.ok_or(Denied::Full)?;
        self.free = book.next;
        book.state = State::Held;
        // The number is never 0, so that no token is.
        let number = (book.len >> 16).wrapping_add(1) & 0xFFFF;
        book.len = number.max(1) << 16 | u32::from(call);
        Ok(book.len)
    }

    /// Frees the places of calls that nobody wants the answers of, where these have come.
    #[cold]
    fn forget_answered(&mut self, books: &mut [Block], cache: &impl Cache) {
        for call in 0..self.calls {
            let Some(book) = books.get_mut(self.first + usize::from(call)) else {
                return;
            };
            if book.state == State::Lent && self.is_answered(book.len, cache) {
                (book.state, book.next) = (State::Free, self.free);
                self.free = call;
            }
        }
    }

    /// The book of an open call with this token.
    #[inline(always)]
    fn book<'a>(&self, books: &'a mut [Block], token: u32) -> Option<&'a mut Block> {
        let call = place(token);
        if call >= self.calls {
            return None;
        }
        let book = books.get_mut(self.first + usize::from(call))?;
        (book.state == State::Held && book.len == token).then_some(book)
    }

    fn is_answered(&self, token: u32, cache: &impl Cache) -> bool {
        let line = self.answers.line(u32::from(place(token)));
        invalidate(&line, cache);
        line.at(answer::TOKEN).load(ANSWER_LOAD) == token
    }

    /// The answer of a call, whose place is then free; `None` while there is none.
    #[inline]
    pub(in crate::domain) fn take(
        &mut self,
        books: &mut [Block],
        token: u32,
        cache: &impl Cache,
    ) -> Result<Option<Answered>, Violation> {
        let free = self.free;
        let book = self.book(books, token).ok_or(Violation::Token)?;
        if !self.is_answered(token, cache) {
            return Ok(None);
        }
        (book.state, book.next) = (State::Free, free);
        self.free = place(token);
        let line = self.answers.for_reading(u32::from(place(token)));
        // The line may have been fetched before its other words were there.
        invalidate(&line, cache);
        let said = line.at(answer::STATUS).get();
        if said & 0xFFFF_0000 != self.peer_tag {
            return Err(Violation::Session);
        }
        let [status, ..] = said.to_le_bytes();
        Ok(Some(Answered {
            status,
            words: core::array::from_fn(|index| line.at(answer::WORDS + index).get()),
        }))
    }

    /// Nobody wants the answer any more.
    pub(in crate::domain) fn forget(&mut self, books: &mut [Block], token: u32) {
        if let Some(book) = self.book(books, token) {
            book.state = State::Lent;
        }
    }

    /// Whether there is an answer, or the call is none.
    pub(in crate::domain) fn has_answer(
        &self,
        books: &mut [Block],
        token: u32,
        cache: &impl Cache,
    ) -> bool {
        self.book(books, token).is_none() || self.is_answered(token, cache)
    }

    /// Whether an answer is there that somebody wants and nobody has taken up.
    pub(super) fn has_answers(&self, books: &[Block], cache: &impl Cache) -> bool {
        self.has_answered(books, State::Held, cache)
    }

    /// Whether a call of this state is answered.
    fn has_answered(&self, books: &[Block], state: State, cache: &impl Cache) -> bool {
        let all = self.first..self.first + usize::from(self.calls);
        let mut books = books.get(all).unwrap_or_default().iter();
        books.any(|book| book.state == state && self.is_answered(book.len, cache))
    }

    /// 0 where no message could go, 1 where one could, 2 where one that opens a call could too, as far
    /// as one can tell by looking.
    pub(super) fn room(&self, books: &[Block], cache: &impl Cache) -> u32 {
        let has_room = self.sent.wrapping_sub(self.peer_taken(cache)) < self.requests;
        let has_call = || self.free != NONE || self.has_answered(books, State::Lent, cache);
        match has_room {
            true => 1 + u32::from(has_call()),
            false => 0,
        }
    }

    /// Asks to be rung at the next answer.
    pub(super) fn arm_answers(&mut self) {
        // 0 is that of a new session.
        self.epoch = self.epoch.wrapping_add(1).max(1);
        self.control.at(message::WAKE_ANSWERS).set(self.epoch);
    }

    /// Asks to be rung when the next message is taken up, and when a call is answered that nobody
    /// wants the answer of.
    pub(super) fn arm_room(&mut self, cache: &impl Cache) {
        let taken = self.peer_taken(cache);
        self.control.at(message::WAKE_TAKEN).set(taken);
        if self.free == NONE {
            self.arm_answers();
        }
    }

    /// Every place is in the line of the free ones, or open.
    pub(super) fn check(&self, books: &[Block]) -> bool {
        let all = self.first..self.first + usize::from(self.calls);
        let books = books.get(all).unwrap_or_default();
        free_line(books, self.free).is_some()
    }
}

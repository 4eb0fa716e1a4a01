//! The side that asks: messages on their way, and calls that wait for their answers.
//!
//! Calls are noted in private memory, one book for each place: free (`next` is the next free place),
//! lent (open), or unwanted (open, and nobody wants the answer any more). The first places have memory,
//! a block each, and are also held: by who writes the message, or reads the answer. `len` is the token
//! last used.

use super::super::Violation;
use super::super::books::{Block, NONE, State, line_len};
use super::super::layout::{CALL, LEND_MUT, MOVE, SCALAR, answer, line, message};
use super::super::outbox::Denied;
use super::super::port::{Cache, clean, invalidate};
use super::super::ring::{passes, tag};
use super::{fetch, place};
use crate::word::{
    ANSWER_LOAD, BlockArea, CLEAR_FENCE, CLEAR_LOOK, ENTRY_STORE, LineArea, PUBLISH_FENCE,
    RESET_STORE, Span, TAKEN_LOAD, Words, full_fence,
};

/// What came back: what the answer says, and its words.
pub(in crate::domain) struct Answered {
    pub(in crate::domain) status: u8,
    pub(in crate::domain) words: [u32; 5],
}

/// A message on its way out.
pub(in crate::domain) struct Asking<'a> {
    /// One of the kinds of the layout.
    pub(in crate::domain) kind: u32,
    pub(in crate::domain) opcode: u32,
    /// Of one with memory the first two are where it begins in its block, and how many bytes it has.
    pub(in crate::domain) words: &'a [u32; 5],
    /// The place of one with memory, which its sender holds.
    pub(in crate::domain) held: u16,
}

pub(in crate::domain) struct Calling {
    pub(super) messages: LineArea,
    pub(super) answers: LineArea,
    pub(super) control: Words,
    pub(super) theirs: Words,
    /// Messages that wait, and calls that can be open, at most: the first of them with memory.
    pub(super) requests: u32,
    pub(super) places: u16,
    pub(in crate::domain) pool: BlockArea,
    /// Where the peer answers in memory: in its own blocks, or in those of the message.
    pub(super) answered_in: BlockArea,
    /// The pool is the exchange segment's, which both sides write.
    pub(super) is_shared: bool,
    /// Who had the memory before is not known.
    pub(super) is_soiled: bool,
    /// Where the books on calls begin.
    pub(super) first: usize,
    pub(super) tag: u32,
    pub(super) peer_tag: u32,
    /// Position of the next message.
    pub(super) sent: u32,
    /// What the peer had taken up when this side looked last.
    pub(super) taken: u32,
    /// The first free place without memory, and with.
    pub(super) free: u16,
    pub(super) free_memory: u16,
    /// Of the own wake word for answers.
    pub(super) epoch: u32,
}

impl Calling {
    /// Begins a session: no message is under way, and no call is open. Bytes that were cleared.
    pub(super) fn reset(
        &mut self,
        (me, peer): (u32, u32),
        books: &mut [Block],
        cache: &impl Cache,
    ) -> u32 {
        let count = self.messages.count();
        let used = if self.is_soiled {
            count
        } else {
            self.sent.min(count)
        };
        self.is_soiled = false;
        (self.tag, self.peer_tag) = (tag(me), tag(peer));
        (self.sent, self.taken, self.epoch) = (0, 0, 0);
        (self.free, self.free_memory) = (NONE, NONE);
        for call in (0..self.places).rev() {
            let book = books.get(self.first + usize::from(call));
            // What somebody holds is his until he drops it, also in the next session.
            if book.is_some_and(|book| !matches!(book.state, State::Held | State::Stale)) {
                self.free(books, call);
            }
        }
        for position in 0..count {
            let line = self.messages.line(position);
            line.at(line::KIND).store(0, RESET_STORE);
            let last_lap = position.wrapping_add(1).wrapping_sub(count);
            line.at(line::SEQUENCE).store(last_lap, RESET_STORE);
            clean(&line, cache);
        }
        // Whoever reads them looks at the kind afterwards.
        full_fence(CLEAR_FENCE);
        for position in 0..used {
            let line = self.messages.line(position);
            (line::OPCODE..line::WORDS + 5).for_each(|word| line.at(word).set(0));
            clean(&line, cache);
        }
        self.control.at(message::WAKE_ANSWERS).set(0);
        self.control.at(message::WAKE_TAKEN).set(u32::MAX);
        used * 4 * (line::WORDS + 5 - line::OPCODE) as u32
    }

    /// Clears what was written into free blocks, so that the next peer does not find what was for
    /// another: how many bytes. No view of them is left, here or with a peer that is trusted.
    #[cold]
    pub(super) fn clear(&self, books: &mut [Block], cache: &impl Cache) -> u32 {
        let mut cleared = 0u32;
        for call in 0..self.pool.count() {
            let Some(book) = self.place(books, call) else {
                continue;
            };
            match book.state {
                State::Free => {
                    cleared = cleared.wrapping_add(book.clear(&self.pool, call, cache));
                }
                // Its holder may still write.
                State::Held => book.state = State::Stale,
                _ => {}
            }
        }
        cleared
    }

    /// Sends a message, and opens a call where an answer is asked for: its token, 0 without one.
    /// Whether the peer is to be rung.
    #[inline]
    pub(super) fn send(
        &mut self,
        books: &mut [Block],
        asking: &Asking<'_>,
        cache: &impl Cache,
    ) -> Result<(u32, bool), Denied> {
        if self.sent.wrapping_sub(self.taken) >= self.requests {
            self.refresh(cache)?;
        }
        let token = match asking.kind {
            SCALAR => 0,
            CALL => self.open(books, cache)?,
            _ => self.open_memory(books, asking, cache)?,
        };
        let line = self.messages.for_writing(self.sent);
        line.at(line::KIND).set(asking.kind | self.tag);
        line.at(line::OPCODE).set(asking.opcode);
        line.at(line::TOKEN).set(token);
        for (index, word) in asking.words.iter().enumerate() {
            line.at(line::WORDS + index).set(*word);
        }
        clean(&line, cache);
        let from = self.sent;
        self.sent = from.wrapping_add(1);
        line.at(line::SEQUENCE).store(self.sent, ENTRY_STORE);
        clean(&line, cache);
        full_fence(PUBLISH_FENCE);
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
        let book = self.place(books, call).ok_or(Denied::Full)?;
        let (next, token) = (book.next, next_token(book, call));
        book.state = State::Lent;
        self.free = next;
        Ok(token)
    }

    /// Takes a place with memory, to be written.
    pub(in crate::domain) fn hold(
        &mut self,
        books: &mut [Block],
        len: usize,
        cache: &impl Cache,
    ) -> Result<(u16, Span), Denied> {
        if self.pool.count() == 0 || len > self.pool.size() as usize {
            return Err(Denied::TooLarge);
        }
        if self.free_memory == NONE {
            self.forget_answered(books, cache);
        }
        let call = self.free_memory;
        let book = self.place(books, call).ok_or(Denied::Full)?;
        book.state = State::Held;
        book.soil(len as u32);
        self.free_memory = book.next;
        Ok((call, self.pool.for_writing(call).up_to(len)))
    }

    /// Opens the call of a message with memory, which its sender has held until now.
    #[inline]
    fn open_memory(
        &mut self,
        books: &mut [Block],
        asking: &Asking<'_>,
        cache: &impl Cache,
    ) -> Result<u32, Denied> {
        let (pool, [offset, len, ..]) = (self.pool, *asking.words);
        let end = offset.checked_add(len).filter(|end| *end <= pool.size());
        let end = end.ok_or(Denied::TooLarge)?;
        let call = asking.held;
        let book = self.place(books, call);
        let book = book.filter(|book| book.state == State::Held);
        let book = book.ok_or(Denied::Full)?;
        // What is given for good is free as soon as it comes back.
        book.state = match asking.kind {
            MOVE => State::Unwanted,
            _ => State::Lent,
        };
        let token = next_token(book, call);
        // Where the peer answers in the block, nothing of it stays in this side's cache: written
        // back later, it would go over the answer.
        let is_answered = self.is_shared && asking.kind == LEND_MUT;
        if is_answered {
            book.soil(pool.size());
        }
        pool.is_written(call, end);
        let (at, bytes) = pool.bytes(call, if is_answered { pool.size() } else { end });
        cache.clean(at, bytes);
        Ok(token)
    }

    /// Frees a place that somebody has held. How many bytes were cleared, because it was taken in an
    /// earlier pairing.
    pub(in crate::domain) fn let_go(
        &mut self,
        books: &mut [Block],
        call: u16,
        cache: &impl Cache,
    ) -> u32 {
        let cleared = match self.place(books, call) {
            Some(book) if book.state == State::Held => 0,
            Some(book) if book.state == State::Stale => book.clear(&self.pool, call, cache),
            _ => return 0,
        };
        self.free(books, call);
        cleared
    }

    /// A place that somebody holds, for writing.
    pub(in crate::domain) fn held(&self, call: u16) -> Span {
        match call < self.pool.count() {
            true => self.pool.for_writing(call),
            false => Span::EMPTY,
        }
    }

    fn free(&mut self, books: &mut [Block], call: u16) {
        let free = match call < self.pool.count() {
            true => &mut self.free_memory,
            false => &mut self.free,
        };
        if let Some(book) = books.get_mut(self.first + usize::from(call)) {
            (book.state, book.next) = (State::Free, *free);
            *free = call;
        }
    }

    /// Frees the places of calls that nobody wants the answers of, where these have come.
    #[cold]
    fn forget_answered(&mut self, books: &mut [Block], cache: &impl Cache) {
        for call in 0..self.places {
            let Some(book) = self.place(books, call) else {
                return;
            };
            let (state, token) = (book.state, book.len);
            if state == State::Unwanted && self.is_answered(token, cache) {
                self.free(books, call);
            }
        }
    }

    /// The book on a place.
    #[inline(always)]
    fn place<'a>(&self, books: &'a mut [Block], call: u16) -> Option<&'a mut Block> {
        match call < self.places {
            true => books.get_mut(self.first + usize::from(call)),
            false => None,
        }
    }

    /// The book of an open call with this token.
    #[inline(always)]
    fn book<'a>(&self, books: &'a mut [Block], token: u32) -> Option<&'a mut Block> {
        let book = self.place(books, place(token))?;
        (book.state == State::Lent && book.len == token).then_some(book)
    }

    fn is_answered(&self, token: u32, cache: &impl Cache) -> bool {
        let line = self.answers.line(u32::from(place(token)));
        invalidate(&line, cache);
        line.at(answer::TOKEN).load(ANSWER_LOAD) == token
    }

    /// The answer of a call, whose place is then free, or, if it has memory, held; `None` while there
    /// is none. After a violation the call is over, and its place free.
    #[inline]
    pub(in crate::domain) fn take(
        &mut self,
        books: &mut [Block],
        token: u32,
        cache: &impl Cache,
    ) -> Result<Option<Answered>, Violation> {
        let (free, memory) = (self.free, self.pool.count());
        // The memory of the answer, if it has some, comes together with its line.
        fetch(&self.answered_in, token, cache);
        let book = self.book(books, token).ok_or(Violation::Token)?;
        if !self.is_answered(token, cache) {
            return Ok(None);
        }
        let line = self.answers.for_reading(u32::from(place(token)));
        // The line may have been fetched before its other words were there.
        invalidate(&line, cache);
        let words = core::array::from_fn(|index| line.at(answer::WORDS + index).get());
        // A peer that begins anew clears first this and then the words.
        full_fence(CLEAR_LOOK);
        let said = line.at(answer::STATUS).get();
        if said & 0xFFFF_0000 != self.peer_tag {
            self.free(books, place(token));
            return Err(Violation::Session);
        }
        if place(token) < memory {
            book.state = State::Held;
        } else {
            (book.state, book.next) = (State::Free, free);
            self.free = place(token);
        }
        let [status, ..] = said.to_le_bytes();
        Ok(Some(Answered { status, words }))
    }

    /// The bytes of an answer in memory that was taken up; a violation where they are not inside of
    /// it.
    pub(in crate::domain) fn answered_in(
        &self,
        call: u16,
        [offset, len, ..]: &[u32; 5],
        cache: &impl Cache,
    ) -> Result<Span, Violation> {
        let end = offset.checked_add(*len);
        let end =
            end.filter(|end| *end <= self.answered_in.size() && call < self.answered_in.count());
        let end = end.ok_or(Violation::Length)?;
        let (at, bytes) = self.answered_in.bytes(call, end);
        cache.invalidate(at, bytes);
        Ok(self.answered_in.for_reading(call, end))
    }

    /// Nobody wants the answer any more.
    pub(in crate::domain) fn forget(&mut self, books: &mut [Block], token: u32) {
        if let Some(book) = self.book(books, token) {
            book.state = State::Unwanted;
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
    pub(in crate::domain) fn has_answers(&self, books: &[Block], cache: &impl Cache) -> bool {
        self.has_answered(self.books(books), State::Lent, cache)
    }

    /// Whether a call of this state is answered.
    fn has_answered(&self, books: &[Block], state: State, cache: &impl Cache) -> bool {
        let mut books = books.iter();
        books.any(|book| book.state == state && self.is_answered(book.len, cache))
    }

    /// The books on all places.
    fn books<'a>(&self, books: &'a [Block]) -> &'a [Block] {
        let all = self.first..self.first + usize::from(self.places);
        books.get(all).unwrap_or_default()
    }

    /// Whether a message could go, a call be opened, and memory be had for one, as far as one can tell
    /// by looking.
    pub(super) fn room(&self, books: &[Block], cache: &impl Cache) -> [bool; 3] {
        let books = self.books(books);
        let memory = usize::from(self.pool.count());
        let (with, without) = books.split_at_checked(memory).unwrap_or_default();
        let comes = |books| self.has_answered(books, State::Unwanted, cache);
        let has_room = self.sent.wrapping_sub(self.peer_taken(cache)) < self.requests;
        [
            has_room,
            has_room && (self.free != NONE || comes(without)),
            self.free_memory != NONE || comes(with),
        ]
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
        if self.free == NONE || self.free_memory == NONE {
            self.arm_answers();
        }
    }

    /// Whether the peer has taken up and answered everything.
    pub(super) fn is_drained(&self, books: &[Block], cache: &impl Cache) -> bool {
        let mut books = self.books(books).iter();
        let is_open = |book: &Block| {
            let is_with_peer = matches!(book.state, State::Lent | State::Unwanted);
            is_with_peer && !self.is_answered(book.len, cache)
        };
        self.sent == self.peer_taken(cache) && !books.any(is_open)
    }

    /// Every place is in one of the lines of the free ones, or open, or held.
    pub(super) fn check(&self, books: &[Block]) -> bool {
        let books = self.books(books);
        let free = books.iter().filter(|book| book.state == State::Free);
        let lines = [self.free, self.free_memory].map(|first| line_len(books, first));
        matches!(lines, [Some(scalar), Some(memory)] if scalar + memory == free.count())
    }
}

/// The token of the next call of a place, which is noted; its number is never 0, so that no token is.
#[inline(always)]
fn next_token(book: &mut Block, call: u16) -> u32 {
    let number = (book.len >> 16).wrapping_add(1) & 0xFFFF;
    book.len = number.max(1) << 16 | u32::from(call);
    book.len
}

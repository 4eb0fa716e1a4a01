//! One side of a message channel: what it asks, what it is asked, and who waits.

use super::super::Violation;
use super::super::books::Block;
use super::super::config::{Channel, Pool, Role};
use super::super::layout::{LEND_MUT, MOVE, statistics};
use super::super::memory::Memory;
use super::super::outbox::Denied;
use super::super::plan::ChannelPlan;
use super::super::port::{Cache, clean};
use super::super::tally::Tally;
use super::answering::{Answering, Asked};
use super::calling::{Answered, Asking, Calling};
use super::{place, status};
use crate::waiters::{Waiters, Waits, Woken};
use crate::word::{BlockArea, Segment, Span, Words};

pub(in crate::domain) struct MessageEnd {
    pub(in crate::domain) id: u16,
    pub(in crate::domain) priority: u8,
    pub(in crate::domain) name: [u8; 16],
    pub(in crate::domain) uuid: u128,
    pub(in crate::domain) tally: Tally,
    pub(in crate::domain) books_end: usize,
    pub(in crate::domain) calling: Calling,
    pub(in crate::domain) answering: Answering,
    /// Memory of the peer's in users' hands: messages, and answers.
    pub(in crate::domain) views: u32,
    control: Words,
    /// Who waits, for each of [`Waits`].
    pub(in crate::domain) waiters: [Waiters; 3],
}

impl MessageEnd {
    /// The own side, with its books from `start` on; `None` where the memory or the books do not
    /// suffice.
    pub(in crate::domain) fn new(
        channel: &Channel,
        plan: &ChannelPlan,
        role: Role,
        memory: &Memory,
        (books, start): (&mut [Block], usize),
    ) -> Option<MessageEnd> {
        let (ours, theirs) = (plan.ours, plan.theirs);
        let control = memory.mine.words(ours.control)?;
        let peer_control = memory.peer.words(theirs.control)?;
        let (places, peer_places) = (channel.places(role), channel.places(role.peer()));
        let middle = start + usize::from(places);
        let end = middle + usize::from(peer_places);
        let books = books.get_mut(start..end)?;
        books.fill(Block::NEW);
        if !memory.is_zeroed {
            // Whoever had the memory before may have written all of it.
            let (own, foreign) = books.split_at_mut_checked(usize::from(places))?;
            let soil = |books: &mut [Block], pool: Pool| {
                let books = books.iter_mut().take(usize::from(pool.blocks));
                books.for_each(|book| book.soil(pool.size));
            };
            soil(own, channel.pool(role));
            soil(foreign, channel.pool(role.peer()));
        }
        let (pool, peer_pool) = (channel.pool(role), channel.pool(role.peer()));
        let area = |segment: &Segment, at: u32, stride: u32, pool: Pool| match pool.blocks {
            0 => Some(BlockArea::NONE),
            blocks => segment.blocks(at, stride, pool.size, blocks),
        };
        let (mine, peer) = match channel.replies {
            true => (memory.exchange?, memory.exchange?),
            false => (memory.mine, memory.peer),
        };
        let own_pool = area(&mine, ours.pool, ours.stride, pool)?;
        let foreign_pool = area(&peer, theirs.pool, theirs.stride, peer_pool)?;
        let (answered_in, answer_in) = match channel.replies {
            true => (own_pool, foreign_pool),
            false => (
                area(&memory.peer, theirs.answers, ours.stride, pool)?,
                area(&memory.mine, ours.answers, theirs.stride, peer_pool)?,
            ),
        };
        Some(MessageEnd {
            id: channel.id,
            priority: channel.priority,
            name: channel.name.0,
            uuid: channel.uuid,
            tally: Tally::new(memory, ours.statistics)?,
            books_end: end,
            calling: Calling {
                messages: memory.mine.lines(ours.ring, ours.ring_log2)?,
                answers: memory.peer.lines(theirs.returns, theirs.returns_log2)?,
                control,
                theirs: peer_control,
                requests: u32::from(channel.requests),
                places,
                pool: own_pool,
                answered_in,
                is_shared: channel.replies,
                is_soiled: !memory.is_zeroed,
                first: start,
                tag: 0,
                peer_tag: 0,
                sent: 0,
                taken: 0,
                free: 0,
                free_memory: 0,
                epoch: 0,
            },
            answering: Answering {
                messages: memory.peer.lines(theirs.ring, theirs.ring_log2)?,
                answers: memory.mine.lines(ours.returns, ours.returns_log2)?,
                control,
                theirs: peer_control,
                places: peer_places,
                pool: foreign_pool,
                answer_in,
                is_shared: channel.replies,
                is_soiled: !memory.is_zeroed,
                first: middle,
                tag: 0,
                peer_tag: 0,
                taken: 0,
                likely: 0,
                rung: 0,
            },
            views: 0,
            control,
            waiters: [const { Waiters::new() }; 3],
        })
    }

    /// Begins a session of this side's with one of the peer's. `forget_views`: what is held of an
    /// earlier one yields nothing any more.
    pub(in crate::domain) fn reset(
        &mut self,
        sessions: (u32, u32),
        books: &mut [Block],
        forget_views: bool,
        cache: &impl Cache,
    ) {
        if forget_views {
            self.views = 0;
        }
        let calls = self.calling.reset(sessions, books, cache);
        let answers = self.answering.reset(sessions, books, cache);
        self.tally.count_cleared(calls.wrapping_add(answers));
        self.tally.reset_rings();
        for count in [statistics::SENT, statistics::RECEIVED] {
            self.tally.line().at(count).set(0);
        }
        clean(&self.control, cache);
    }

    /// Clears what was written into blocks, so that the next peer does not find what was for another.
    /// No view of them is left with a peer that is trusted.
    #[cold]
    pub(in crate::domain) fn clear(&mut self, books: &mut [Block], cache: &impl Cache) {
        let calls = self.calling.clear(books, cache);
        let answers = self.answering.clear(books, cache);
        self.tally.count_cleared(calls.wrapping_add(answers));
    }

    /// See [`Calling::send`].
    #[inline]
    pub(in crate::domain) fn send(
        &mut self,
        books: &mut [Block],
        asking: &Asking<'_>,
        cache: &impl Cache,
    ) -> Result<(u32, bool), Denied> {
        let sent = self.calling.send(books, asking, cache)?;
        let line = self.tally.line();
        line.at(statistics::SENT).set(self.calling.sent);
        Ok(sent)
    }

    /// See [`Answering::receive`].
    #[inline]
    pub(in crate::domain) fn receive(
        &mut self,
        books: &mut [Block],
        cache: &impl Cache,
    ) -> Result<Option<(Asked, bool)>, Violation> {
        let received = self.answering.receive(books, cache);
        let line = self.tally.line();
        line.at(statistics::RECEIVED).set(self.answering.taken);
        if matches!(&received, Ok(Some((asked, _))) if asked.kind >= MOVE) {
            self.views = self.views.saturating_add(1);
        }
        received
    }

    /// The answer of an own call with memory, and its bytes where it is answered in memory.
    pub(in crate::domain) fn take_memory(
        &mut self,
        books: &mut [Block],
        (token, kind): (u32, u32),
        cache: &impl Cache,
    ) -> Result<Option<(Answered, Span)>, Violation> {
        let Some(answered) = self.calling.take(books, token, cache)? else {
            return Ok(None);
        };
        if kind != LEND_MUT || answered.status != status::DONE {
            return Ok(Some((answered, Span::EMPTY)));
        }
        let call = place(token);
        match self.calling.answered_in(call, &answered.words, cache) {
            Ok(bytes) => {
                self.views = self.views.saturating_add(1);
                Ok(Some((answered, bytes)))
            }
            Err(violation) => {
                self.calling.let_go(books, call, cache);
                Err(violation)
            }
        }
    }

    /// Whether nothing is under way in either direction.
    pub(in crate::domain) fn is_drained(&self, books: &[Block], cache: &impl Cache) -> bool {
        self.views == 0
            && self.calling.is_drained(books, cache)
            && self.answering.is_drained(books, cache)
    }

    /// Memory of the peer's is out of a user's hands, where `counts` says that it was counted.
    #[inline(always)]
    pub(in crate::domain) fn end_view(&mut self, counts: bool) {
        if counts {
            self.views = self.views.saturating_sub(1);
        }
    }

    /// Whether somebody waits for room, a call or memory.
    #[inline(always)]
    pub(in crate::domain) fn is_room_awaited(&self) -> bool {
        !self.waiters[Waits::Room as usize].is_empty()
    }

    /// What the peer is to ring at. The fence after it is the caller's.
    pub(in crate::domain) fn arm(&mut self, waits: Waits, cache: &impl Cache) {
        match waits {
            Waits::Incoming => self.answering.arm(),
            Waits::Answer => self.calling.arm_answers(),
            Waits::Room => self.calling.arm_room(cache),
        }
        clean(&self.control, cache);
    }

    /// Takes out who waits for this and may go on, or everybody; whether somebody is left. Who waits
    /// for an answer is woken by any.
    pub(in crate::domain) fn wakers(
        &mut self,
        waits: Waits,
        all: bool,
        books: &[Block],
        cache: &impl Cache,
        woken: &mut Woken,
    ) -> bool {
        if self.waiters[waits as usize].is_empty() {
            return false;
        }
        let room = match waits {
            Waits::Room => self.calling.room(books, cache),
            _ => [false; 3],
        };
        let is_there = all
            || match waits {
                Waits::Incoming => self.answering.has_message(cache),
                Waits::Answer => self.calling.has_answers(books, cache),
                Waits::Room => false,
            };
        let is_enough = |wanted: u32| {
            let mut room = room.iter().enumerate();
            is_there || room.any(|(which, is_there)| *is_there && wanted >> which & 1 != 0)
        };
        self.waiters[waits as usize].ready(is_enough, woken);
        !self.waiters[waits as usize].is_empty()
    }

    /// Whether the books agree with themselves.
    pub(in crate::domain) fn check(&self, books: &[Block]) -> bool {
        self.calling.check(books)
    }
}

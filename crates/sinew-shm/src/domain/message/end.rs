//! One side of a message channel: what it asks, what it is asked, and who waits.

use super::super::Violation;
use super::super::books::Block;
use super::super::config::Channel;
use super::super::layout::statistics;
use super::super::memory::Memory;
use super::super::outbox::Denied;
use super::super::plan::ChannelPlan;
use super::super::port::{Cache, clean};
use super::super::tally::Tally;
use super::answering::{Answering, Asked};
use super::calling::Calling;
use crate::waiters::{Waiters, Waits, Woken};
use crate::word::{PublishFence, Words};

pub(in crate::domain) struct MessageEnd {
    pub(in crate::domain) id: u16,
    pub(in crate::domain) priority: u8,
    pub(in crate::domain) name: [u8; 16],
    pub(in crate::domain) uuid: u128,
    pub(in crate::domain) tally: Tally,
    pub(in crate::domain) books_end: usize,
    pub(in crate::domain) calling: Calling,
    pub(in crate::domain) answering: Answering,
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
        memory: &Memory,
        (books, start): (&mut [Block], usize),
    ) -> Option<MessageEnd> {
        let (ours, theirs) = (plan.ours, plan.theirs);
        let control = memory.mine.words(ours.control)?;
        let peer_control = memory.peer.words(theirs.control)?;
        let middle = start + usize::from(channel.calls);
        let end = middle + usize::from(channel.calls);
        books.get_mut(start..end)?.fill(Block::NEW);
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
                calls: channel.calls,
                first: start,
                tag: 0,
                peer_tag: 0,
                sent: 0,
                taken: 0,
                free: 0,
                epoch: 0,
            },
            answering: Answering {
                messages: memory.peer.lines(theirs.ring, theirs.ring_log2)?,
                answers: memory.mine.lines(ours.returns, ours.returns_log2)?,
                control,
                theirs: peer_control,
                calls: channel.calls,
                first: middle,
                tag: 0,
                peer_tag: 0,
                taken: 0,
                rung: 0,
            },
            control,
            waiters: [const { Waiters::new() }; 3],
        })
    }

    /// Begins a session of this side's with one of the peer's.
    pub(in crate::domain) fn reset(
        &mut self,
        sessions: (u32, u32),
        books: &mut [Block],
        cache: &impl Cache,
    ) {
        self.calling.reset(sessions, books, cache);
        self.answering.reset(sessions, books, cache);
        self.tally.reset_rings();
        for count in [statistics::SENT, statistics::RECEIVED] {
            self.tally.line().at(count).set(0);
        }
        clean(&self.control, cache);
    }

    /// See [`Calling::send`].
    #[inline]
    pub(in crate::domain) fn send(
        &mut self,
        books: &mut [Block],
        message: (u32, &[u32; 5]),
        asks: bool,
        fence: PublishFence,
        cache: &impl Cache,
    ) -> Result<(u32, bool), Denied> {
        let sent = self.calling.send(books, message, asks, fence, cache)?;
        let line = self.tally.line();
        line.at(statistics::SENT).set(self.calling.sent);
        Ok(sent)
    }

    /// See [`Answering::receive`].
    #[inline]
    pub(in crate::domain) fn receive(
        &mut self,
        books: &mut [Block],
        fence: PublishFence,
        cache: &impl Cache,
    ) -> Result<Option<(Asked, bool)>, Violation> {
        let received = self.answering.receive(books, fence, cache);
        let line = self.tally.line();
        line.at(statistics::RECEIVED).set(self.answering.taken);
        received
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
        let ready = match waits {
            _ if all => u32::MAX,
            Waits::Incoming if self.answering.has_message(cache) => u32::MAX,
            Waits::Answer if self.calling.has_answers(books, cache) => u32::MAX,
            Waits::Incoming | Waits::Answer => 0,
            Waits::Room => self.calling.room(books, cache),
        };
        self.waiters[waits as usize].ready(ready, woken);
        !self.waiters[waits as usize].is_empty()
    }

    /// Whether the books agree with themselves.
    pub(in crate::domain) fn check(&self, books: &[Block]) -> bool {
        self.calling.check(books)
    }
}

//! What the handles of message channels ask of their end.

use core::task::Waker;

use super::super::super::layout::MOVE;
use super::super::super::message::{Answered, Asked, Asking, CallError, MessageEnd, place};
use super::super::super::port::Doorbell;
use super::super::super::{Lost, Refused};
use super::super::End;
use super::super::platform::Platform;
use super::Slow;
use super::waiting::{Armed, tell};
use crate::waiters::{Waits, wake};
use crate::word::{SLEEP_FENCE, Span, full_fence};

impl<P: Platform> End<P> {
    /// The slot of the first message channel that is the one, and the pairing of a handle made now.
    pub(in crate::domain) fn find_messages(
        &self,
        is_it: impl Fn(&MessageEnd) -> bool,
    ) -> Option<(u16, u32)> {
        const {
            assert!(
                P::USES.messages,
                "Platform::USES says that nobody has message channels"
            )
        };
        self.locate(|slot| slot.messages().is_some_and(&is_it))
    }

    /// Sends a message; the token of the call where an answer is asked for. What is refused has not
    /// moved.
    #[inline]
    pub(in crate::domain) fn send_message(
        &self,
        slot: u16,
        pairing: u32,
        asking: &Asking<'_>,
    ) -> Result<u32, Refused> {
        let sent = self.locked(|inner| {
            if inner.sendable != pairing {
                return Err(Slow::Look);
            }
            let (channel, books) = inner.messages(usize::from(slot)).ok_or(Slow::Look)?;
            let (token, ring) = channel.send(books, asking, &self.cache)?;
            Ok((token, ring && channel.tally.count_ring()))
        });
        match sent {
            Ok((token, ring)) => {
                if ring {
                    self.doorbell.ring();
                }
                Ok(token)
            }
            Err(slow) => Err(self.refused(slot, pairing, slow)),
        }
    }

    /// Takes a message up.
    #[inline]
    pub(in crate::domain) fn receive_message(
        &self,
        slot: u16,
        pairing: u32,
    ) -> Result<Option<Asked>, Lost> {
        let received = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Nothing);
            }
            let (channel, books) = inner.messages(usize::from(slot)).ok_or(Slow::Look)?;
            let asked = channel.receive(books, &self.cache);
            match asked.map_err(Slow::Violation)? {
                Some((asked, ring)) => Ok((Some(asked), ring && channel.tally.count_ring())),
                None => inner.nothing(&self.cache).map(|()| (None, false)),
            }
        });
        match received {
            Ok((asked, ring)) => {
                if ring {
                    self.doorbell.ring();
                }
                Ok(asked)
            }
            Err(slow) => self.slow(slot, pairing, slow).map(|()| None),
        }
    }

    /// Answers a call of the peer's; `false` where it is none any more.
    #[inline]
    pub(in crate::domain) fn answer_message(
        &self,
        slot: u16,
        pairing: u32,
        (token, kind, is_writer): (u32, u32, bool),
        answer: (u8, &[u32]),
    ) -> bool {
        let ring = self.locked(|inner| {
            let is_live = inner.live == pairing;
            let can_answer = is_live && inner.rest.is_none();
            let (channel, books) = inner.messages(usize::from(slot))?;
            // Of a trusted peer the views are counted until they are gone.
            channel.end_view(kind >= MOVE && (is_live || self.is_trusted));
            if is_writer {
                let (answering, cache) = (&channel.answering, &self.cache);
                let cleared = answering.end_writing(books, place(token), is_live, cache);
                channel.tally.count_cleared(cleared);
            }
            if !can_answer {
                return None;
            }
            let ring = channel
                .answering
                .answer(books, (token, kind), answer, &self.cache)?;
            Some(ring && channel.tally.count_ring())
        });
        if ring == Some(true) {
            self.doorbell.ring();
        }
        ring.is_some()
    }

    /// The answer of an own call, which is then over.
    #[inline]
    pub(in crate::domain) fn take_message_answer(
        &self,
        slot: u16,
        pairing: u32,
        token: u32,
    ) -> Result<Option<Answered>, CallError> {
        if token == 0 {
            return Ok(None);
        }
        let taken = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            let (channel, books) = inner.messages(usize::from(slot)).ok_or(Slow::Look)?;
            let answered = channel.calling.take(books, token, &self.cache);
            let waits = P::USES.wakers && channel.is_room_awaited();
            match answered.map_err(Slow::Violation)? {
                None => inner.nothing(&self.cache).map(|()| (None, waits)),
                answered => Ok((answered, waits)),
            }
        });
        match taken {
            Ok((answered, waits)) => {
                if waits && answered.is_some() {
                    self.wake_for_call(slot);
                }
                Ok(answered)
            }
            Err(slow) => self.unanswered(slot, pairing, slow),
        }
    }

    /// No answer yet, or never one: what breaks the protocol is none, and there comes no other.
    #[cold]
    fn unanswered<T>(&self, slot: u16, pairing: u32, slow: Slow) -> Result<Option<T>, CallError> {
        let is_over = matches!(slow, Slow::Violation(_));
        self.slow(slot, pairing, slow)?;
        match is_over {
            true => {
                self.wake_for_call(slot);
                Err(CallError::Dropped)
            }
            false => Ok(None),
        }
    }

    /// The answer of an own call with memory, and its bytes where it is answered in memory. The place
    /// is held then; after another error than [`CallError::Lost`] it is not the caller's any more.
    #[inline]
    pub(in crate::domain) fn take_memory_answer(
        &self,
        slot: u16,
        pairing: u32,
        call: (u32, u32),
    ) -> Result<Option<(Answered, Span)>, CallError> {
        let taken = self.locked(|inner| {
            if inner.live != pairing {
                return Err(Slow::Look);
            }
            let (channel, books) = inner.messages(usize::from(slot)).ok_or(Slow::Look)?;
            let answered = channel.take_memory(books, call, &self.cache);
            match answered.map_err(Slow::Violation)? {
                None => inner.nothing(&self.cache).map(|()| None),
                answered => Ok(answered),
            }
        });
        taken.or_else(|slow| self.unanswered(slot, pairing, slow))
    }

    /// Takes memory for a message: its place, and the bytes.
    #[inline]
    pub(in crate::domain) fn hold_memory(
        &self,
        slot: u16,
        pairing: u32,
        len: usize,
    ) -> Result<(u16, Span), Refused> {
        let held = self.locked(|inner| {
            if inner.sendable != pairing {
                return Err(Slow::Look);
            }
            let (channel, books) = inner.messages(usize::from(slot)).ok_or(Slow::Look)?;
            Ok(channel.calling.hold(books, len, &self.cache)?)
        });
        held.map_err(|slow| self.refused(slot, pairing, slow))
    }

    /// Memory that its holder does not want any more, and with `view` an answer that he has read. Who
    /// waits for memory is woken.
    pub(in crate::domain) fn free_memory(&self, slot: u16, pairing: u32, call: u16, view: bool) {
        let waits = self.locked(|inner| {
            let is_live = inner.live == pairing;
            let Some((channel, books)) = inner.messages(usize::from(slot)) else {
                return false;
            };
            let cleared = channel.calling.let_go(books, call, &self.cache);
            channel.tally.count_cleared(cleared);
            channel.end_view(view && (is_live || self.is_trusted));
            P::USES.wakers && channel.is_room_awaited()
        });
        if waits {
            self.wake_for_call(slot);
        }
    }

    /// Memory that its holder writes anew, and does not read the answer of any more.
    pub(in crate::domain) fn reuse_memory(
        &self,
        slot: u16,
        pairing: u32,
        call: u16,
        view: bool,
    ) -> Span {
        self.locked(|inner| {
            let is_live = inner.live == pairing;
            let Some((channel, _)) = inner.messages(usize::from(slot)) else {
                return Span::EMPTY;
            };
            channel.end_view(view && (is_live || self.is_trusted));
            channel.calling.held(call)
        })
    }

    /// Where the first `len` bytes of the answer to a call of the peer's with memory are to be written, by
    /// the one who may be its writer already, and how many bytes the block has; `None` where there is
    /// no such call any more, or another writes there still.
    pub(in crate::domain) fn answer_memory(
        &self,
        slot: u16,
        pairing: u32,
        writer: (u32, bool),
        len: usize,
    ) -> Option<(Span, u32)> {
        self.locked(|inner| {
            if inner.live != pairing {
                return None;
            }
            let (channel, books) = inner.messages(usize::from(slot))?;
            let place = channel.answering.answer_in(books, writer, len)?;
            Some((place, channel.answering.pool.size()))
        })
    }

    /// Bytes of a block for a message: of the own ones, and of the peer's.
    pub(in crate::domain) fn memory_sizes(&self, slot: u16) -> (u32, u32) {
        self.locked(|inner| match inner.messages(usize::from(slot)) {
            Some((channel, _)) => (channel.calling.pool.size(), channel.answering.pool.size()),
            None => (0, 0),
        })
    }

    /// The place of a call is free again: who waits for one goes on.
    #[cold]
    fn wake_for_call(&self, slot: u16) {
        wake(self.locked(|inner| self.ready(inner, usize::from(slot), Waits::Room, false)));
    }

    /// Nobody wants the answer of a call any more. If it is there, the place is free: who waits for one
    /// goes on.
    pub(in crate::domain) fn forget_call(&self, slot: u16, pairing: u32, token: u32) {
        wake(self.locked(|inner| {
            if inner.live == pairing
                && let Some((channel, books)) = inner.messages(usize::from(slot))
            {
                channel.calling.forget(books, token);
                return self.ready(inner, usize::from(slot), Waits::Room, false);
            }
            Default::default()
        }));
    }

    /// Wakes `waker` once when what is waited for is there, at once where it is or the pairing is over.
    /// `which`: the call whose answer it is, by its token; for room, 0 to 2: for a message,
    /// for a call, for memory.
    pub(in crate::domain) fn arm_messages(
        &self,
        slot: u16,
        pairing: u32,
        (waits, which): (Waits, u32),
        waker: &Waker,
    ) {
        const {
            assert!(
                P::USES.wakers,
                "Platform::USES says that nobody arms wakers"
            )
        };
        let mut mine = Some(waker.clone());
        let armed: Armed = self.locked(|inner| {
            let is_up = inner.live != 0;
            let is_over = inner.is_over(pairing, &self.cache);
            let found = inner.messages(usize::from(slot)).filter(|_| !is_over);
            let Some((channel, books)) = found else {
                return (None, Default::default(), true);
            };
            // What a waker waits for room for, in bits.
            let room = if waits == Waits::Room { 1 << which } else { 0 };
            let both = core::ops::BitOr::bitor;
            let evicted = channel.waiters[waits as usize].add(&mut mine, room, both);
            // While the link is down nobody is ready: who waits is woken when it comes up.
            if waits != Waits::Answer || !is_up {
                let woken = self.ready(inner, usize::from(slot), waits, false);
                return (evicted, woken, false);
            }
            // Another call's answer is no reason to be woken at once, again and again.
            channel.arm(waits, &self.cache);
            full_fence(SLEEP_FENCE);
            let is_there = channel.calling.has_answer(books, which, &self.cache);
            (evicted, Default::default(), is_there)
        });
        tell(armed, waker);
    }
}

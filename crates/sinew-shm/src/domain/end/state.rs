//! What the lock of an end guards: its session and its channels.

use super::super::books::Block;
use super::super::config::{Config, Role};
use super::super::directory;
use super::super::identity::Identity;
use super::super::lock::LockEnd;
use super::super::memory::Memory;
use super::super::message::MessageEnd;
use super::super::plan::Known;
use super::super::session::{Seen, Session, state};
use super::super::state::StateEnd;
use super::super::{Lost, Violation};
use super::channel::{ChannelEnd, Room, Slot};
use super::opening::{Options, Status};
use super::platform::Platform;
use super::steps::Slow;
use crate::word::{CLEAR_FENCE, JUDGE_FENCE, full_fence};

/// What every call looks at comes first: there instructions reach it that are short, and few lines of a
/// cache hold it.
#[repr(C)]
pub(super) struct Inner<P: Platform> {
    pub(super) session: Session,
    /// The pairing that is up, or 0.
    pub(super) live: u32,
    /// The pairing that is up and in which packets may be sent, or 0.
    pub(super) sendable: u32,
    /// The pairing that is up, or the next one.
    pub(super) pairing: u32,
    /// The peer has ended, and not all that it sent is read: the pairing goes on for readers only,
    /// and then ends so.
    pub(super) rest: Option<Lost>,
    /// How the last pairing ended.
    pub(super) lost: Lost,
    pub(super) is_draining: bool,
    pub(super) status: Status,
    /// The time of the last own beat, and of the last change of the peer's.
    pub(super) beat: Option<u32>,
    pub(super) peer_beat: (u32, u32),
    pub(super) slots: P::Slots,
    pub(super) blocks: P::Blocks,
    pub(super) options: Options,
    pub(super) config: Config<'static>,
    pub(super) role: Role,
    pub(super) identity: Identity,
    pub(super) memory: Memory,
}

/// What is to be done after the lock: a set of its constants.
#[derive(Clone, Copy)]
pub(super) struct After(u8);

impl After {
    pub(super) const NOTHING: After = After(0);
    /// Ring the peer.
    pub(super) const RING: After = After(1);
    /// Wake everybody.
    pub(super) const WAKE: After = After(2);
    pub(super) const BOTH: After = After(3);
    /// Look again: the peer was changing its session at this moment.
    pub(super) const UNSURE: After = After(4);

    pub(super) fn add(&mut self, other: After) {
        self.0 |= other.0;
    }

    /// [`After::RING`], or nothing.
    pub(super) fn ring_if(ring: bool) -> After {
        After(u8::from(ring))
    }

    pub(super) fn has(self, what: After) -> bool {
        self.0 & what.0 != 0
    }
}

impl<P: Platform> Inner<P> {
    /// See [`Ways::KNOWN`](super::super::port::Ways::KNOWN).
    pub(super) const KNOWN: Option<Known> = <P as super::super::port::Ways>::KNOWN;

    /// A channel, and the books on all blocks.
    #[inline(always)]
    pub(super) fn channel(&mut self, slot: usize) -> Option<(&mut ChannelEnd, &mut [Block])> {
        // What the compiler knows need not be looked at.
        let slot = if Self::KNOWN.is_some() { 0 } else { slot };
        match &mut self.slots.as_mut().get_mut(slot)?.0 {
            Room::Queue(channel) => Some((channel, self.blocks.as_mut())),
            // SAFETY: by its plan an end has one channel, a queue; `place_channels` has put it into the
            // first slot before anything asks for it, and nothing takes it out.
            _ if Self::KNOWN.is_some() => unsafe { core::hint::unreachable_unchecked() },
            _ => None,
        }
    }

    /// A message channel, and the books on all blocks and calls.
    #[inline(always)]
    pub(super) fn messages(&mut self, slot: usize) -> Option<(&mut MessageEnd, &mut [Block])> {
        match &mut self.slots.as_mut().get_mut(slot)?.0 {
            Room::Messages(channel) => Some((channel, self.blocks.as_mut())),
            _ => None,
        }
    }

    /// A lock channel.
    #[inline(always)]
    pub(super) fn lock(&mut self, slot: usize) -> Option<&mut LockEnd> {
        match &mut self.slots.as_mut().get_mut(slot)?.0 {
            Room::Lock(channel) => Some(channel),
            _ => None,
        }
    }

    /// A state channel.
    #[inline(always)]
    pub(super) fn state(&mut self, slot: usize) -> Option<&mut StateEnd> {
        match &mut self.slots.as_mut().get_mut(slot)?.0 {
            Room::State(channel) => Some(channel),
            _ => None,
        }
    }

    /// Whether somebody waits on a channel.
    pub(super) fn is_awaited(&mut self, slot: usize) -> bool {
        let waiters = match self.slots.as_mut().get(slot).map(|slot| &slot.0) {
            Some(Room::Queue(channel)) => &channel.waiters,
            Some(Room::Messages(channel)) => &channel.waiters,
            Some(Room::Lock(channel)) => return !channel.waiters.is_empty(),
            // Nobody waits for a value.
            Some(Room::State(_) | Room::Empty) | None => return false,
        };
        waiters.iter().any(|waiters| !waiters.is_empty())
    }

    fn identity(&self) -> &Identity {
        match &P::PLAN {
            Some(plan) => &plan.identity,
            None => &self.identity,
        }
    }

    /// Changes the status, and notes who may go on.
    pub(super) fn set(&mut self, status: Status) {
        self.status = status;
        self.live = match status {
            Status::Up => self.pairing,
            _ => 0,
        };
        let is_over = self.is_draining || self.rest.is_some();
        self.sendable = if is_over { 0 } else { self.live };
    }

    /// Whether a handle's pairing is the present or the next one.
    pub(super) fn check(&self, pairing: u32) -> Result<(), Lost> {
        // What closed the link, or stopped it, ended the last pairing as well.
        let is_stopped = matches!(self.status, Status::Closed | Status::Fault(_));
        match pairing == self.pairing && !is_stopped {
            true => Ok(()),
            false => Err(self.lost),
        }
    }

    pub(super) fn look(&mut self, now: u32, is_trusted: bool, cache: &P::Cache) -> After {
        if !matches!(self.status, Status::Closed) {
            let due = |beat: u32| now.wrapping_sub(beat) >= self.options.heartbeat;
            if self.beat.is_none_or(due) {
                self.session.beat(cache);
                self.beat = Some(now);
            }
        }
        let mut after = self.step(is_trusted, cache);
        if self.status == Status::Up && self.options.silence > 0 {
            let count = self.session.peer_beat(cache);
            if count != self.peer_beat.0 || after.has(After::WAKE) {
                self.peer_beat = (count, now);
            } else if now.wrapping_sub(self.peer_beat.1) >= self.options.silence {
                after.add(self.give_up(Lost::Closed, is_trusted, cache));
            }
        }
        after
    }

    /// One step of the session.
    #[inline(never)]
    pub(super) fn step(&mut self, is_trusted: bool, cache: &P::Cache) -> After {
        let mut after = After::NOTHING;
        if matches!(self.status, Status::Closed | Status::Fault(_)) {
            return after;
        }
        if let Some(lost) = self.rest
            && self.session.is_same_pairing(cache)
        {
            return match self.has_rest(cache) {
                true => after,
                false => self.give_up(lost, is_trusted, cache),
            };
        }
        let identity = *self.identity();
        // A new peer is acknowledged, and may then be found to have done the same already.
        for _ in 0..2 {
            let name = || match P::PLAN {
                Some(_) => None,
                None => {
                    let (config, peer) = (&self.config, self.role.peer());
                    directory::differs(config, peer, &self.memory.peer, cache)
                }
            };
            let seen = self.session.look(&identity, name, cache);
            let was_up = self.status == Status::Up;
            match seen {
                Seen::Later => {
                    after.add(After::UNSURE);
                    return after;
                }
                Seen::Up { draining } => {
                    self.is_draining |= draining;
                    after.add(self.come_up(is_trusted, cache));
                    return after;
                }
                Seen::New(found) => {
                    if was_up {
                        self.down(Lost::Restarted);
                        after.add(After::WAKE);
                    }
                    self.set(Status::Waiting);
                    if is_trusted && self.holds() {
                        // Somebody reads a block of the peer's last life.
                        return after;
                    }
                    self.reset((is_trusted, true), found, cache);
                    self.session.acknowledge(found, cache);
                    after.add(After::RING);
                }
                Seen::Waiting if !was_up => return after,
                // It may have come up, sent and gone between two looks of this side.
                Seen::Closed { met } if was_up || (met && self.has_rest(cache)) => {
                    after.add(self.come_up(is_trusted, cache));
                    after.add(self.end(Lost::Closed, is_trusted, cache));
                    return after;
                }
                other => {
                    if was_up {
                        let lost = match other {
                            Seen::Fault => Lost::Fault,
                            Seen::Waiting | Seen::Absent => Lost::Restarted,
                            _ => Lost::Closed,
                        };
                        after.add(self.give_up(lost, is_trusted, cache));
                    }
                    if let Seen::Refused(difference) = other {
                        self.set(Status::Refused(difference));
                    } else {
                        self.set(Status::Waiting);
                    }
                    return after;
                }
            }
        }
        after
    }

    /// The pairing is up, and this side knows it from now on.
    fn come_up(&mut self, is_trusted: bool, cache: &P::Cache) -> After {
        let mut after = After::NOTHING;
        if self.status != Status::Up {
            after.add(After::WAKE);
            if is_trusted {
                self.clear(cache);
            }
            if P::USES.locks {
                after.add(After::ring_if(self.give_back_locks(cache)));
            }
        }
        self.set(Status::Up);
        after
    }

    /// The peer knows this side's session: locks that an earlier one had are free. Whether there is one.
    fn give_back_locks(&mut self, cache: &P::Cache) -> bool {
        let mut any = false;
        for slot in 0..self.slots.as_mut().len() {
            if let Some(channel) = self.lock(slot) {
                any |= channel.come_up(cache);
            }
        }
        any
    }

    /// Ends the pairing, if there is one, in a session of which the peer knows nothing: it may live
    /// on, or come back, and must not take this for the old one.
    #[inline(never)]
    pub(super) fn give_up(&mut self, lost: Lost, is_trusted: bool, cache: &P::Cache) -> After {
        if self.status != Status::Up {
            return After::NOTHING;
        }
        self.down(lost);
        self.reopen(is_trusted, cache);
        After::BOTH
    }

    /// The peer has ended. What it sent before can still be read; then the pairing ends.
    pub(super) fn end(&mut self, lost: Lost, is_trusted: bool, cache: &P::Cache) -> After {
        if self.status != Status::Up || !self.has_rest(cache) {
            return self.give_up(lost, is_trusted, cache);
        }
        self.rest = Some(lost);
        self.session.ended();
        self.set(Status::Up);
        After::WAKE
    }

    /// Whether a channel has packets that nobody has received or that are being read, or answers.
    fn has_rest(&mut self, cache: &P::Cache) -> bool {
        (0..self.slots.as_mut().len()).any(|slot| {
            if P::USES.messages
                && let Some((channel, books)) = self.messages(slot)
            {
                return channel.answering.has_message(cache)
                    || channel.views > 0
                    || channel.calling.has_answers(books, cache);
            }
            // What was taken up and not copied out yet is not read either.
            self.channel(slot).is_some_and(|(channel, _)| {
                channel.inbox.has_news::<P>(1, cache)
                    || channel.inbox.held() > 0
                    || (P::USES.replies
                        && channel.has_replies
                        && channel.outbox.has_answer::<P>(cache))
            })
        })
    }

    /// Whether the peer is still there, as far as its session words tell.
    #[inline(always)]
    pub(super) fn is_still_up(&self, cache: &P::Cache) -> bool {
        self.session.is_still_up(cache)
    }

    /// What to do where nothing was found: look again later, if the peer is still there.
    #[cfg_attr(not(target_pointer_width = "32"), inline(always))]
    #[cfg_attr(target_pointer_width = "32", inline(never))] // there code is scarcer than time
    pub(super) fn nothing(&self, cache: &P::Cache) -> Result<(), Slow> {
        match self.is_still_up(cache) {
            true => Ok(()),
            false if self.rest.is_none() => Err(Slow::Nothing),
            false => Err(Slow::Look),
        }
    }

    /// Whether nobody needs to wait in a pairing any more: it is over, or the peer is about to end it.
    pub(super) fn is_over(&self, pairing: u32, cache: &P::Cache) -> bool {
        self.check(pairing).is_err() || (self.live != 0 && !self.is_still_up(cache))
    }

    #[inline(never)]
    pub(super) fn down(&mut self, lost: Lost) {
        // 0 is no pairing.
        self.pairing = self.pairing.wrapping_add(1).max(1);
        self.lost = lost;
        self.rest = None;
        self.is_draining = false;
        self.set(Status::Waiting);
    }

    /// Takes a new session.
    pub(super) fn reopen(&mut self, is_trusted: bool, cache: &P::Cache) {
        self.session.open(cache);
        // Marks of blocks that a user reads stay.
        let forget_held = !is_trusted || !self.holds();
        self.reset((is_trusted, forget_held), 0, cache);
        self.session.ready(self.identity(), cache);
        self.set(Status::Waiting);
    }

    /// Whether a block of the peer's is in a user's hands.
    pub(super) fn holds(&mut self) -> bool {
        (0..self.slots.as_mut().len()).any(|slot| {
            if P::USES.messages
                && let Some((channel, _)) = self.messages(slot)
            {
                return channel.views > 0;
            }
            let queue = self.channel(slot);
            queue.is_some_and(|(channel, _)| channel.inbox.held() > 0)
        })
    }

    fn reset(
        &mut self,
        (is_trusted, forget_held): (bool, bool),
        peer_session: u32,
        cache: &P::Cache,
    ) {
        let me = self.session.me();
        for slot in 0..self.slots.as_mut().len() {
            if P::USES.messages
                && let Some((channel, books)) = self.messages(slot)
            {
                channel.reset((me, peer_session), books, forget_held, cache);
            }
            if P::USES.locks
                && let Some(channel) = self.lock(slot)
            {
                channel.reset(peer_session, cache);
            }
            if P::USES.states
                && let Some(channel) = self.state(slot)
            {
                channel.reset(cache);
            }
            let Some((channel, blocks)) = self.channel(slot) else {
                continue;
            };
            channel.tally.reset_rings();
            channel.outbox.reset::<P>(me, blocks, cache);
            channel
                .inbox
                .reset::<P>(peer_session, blocks, forget_held, cache);
            channel.inbox.clean_control(cache);
        }
        // Of a trusted peer views may be left, until it has acknowledged this session.
        if !is_trusted {
            self.clear(cache);
        }
    }

    /// Clears what was written into own blocks in an earlier pairing.
    #[inline(never)]
    fn clear(&mut self, cache: &P::Cache) {
        // Whoever copies from there looks at the session afterwards.
        full_fence(CLEAR_FENCE);
        for slot in 0..self.slots.as_mut().len() {
            if P::USES.messages
                && let Some((channel, books)) = self.messages(slot)
            {
                channel.clear(books, cache);
            }
            if let Some((channel, books)) = self.channel(slot) {
                let cleared = channel.outbox.clear(books, cache);
                channel.tally.count_cleared(cleared);
            }
        }
    }

    /// Looks at the peer; whether what was found wrong, if anything, is a restart of it. If it is none, it
    /// is judged.
    pub(super) fn judge(
        &mut self,
        (slot, pairing): (u16, u32),
        violation: Option<Violation>,
        is_trusted: bool,
        cache: &P::Cache,
    ) -> After {
        if violation.is_some() {
            full_fence(JUDGE_FENCE);
        }
        let mut after = self.step(is_trusted, cache);
        if let Some(violation) = violation
            && self.live == pairing
            && !after.has(After::UNSURE)
        {
            after.add(self.violated(slot, violation, cache));
        }
        after
    }

    /// Counts a violation, and stops where that is the policy: then everybody is to be told.
    pub(super) fn violated(&mut self, slot: u16, violation: Violation, cache: &P::Cache) -> After {
        let tally = match Self::KNOWN {
            Some(known) => {
                let channel = self.channel(usize::from(slot));
                channel.map(|(channel, _)| (known.id, &mut channel.tally))
            }
            None => {
                let slot = self.slots.as_mut().get_mut(usize::from(slot));
                slot.and_then(Slot::tally)
            }
        };
        let id = tally.map_or(0, |(id, tally)| {
            tally.count_violation();
            id
        });
        if !self.options.faults {
            return After::NOTHING;
        }
        self.down(Lost::Fault);
        self.status = Status::Fault(violation);
        let code = violation as u32 | u32::from(id) << 16;
        self.session.fault(code, cache);
        After::BOTH
    }

    pub(super) fn is_drained(&mut self, is_trusted: bool, cache: &P::Cache) -> (bool, After) {
        let mut after = self.step(is_trusted, cache);
        let mut is_drained = true;
        for slot in 0..self.slots.as_mut().len() {
            let (is_up, pairing) = (self.status == Status::Up, self.pairing);
            let ring = is_up && self.flush_packets(slot as u16, cache);
            after.add(After::ring_if(ring));
            if P::USES.messages
                && let Some((channel, books)) = self.messages(slot)
            {
                is_drained &= !is_up || channel.is_drained(books, cache);
            }
            if P::USES.locks
                && let Some(channel) = self.lock(slot)
            {
                is_drained &= !channel.is_held();
            }
            let Some((channel, blocks)) = self.channel(slot) else {
                continue;
            };
            // The rings of a peer that is not up may be of another life of either side.
            let mut violation = None;
            let mut more = is_up;
            while more {
                // As often as blocks are lent, at most.
                match channel.outbox.reclaim::<P>(blocks, true, cache) {
                    Ok(reclaimed) => more = reclaimed,
                    Err(found) => (more, violation) = (false, Some(found)),
                }
            }
            is_drained &= !channel.outbox.lends(blocks)
                && channel.inbox.held() == 0
                && !(is_up && channel.inbox.has_news::<P>(1, cache));
            if violation.is_some() {
                after.add(self.judge((slot as u16, pairing), violation, is_trusted, cache));
            }
        }
        (is_drained, after)
    }

    pub(super) fn close(&mut self, cache: &P::Cache) -> After {
        if self.status == Status::Closed {
            return After::NOTHING;
        }
        for slot in 0..self.slots.as_mut().len() {
            self.flush_packets(slot as u16, cache);
        }
        self.down(Lost::Closed);
        self.status = Status::Closed;
        self.session.set_state(state::DOWN, cache);
        After::BOTH
    }

    /// Shows the peer what was published on a channel; whether it is to be rung.
    #[inline(always)]
    pub(super) fn flush_packets(&mut self, slot: u16, cache: &P::Cache) -> bool {
        let Some((channel, _)) = self.channel(usize::from(slot)) else {
            return false;
        };
        channel.outbox.flush::<P>(cache) && channel.tally.count_ring()
    }

    /// Whether the peer is to be rung for what went back on a channel.
    pub(super) fn flush_returns(&mut self, slot: u16, cache: &P::Cache) -> bool {
        let Some((channel, _)) = self.channel(usize::from(slot)) else {
            return false;
        };
        channel.inbox.flush(cache) && channel.tally.count_ring()
    }
}

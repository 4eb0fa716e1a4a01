//! One side of a channel: both halves, and who waits.

use super::super::books::Block;
use super::super::config::{Channel, Role};
use super::super::inbox::Inbox;
use super::super::lane::Lane;
use super::super::lock::LockEnd;
use super::super::memory::Memory;
use super::super::message::MessageEnd;
use super::super::outbox::Outbox;
use super::super::plan::ChannelPlan;
use super::super::port::Ways;
use super::super::state::StateEnd;
use super::super::tally::Tally;
use crate::waiters::{Waiters, Waits, Woken};
use crate::word::Segment;

/// Room for one channel.
pub struct Slot(pub(super) Room);

impl Slot {
    /// Nothing yet.
    pub const EMPTY: Slot = Slot(Room::Empty);

    /// The channel, where it is a queue.
    #[inline(always)]
    pub(super) fn queue(&self) -> Option<&ChannelEnd> {
        match &self.0 {
            Room::Queue(channel) => Some(channel),
            _ => None,
        }
    }

    /// The channel, where it is one of values.
    pub(super) fn state(&self) -> Option<&StateEnd> {
        match &self.0 {
            Room::State(channel) => Some(channel),
            _ => None,
        }
    }

    /// The channel, where it is a lock.
    pub(super) fn lock(&self) -> Option<&LockEnd> {
        match &self.0 {
            Room::Lock(channel) => Some(channel),
            _ => None,
        }
    }

    /// The channel, where it is one of messages.
    pub(super) fn messages(&self) -> Option<&MessageEnd> {
        match &self.0 {
            Room::Messages(channel) => Some(channel),
            _ => None,
        }
    }

    /// The channel's id, and what is counted of it.
    pub(super) fn tally(&mut self) -> Option<(u16, &mut Tally)> {
        match &mut self.0 {
            Room::Queue(channel) => Some((channel.id, &mut channel.tally)),
            Room::Messages(channel) => Some((channel.id, &mut channel.tally)),
            Room::Lock(channel) => Some((channel.id, &mut channel.tally)),
            Room::Empty | Room::State(_) => None,
        }
    }

    /// The channel's id, where packets or messages of the peer's wait.
    pub(super) fn with_news<W: Ways>(&self, cache: &W::Cache) -> Option<u16> {
        match &self.0 {
            Room::Queue(channel) if channel.inbox.has_news::<W>(1, cache) => Some(channel.id),
            Room::Messages(channel) if W::USES.messages && channel.answering.has_message(cache) => {
                Some(channel.id)
            }
            _ => None,
        }
    }

    /// How urgent the channel is; `None` where there is none.
    pub(super) fn priority(&self) -> Option<u8> {
        match &self.0 {
            Room::Empty => None,
            Room::Queue(channel) => Some(channel.priority),
            Room::State(channel) => Some(channel.priority),
            Room::Messages(channel) => Some(channel.priority),
            Room::Lock(channel) => Some(channel.priority),
        }
    }
}

/// What a slot has room for.
pub(super) enum Room {
    Empty,
    Queue(ChannelEnd),
    State(StateEnd),
    Lock(LockEnd),
    Messages(MessageEnd),
}

/// One side of a channel.
pub(super) struct ChannelEnd {
    pub(super) id: u16,
    pub(super) priority: u8,
    pub(super) has_replies: bool,
    pub(super) outbox: Outbox,
    pub(super) inbox: Inbox,
    /// Where the books of this channel end.
    pub(super) books_end: usize,
    pub(super) tally: Tally,
    /// Who waits, for each of [`Waits`].
    pub(super) waiters: [Waiters; 3],
    /// Packets that whoever waits for packets waits for.
    pub(super) wanted: u32,
}

impl ChannelEnd {
    /// The own side of a channel, with its books from `start` on; `None` where the memory or the
    /// books do not suffice.
    #[inline(always)]
    pub(super) fn new<W: Ways>(
        channel: &Channel,
        plan: &ChannelPlan,
        role: Role,
        memory: &Memory,
        (blocks, start): (&mut [Block], usize),
    ) -> Option<ChannelEnd> {
        let (ours, theirs) = (plan.ours, plan.theirs);
        let (pool, peer_pool) = (channel.pool(role), channel.pool(role.peer()));
        let pools = |own: &Segment| {
            if channel.replies {
                memory.exchange
            } else {
                Some(*own)
            }
        };
        let out_area =
            pools(&memory.mine)?.blocks(ours.pool, ours.stride, pool.size, pool.blocks)?;
        let in_area = pools(&memory.peer)?.blocks(
            theirs.pool,
            theirs.stride,
            peer_pool.size,
            peer_pool.blocks,
        )?;
        let tally = Tally::new(memory, ours.statistics)?;
        let middle = start + usize::from(pool.blocks);
        let end = middle + usize::from(peer_pool.blocks);
        // Whoever had the memory before may have written all of it.
        let dirty = if memory.is_zeroed { 0 } else { pool.size };
        let own = Block {
            dirty,
            ..Block::NEW
        };
        blocks.get_mut(start..middle)?.fill(own);
        blocks.get_mut(middle..end)?.fill(Block::NEW);
        let out = Lane {
            ring: memory.mine.ring(ours.ring, ours.ring_log2)?,
            returns: memory.peer.ring(theirs.returns, theirs.returns_log2)?,
            pool: out_area,
            first: start,
            mine: memory.mine.words(ours.control)?,
            counts: tally.line(),
            theirs: memory.peer.words(theirs.control)?,
        };
        let back = Lane {
            ring: memory.peer.ring(theirs.ring, theirs.ring_log2)?,
            returns: memory.mine.ring(ours.returns, ours.returns_log2)?,
            pool: in_area,
            first: middle,
            ..out
        };
        let outbox = Outbox::new::<W>(out, channel.replies, blocks);
        let inbox = Inbox::new(back, channel.replies);
        Some(ChannelEnd {
            id: channel.id,
            priority: channel.priority,
            has_replies: channel.replies,
            outbox,
            inbox,
            books_end: end,
            tally,
            waiters: [const { Waiters::new() }; 3],
            wanted: 1,
        })
    }

    /// Whether the books agree with themselves.
    pub(super) fn check(&self, blocks: &[Block]) -> bool {
        self.outbox.check(blocks) && self.inbox.check(blocks)
    }

    /// Takes out who waits for this and can go on, or everybody; whether somebody is left.
    pub(super) fn wakers<W: Ways>(
        &mut self,
        waits: Waits,
        all: bool,
        cache: &W::Cache,
        woken: &mut Woken,
    ) -> bool {
        if self.waiters[waits as usize].is_empty() {
            return false;
        }
        let room = match all {
            true => u32::MAX,
            false => self.room::<W>(waits, cache),
        };
        self.waiters[waits as usize].ready(|reserve| room > reserve, woken);
        !self.waiters[waits as usize].is_empty()
    }

    /// How many places there are, and for the others whether there is something: all or 0.
    fn room<W: Ways>(&self, waits: Waits, cache: &W::Cache) -> u32 {
        let is_there = match waits {
            Waits::Incoming => self.inbox.has_news::<W>(self.wanted, cache),
            // A return that nobody has taken up yet may be a place, or an answer: all look.
            Waits::Room if !self.outbox.has_returns::<W>(cache) => {
                return self.outbox.room();
            }
            Waits::Room => true,
            Waits::Answer => self.outbox.has_answer::<W>(cache),
        };
        if is_there { u32::MAX } else { 0 }
    }

    /// What the peer is to ring at. The fence after it is the caller's.
    pub(super) fn arm<W: Ways>(&self, waits: Waits, cache: &W::Cache) {
        match waits {
            Waits::Incoming => self.inbox.arm::<W>(self.wanted),
            Waits::Room | Waits::Answer => self.outbox.arm(),
        }
        self.inbox.clean_control(cache);
    }
}

/// What somebody waits for.
#[derive(Clone, Copy)]
pub(in super::super) enum What {
    /// So many packets.
    Packets(u32),
    /// A place, with so many left free.
    Place(u16),
    /// An answer in an own block.
    Reply,
}

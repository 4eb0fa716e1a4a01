//! One side of a link: its session and all of its channels, behind one lock.
//!
//! The lock makes the contexts of this side one writer. It is held for one bounded step: never
//! while a user writes or reads a block, and never while somebody is rung or woken.
//!
//! A *pairing* is the time from one coming up to the next going down. Handles belong to one pairing
//! (the next, where they were made while the link was down); after it they say why it is over.

use super::Lost;
use super::config::{Channel, Config, Kind as Carries, Role, Trust};
use super::identity::Identity;
use super::memory::Memory;
use super::observe::{Counts, Link, Source};
use super::plan::{ChannelPlan, Plan};
use super::port::Doorbell;
use super::session::{self, Session};
use crate::cell::Cell;
use crate::lock::Lock;
use crate::waiters::{Waits, wake};
use crate::word::Segment;

mod channel;
#[cfg(all(test, not(any(loom, miri))))]
mod digest;

mod opening;
mod placing;
mod platform;
mod state;
mod steps;

pub use channel::Slot;
pub(super) use channel::What;
pub(super) use steps::Tried;

pub use opening::{OpenError, Options, Parts, Status};
use placing::place_channels;
pub use platform::{Platform, Store};
use state::{After, Inner};

/// One side of a link.
pub struct End<P: Platform> {
    lock: P::Lock,
    inner: Cell<Inner<P>>,
    doorbell: P::Doorbell,
    cache: P::Cache,
    /// Kept for as long as the end: it may have the memory.
    _platform: P,
    is_trusted: bool,
}

// SAFETY: `inner` is only reached under the lock, which is what `Lock: Sync` promises to keep
// alone; what it holds may go from thread to thread. The rest is shared as it is.
unsafe impl<P: Platform + Sync> Sync for End<P>
where
    P::Lock: Sync,
    P::Doorbell: Sync,
    P::Cache: Sync,
    P::Slots: Send,
    P::Blocks: Send,
{
}

impl<P: Platform> End<P> {
    /// Opens this side's end on its memory, in a new session, and tells the peer. It comes up by
    /// [`End::look`], as soon as the peer has opened its own. A platform with a plan
    /// ([`Platform::PLAN`]) is opened by [`End::open_planned`].
    pub fn open(
        memory: Memory,
        config: Config<'static>,
        role: Role,
        parts: Parts<P>,
        options: Options,
    ) -> Result<End<P>, OpenError> {
        const { assert!(P::PLAN.is_none(), "the platform has a plan: open_planned") };
        config.check().map_err(OpenError::Config)?;
        if let Some(error) = OpenError::of(&config, P::USES) {
            return Err(error);
        }
        let plan = Plan {
            config,
            role,
            identity: Identity::of(&config, role),
            exchange_len: config.exchange_len() as u32,
            channels: &[],
        };
        let channel =
            |channel: &Channel, index| Some(ChannelPlan::of(&config, role, channel, index));
        End::open_on(memory, &plan, channel, parts, options)
    }

    /// As [`End::open`], with the configuration and the side of [`Platform::PLAN`], which there must
    /// be: nothing is worked out at run time.
    pub fn open_planned(
        memory: Memory,
        parts: Parts<P>,
        options: Options,
    ) -> Result<End<P>, OpenError> {
        let plan = const {
            match &P::PLAN {
                Some(plan) => {
                    let fits = OpenError::of(&plan.config, P::USES).is_none();
                    assert!(fits, "the plan has channels that Platform::USES leaves out");
                    plan
                }
                None => panic!("the platform has no plan"),
            }
        };
        let channel = |_: &Channel, index| plan.channels.get(index).copied();
        End::open_on(memory, plan, channel, parts, options)
    }

    #[inline(always)]
    fn open_on(
        memory: Memory,
        plan: &Plan<'static>,
        channel: impl Fn(&Channel, usize) -> Option<ChannelPlan>,
        parts: Parts<P>,
        options: Options,
    ) -> Result<End<P>, OpenError> {
        let Plan {
            config,
            role,
            identity,
            ..
        } = *plan;
        let short = |segment: Option<&Segment>, needed: u32| {
            let (found, needed) = (segment.map_or(0, Segment::len), needed as usize);
            (found < needed).then_some(OpenError::Memory { needed, found })
        };
        let (len, peer_len) = identity.lens();
        let too_short = short(Some(&memory.mine), len)
            .or_else(|| short(Some(&memory.peer), peer_len))
            .or_else(|| short(memory.exchange.as_ref(), plan.exchange_len));
        if let Some(error) = too_short {
            return Err(error);
        }
        let Parts {
            doorbell,
            cache,
            platform,
            mut slots,
            mut blocks,
        } = parts;
        let is_lock = |channel: &&Channel| P::USES.locks && matches!(channel.kind, Carries::Lock);
        for channel in config.channels.iter().filter(is_lock) {
            let semaphore = channel.semaphore.checked_sub(1);
            let missing = semaphore.filter(|&number| platform.hardware_lock(number).is_none());
            if let Some(number) = missing {
                return Err(OpenError::Semaphore(number));
            }
        }
        let room = slots.as_mut().len() >= config.channels.len()
            && blocks.as_mut().len() >= config.blocks();
        if !room {
            return Err(OpenError::Room);
        }
        let room = (slots.as_mut(), blocks.as_mut());
        place_channels(plan, channel, &memory, room, (&platform, &cache)).ok_or(OpenError::Room)?;
        let words = Session::new(&memory.mine, &memory.peer);
        let session = words.ok_or(OpenError::Room)?;
        let is_trusted = memory.is_local || config.trust == Trust::Mutual;
        let mut inner = Inner {
            session,
            identity,
            config,
            role,
            memory,
            options,
            slots,
            blocks,
            status: Status::Waiting,
            is_draining: false,
            pairing: 1,
            live: 0,
            sendable: 0,
            lost: Lost::Closed,
            rest: None,
            beat: None,
            peer_beat: (0, 0),
        };
        inner.reopen(is_trusted, &cache);
        doorbell.ring();
        Ok(End {
            lock: P::Lock::NEW,
            inner: Cell::new(inner),
            doorbell,
            cache,
            _platform: platform,
            is_trusted,
        })
    }

    /// What this end was opened with.
    pub fn config(&self) -> Config<'static> {
        self.locked(|inner| inner.config)
    }

    /// Which side this is.
    pub fn role(&self) -> Role {
        self.locked(|inner| inner.role)
    }

    /// How the link is, as of the last look.
    pub fn status(&self) -> Status {
        self.locked(|inner| inner.status)
    }

    /// How many pairings there were, the present one included. It changes when the link goes down.
    pub fn pairing(&self) -> u32 {
        self.locked(|inner| inner.pairing)
    }

    /// Whether a pairing ([`End::pairing`]) is the present or the next one; else how it ended, or
    /// why there is none.
    pub fn check(&self, pairing: u32) -> Result<(), Lost> {
        self.locked(|inner| inner.check(pairing))
    }

    /// Whether what arrives may be read where it lies.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// The doorbell, for who waits on its other half.
    pub fn doorbell(&self) -> &P::Doorbell {
        &self.doorbell
    }

    /// Looks at the peer, gives the sign of life, and wakes who can go on: to be called when the
    /// doorbell has arrived, before a sleep, and once in each `heartbeat`. `now` is in milliseconds
    /// of any clock, and may wrap.
    pub fn look(&self, now: u32) -> Status {
        let cache = &self.cache;
        let (after, status) = self.locked(|inner| {
            let after = inner.look(now, self.is_trusted, cache);
            (after, inner.status)
        });
        self.after(after);
        self.wake_each(false);
        status
    }

    /// The peer is known to be dead: its socket is closed, its core was reset, a watchdog says so.
    /// Waiting calls end, and own blocks come back, at once.
    pub fn peer_is_gone(&self) {
        let after = self.locked(|inner| inner.give_up(Lost::Closed, self.is_trusted, &self.cache));
        self.after(after);
    }

    /// As [`End::peer_is_gone`], but what the peer sent before can still be received, and only then
    /// calls that wait for a packet end. Own blocks come back when all of it was received, or a
    /// handle is renewed. The same happens by itself where a peer closes the link.
    pub fn peer_has_ended(&self) {
        let after = self.locked(|inner| {
            // It may have come up, sent and gone between two looks of this side.
            let mut after = inner.step(self.is_trusted, &self.cache);
            after.add(inner.end(Lost::Closed, self.is_trusted, &self.cache));
            after
        });
        self.after(after);
    }

    /// Begins again after a fault, in a new session.
    pub fn recover(&self) {
        let after = self.locked(|inner| match inner.status {
            Status::Fault(_) => {
                inner.reopen(self.is_trusted, &self.cache);
                After::BOTH
            }
            _ => After::NOTHING,
        });
        self.after(after);
    }

    /// Tells the peer to send no more; what is there can still be received on both sides. The link
    /// is drained when [`End::is_drained`].
    pub fn drain(&self) {
        self.locked(|inner| {
            if inner.status == Status::Up {
                inner.is_draining = true;
                inner.set(Status::Up);
                inner
                    .session
                    .set_state(session::state::DRAINING, &self.cache);
            }
        });
        self.doorbell.ring();
    }

    /// Whether nothing is under way: no block of either side is in the other's hands.
    pub fn is_drained(&self) -> bool {
        let drained = |inner: &mut Inner<P>| inner.is_drained(self.is_trusted, &self.cache);
        let (is_drained, after) = self.locked(drained);
        self.after(after);
        is_drained
    }

    /// Closes the link in order: waiting calls of both sides end with [`Lost::Closed`]. The peer can
    /// still receive what was sent before.
    pub fn close(&self) {
        let after = self.locked(|inner| inner.close(&self.cache));
        self.after(after);
    }

    /// The most urgent channel that has a packet or a message, by its id. A loop that serves it is done
    /// with at most one entry of a less urgent channel before an urgent one that arrives: the one that it
    /// has in hand.
    pub fn next(&self) -> Option<u16> {
        let cache = &self.cache;
        self.locked(|inner| {
            if inner.status != Status::Up {
                return None;
            }
            let mut slots = inner.slots.as_mut().iter();
            slots.find_map(|slot| slot.with_news::<P>(cache))
        })
    }

    /// What this side has counted of a channel of packets, messages or locks; `None` where there is none of this id.
    /// An image that shows its own counts has less code by it than by [`End::observe`].
    pub fn counts(&self, channel: u16) -> Option<Counts> {
        self.locked(|inner| {
            let tallies = inner.slots.as_mut().iter_mut().filter_map(Slot::tally);
            let (_, tally) = { tallies }.find(|(id, _)| *id == channel)?;
            Some(tally.counts())
        })
    }

    /// Both sides as an observer sees them, for status pages and watchdogs inside this program.
    pub fn observe(&self) -> Link<impl Source> {
        let (role, mine, peer) =
            self.locked(|inner| (inner.role, inner.memory.mine, inner.memory.peer));
        match role {
            Role::First => Link::new(mine, peer),
            Role::Second => Link::new(peer, mine),
        }
    }

    /// Every block is in exactly one place, in every channel: conservation, for tests.
    #[doc(hidden)]
    pub fn check_books(&self) -> bool {
        self.locked(|inner| {
            (0..inner.slots.as_mut().len()).all(|slot| {
                let queue = inner
                    .channel(slot)
                    .is_none_or(|(channel, blocks)| channel.check(blocks));
                let messages = inner
                    .messages(slot)
                    .is_none_or(|(channel, books)| channel.check(books));
                queue && messages
            })
        })
    }

    fn after(&self, after: After) {
        if after.has(After::RING) {
            self.doorbell.ring();
        }
        if after.has(After::WAKE) {
            self.wake_each(true);
        }
    }

    /// Wakes who can go on, or everybody, channel by channel, in the order of priority, with the lock
    /// free in between.
    fn wake_each(&self, all: bool) {
        if !P::USES.wakers {
            return;
        }
        let count = self.locked(|inner| inner.slots.as_mut().len());
        for slot in 0..count {
            if !self.locked(|inner| inner.is_awaited(slot)) {
                continue;
            }
            for waits in Waits::ALL {
                wake(self.locked(|inner| self.ready(inner, slot, waits, all)));
            }
        }
    }

    #[inline(always)]
    fn locked<R>(&self, f: impl FnOnce(&mut Inner<P>) -> R) -> R {
        self.lock.with(|| {
            // SAFETY: the lock keeps every other context out of the cell, and nothing that runs
            // under it takes it again.
            f(unsafe { &mut *self.inner.write() })
        })
    }
}

impl<P: Platform> Drop for End<P> {
    fn drop(&mut self) {
        self.close();
    }
}

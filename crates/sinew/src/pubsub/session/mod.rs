//! The engine: one session with a router or a peer, on one link.
//!
//! Sans-IO: packets in, packets out, time is an argument. A packet is one batch of Zenoh
//! (section 4.3 of the wire reference). Who drives it does this, in any order and as often as he likes:
//!
//! * [`Session::receive`] with each packet that arrives, again and again until it is [`Step::Done`];
//! * [`Session::poll`] after that, and at [`Session::deadline`]: it sends what is owed, and says what
//!   time has brought about;
//! * [`Session::put`] and its relatives, at any time.
//!
//! After [`Event::Closed`] a new link is opened, and [`Session::open`] begins again. Everything entered
//! (publishers, subscribers, queryables) is declared to the new peer, in the order that it needs.
//!
//! | file | idea |
//! |---|---|
//! | `tables` | what a session can hold, as a type |
//! | `handshake`, `agreed` | how it comes about |
//! | `out` | batches, frames, fragments that leave |
//! | `receive`, `incoming` | packets, frames, fragments that arrive |
//! | `declare`, `own`, `foreign` | what both sides tell each other about keys |
//! | `publish`, `subscribe` | samples |
//! | `query`, `answer` | queries and replies |

use core::time::Duration;

use crate::link::Tx;
use crate::pubsub::codec::transport::{Close, KeepAlive};
use crate::pubsub::codec::{WhatAmI, Zid};
use crate::time::{Instant, micros};

mod agreed;
mod answer;
mod declare;
mod event;
mod foreign;
mod handshake;
mod incoming;
mod out;
mod own;
mod publish;
mod query;
mod receive;
mod stats;
mod subscribe;
mod tables;

pub use agreed::Peer;
pub use answer::{QueryableId, Question, Request, RequestId};
pub use event::{Closed, Event, Step};
pub use foreign::Foreign;
pub use handshake::SMALLEST_BATCH;
pub use own::Entry;
pub use publish::{DeclareError, PublisherId, PublisherOptions, Put, PutError};
pub use query::{Ask, AskError, Ended, Query, QueryId, Reply};
pub use stats::Stats;
pub use subscribe::{Run, Sample, SubscriberId};
pub use tables::{All, Fixed, KEY_ROOM, Opens, Rows, Tables};

use agreed::Agreed;
use incoming::Incoming;
use out::Out;
use receive::Trouble;

/// What a session is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The id of this node: random, and another one after each start. A router holds a session of the
    /// same id against a new one until its lease has passed.
    pub zid: Zid,
    /// Its role: client of a router, or peer.
    pub whatami: WhatAmI,
    /// The peer takes this side for gone after so many milliseconds without a sign of life. A quarter
    /// of it is how long this side is silent at most.
    pub lease_ms: u32,
    /// How long a sample may wait for others to share its batch; zero: each leaves at once.
    pub batching: Duration,
    /// The largest batch to agree on, in bytes; the link's mtu, where that is less. At least
    /// [`SMALLEST_BATCH`].
    pub batch_size: u16,
    /// Messages of more bytes than this are refused. What does not fit a batch is sent in fragments.
    pub largest: usize,
    /// How long a handshake may take, in microseconds.
    pub patience: u64,
    /// On links that lose: how long to wait for an answer of the handshake before it is asked again, in
    /// microseconds. What is declared is said again there with each sign of life. 0: never.
    pub resend: u64,
    /// Any number that differs from start to start.
    pub seed: u32,
}

impl Config {
    const DEFAULT_LEASE: u32 = 10_000;
    /// All that there can be on cores of 16 bits.
    const LARGEST: usize = match 1usize.checked_shl(30) {
        Some(largest) => largest,
        None => usize::MAX,
    };

    const fn new(zid: Zid, whatami: WhatAmI) -> Config {
        Config {
            zid,
            whatami,
            lease_ms: Config::DEFAULT_LEASE,
            batching: Duration::ZERO,
            batch_size: u16::MAX,
            largest: Config::LARGEST,
            patience: 10_000_000,
            resend: 0,
            seed: 0,
        }
    }

    /// A client of a router, with the defaults of Zenoh: a lease of 10 s, no batching.
    pub const fn client(zid: Zid) -> Config {
        Config::new(zid, WhatAmI::Client)
    }

    /// A peer, with the same.
    pub const fn peer(zid: Zid) -> Config {
        Config::new(zid, WhatAmI::Peer)
    }
}

/// How far a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// There is none, and none is being opened.
    Closed,
    /// This side asks for one, or waits to be asked.
    Opening,
    /// It is there.
    Open,
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            State::Closed => "closed",
            State::Opening => "opening",
            State::Open => "open",
        })
    }
}

/// [`State`], step by step; see `handshake`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Closed,
    Opening,
    Asked,
    Listening,
    Greeted,
    Open,
}

/// What is known of the peer's view.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The peer has said all, unasked, as peers do.
    told: bool,
    /// It said more than there was room for, so nobody can be taken for not interested.
    overflowed: bool,
    /// A number of this side that it has used, and that stands for no key any more; 0: none.
    stranger: u16,
}

impl Known {
    const NOTHING: Known = Known {
        told: false,
        overflowed: false,
        stranger: 0,
    };
}

/// One session on one link. See the [module](self).
#[derive(Debug)]
#[repr(C)] // the tables last: what is used most is near the start, where Thumb reaches it in two bytes
pub struct Session<T: Tables> {
    phase: Phase,
    /// It waits to be asked, instead of asking.
    accepts: bool,
    /// Something is to be declared.
    owed: bool,
    /// The peer was told that all has been declared.
    said_all: bool,
    /// The packet in hand cannot be read further.
    broken: Option<Closed>,
    known: Known,
    /// The batch size in one's own INIT.
    offered: u16,
    /// How many of one's own entries were withdrawn; wraps.
    withdrawn: u16,
    out: Out<T>,
    incoming: Incoming,
    /// When something arrived last.
    heard: Instant,
    /// When the handshake is asked for again, or declarations are said again.
    retry: Instant,
    /// When the keys of what has been withdrawn are looked at again.
    forget: Instant,
    /// No query of the peer expires before.
    expires: Instant,
    /// [`Config::batching`] in microseconds.
    batching: u64,
    config: Config,
    /// When the handshake has taken too long.
    give_up: Instant,
    last_query: u32,
    peer: Option<Peer>,
    stats: Stats,
    tables: T,
}

impl<T: Tables> Session<T> {
    /// A session that is not open yet.
    pub const fn new(config: Config, tables: T) -> Self {
        Session {
            config,
            tables,
            phase: Phase::Closed,
            accepts: false,
            peer: None,
            offered: 0,
            out: Out::new(config.largest),
            incoming: Incoming::new(),
            heard: Instant::START,
            retry: Instant::FAR,
            give_up: Instant::FAR,
            forget: Instant::FAR,
            owed: false,
            said_all: false,
            known: Known::NOTHING,
            broken: None,
            last_query: 0,
            expires: Instant::FAR,
            withdrawn: 0,
            batching: micros(config.batching),
            stats: Stats::ZERO,
        }
    }

    /// Asks the other side for a session, on a new link. [`Session::poll`] sends the first message.
    pub fn open(&mut self, now: Instant) {
        self.fresh(Phase::Opening);
        self.accepts = false;
        self.retry = now;
        self.give_up = now.later(self.config.patience);
    }

    /// Waits on a new link for the other side to ask for a session. Needs tables that accept
    /// ([`Tables::ACCEPTS`]); where they do not, this does not compile.
    pub fn accept(&mut self) {
        const { assert!(T::ACCEPTS, "these tables are of a session that only opens") };
        self.fresh(Phase::Listening);
        self.accepts = true;
    }

    /// Nothing of a link before goes over to a new one.
    fn fresh(&mut self, phase: Phase) {
        self.drop_peer();
        self.phase = phase;
        self.incoming.finish();
        self.broken = None;
    }

    fn accepts(&self) -> bool {
        T::ACCEPTS && self.accepts
    }

    /// How far the session is.
    pub fn state(&self) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Open => State::Open,
            _ => State::Opening,
        }
    }

    /// What it has counted, over all the links it had.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The tables, for a host to let them grow. Entries must not be moved.
    pub fn tables_mut(&mut self) -> &mut T {
        &mut self.tables
    }

    /// Takes another id from the next [`Session::open`] on: where the peer holds the session of the
    /// old one.
    pub fn set_zid(&mut self, zid: Zid) {
        self.config.zid = zid;
    }

    /// Whether a batch waits for more to share it, or for its time.
    #[inline]
    pub fn is_batching(&self) -> bool {
        self.out.since() != Instant::FAR
    }

    /// When [`Session::poll`] must be called again at the latest, [`Instant::FAR`] where nothing is
    /// to be done.
    pub fn deadline(&mut self) -> Instant {
        let mut deadline = Instant::FAR;
        if T::ASKS {
            for query in self.tables.all().queries.iter().flatten() {
                let due = match self.phase {
                    Phase::Open => query.deadline,
                    _ => Instant::START,
                };
                deadline = deadline.min(due);
            }
        }
        if self.broken.is_some() {
            return Instant::START;
        }
        match self.phase {
            Phase::Closed | Phase::Listening => deadline,
            Phase::Opening | Phase::Asked => deadline.min(self.retry).min(self.give_up),
            Phase::Greeted => deadline.min(self.give_up),
            Phase::Open if self.owed => Instant::START,
            Phase::Open => {
                if T::ANSWERS {
                    deadline = deadline.min(self.expires);
                }
                let batch = self.out.since().later(self.batching);
                let sign = self.out.left.later(self.silence());
                let lease = self.heard.later(self.out.agreed.lease);
                let due = batch.min(sign).min(lease).min(self.retry);
                deadline.min(due).min(self.forget)
            }
        }
    }

    /// How long this side may be silent, in microseconds: a quarter of its lease, so that three signs
    /// of life can be lost (ITU-T G.8013).
    #[inline(never)]
    fn silence(&self) -> u64 {
        u64::from(self.config.lease_ms.max(1)).saturating_mul(250)
    }

    /// Sends what is due. [`Step::More`] and [`Step::Event`]: call again; [`Step::Full`]: call again when
    /// there is a place; [`Step::Done`]: nothing until [`Session::deadline`].
    ///
    /// Before it is called at a lease's end, what has arrived must have been handed to
    /// [`Session::receive`].
    pub fn poll<X: Tx + ?Sized>(&mut self, tx: &mut X, now: Instant) -> Step<'static> {
        if T::ASKS
            && self.broken.is_none()
            && let Some(event) = self.ended_query(now)
        {
            return Step::Event(event);
        }
        match self.due(tx, now) {
            Ok(()) => Step::Done,
            Err(trouble) => self.troubled(tx, trouble, now),
        }
    }

    /// What a step comes to that could not be finished.
    fn troubled<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        trouble: Trouble,
        now: Instant,
    ) -> Step<'static> {
        let reason = match trouble {
            Trouble::Full => return Step::Full,
            Trouble::Anew if T::ACCEPTS => return Step::Event(self.restarted(now)),
            Trouble::Anew => Closed::Restarted,
            Trouble::End(reason) => reason,
        };
        Step::Event(self.end(tx, reason, now))
    }

    /// What arrived before could not be read further: the session must end.
    fn whole(&mut self) -> Result<(), Trouble> {
        self.broken
            .take()
            .map_or(Ok(()), |reason| Err(Trouble::End(reason)))
    }

    /// Does what is due.
    fn due<X: Tx + ?Sized>(&mut self, tx: &mut X, now: Instant) -> Result<(), Trouble> {
        self.whole()?;
        match self.phase {
            Phase::Closed | Phase::Listening => {}
            Phase::Greeted if self.give_up <= now => self.phase = Phase::Listening,
            Phase::Greeted => {}
            Phase::Opening | Phase::Asked => {
                if self.give_up <= now {
                    return Err(Trouble::End(Closed::Unanswered));
                }
                if self.retry <= now {
                    self.send_init(tx, now)?;
                    self.retry = self.next_retry(now);
                }
            }
            Phase::Open => {
                if self.heard.later(self.out.agreed.lease) <= now {
                    return Err(Trouble::End(Closed::Expired));
                }
                self.out.settle(tx, now)?;
                if self.retry <= now {
                    self.retry = now.later(self.silence());
                    self.declare_again();
                }
                if self.owed || self.forget <= now {
                    self.declare(tx, now)?;
                    self.out.flush(tx, now)?;
                }
                if T::ANSWERS && self.expires <= now {
                    self.expire_request(tx, now)?;
                }
                if self.is_batching() && self.out.since().later(self.batching) <= now {
                    self.out.flush(tx, now)?;
                }
                if self.out.left.later(self.silence()) <= now {
                    self.out.transport(tx, now, &|w| KeepAlive.encode(w))?;
                }
            }
        }
        Ok(())
    }

    /// Ends the session, and tells the peer as far as there is a place.
    pub fn close<X: Tx + ?Sized>(&mut self, tx: &mut X, now: Instant) {
        self.end(tx, Closed::Here, now);
    }

    /// How long a message is that was put together from fragments and is not handled to its end yet: so
    /// much of the memory for fragments is in use.
    pub fn assembled_len(&self) -> Option<usize> {
        self.incoming.assembly.whole
    }

    /// Packets have arrived that are not looked at yet, for want of room: the peer is alive.
    pub fn is_alive(&mut self, now: Instant) {
        self.heard = now;
    }

    /// The link has ended: `receive` and `poll` cannot see it.
    pub fn link_lost(&mut self) -> Option<Event<'static>> {
        let was = self.phase;
        self.drop_peer();
        self.phase = Phase::Closed;
        (was != Phase::Closed).then_some(Event::Closed(Closed::Link))
    }

    /// The handshake is done.
    fn begin(&mut self, now: Instant) -> Event<'static> {
        self.phase = Phase::Open;
        self.heard = now;
        self.owed = true;
        self.said_all = false;
        self.retry = match self.config.resend {
            0 => Instant::FAR,
            _ => now.later(self.silence()),
        };
        stats::count(&mut self.stats.opened);
        Event::Opened
    }

    fn closed_by_peer(&mut self, reason: u8) -> Option<Event<'static>> {
        // An old one of an earlier session can still be on its way.
        let old = matches!(self.phase, Phase::Closed | Phase::Listening);
        self.drop_peer();
        self.back();
        (!old).then_some(Event::Closed(Closed::ByPeer(reason)))
    }

    /// The peer asks anew while the session is open: it has forgotten it.
    fn restarted(&mut self, now: Instant) -> Event<'static> {
        let (peer, agreed) = (self.peer, self.out.agreed);
        self.drop_peer();
        self.back();
        // It may have been answered already.
        (self.peer, self.out.agreed) = (peer, agreed);
        self.phase = Phase::Greeted;
        self.give_up = now.later(self.config.patience);
        Event::Closed(Closed::Restarted)
    }

    fn end<X: Tx + ?Sized>(&mut self, tx: &mut X, reason: Closed, now: Instant) -> Event<'static> {
        let code = match reason {
            Closed::Malformed | Closed::Refused => Close::INVALID,
            Closed::Expired => Close::EXPIRED,
            Closed::Unanswered => Close::UNRESPONSIVE,
            Closed::Myself => Close::CONNECTION_TO_SELF,
            _ => Close::GENERIC,
        };
        if reason == Closed::Malformed {
            stats::count(&mut self.stats.malformed);
        }
        if !matches!(reason, Closed::Link) && self.phase != Phase::Closed {
            let close = Close {
                session: true,
                reason: code,
            };
            // Where there is no place now, the end of the link says it, or the end of the lease.
            let _ = self.out.transport(tx, now, &|w| close.encode(w));
        }
        self.drop_peer();
        match reason {
            Closed::Here => self.phase = Phase::Closed,
            _ => self.back(),
        }
        Event::Closed(reason)
    }

    /// After an end, an acceptor waits for the next who asks.
    fn back(&mut self) {
        self.phase = if self.accepts() {
            Phase::Listening
        } else {
            Phase::Closed
        };
    }

    /// Everything received from the peer is void (section 4.5), and everything of one's own is to be
    /// declared anew.
    fn drop_peer(&mut self) {
        self.peer = None;
        self.out.agreed = Agreed::NONE;
        self.incoming.leave();
        self.out.forget();
        self.known = Known::NOTHING;
        self.owed = false;
        self.retry = Instant::FAR;
        self.give_up = Instant::FAR;
        self.forget = Instant::FAR;
        let mut all = self.tables.all();
        for (index, slot) in all.foreign.iter_mut().enumerate() {
            *slot = None;
            all.keys.free(index);
        }
        for slot in all.requests.iter_mut() {
            *slot = None;
        }
        for entries in &mut all.own() {
            own::forget(entries);
        }
    }
}

//! Who is there: the handshake by which two sides come up in either order, and find each other's
//! restart, as often as it happens.
//!
//! A side that opens takes a new session number. The link is up for a side while the peer is ready,
//! has acknowledged this side's session, and this side has acknowledged the peer's. A side
//! acknowledges only after it has taken its blocks back and emptied its rings, and sends only while
//! up; so nothing of an earlier session is taken for something of this one.
//!
//! A look at the peer reads its session first and last, and counts only if both are the same.

use super::identity::Identity;
use super::layout::{self, PROBE, identity, life, session};
use super::port::{Cache, clean, invalidate};
use super::{Difference, Field};
use crate::word::{CLEAR_LOOK, SESSION_LOAD, SESSION_STORE, Segment, Words, full_fence};

/// The states of a side, as they stand in its segment.
pub(super) mod state {
    pub const DOWN: u32 = 0;
    pub const OPENING: u32 = 1;
    pub const READY: u32 = 2;
    pub const DRAINING: u32 = 3;
    pub const FAULT: u32 = 4;
    /// None of them: no side writes it.
    pub const NONE: u32 = 5;
}

#[derive(Clone, Copy)]
struct Lines {
    identity: Words,
    session: Words,
    life: Words,
}

impl Lines {
    fn of(segment: &Segment) -> Option<Lines> {
        Some(Lines {
            identity: segment.words(layout::IDENTITY)?,
            session: segment.words(layout::SESSION)?,
            life: segment.words(layout::LIFE)?,
        })
    }
}

pub(super) struct Session {
    mine: Lines,
    theirs: Lines,
    /// This side's session.
    me: u32,
    /// The peer's session that this side has acknowledged; 0 for none.
    peer: u32,
    heartbeat: u32,
    /// The peer's state when it was found up: ready or draining; none after it has ended.
    state: u32,
}

/// What a look at the peer tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// The peer changes its words at this moment: look again.
    Later,
    /// Nobody is there, or not yet.
    Absent,
    /// It has closed the link in order. `met`: it had acknowledged this side's session, so it may have
    /// sent, also where this side has not found it up.
    Closed { met: bool },
    /// It has given up on this side's behaviour.
    Fault,
    /// It does not fit.
    Refused(Difference),
    /// It is ready, and its session is not the one that was acknowledged.
    New(u32),
    /// It is ready in the session that was acknowledged, and has not acknowledged this side's.
    Waiting,
    /// The link is up. `draining`: the peer wants no more packets.
    Up { draining: bool },
}

impl Session {
    /// The words of both sides; `None` where a segment is too short.
    pub(super) fn new(mine: &Segment, theirs: &Segment) -> Option<Session> {
        Some(Session {
            mine: Lines::of(mine)?,
            theirs: Lines::of(theirs)?,
            me: 0,
            peer: 0,
            heartbeat: 0,
            state: state::READY,
        })
    }

    pub(super) fn me(&self) -> u32 {
        self.me
    }

    /// Everything that a later call depends on: both sessions, and the peer's state.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(super) fn digest(&self) -> [u32; 3] {
        [self.me, self.peer, self.state]
    }

    /// Begins a session: takes the segment's identity away. `empty` then empties rings and wake
    /// words, and [`Session::ready`] puts the identity back.
    pub(super) fn open(&mut self, cache: &impl Cache) {
        // The one look at an own word: the session of whoever had this segment before.
        invalidate(&self.mine.session, cache);
        let old = self.mine.session.at(session::SESSION).get();
        invalidate(&self.theirs.session, cache);
        let known = self.theirs.session.at(session::ACKNOWLEDGED).get();
        self.me = next(old, known);
        self.peer = 0;
        self.put(session::STATE, state::OPENING, cache);
        let magic = self.mine.identity.at(identity::MAGIC);
        magic.store(0, SESSION_STORE);
        clean(&self.mine.identity, cache);
        self.put(session::ACKNOWLEDGED, 0, cache);
        self.put(session::SESSION, self.me, cache);
        self.put(session::FAULT, 0, cache);
    }

    /// Tells the peer what this side is, and that it is ready. The own rings are empty.
    pub(super) fn ready(&self, identity: &Identity, cache: &impl Cache) {
        // All but the magic number, which comes last.
        for (at, word) in identity.words().iter().enumerate().skip(1) {
            self.mine.identity.at(at).set(*word);
        }
        self.mine.identity.at(identity::OFFERED).set(0);
        self.mine.identity.at(identity::ACCEPTED).set(0);
        clean(&self.mine.identity, cache);
        let magic = self.mine.identity.at(identity::MAGIC);
        magic.store(layout::MAGIC, SESSION_STORE);
        clean(&self.mine.identity, cache);
        self.put(session::STATE, state::READY, cache);
    }

    /// Looks at the peer. All of its words are read once, between two looks at its session. `name`
    /// names what differs where the hash does.
    pub(super) fn look(
        &mut self,
        identity: &Identity,
        name: impl FnOnce() -> Option<Difference>,
        cache: &impl Cache,
    ) -> Seen {
        invalidate(&self.theirs.session, cache);
        invalidate(&self.theirs.identity, cache);
        let word = |index| self.theirs.session.at(index).load(SESSION_LOAD);
        let found = word(session::SESSION);
        let state = word(session::STATE);
        let acknowledged = word(session::ACKNOWLEDGED);
        let magic = self.theirs.identity.at(identity::MAGIC).load(SESSION_LOAD);
        let seen = if magic == 0 || found == 0 || state == state::OPENING {
            Seen::Absent
        } else if found != self.peer {
            match self.differs(identity, magic, name) {
                Some(difference) => Seen::Refused(difference),
                None if state == state::READY => Seen::New(found),
                None => Seen::Absent,
            }
        } else {
            match state {
                state::DOWN => Seen::Closed {
                    met: acknowledged == self.me,
                },
                state::FAULT => Seen::Fault,
                _ if acknowledged != self.me => Seen::Waiting,
                _ => Seen::Up {
                    draining: state == state::DRAINING,
                },
            }
        };
        invalidate(&self.theirs.session, cache);
        if word(session::SESSION) != found {
            return Seen::Later;
        }
        if let Seen::Up { .. } = seen {
            self.state = state;
        }
        seen
    }

    /// The peer has ended, whatever its words say: no more [`Session::is_still_up`] until a look finds it up.
    pub(super) fn ended(&mut self) {
        self.state = state::NONE;
    }

    /// Whether the session words are still those of the last look; cheap enough for every poll.
    #[inline(always)]
    pub(super) fn is_still_up(&self, cache: &impl Cache) -> bool {
        self.is_same_pairing(cache) && self.theirs.session.at(session::STATE).get() == self.state
    }

    /// Whether what was read of the peer's until now was written in this pairing. A side that begins
    /// another session clears what it has written after it has said so.
    #[inline(always)]
    pub(super) fn is_of_this_pairing(&self, cache: &impl Cache) -> bool {
        full_fence(CLEAR_LOOK);
        self.is_same_pairing(cache)
    }

    /// Whether neither side has begun another session.
    #[inline(always)]
    pub(super) fn is_same_pairing(&self, cache: &impl Cache) -> bool {
        invalidate(&self.theirs.session, cache);
        let word = |index| self.theirs.session.at(index).get();
        word(session::SESSION) == self.peer && word(session::ACKNOWLEDGED) == self.me
    }

    /// Acknowledges a session of the peer's: the own rings are empty and the own blocks back.
    pub(super) fn acknowledge(&mut self, found: u32, cache: &impl Cache) {
        self.peer = found;
        // A side that drained did so in the pairing that is over.
        self.put(session::STATE, state::READY, cache);
        self.put(session::ACKNOWLEDGED, found, cache);
    }

    /// Writes this side's state.
    pub(super) fn set_state(&self, state: u32, cache: &impl Cache) {
        self.put(session::STATE, state, cache);
    }

    /// Writes what was wrong, and the state of a fault.
    pub(super) fn fault(&self, code: u32, cache: &impl Cache) {
        self.mine.session.at(session::FAULT).set(code);
        self.put(session::STATE, state::FAULT, cache);
    }

    /// One more sign of life.
    pub(super) fn beat(&mut self, cache: &impl Cache) {
        self.heartbeat = self.heartbeat.wrapping_add(1);
        self.mine.life.at(life::HEARTBEAT).set(self.heartbeat);
        clean(&self.mine.life, cache);
    }

    /// The peer's signs of life so far.
    pub(super) fn peer_beat(&self, cache: &impl Cache) -> u32 {
        invalidate(&self.theirs.life, cache);
        self.theirs.life.at(life::HEARTBEAT).get()
    }

    /// The first thing in which the peer's segment differs from what this side expects. Each of its words
    /// is read once.
    #[cold]
    fn differs(
        &self,
        identity: &Identity,
        magic: u32,
        name: impl FnOnce() -> Option<Difference>,
    ) -> Option<Difference> {
        let of = |field, ours, theirs| {
            Some(Difference {
                field,
                channel: None,
                ours,
                theirs,
            })
        };
        match magic {
            layout::MAGIC => {}
            OTHER_ORDER => return of(Field::ByteOrder, PROBE, PROBE.swap_bytes()),
            _ => return of(Field::Magic, layout::MAGIC, magic),
        }
        let ours = identity.of_peer();
        let (field, ours, theirs) = EXPECTED.iter().find_map(|&(word, field)| {
            let word = usize::from(word);
            let (ours, theirs) = (
                *ours.get(word)?,
                self.theirs.identity.at(word).load(SESSION_LOAD),
            );
            // Of the version the minor part may differ.
            let ignored = if word == identity::VERSION { 0xFFFF } else { 0 };
            (ours | ignored != theirs | ignored).then_some((field, ours, theirs))
        })?;
        match field {
            Field::Version => of(field, ours >> 16, theirs >> 16),
            // Four bytes, each of something else: the first one that differs.
            Field::Line => {
                let shift = (ours ^ theirs).trailing_zeros() & 0x18;
                let field = match shift {
                    0 => Field::Line,
                    8 => Field::Role,
                    16 => Field::Channels,
                    _ => Field::Trust,
                };
                of(field, ours >> shift & 0xFF, theirs >> shift & 0xFF)
            }
            Field::Hash => name().or_else(|| of(field, ours, theirs)),
            _ => of(field, ours, theirs),
        }
    }

    fn put(&self, index: usize, value: u32, cache: &impl Cache) {
        self.mine.session.at(index).store(value, SESSION_STORE);
        clean(&self.mine.session, cache);
    }
}

/// What is expected of the peer's identity, in this order, which names best what differs.
static EXPECTED: [(u8, Field); 6] = [
    (identity::PROBE as u8, Field::ByteOrder),
    (identity::VERSION as u8, Field::Version),
    (identity::SHAPE as u8, Field::Line),
    (identity::HASH as u8, Field::Hash),
    (identity::LENGTH as u8, Field::Length),
    (identity::DIRECTORY as u8, Field::Directory),
];

/// [`layout::MAGIC`] of a side of the other byte order.
const OTHER_ORDER: u32 = layout::MAGIC.swap_bytes();

/// A session that the peer does not take for an earlier one: its low half, which entries carry, is
/// not 0, not that of the last one, and not that of the one the peer knows.
fn next(old: u32, known: u32) -> u32 {
    let mut new = old.wrapping_add(1);
    // One step past each of the three, at most.
    for _ in 0..3 {
        if matches!(new as u16, low if low == 0 || low == old as u16 || low == known as u16) {
            new = new.wrapping_add(1);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn a_new_session_differs_from_the_old_and_from_the_known_one_in_its_low_half() {
        for old in [0, 1, 0xFFFE, 0xFFFF, 0x1_0000, u32::MAX - 1, u32::MAX] {
            for known in (0..4).map(|step| old.wrapping_add(step)).chain([0, 7]) {
                let new = next(old, known);
                let low = new as u16;
                assert!(low != 0 && low != old as u16 && low != known as u16);
            }
        }
    }
}

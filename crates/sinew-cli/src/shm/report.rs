//! What a look at a link found, and what changed since the last one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sinew_shm::domain::observe::{Channel, ChannelSide, Link, NoSide, Side, Source, State};
use sinew_shm::domain::{Kind, Role, Trust, Violation};

use super::source::Slot;
use crate::output::plain;

/// Both roles, in the order in which they are shown.
pub const ROLES: [Role; 2] = [Role::First, Role::Second];

/// One look at a link.
pub struct Report {
    at: Instant,
    /// Where it is one of several.
    pub slot: Option<Slot>,
    pub sides: [Result<Side, NoSide>; 2],
    pub channels: Vec<Channel>,
    pub is_up: bool,
    /// Since when each side's signs of life are as they are now, where that was seen.
    beats: [Option<Instant>; 2],
    /// Packets per second of each channel's directions, where there was a look before.
    rates: Vec<[Option<f64>; 2]>,
}

impl Report {
    /// Looks, and compares with the look before.
    pub fn new(link: &Link<impl Source>, slot: Option<Slot>, before: Option<&Report>) -> Report {
        let at = Instant::now();
        let sides = ROLES.map(|role| link.side(role));
        let is_up = match &sides {
            [Ok(first), Ok(second)] => first.is_up_with(second),
            _ => false,
        };
        let channels: Vec<_> = link.channels().collect();
        let beats = [0, 1].map(|side| {
            let (Ok(now), before) = (&sides[side], before?) else {
                return None;
            };
            match &before.sides[side] {
                Ok(old) if old.heartbeat == now.heartbeat && old.session == now.session => {
                    before.beats[side].or(Some(before.at))
                }
                _ => Some(at),
            }
        });
        let rates = channels.iter().map(|channel| {
            [0, 1].map(|side| {
                let before = before?;
                let sent = |channel: &Channel| Some(channel.side(ROLES[side])?.counts.sent);
                let session = |sides: &[Result<Side, NoSide>; 2]| {
                    let side = sides[side].as_ref().ok()?;
                    Some(side.session)
                };
                if session(&sides)? != session(&before.sides)? {
                    return None;
                }
                let mut old = before.channels.iter();
                let old = old.find(|old| old.id() == channel.id())?;
                let packets = sent(channel)?.wrapping_sub(sent(old)?);
                let seconds = at.duration_since(before.at).as_secs_f64();
                (seconds > 0.0).then(|| f64::from(packets) / seconds)
            })
        });
        Report {
            at,
            slot,
            is_up,
            beats,
            rates: rates.collect(),
            sides,
            channels,
        }
    }

    /// How long a side has given no sign of life; `None` where there was no look before.
    pub fn silence(&self, side: usize) -> Option<Duration> {
        Some(self.at.duration_since((*self.beats.get(side)?)?))
    }

    /// Packets per second that a side sends on a channel.
    pub fn rate(&self, channel: usize, side: usize) -> Option<f64> {
        *self.rates.get(channel)?.get(side)?
    }

    /// The state of the link in a word, and why it is not up.
    pub fn verdict(&self) -> (&'static str, Option<String>) {
        let is_taken = self.slot.and_then(|slot| slot.is_taken[1]);
        match (is_taken, self.session()) {
            // Its process was killed, and the master has not looked since; or it is another core.
            (Some(false), ("up", _)) => {
                let why =
                    "no process of this machine has the second side: it is gone, or elsewhere";
                ("up", Some(why.into()))
            }
            (Some(false), ("down" | "waiting", _)) => ("free", None),
            (_, verdict) => verdict,
        }
    }

    /// The same by the two segments alone.
    fn session(&self) -> (&'static str, Option<String>) {
        let name = |side: usize| ["first", "second"][side];
        for (side, found) in self.sides.iter().enumerate() {
            if let Err(error) = found {
                return ("down", Some(format!("{} side: {error}", name(side))));
            }
        }
        let [Ok(first), Ok(second)] = &self.sides else {
            return ("down", None);
        };
        for (index, side) in [first, second].into_iter().enumerate() {
            if let State::Fault { violation, channel } = side.state {
                let what = violation.map_or("a violation that has no name", broken);
                let what = format!("{} side stopped on channel {channel}: {what}", name(index));
                return ("fault", Some(what));
            }
        }
        if self.is_up {
            let is_draining = |side: &Side| side.state == State::Draining;
            return match is_draining(first) || is_draining(second) {
                true => ("draining", None),
                false => ("up", None),
            };
        }
        if first.role == second.role {
            return ("down", Some("both sides have the same role".into()));
        }
        if first.hash != second.hash {
            let what = format!(
                "the configurations differ ({:#010x}, {:#010x}): build or load the same one",
                first.hash, second.hash
            );
            return ("refused", Some(what));
        }
        for (index, side) in [first, second].into_iter().enumerate() {
            if side.state == State::Down {
                return ("down", Some(format!("the {} side has closed", name(index))));
            }
        }
        ("waiting", Some("the sides have not met yet".into()))
    }

    /// For machines; the names of its fields are fixed.
    pub fn json(&self) -> Value {
        let (state, why) = self.verdict();
        let sides = self.sides.iter().enumerate();
        let mut sides = sides.map(|(index, side)| self.side_json(index, side));
        let channels = self.channels.iter().enumerate();
        let channels = channels.map(|(index, channel)| self.channel_json(index, channel));
        let mut all = json!({
            "state": state,
            "why": why,
            "up": self.is_up,
            "first": sides.next(),
            "second": sides.next(),
            "channels": channels.collect::<Vec<_>>(),
        });
        if let (Some(slot), Some(all)) = (self.slot, all.as_object_mut()) {
            let [first, second] = slot.is_taken;
            all.insert("slot".into(), slot.number.into());
            let taken = json!({ "first": first, "second": second });
            all.insert("taken_by_process".into(), taken);
        }
        all
    }

    fn side_json(&self, index: usize, side: &Result<Side, NoSide>) -> Value {
        let side = match side {
            Ok(side) => side,
            Err(error) => return json!({ "missing": error.to_string() }),
        };
        json!({
            "state": state(side.state),
            "session": side.session,
            "acknowledged": side.acknowledged,
            "heartbeat": side.heartbeat,
            "silent_ms": self.silence(index).map(|silence| silence.as_millis() as u64),
            "layout": format!("{}.{}", side.version.0, side.version.1),
            "bytes": side.length,
            "line": 1u64.checked_shl(side.line_log2.into()),
            "trust": trust(side.trust),
            "configuration": format!("{:#010x}", side.hash),
        })
    }

    fn channel_json(&self, index: usize, channel: &Channel) -> Value {
        let what = channel.any_side();
        let direction = |side: usize| {
            let flow = channel.flow(ROLES[side])?;
            let counts = channel.side(ROLES[side])?.counts;
            Some(json!({
                "blocks": flow.blocks,
                "size": flow.size,
                "queued": flow.queued,
                "held": flow.held,
                "free": flow.free,
                "lent": flow.lent,
                "returned": flow.returned,
                "sent": flow.sent,
                "per_second": self.rate(index, side),
                "full": flow.full,
                "too_large": flow.too_large,
                "filtered": flow.filtered,
                "consistent": flow.is_consistent,
                "rung": counts.rung,
                "suppressed": counts.suppressed(),
            }))
        };
        let messages = |side: usize| {
            let flow = channel.messages(ROLES[side])?;
            let counts = channel.side(ROLES[side])?.counts;
            Some(json!({
                "requests": flow.requests,
                "calls": flow.calls,
                "blocks": flow.memory.blocks,
                "size": flow.memory.size,
                "waiting": flow.waiting,
                "sent": flow.sent,
                "per_second": self.rate(index, side),
                "consistent": flow.is_consistent,
                "rung": counts.rung,
            }))
        };
        let value = |side: usize| {
            let value = channel.value(ROLES[side])?;
            Some(json!({ "size": value.size, "version": value.version }))
        };
        if channel.kind() == Some(Kind::State) {
            return json!({
                "id": channel.id(),
                "kind": "state",
                "name": what.map(name),
                "uuid": what.map(|side| side.uuid).filter(|&uuid| uuid != 0).map(|uuid| format!("{uuid:032x}")),
                "type": what.map(|side| side.type_hash).filter(|&hash| hash != 0),
                "priority": what.map(|side| side.priority),
                "state": { "first": value(0), "second": value(1) },
            });
        }
        let violations = ROLES.map(|role| channel.side(role).map(|side| side.counts.violations));
        if let Some(lock) = channel.lock() {
            let [first, second] = lock.wanted;
            let versions = lock.versions;
            return json!({
                "id": channel.id(),
                "kind": "lock",
                "name": what.map(name),
                "uuid": what.map(|side| side.uuid).filter(|&uuid| uuid != 0).map(|uuid| format!("{uuid:032x}")),
                "type": what.map(|side| side.type_hash).filter(|&hash| hash != 0),
                "priority": what.map(|side| side.priority),
                "violations_seen_by": { "first": violations[0], "second": violations[1] },
                "lock": {
                    "size": lock.size,
                    "semaphore": what.and_then(|side| side.semaphore.checked_sub(1)),
                    "owner": owner(lock.owner),
                    "wanted_by": { "first": first, "second": second },
                    "versions": { "first": versions[0], "second": versions[1] },
                    "poisoned": lock.is_poisoned,
                },
            });
        }
        let (first, second) = match channel.kind() {
            Some(Kind::Message) => (messages(0), messages(1)),
            _ => (direction(0), direction(1)),
        };
        json!({
            "id": channel.id(),
            "name": what.map(name),
            "uuid": what.map(|side| side.uuid).filter(|&uuid| uuid != 0).map(|uuid| format!("{uuid:032x}")),
            "type": what.map(|side| side.type_hash).filter(|&hash| hash != 0),
            "priority": what.map(|side| side.priority),
            "replies": what.map(|side| side.replies),
            "violations_seen_by": { "first": violations[0], "second": violations[1] },
            "kind": match channel.kind() {
                Some(Kind::Message) => "message",
                _ => "queue",
            },
            "first_to_second": first,
            "second_to_first": second,
        })
    }
}

/// A channel's name with nothing in it that a terminal would act upon.
pub fn name(side: &ChannelSide) -> String {
    plain(side.name.as_str())
}

pub fn state(state: State) -> String {
    match state {
        State::Down => "closed".into(),
        State::Opening => "opening".into(),
        State::Ready => "ready".into(),
        State::Draining => "draining".into(),
        State::Fault { .. } => "fault".into(),
        State::Unknown(number) => format!("unknown {number}"),
    }
}

/// Who has a lock.
pub fn owner(owner: Option<Role>) -> Option<&'static str> {
    owner.map(|role| match role {
        Role::First => "first",
        Role::Second => "second",
    })
}

pub fn trust(trust: Option<Trust>) -> &'static str {
    match trust {
        Some(Trust::None) => "none",
        Some(Trust::Mutual) => "mutual",
        None => "unknown",
    }
}

/// What the other side did.
fn broken(violation: Violation) -> &'static str {
    match violation {
        Violation::Sequence => "an entry with an impossible number",
        Violation::Session => "an entry of another session",
        Violation::Block => "a packet in a block that it does not have",
        Violation::Twice => "a packet in a block that is still held",
        Violation::NotLent => "the return of a block that was not lent",
        Violation::Length => "a length beyond the block",
        Violation::Kind => "a message of no known kind",
        Violation::Token => {
            "a call in a place that does not exist or is taken, or an answer to none"
        }
        Violation::Version => "an area of a version that nobody can have reached",
    }
}

//! The values of state channels, read by who is neither side.
//!
//! A side's peer can read a copy in peace, because it says which pair it reads. Nobody heeds an
//! observer: it finds by the copy's number whether the copy was written meanwhile, and tries again.

use super::super::config::{Kind, Role};
use super::super::layout::{SESSION, session, state};
use super::super::state::Value;
use super::{ChannelSide, Link, Side, Source, State};

/// How often a value is read anew that changed under the observer, before it is told.
const ATTEMPTS: usize = 8;

/// What there is of a side's value in a state channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueInfo {
    /// Bytes of it.
    pub size: u32,
    /// The number of the latest value; `None`: the side has set none in this session.
    pub version: Option<u32>,
}

impl ValueInfo {
    pub(super) fn of(side: &ChannelSide) -> Option<ValueInfo> {
        let has_value = side.kind == Some(Kind::State) && side.pool.blocks > 0;
        has_value.then_some(ValueInfo {
            size: side.pool.size,
            version: side.version,
        })
    }
}

/// Why an observer has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoValue {
    /// The side is not there, has no such state channel, or no value of its own in it.
    Absent,
    /// The side has set none in this session.
    Unset,
    /// The side's value has this many bytes: give room for exactly as many.
    Size(u32),
    /// The channel's values are of the type with this hash, which is another one.
    Type(u32),
    /// The side set values all the time, or began anew, in each of 8 attempts: look again later.
    Busy,
}

impl core::fmt::Display for NoValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NoValue::Absent => f.write_str("the side has no value in such a channel"),
            NoValue::Unset => f.write_str("the side has set no value yet"),
            NoValue::Size(size) => write!(f, "the value has {size} bytes"),
            NoValue::Type(hash) => write!(f, "the value is of the type {hash:#010x}"),
            NoValue::Busy => f.write_str("the value changed all the time: look again"),
        }
    }
}

impl core::error::Error for NoValue {}

impl<S: Source> Link<S> {
    /// Copies the latest value of a side into `out`, which has as many bytes as the value: its number.
    ///
    /// Whole, or not at all: what changed during the look is read anew, 8 times at most. After an
    /// error the bytes in `out` mean nothing.
    pub fn value(&self, from: Role, channel: u16, out: &mut [u8]) -> Result<u32, NoValue> {
        let (side, found) = self.find(from, channel).ok_or(NoValue::Absent)?;
        read(self.source(from), &side, &found, out)
    }

    /// As [`Link::value`], of a type; and its number.
    pub fn state<T: Value>(&self, from: Role, channel: u16) -> Result<(T, u32), NoValue> {
        let (side, found) = self.find(from, channel).ok_or(NoValue::Absent)?;
        if found.type_hash != T::HASH {
            return Err(NoValue::Type(found.type_hash));
        }
        let mut bytes = T::ZERO;
        let version = read(self.source(from), &side, &found, bytes.as_mut())?;
        Ok((T::take(bytes.as_ref()), version))
    }

    fn find(&self, from: Role, channel: u16) -> Option<(Side, ChannelSide)> {
        let (side, source) = (self.side(from).ok()?, self.source(from));
        let mut all = (0..usize::from(side.channels)).map_while(|at| side.channel(source, at));
        let found = all.find(|found| found.id == channel)?;
        ValueInfo::of(&found).map(|_| (side, found))
    }
}

fn read(
    source: &impl Source,
    side: &Side,
    channel: &ChannelSide,
    out: &mut [u8],
) -> Result<u32, NoValue> {
    let size = channel.pool.size;
    if usize::try_from(size) != Ok(out.len()) {
        return Err(NoValue::Size(size));
    }
    let line = 1_u32.checked_shl(side.line_log2.into());
    let line = line.ok_or(NoValue::Absent)?.max(64);
    let stride = size.checked_next_multiple_of(line);
    let stride = stride.ok_or(NoValue::Absent)?;
    if side.state == State::Opening {
        return Err(NoValue::Busy);
    }
    for _ in 0..ATTEMPTS {
        // The word of the pair is read before the word that names the pair, and once more behind the
        // copy: in between it was the latest.
        let control = source.line(channel.control).ok_or(NoValue::Absent)?;
        let latest = control[state::LATEST];
        let pair = state::PAIRS + (latest & 1) as usize;
        let word = control[pair];
        if word & state::IS_SET == 0 {
            return Err(NoValue::Unset);
        }
        let at = stride.checked_mul(word & 3);
        let at = at.and_then(|at| at.checked_add(channel.area));
        let copied = source.copy(at.ok_or(NoValue::Absent)?, out);
        copied.ok_or(NoValue::Absent)?;
        // With another session of either side the numbers begin again.
        let after = source.line(channel.control).ok_or(NoValue::Absent)?;
        let now = source.line(SESSION).ok_or(NoValue::Absent)?;
        let sessions = (now[session::SESSION], now[session::ACKNOWLEDGED]);
        if sessions != (side.session, side.acknowledged) {
            return Err(NoValue::Busy);
        }
        if after[pair] == word {
            return Ok(word >> state::NUMBER_SHIFT);
        }
    }
    Err(NoValue::Busy)
}

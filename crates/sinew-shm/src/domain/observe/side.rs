//! What one side's segment says of the side.

use super::super::Violation;
use super::super::config::{MAJOR, MAX_CHANNELS, Role, Trust};
use super::super::layout::{self, identity, life, session};
use super::super::session::state;
use super::{ChannelSide, Source};

/// One side, as it was when it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Of the layout: major, minor.
    pub version: (u16, u16),
    /// Bytes of the segment, as it says.
    pub length: u32,
    /// The longest cache line of either side, as a power of two.
    pub line_log2: u8,
    /// Which side it is; `None` for a number that is none.
    pub role: Option<Role>,
    /// What the sides may assume of each other; `None` for a number that is none.
    pub trust: Option<Trust>,
    /// Channels in the directory, at most [`MAX_CHANNELS`](super::super::MAX_CHANNELS).
    pub channels: u8,
    /// Of the configuration: a link needs the same on both sides.
    pub hash: u32,
    /// This life of the side; another number after each open.
    pub session: u32,
    /// The peer's session that this side goes with; 0 for none.
    pub acknowledged: u32,
    /// What it is doing.
    pub state: State,
    /// Signs of life: a living side counts on, once in each [`heartbeat`](super::super::Options).
    pub heartbeat: u32,
    directory: u32,
}

/// What a side is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Closed in order.
    Down,
    /// Between two sessions.
    Opening,
    /// Ready for a peer, or up.
    Ready,
    /// Wants no more packets, before it closes.
    Draining,
    /// It has stopped: the peer broke the protocol.
    Fault {
        /// How; `None` for a number that is none.
        violation: Option<Violation>,
        /// The channel's id.
        channel: u16,
    },
    /// A number that is none.
    Unknown(u32),
}

/// Why there is nothing to read about a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSide {
    /// The memory ends within the header: the wrong file or offset, or it was not given its size.
    Short,
    /// Nobody has opened this side yet, or somebody is opening it at this moment: look again.
    Absent,
    /// Something else is there: the wrong file or offset.
    Magic(u32),
    /// The side writes words in the other byte order: it is built wrongly.
    ByteOrder,
    /// The segment is of another layout, of this major version: use the tools of that version.
    Version(u16),
}

impl core::fmt::Display for NoSide {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NoSide::Short => f.write_str("the memory ends before the segment does"),
            NoSide::Absent => f.write_str("nobody has opened this side"),
            NoSide::Magic(magic) => write!(f, "this is no segment ({magic:#010x} stands there)"),
            NoSide::ByteOrder => f.write_str("the side writes words in the other byte order"),
            NoSide::Version(major) => {
                write!(f, "the segment has layout {major}, and this is {MAJOR}")
            }
        }
    }
}

impl core::error::Error for NoSide {}

impl Side {
    /// Reads a side from its segment.
    pub fn read(source: &(impl Source + ?Sized)) -> Result<Side, NoSide> {
        let who = source.line(layout::IDENTITY).ok_or(NoSide::Short)?;
        let now = source.line(layout::SESSION).ok_or(NoSide::Short)?;
        let life = source.line(layout::LIFE).ok_or(NoSide::Short)?;
        let magic = who[identity::MAGIC];
        if magic == layout::MAGIC.swap_bytes() || who[identity::PROBE] == layout::PROBE.swap_bytes()
        {
            return Err(NoSide::ByteOrder);
        }
        match magic {
            0 => return Err(NoSide::Absent),
            layout::MAGIC => {}
            other => return Err(NoSide::Magic(other)),
        }
        if who[identity::PROBE] != layout::PROBE {
            return Err(NoSide::ByteOrder);
        }
        let version = who[identity::VERSION];
        let version = ((version >> 16) as u16, version as u16);
        if version.0 != MAJOR {
            return Err(NoSide::Version(version.0));
        }
        let [line_log2, role, channels, trust] = who[identity::SHAPE].to_le_bytes();
        Ok(Side {
            version,
            length: who[identity::LENGTH],
            line_log2,
            role: match role {
                0 => Some(Role::First),
                1 => Some(Role::Second),
                _ => None,
            },
            trust: match trust {
                0 => Some(Trust::None),
                1 => Some(Trust::Mutual),
                _ => None,
            },
            channels: channels.min(MAX_CHANNELS as u8),
            hash: who[identity::HASH],
            session: now[session::SESSION],
            acknowledged: now[session::ACKNOWLEDGED],
            state: State::of(now[session::STATE], now[session::FAULT]),
            heartbeat: life[life::HEARTBEAT],
            directory: who[identity::DIRECTORY],
        })
    }

    /// Whether packets go both ways between this side and that one.
    pub fn is_up_with(&self, peer: &Side) -> bool {
        let is_open = |side: &Side| matches!(side.state, State::Ready | State::Draining);
        is_open(self)
            && is_open(peer)
            && self.session != 0
            && peer.session != 0
            && self.acknowledged == peer.session
            && peer.acknowledged == self.session
    }

    /// The channel at a place of the directory, from the side's segment; `None` beyond the last one,
    /// and where the directory points outside of the segment.
    pub fn channel(&self, source: &(impl Source + ?Sized), index: usize) -> Option<ChannelSide> {
        if index >= usize::from(self.channels) {
            return None;
        }
        let at = u32::try_from(index)
            .ok()?
            .checked_mul(layout::DIRECTORY_ENTRY)?;
        ChannelSide::read(source, self.directory.checked_add(at)?)
    }
}

impl State {
    fn of(state: u32, fault: u32) -> State {
        match state {
            state::DOWN => State::Down,
            state::OPENING => State::Opening,
            state::READY => State::Ready,
            state::DRAINING => State::Draining,
            state::FAULT => State::Fault {
                violation: violation(fault as u16),
                channel: (fault >> 16) as u16,
            },
            other => State::Unknown(other),
        }
    }
}

fn violation(code: u16) -> Option<Violation> {
    use Violation as V;
    let all = [
        V::Sequence,
        V::Session,
        V::Block,
        V::Twice,
        V::NotLent,
        V::Length,
        V::Kind,
        V::Token,
        V::Version,
    ];
    all.into_iter().find(|&violation| violation as u16 == code)
}

//! What an end is opened with, what stands against it, and how it then is.

use super::super::check::ConfigError;
use super::super::config::{Config, Kind};
use super::super::port::Uses;
use super::super::{Difference, Violation};
use super::platform::Platform;

/// What is not part of the agreement: each side's own choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Milliseconds between two signs of life.
    pub heartbeat: u32,
    /// A peer without a sign of life for so many milliseconds is taken for dead; 0, the default, is
    /// never. Several times the peer's `heartbeat`, or it will be taken for dead while it lives.
    pub silence: u32,
    /// Whether a violation stops the link; else it is only counted.
    pub faults: bool,
}

impl Default for Options {
    /// A sign of life each 100 ms, no judgement by it, and violations stop the link.
    fn default() -> Options {
        Options {
            heartbeat: 100,
            silence: 0,
            faults: true,
        }
    }
}

/// What an end is made of, besides memory and configuration.
pub struct Parts<P: Platform> {
    /// Rings the peer.
    pub doorbell: P::Doorbell,
    /// Cache maintenance.
    pub cache: P::Cache,
    /// Whoever has the hardware semaphores. It is kept for as long as the end.
    pub platform: P,
    /// Room for as many channels as the configuration has.
    pub slots: P::Slots,
    /// Room for [`Config::blocks`](crate::domain::Config::blocks).
    pub blocks: P::Blocks,
}

/// Why an end cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The configuration is none.
    Config(ConfigError),
    /// A segment is shorter than the configuration needs: [`Config::segment_len`](crate::domain::Config::segment_len),
    /// [`Config::exchange_len`](crate::domain::Config::exchange_len).
    Memory {
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The configuration has channels with replies, and [`Platform::USES`] leaves them out.
    Replies,
    /// The configuration has state channels, and [`Platform::USES`] leaves them out.
    States,
    /// The configuration has lock channels, and [`Platform::USES`] leaves them out.
    Locks,
    /// The configuration has a lock channel with a semaphore that [`Platform::hardware_lock`] does not
    /// have: this is its number.
    Semaphore(u16),
    /// The configuration has message channels, and [`Platform::USES`] leaves them out.
    Messages,
    /// Fewer slots or blocks than [`Config::channels`](crate::domain::Config::channels) and [`Config::blocks`](crate::domain::Config::blocks) need.
    Room,
}

impl OpenError {
    /// Why a configuration cannot be opened by an end that has no more than these uses.
    pub(super) const fn of(config: &Config<'_>, uses: Uses) -> Option<OpenError> {
        let mut at = 0;
        while at < config.channels.len() {
            let channel = &config.channels[at];
            match channel.kind {
                Kind::State if !uses.states => return Some(OpenError::States),
                Kind::Lock if !uses.locks => return Some(OpenError::Locks),
                Kind::Message if !uses.messages => return Some(OpenError::Messages),
                _ if channel.replies && !uses.replies => return Some(OpenError::Replies),
                _ => at += 1,
            }
        }
        None
    }
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            OpenError::Config(error) => error.fmt(f),
            OpenError::Memory { needed, found } => write!(
                f,
                "the memory has {found} bytes and the configuration needs {needed}: give it more, \
                 or have fewer or smaller blocks"
            ),
            OpenError::Replies => f.write_str(
                "the configuration has a channel with replies, and this end is built without them: \
                 set Platform::USES, or take them out of the channel",
            ),
            OpenError::States => f.write_str(
                "the configuration has a state channel, and this end is built without them: set \
                 Platform::USES, or leave the channel out",
            ),
            OpenError::Locks => f.write_str(
                "the configuration has a lock channel, and this end is built without them: set \
                 Platform::USES, or leave the channel out",
            ),
            OpenError::Semaphore(number) => write!(
                f,
                "the platform has no hardware semaphore {number}: give it in \
                 Platform::hardware_lock, or take it out of the channel on both sides"
            ),
            OpenError::Messages => f.write_str(
                "the configuration has a message channel, and this end is built without them: set \
                 Platform::USES, or leave the channel out",
            ),
            OpenError::Room => f.write_str(
                "the end has too few slots or blocks: as many as Config::channels and \
                 Config::blocks() say",
            ),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<ConfigError> for OpenError {
    fn from(error: ConfigError) -> OpenError {
        OpenError::Config(error)
    }
}

/// How a link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// No peer is there, or it has not answered yet.
    Waiting,
    /// Packets go both ways.
    Up,
    /// The peer is there and does not fit.
    Refused(Difference),
    /// Stopped after a violation; see [`End::recover`](super::End::recover).
    Fault(Violation),
    /// Closed by this side.
    Closed,
}

//! What a configuration must be, and how much memory it takes.

use super::config::{
    Config, Kind, MAX_BLOCKS, MAX_CALLS, MAX_CHANNELS, MAX_SIZE, Pool, Role, Trust,
};
use super::layout;

/// Why a configuration is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// There is no channel: add one. Or there are more than [`MAX_CHANNELS`]: split the link.
    Channels,
    /// Two channels have this id: give one of them another.
    DuplicateId(u16),
    /// The pool of the channel with this id is too large ([`MAX_BLOCKS`], [`MAX_SIZE`]), empty on
    /// both sides, or has blocks of no size.
    Pool(u16),
    /// The channel with this id answers in the received block, which only `trust = mutual` allows.
    RepliesNeedTrust(u16),
    /// The state channel with this id has more than one value for a side, or replies.
    State(u16),
    /// The lock channel with this id has not one area of one size for both sides, or has replies; or
    /// another channel has a semaphore.
    Lock(u16),
    /// The message channel with this id has no requests, or more than [`MAX_CALLS`] requests, calls or
    /// blocks, or replies without blocks; or the channel has requests or calls and is none.
    Messages(u16),
    /// The line is not of 32 to 256 bytes.
    Line,
    /// One segment would be larger than 2 GiB.
    TooLarge,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ConfigError::Channels => {
                write!(
                    f,
                    "a link has 1 to {MAX_CHANNELS} channels: add one, or split the link"
                )
            }
            ConfigError::DuplicateId(id) => {
                write!(f, "two channels have the id {id}: give one of them another")
            }
            ConfigError::Pool(id) => write!(
                f,
                "channel {id}: a pool has 1 to {MAX_BLOCKS} blocks of 1 to {MAX_SIZE} bytes, and \
                 one side at least sends"
            ),
            ConfigError::RepliesNeedTrust(id) => write!(
                f,
                "channel {id}: replies in the lent block need trust = mutual: set it, or leave \
                 replies out"
            ),
            ConfigError::State(id) => write!(
                f,
                "channel {id}: a state channel has one block for each side that has a value, and no \
                 replies"
            ),
            ConfigError::Lock(id) => write!(
                f,
                "channel {id}: a lock channel has one block of the same size for each side, and no \
                 replies; another channel has no semaphore"
            ),
            ConfigError::Messages(id) => write!(
                f,
                "channel {id}: a message channel has 1 to {MAX_CALLS} requests, at most as many \
                 calls and blocks, and replies only with blocks; another channel has neither \
                 requests nor calls"
            ),
            ConfigError::Line => f.write_str("the line is 2^5 to 2^8 bytes: set line_log2 so"),
            ConfigError::TooLarge => {
                f.write_str("a segment would be above 2 GiB: have fewer or smaller blocks")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config<'_> {
    /// Whether it is one; to be asked in a constant, so that the answer comes at compile time.
    pub const fn check(&self) -> Result<(), ConfigError> {
        if self.channels.is_empty() || self.channels.len() > MAX_CHANNELS {
            return Err(ConfigError::Channels);
        }
        if self.line_log2 < 5 || self.line_log2 > 8 {
            return Err(ConfigError::Line);
        }
        let mut at = 0;
        while at < self.channels.len() {
            let channel = &self.channels[at];
            let mut before = 0;
            while before < at {
                if self.channels[before].id == channel.id {
                    return Err(ConfigError::DuplicateId(channel.id));
                }
                before += 1;
            }
            let (first, second) = (channel.first, channel.second);
            let is_message = matches!(channel.kind, Kind::Message);
            let is_empty = first.blocks == 0 && second.blocks == 0;
            if !Self::is_pool(first) || !Self::is_pool(second) || (is_empty && !is_message) {
                return Err(ConfigError::Pool(channel.id));
            }
            let (requests, calls) = (channel.requests, channel.calls);
            let has_few = first.blocks <= MAX_CALLS && second.blocks <= MAX_CALLS;
            let is_right = match is_message {
                true => requests >= 1 && requests <= MAX_CALLS && calls <= MAX_CALLS && has_few,
                false => requests == 0 && calls == 0,
            };
            if !is_right || (is_message && is_empty && channel.replies) {
                return Err(ConfigError::Messages(channel.id));
            }
            let is_state = matches!(channel.kind, Kind::State);
            if is_state && (first.blocks > 1 || second.blocks > 1 || channel.replies) {
                return Err(ConfigError::State(channel.id));
            }
            let is_lock = matches!(channel.kind, Kind::Lock);
            let is_area = first.blocks == 1 && second.blocks == 1 && first.size == second.size;
            if (is_lock && (!is_area || channel.replies)) || (!is_lock && channel.semaphore != 0) {
                return Err(ConfigError::Lock(channel.id));
            }
            if channel.replies && !matches!(self.trust, Trust::Mutual) {
                return Err(ConfigError::RepliesNeedTrust(channel.id));
            }
            at += 1;
        }
        let largest = 1 << 31;
        if layout::segment_len(self, Role::First) > largest
            || layout::segment_len(self, Role::Second) > largest
            || layout::exchange_len(self) > largest
        {
            return Err(ConfigError::TooLarge);
        }
        Ok(())
    }

    const fn is_pool(pool: Pool) -> bool {
        pool.blocks == 0 || (pool.blocks <= MAX_BLOCKS && pool.size >= 1 && pool.size <= MAX_SIZE)
    }

    /// How many bytes the segment of this side has.
    pub const fn segment_len(&self, role: Role) -> usize {
        layout::segment_len(self, role) as usize
    }

    /// How many bytes the exchange segment has; 0 where there is none.
    pub const fn exchange_len(&self) -> usize {
        layout::exchange_len(self) as usize
    }
}

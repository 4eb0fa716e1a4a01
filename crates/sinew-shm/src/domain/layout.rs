//! Layout 1: where what lies in a segment. Little-endian words of 32 bits; offsets in bytes from the
//! segment's base; only the segment's owner writes. The page "Domain links" of the book has it
//! as a table.
//!
//! ```text
//! 0x000 identity   0x040 session   0x080 signs of life   0x100 directory, 128 bytes a channel
//! then per channel, each from a line of its own:
//!   control (64)   statistics (64)   ring of sent entries   ring of returns   pool
//! of a message channel:
//!   control (64)   statistics (64)   ring of messages, 64 bytes each   answers, 64 bytes each
//!   pool   blocks for the answers to the peer's messages with memory, as many as its pool has
//! and of a state channel:
//!   control (64)   statistics (64)   four copies of the own value
//! and of a lock channel:
//!   control (64)   statistics (64)   the own copy of the area
//! ```
//!
//! A ring has a power of two of entries of 16 bytes, at least as many as there are blocks to pass
//! through it, so it is never full. Pools of channels with replies lie in the exchange segment, the
//! first side's before the second side's; a message that is lent there is answered in its own block.

use super::config::{Channel, Config, Kind, Role};

/// `magic`: stored last at open, 0 before.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"Sinw");
/// Read as something else by a side of the other byte order.
pub(super) const PROBE: u32 = 0x0102_0304;

/// Line of the identity: word indices.
pub(super) const IDENTITY: u32 = 0x00;
pub(super) mod identity {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const PROBE: usize = 2;
    pub const LENGTH: usize = 3;
    /// line_log2, role << 8, channels << 16, trust << 24.
    pub const SHAPE: usize = 4;
    pub const DIRECTORY: usize = 5;
    pub const HASH: usize = 6;
    pub const OFFERED: usize = 7;
    pub const ACCEPTED: usize = 8;
}

/// Line of the session: word indices.
pub(super) const SESSION: u32 = 0x40;
pub(super) mod session {
    pub const SESSION: usize = 0;
    pub const ACKNOWLEDGED: usize = 1;
    pub const STATE: usize = 2;
    /// Code, channel << 16.
    pub const FAULT: usize = 3;
}

/// Line of the signs of life: word indices.
pub(super) const LIFE: u32 = 0x80;
pub(super) mod life {
    pub const HEARTBEAT: usize = 0;
}

/// Where in each segment the word lies that a doorbell of the operating system may sleep on: its
/// owner counts it up at each ring. Bytes from the base; nothing else uses it.
pub const BELL: usize = LIFE as usize + 4;

pub(super) const DIRECTORY: u32 = 0x100;
pub(super) const DIRECTORY_ENTRY: u32 = 128;
/// A directory entry: word indices.
pub(super) mod directory {
    /// id, kind << 16, priority << 24.
    pub const ID: usize = 0;
    /// Blocks of the owner, ring_log2 << 16, replies << 24.
    pub const BLOCKS: usize = 1;
    pub const SIZE: usize = 2;
    pub const TYPE: usize = 3;
    pub const CONTROL: usize = 4;
    pub const STATISTICS: usize = 5;
    pub const RING: usize = 6;
    pub const RETURNS: usize = 7;
    /// From the base of the exchange segment where the channel has replies.
    pub const POOL: usize = 8;
    /// Blocks of the peer, ring_log2 of the returns << 16.
    pub const PEER_BLOCKS: usize = 9;
    pub const PEER_SIZE: usize = 10;
    /// Requests, calls << 16; of a lock channel its semaphore.
    pub const MESSAGES: usize = 11;
    /// Blocks for answers; 0 where there are none.
    pub const ANSWERS: usize = 20;
    pub const UUID: usize = 12;
    pub const NAME: usize = 16;
}

/// Line of a channel's control: word indices.
pub(super) mod control {
    /// Ring when the entry at this position is published.
    pub const WAKE_PACKETS: usize = 0;
    /// Ring when the return at this position is published.
    pub const WAKE_RETURNS: usize = 1;
    /// Counts the changes of the filter, which is being written while it is odd.
    pub const FILTER: usize = 4;
    pub const FILTER_KIND: usize = 5;
    pub const FILTER_OFFSET: usize = 6;
    pub const FILTER_MASK: usize = 7;
    pub const FILTER_VALUE: usize = 8;
}

/// Line of a channel's statistics: word indices. The first four are positions in rings.
pub(super) mod statistics {
    pub const SENT: usize = 0;
    pub const RECLAIMED: usize = 1;
    pub const RECEIVED: usize = 2;
    pub const RELEASED: usize = 3;
    pub const FULL: usize = 4;
    pub const TOO_LARGE: usize = 5;
    /// Own packets that the peer's filter kept back.
    pub const FILTERED: usize = 6;
    pub const VIOLATIONS: usize = 7;
    /// Rings of the doorbell in this session; every other packet and return rang nobody.
    pub const RUNG: usize = 8;
    /// Packets of the peer's that the own filter sent back.
    pub const UNWANTED: usize = 9;
    /// Bytes that were cleared before another peer could read them.
    pub const CLEARED: usize = 10;
}

/// Line of a state channel's control: word indices.
pub(super) mod state {
    /// The pair with the latest of the own values.
    pub const LATEST: usize = 0;
    /// The pair of the peer's copies that this side reads.
    pub const READING: usize = 1;
    /// Of each of the two pairs the latest value: its copy, [`IS_SET`], its number << [`NUMBER_SHIFT`].
    /// 0 where there is none.
    pub const PAIRS: usize = 4;
    pub const IS_SET: u32 = 4;
    pub const NUMBER_SHIFT: u32 = 3;
}
/// Line of a lock channel's control: word indices.
pub(super) mod lock {
    /// The owner's session, while it wants or has the lock; 0 else.
    pub const WANT: usize = 0;
    /// 1 while the owner has the lock. For observers.
    pub const HELD: usize = 1;
    /// Changes when the peer is to ring once, as soon as it does not want the lock.
    pub const WAKE: usize = 2;
    /// The version of the own copy: low word, high word.
    pub const VERSION: usize = 4;
    /// Every version below this one is poisoned: low word, high word.
    pub const POISON: usize = 6;
    /// [`seal`](super::lock_seal) where the area and these words are of an earlier life of this side.
    pub const SEAL: usize = 8;
    /// 1 where they are not, until the peer has seen that.
    pub const FRESH: usize = 9;
}

/// What stands in the control line of a lock channel whose area is in use, of a configuration with this
/// hash: "Lock" more.
pub(super) const fn lock_seal(hash: u32) -> u32 {
    hash.wrapping_add(u32::from_le_bytes(*b"Lock"))
}

/// Line of a message channel's control: word indices.
pub(super) mod message {
    /// Ring when the message at this position is sent.
    pub const WAKE_MESSAGES: usize = 0;
    /// Changes when the peer is to ring once at the next answer.
    pub const WAKE_ANSWERS: usize = 1;
    /// Messages of the peer's that this side has taken up.
    pub const TAKEN: usize = 2;
    /// Ring when the message at this position is taken up.
    pub const WAKE_TAKEN: usize = 3;
}

/// A message: word indices.
pub(super) mod line {
    /// Position + 1, stored last.
    pub const SEQUENCE: usize = 0;
    /// Kind, low half of the sender's session << 16.
    pub const KIND: usize = 1;
    pub const OPCODE: usize = 2;
    /// Of a call: its place, its number << 16.
    pub const TOKEN: usize = 3;
    /// The first of five. Of a message with memory: where its bytes begin in the block of its place,
    /// and how many they are, and three words.
    pub const WORDS: usize = 4;
}
/// The kinds of messages.
pub(super) const SCALAR: u32 = 1;
pub(super) const CALL: u32 = 2;
/// With memory: for good, to be read, to be read and answered in memory. A token as of a call: the
/// answer gives the block back.
pub(super) const MOVE: u32 = 3;
pub(super) const LEND: u32 = 4;
pub(super) const LEND_MUT: u32 = 5;

/// An answer, in the line of the place of its call: word indices.
pub(super) mod answer {
    /// That of the call, stored last.
    pub const TOKEN: usize = 0;
    /// What it says, words << 8, low half of the sender's session << 16.
    pub const STATUS: usize = 1;
    /// The first of five. Of memory that was lent to be answered in: where the answer begins in the
    /// block, and how many bytes it has.
    pub const WORDS: usize = 2;
}

/// Copies of a value, so that neither side waits for the other.
pub(super) const COPIES: u16 = 4;

/// An entry of a ring: word indices.
pub(super) mod entry {
    /// Position + 1, stored last.
    pub const SEQUENCE: usize = 0;
    /// Block, low half of the session of the block's owner << 16.
    pub const BLOCK: usize = 1;
    pub const LEN: usize = 2;
    pub const FLAGS: usize = 3;
}
pub(super) const ENTRY: u32 = 16;
/// In the flags of a packet: the block that its sender is going to use next, + 1, 0 where it does not
/// know. Only a hint, by which the receiver fetches early.
pub(super) const NEXT_SHIFT: u32 = 16;
/// In the flags of a return: the block holds an answer of `len` bytes.
pub(super) const REPLY: u32 = 1;

/// Where one side's part of a channel lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Parts {
    pub control: u32,
    pub statistics: u32,
    pub ring: u32,
    pub ring_log2: u32,
    pub returns: u32,
    pub returns_log2: u32,
    pub pool: u32,
    pub stride: u32,
    /// Blocks for answers to the peer's messages with memory, as its pool's; 0 where there are none.
    pub answers: u32,
}

/// The smallest ring through which so many blocks pass, as a power of two.
pub(super) const fn ring_log2(blocks: u16) -> u32 {
    (blocks as u32).next_power_of_two().trailing_zeros()
}

const fn line(config: &Config<'_>) -> u64 {
    let line = 1 << config.line_log2;
    if line < 64 { 64 } else { line }
}

const fn align(at: u64, line: u64) -> u64 {
    at.next_multiple_of(line)
}

const fn stride(config: &Config<'_>, channel: &Channel, role: Role) -> u64 {
    align(channel.pool(role).size as u64, line(config))
}

const fn pool_len(config: &Config<'_>, channel: &Channel, role: Role) -> u64 {
    let copies = match channel.kind {
        Kind::Queue | Kind::Message | Kind::Lock => 1,
        Kind::State => COPIES as u64,
    };
    stride(config, channel, role) * channel.pool(role).blocks as u64 * copies
}

/// Where the part of the channel at `index` lies in the segment of `role`, and where the next
/// begins.
const fn walk(config: &Config<'_>, role: Role, index: usize) -> (Parts, u64) {
    let line = line(config);
    let mut at = align(
        DIRECTORY as u64 + config.channels.len() as u64 * DIRECTORY_ENTRY as u64,
        line,
    );
    let mut exchange = 0;
    let mut parts = Parts {
        control: 0,
        statistics: 0,
        ring: 0,
        ring_log2: 0,
        returns: 0,
        returns_log2: 0,
        pool: 0,
        stride: 0,
        answers: 0,
    };
    let mut channel_at = 0;
    while channel_at < config.channels.len() && channel_at <= index {
        let channel = &config.channels[channel_at];
        parts.control = at as u32;
        at += line;
        parts.statistics = at as u32;
        at += line;
        (parts.ring, parts.returns) = (0, 0);
        (parts.ring_log2, parts.returns_log2) = (0, 0);
        if matches!(channel.kind, Kind::Queue) {
            parts.ring = at as u32;
            parts.ring_log2 = ring_log2(channel.pool(role).blocks);
            at += align((ENTRY as u64) << parts.ring_log2, line);
            parts.returns = at as u32;
            parts.returns_log2 = ring_log2(channel.pool(role.peer()).blocks);
            at += align((ENTRY as u64) << parts.returns_log2, line);
        }
        if matches!(channel.kind, Kind::Message) {
            parts.ring = at as u32;
            parts.ring_log2 = ring_log2(channel.requests);
            at += 64 << parts.ring_log2;
            parts.returns = at as u32;
            parts.returns_log2 = ring_log2(channel.places(role.peer()));
            at = align(at + (64 << parts.returns_log2), line);
        }
        parts.stride = stride(config, channel, role) as u32;
        if channel.replies {
            let first = pool_len(config, channel, Role::First);
            let both = first + pool_len(config, channel, Role::Second);
            parts.pool = match role {
                Role::First => exchange as u32,
                Role::Second => (exchange + first) as u32,
            };
            exchange += both;
        } else {
            parts.pool = at as u32;
            at += pool_len(config, channel, role);
        }
        parts.answers = 0;
        if matches!(channel.kind, Kind::Message) && !channel.replies {
            let answers = pool_len(config, channel, role.peer());
            parts.answers = if answers > 0 { at as u32 } else { 0 };
            at += answers;
        }
        channel_at += 1;
    }
    (parts, at)
}

/// Where the part of the channel at `index` lies in the segment of `role`.
pub(super) const fn parts(config: &Config<'_>, role: Role, index: usize) -> Parts {
    walk(config, role, index).0
}

pub(super) const fn segment_len(config: &Config<'_>, role: Role) -> u64 {
    walk(config, role, config.channels.len()).1
}

pub(super) const fn exchange_len(config: &Config<'_>) -> u64 {
    let (mut at, mut sum) = (0, 0);
    while at < config.channels.len() {
        let channel = &config.channels[at];
        if channel.replies {
            sum += pool_len(config, channel, Role::First) + pool_len(config, channel, Role::Second);
        }
        at += 1;
    }
    sum
}

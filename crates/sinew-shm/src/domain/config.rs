//! What both sides of a link must agree on, and the hash by which they find out.
//!
//! A configuration is a constant that both sides compile in, or a file that both load (feature
//! `toml`); either way it has the same canonical bytes, whose CRC-32C stands in each segment.
//!
//! # Canonical bytes
//! In this order, numbers little-endian: major version (u16), trust (u8: 0 none, 1 mutual), line
//! (u8, log2), channels (u8), then per channel: id (u16), kind (u8, 1 queue, 2 state, 3 lock, 4 message), replies (u8, 0 or
//! 1), priority (u8), pool of the first side (blocks u16, size u32), pool of the second side (the
//! same), requests and calls (u16 each), type hash (u32), 128-bit id (16 bytes), name (16 bytes, filled up with zeros), and of a
//! lock channel its semaphore (u16).

use super::crc::Crc;

/// The version of the layout. Another major version is refused; the lower minor one is used.
pub const MAJOR: u16 = 1;
/// See [`MAJOR`].
pub const MINOR: u16 = 0;

/// Channels of one link, at most.
pub const MAX_CHANNELS: usize = 64;
/// Blocks of one pool, at most.
pub const MAX_BLOCKS: u16 = 1 << 15;
/// Calls and requests of one message channel, at most.
pub const MAX_CALLS: u16 = 1 << 12;
/// Bytes of one block, at most.
pub const MAX_SIZE: u32 = 1 << 28;

/// Which side of a link this is. The two differ in nothing else; the configuration says which pool
/// belongs to whom, and a tie is broken by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Side 0: the one that accepts, or the master.
    First,
    /// Side 1: the one that connects, or the remote.
    Second,
}

impl Role {
    /// The other side.
    pub const fn peer(self) -> Role {
        match self {
            Role::First => Role::Second,
            Role::Second => Role::First,
        }
    }
}

/// What the two sides may assume of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trust {
    /// Each side reads the other's segment and never writes it. What is read may change at any
    /// time, so it is copied out.
    #[default]
    None,
    /// Both sides would only harm themselves: packets are read where they lie, and channels with
    /// [`Channel::replies`] keep their pools in an exchange segment that both may write.
    Mutual,
}

/// The blocks that one side of a channel sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pool {
    /// How many; 0 where this side sends nothing. At most [`MAX_BLOCKS`].
    pub blocks: u16,
    /// Bytes of each; at most [`MAX_SIZE`].
    pub size: u32,
}

impl Pool {
    /// `blocks` blocks of `size` bytes.
    pub const fn new(blocks: u16, size: u32) -> Pool {
        Pool { blocks, size }
    }
}

/// A name of at most 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Name(pub(super) [u8; 16]);

impl Name {
    /// A name; `None` above 16 bytes or with a zero in it.
    pub const fn new(text: &str) -> Option<Name> {
        let bytes = text.as_bytes();
        let mut name = [0; 16];
        if bytes.len() > name.len() {
            return None;
        }
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] == 0 {
                return None;
            }
            name[at] = bytes[at];
            at += 1;
        }
        Some(Name(name))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|&byte| byte == 0);
        let bytes = self.0.get(..end.unwrap_or(16)).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or("?")
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_str().fmt(f)
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a channel carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Packets: a pool of blocks and two rings per direction.
    #[default]
    Queue = 1,
    /// The latest value of each side: see [`State`](super::State).
    State = 2,
    /// One area that both sides read and write, each alone while it has the lock: see
    /// [`Area`](super::Area).
    Lock = 3,
    /// Messages of five words, with and without an answer: see [`Messages`](super::Messages).
    Message = 4,
}

impl Kind {
    /// The one with this number in the directory.
    pub(super) const fn of(number: u8) -> Option<Kind> {
        match number {
            1 => Some(Kind::Queue),
            2 => Some(Kind::State),
            3 => Some(Kind::Lock),
            4 => Some(Kind::Message),
            _ => None,
        }
    }
}

/// One channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel {
    /// By which programs find it; unique in the link.
    pub id: u16,
    /// What it carries.
    pub kind: Kind,
    /// For people and tools.
    pub name: Name,
    /// For people and tools, 0 where there is none.
    pub uuid: u128,
    /// 0 is the most urgent: of several channels with packets it is looked at first.
    pub priority: u8,
    /// Of what the packets are, 0 where that is left open. Compared like everything else.
    pub type_hash: u32,
    /// What the first side sends.
    pub first: Pool,
    /// What the second side sends.
    pub second: Pool,
    /// A receiver may answer in the block that it received, and in a message that was lent to it. Needs
    /// [`Trust::Mutual`].
    pub replies: bool,
    /// Of a message channel: messages that one side sends and the other has not taken up, at most.
    pub requests: u16,
    /// Of a message channel: messages of five words of one side that are not answered, at most. Those
    /// with memory are counted by its pool.
    pub calls: u16,
    /// Of a lock channel: the hardware semaphore that guards it, by the number under which
    /// [`Platform::hardware_lock`](super::Platform::hardware_lock) has it, + 1; 0: none is needed.
    pub semaphore: u16,
}

impl Channel {
    /// A channel with the same pool in both directions, priority 128, without type and 128-bit id.
    ///
    /// # Panics
    /// Where the name is none: above 16 bytes. In a constant that is an error at compile time.
    pub const fn new(id: u16, name: &str, pool: Pool) -> Channel {
        let Some(name) = Name::new(name) else {
            panic!("a channel's name has 1 to 16 bytes");
        };
        Channel {
            id,
            kind: Kind::Queue,
            name,
            uuid: 0,
            priority: 128,
            type_hash: 0,
            first: pool,
            second: pool,
            replies: false,
            requests: 0,
            calls: 0,
            semaphore: 0,
        }
    }

    /// A channel for messages of five words: in each direction `requests` wait to be taken up, at most,
    /// and `calls` for an answer.
    ///
    /// # Panics
    /// As [`Channel::new`].
    pub const fn messages(id: u16, name: &str, requests: u16, calls: u16) -> Channel {
        let mut channel = Channel::new(id, name, Pool::new(0, 0));
        (channel.kind, channel.requests, channel.calls) = (Kind::Message, requests, calls);
        channel
    }

    /// With memory for messages: so many of so many bytes can be under way in each direction, see
    /// [`Messages::memory`](super::Messages::memory).
    pub const fn with_memory(mut self, pool: Pool) -> Channel {
        (self.first, self.second) = (pool, pool);
        self
    }

    /// With the hash of what goes over it; both sides have the same, or do not fit.
    pub const fn typed(mut self, hash: u32) -> Channel {
        self.type_hash = hash;
        self
    }

    /// With a 128-bit id, by which programs can find it as well.
    pub const fn with_uuid(mut self, uuid: u128) -> Channel {
        self.uuid = uuid;
        self
    }

    /// A channel for the latest value of each side, of `size` bytes; [`Channel::of`] has it of a type.
    /// Without a pool of its own a side has no value: `pools(Pool::new(1, size), Pool::new(0, 0))`.
    ///
    /// # Panics
    /// As [`Channel::new`].
    pub const fn state(id: u16, name: &str, size: u32) -> Channel {
        let mut channel = Channel::new(id, name, Pool::new(1, size));
        channel.kind = Kind::State;
        channel
    }

    /// A guarded area of `size` bytes, which both sides read and write, each alone while it has the lock.
    ///
    /// # Panics
    /// As [`Channel::new`].
    pub const fn lock(id: u16, name: &str, size: u32) -> Channel {
        let mut channel = Channel::new(id, name, Pool::new(1, size));
        channel.kind = Kind::Lock;
        channel
    }

    /// Of a lock channel: guarded by this hardware semaphore, 0 to 65534, which both sides have as
    /// [`Platform::hardware_lock`](super::Platform::hardware_lock).
    ///
    /// # Panics
    /// Where the number is above that.
    pub const fn with_semaphore(mut self, number: u16) -> Channel {
        assert!(number < u16::MAX, "a semaphore's number is at most 65534");
        self.semaphore = number + 1;
        self
    }

    /// With this priority; 0 is the most urgent.
    pub const fn priority(mut self, priority: u8) -> Channel {
        self.priority = priority;
        self
    }

    /// With a pool of its own for each side.
    pub const fn pools(mut self, first: Pool, second: Pool) -> Channel {
        (self.first, self.second) = (first, second);
        self
    }

    /// With answers in the received block.
    pub const fn with_replies(mut self) -> Channel {
        self.replies = true;
        self
    }

    /// Of a message channel: the messages of this side that can wait for an answer. Those with memory
    /// have the first places, one for each block.
    pub(super) const fn places(&self, role: Role) -> u16 {
        self.pool(role).blocks.saturating_add(self.calls)
    }

    /// What this side sends.
    pub const fn pool(&self, role: Role) -> Pool {
        match role {
            Role::First => self.first,
            Role::Second => self.second,
        }
    }
}

/// A whole link, the same on both sides.
///
/// ```
/// use sinew_shm::domain::{Channel, Config, Pool};
///
/// const LINK: Config = Config::new(&[
///     Channel::new(1, "control", Pool::new(8, 64)).priority(0),
///     Channel::new(2, "camera", Pool::new(4, 65536)).priority(200),
/// ]);
/// const { assert!(LINK.check().is_ok()) };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config<'a> {
    /// What the sides may assume of each other.
    pub trust: Trust,
    /// The longest cache line of either side, as a power of two: 5 to 8 (32 to 256 bytes).
    pub line_log2: u8,
    /// The channels, 1 to [`MAX_CHANNELS`], with different ids.
    pub channels: &'a [Channel],
}

impl<'a> Config<'a> {
    /// A configuration without trust, for lines of up to 64 bytes.
    pub const fn new(channels: &'a [Channel]) -> Config<'a> {
        Config {
            trust: Trust::None,
            line_log2: 6,
            channels,
        }
    }

    /// With mutual trust.
    pub const fn mutual(mut self) -> Config<'a> {
        self.trust = Trust::Mutual;
        self
    }

    /// The CRC-32C over the canonical bytes (see the module).
    pub const fn hash(&self) -> u32 {
        let mut crc = Crc::NEW
            .bytes(&MAJOR.to_le_bytes())
            .byte(match self.trust {
                Trust::None => 0,
                Trust::Mutual => 1,
            })
            .byte(self.line_log2)
            .byte(self.channels.len() as u8);
        let mut at = 0;
        while at < self.channels.len() {
            let channel = &self.channels[at];
            crc = crc
                .bytes(&channel.id.to_le_bytes())
                .byte(channel.kind as u8)
                .byte(channel.replies as u8)
                .byte(channel.priority)
                .bytes(&channel.first.blocks.to_le_bytes())
                .bytes(&channel.first.size.to_le_bytes())
                .bytes(&channel.second.blocks.to_le_bytes())
                .bytes(&channel.second.size.to_le_bytes())
                .bytes(&channel.requests.to_le_bytes())
                .bytes(&channel.calls.to_le_bytes())
                .bytes(&channel.type_hash.to_le_bytes())
                .bytes(&channel.uuid.to_le_bytes())
                .bytes(&channel.name.0);
            if matches!(channel.kind, Kind::Lock) {
                crc = crc.bytes(&channel.semaphore.to_le_bytes());
            }
            at += 1;
        }
        crc.value()
    }

    /// How many [`Block`](super::Block)s an end of this link keeps books on.
    pub const fn blocks(&self) -> usize {
        let (mut at, mut sum) = (0, 0);
        while at < self.channels.len() {
            let channel = &self.channels[at];
            sum += match channel.kind {
                Kind::Queue => channel.first.blocks as usize + channel.second.blocks as usize,
                Kind::State | Kind::Lock => 0,
                Kind::Message => {
                    channel.places(Role::First) as usize + channel.places(Role::Second) as usize
                }
            };
            at += 1;
        }
        sum
    }
}

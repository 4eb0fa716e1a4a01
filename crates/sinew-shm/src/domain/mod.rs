//! A link between two domains that share memory and need not trust each other: two threads, two
//! Linux processes, Linux and a microcontroller, two cores without an operating system.
//!
//! Each side writes one segment and reads the other's, so every shared word has exactly one writer
//! and there is no atomic read-modify-write. What a side knows of itself (which block is where,
//! positions, sessions) it keeps in private memory. What it reads of the peer it reads once, checks,
//! and then uses: never unchecked as an index, a length, a bound or an address. Every call takes a
//! bounded number of steps, so all of them may be made in an interrupt handler.
//!
//! | part | what it is for |
//! |---|---|
//! | `config` | what both sides must agree on: [`Config`], its hash |
//! | `file` | link files and system files in TOML (feature `toml`) |
//! | `layout` | where what lies in a segment |
//! | `plan` | [`Plan`]: what follows from a configuration, worked out by the compiler |
//! | `region` | [`Region`]: where the segments lie in a file or in physical memory |
//! | `regions` | [`Regions`]: several links of one configuration, one behind the other |
//! | `session` | the handshake; restarts of either side |
//! | `ring` | entries from one side to the other |
//! | `lane` | where one direction of a channel lies |
//! | `outbox`, `inbox` | one side's halves of a channel: who has which block |
//! | `filter` | which packets a receiver wants |
//! | `end` | [`End`]: one side of a link, with all of its channels, behind a lock |
//! | `handles` | [`Sender`], [`Place`], [`Receiver`], [`Packet`]: what users hold |
//! | `halves` | [`Outgoing`] (or [`Staged`]), [`Incoming`]: the two halves as a packet link wants them |
//! | `lock` | [`Area`]: what both sides change, one at a time |
//! | [`observe`] | looks at a link from outside, from its two segments alone |
//! | `port` | what a system gives: [`Doorbell`], [`Cache`], [`HardwareLock`], [`Platform`] |
//!
//! Who waits: [`End::look`] is to be called when the doorbell arrives, and every now and then (it
//! gives the sign of life, and finds a peer that gives none). It wakes who waits for a packet or a
//! place. Nothing here blocks.
//!
//! # What holds against whom
//! Against honest code of any kind, all of it. Against a hostile peer: as far as memory protection
//! goes (sealed memfds, an MMU, an MPU), with [`Trust::None`]. With [`Trust::Mutual`] a peer can
//! change bytes under a reader. Session numbers catch accidents, not attackers.

mod books;
mod check;
mod config;
mod crc;
mod directory;
mod end;
#[cfg(all(test, not(any(loom, miri))))]
mod explore;
#[cfg(feature = "toml")]
pub mod file;
mod filter;
mod halves;
mod handles;
mod identity;
mod inbox;
mod lane;
mod layout;
mod lock;
mod memory;
mod message;
pub mod observe;
mod outbox;
mod plan;
mod port;
mod region;
mod regions;
mod ring;
mod session;
mod state;
mod tally;

pub use books::Block;
pub use check::ConfigError;
pub use config::{
    Channel, Config, Kind, MAJOR, MAX_BLOCKS, MAX_CALLS, MAX_CHANNELS, MAX_SIZE, MINOR, Name, Pool,
    Role, Trust,
};
pub use end::{End, OpenError, Options, Parts, Platform, Slot, Status, Store};
pub use filter::Predicate;
pub use halves::{Incoming, Outgoing, Staged};
pub use handles::{EndRef, Packet, Place, Receiver, Reply, Sender};
pub use layout::BELL;
pub use lock::{AccessError, Area, Guard, LockError, Poisoned};
pub use memory::Memory;
pub use message::{
    Answer, Buffer, Call, CallError, Given, Loan, Message, Messages, Passing, Pending, Returned,
    TypedCall, TypedLoan, Unsent, Word, Words,
};
pub use plan::{ChannelPlan, Plan};
pub use port::{Cache, Coherent, Doorbell, HardwareLock, Silent, Uses};
pub use region::{Region, Span};
pub use regions::{NoRegions, Regions};
pub use state::{Plain, State, Value};
#[doc(hidden)]
pub use state::{hash_of, join};

/// Why a pairing with the peer is over. Own blocks are back. What was sent and not read is lost,
/// except where the peer has closed the link: that comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The peer has a new session: it was started again, or took this side for dead. Take new
    /// handles, and begin again.
    Restarted,
    /// The peer or this side has closed the link, or the peer is gone.
    Closed,
    /// The peer broke the protocol, or says that this side did, and the policy is to stop:
    /// [`End::recover`] begins again.
    Fault,
}

impl core::fmt::Display for Lost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Lost::Restarted => "the peer was started again",
            Lost::Closed => "the link is closed or the peer is gone",
            Lost::Fault => "the protocol was broken",
        })
    }
}

impl core::error::Error for Lost {}

/// Why a packet cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No block is free beyond those that are left to others, or the peer is not there yet. Wait
    /// with [`Sender::arm`], then retry.
    Full,
    /// The packet is larger than a block of this channel: configure larger ones on both sides.
    TooLarge,
    /// The link is over for this handle.
    Lost(Lost),
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Refused::Full => f.write_str("no block is free"),
            Refused::TooLarge => f.write_str("the packet is larger than a block of the channel"),
            Refused::Lost(lost) => lost.fmt(f),
        }
    }
}

impl core::error::Error for Refused {}

/// What a peer did that the protocol forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Violation {
    /// An entry's sequence number is neither this lap's nor the last one's.
    Sequence = 1,
    /// An entry is of another session than the peer's header says.
    Session = 2,
    /// A packet in a block that the peer does not have.
    Block = 3,
    /// A packet in a block that is still held here.
    Twice = 4,
    /// A return of a block that was not lent.
    NotLent = 5,
    /// A length beyond the block.
    Length = 6,
    /// A message of no known kind.
    Kind = 7,
    /// A call in a place that does not exist or is taken, or an answer to none.
    Token = 8,
    /// An area of a lock channel of an impossible version.
    Version = 9,
}

/// In what two sides differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// There is something else in the peer's memory.
    Magic,
    /// The peer writes words in the other byte order.
    ByteOrder,
    /// The major version of the layout.
    Version,
    /// The length of the cache line.
    Line,
    /// Both sides are the first, or both the second.
    Role,
    /// The number of channels.
    Channels,
    /// Whether the sides trust each other.
    Trust,
    /// A channel's id.
    Id,
    /// What kind of channel it is.
    Kind,
    /// A channel's priority.
    Priority,
    /// The number of blocks that the peer sends.
    Blocks,
    /// Whether a receiver answers in the block that it received: 1 where it does.
    Replies,
    /// The size of the peer's blocks.
    Size,
    /// The number of blocks that this side sends.
    PeerBlocks,
    /// The size of this side's blocks.
    PeerSize,
    /// How many messages and calls a message channel has: messages, calls * 65536.
    Messages,
    /// Which hardware semaphore guards a lock channel: its number + 1, or 0.
    Semaphore,
    /// A channel's type hash.
    Type,
    /// A channel's name.
    Name,
    /// A channel's 128-bit id.
    Uuid,
    /// Something in the configuration that the directory does not show.
    Hash,
    /// The length of the peer's segment.
    Length,
    /// Where things lie.
    Directory,
}

/// Why a peer is refused: the first thing that differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What.
    pub field: Field,
    /// In which channel, by its id, where it is one's.
    pub channel: Option<u16>,
    /// What this side has.
    pub ours: u32,
    /// What the peer has.
    pub theirs: u32,
}

impl core::fmt::Display for Difference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let what = match self.field {
            Field::Magic => "magic number",
            Field::ByteOrder => "byte order",
            Field::Version => "major version",
            Field::Line => "cache line (log2)",
            Field::Role => "role of the peer",
            Field::Channels => "number of channels",
            Field::Trust => "trust",
            Field::Id => "id",
            Field::Kind => "kind of channel",
            Field::Priority => "priority",
            Field::Replies => "replies in the received block",
            Field::Blocks => "number of the peer's blocks",
            Field::Size => "size of the peer's blocks",
            Field::PeerBlocks => "number of this side's blocks",
            Field::PeerSize => "size of this side's blocks",
            Field::Messages => "number of messages and calls",
            Field::Semaphore => "hardware semaphore (number + 1)",
            Field::Type => "type hash",
            Field::Name => "name",
            Field::Uuid => "128-bit id",
            Field::Hash => "configuration hash",
            Field::Length => "length of the peer's segment",
            Field::Directory => "directory",
        };
        f.write_str("the peer does not fit: ")?;
        if let Some(id) = self.channel {
            write!(f, "channel {id}: ")?;
        }
        let (ours, theirs) = (self.ours, self.theirs);
        write!(
            f,
            "{what}: {ours} ({ours:#x}) here, {theirs} ({theirs:#x}) there: build or load the same \
             configuration on both sides"
        )
    }
}

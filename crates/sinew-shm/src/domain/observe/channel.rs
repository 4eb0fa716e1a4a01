//! What one side's segment says of a channel.

use super::super::config::{Kind, Name, Pool};
use super::super::layout::{directory, state, statistics};
use super::Source;
use super::lock::LockWords;

/// One side of a channel, as it was when it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelSide {
    /// By which programs find it.
    pub id: u16,
    /// For people. Of a foreign side: any characters.
    pub name: Name,
    /// For people and tools, 0 where there is none.
    pub uuid: u128,
    /// What it carries; `None`: nothing that this version knows.
    pub kind: Option<Kind>,
    /// 0 is the most urgent.
    pub priority: u8,
    /// Of what the packets are, 0 where that is left open.
    pub type_hash: u32,
    /// What this side sends.
    pub pool: Pool,
    /// What the peer sends.
    pub peer_pool: Pool,
    /// A receiver may answer in the block that it received.
    pub replies: bool,
    /// Of a message channel: messages that wait to be taken up, at most.
    pub requests: u16,
    /// Of a message channel: calls that are open, at most.
    pub calls: u16,
    /// Of a lock channel: the number of the hardware semaphore that guards it, + 1; 0 where none does.
    pub semaphore: u16,
    /// What happened.
    pub counts: Counts,
    /// Where the control line and the pool lie.
    pub(super) control: u32,
    pub(super) area: u32,
    /// Of a state channel, the number of the latest value, where there is one.
    pub(super) version: Option<u32>,
    /// Of a lock channel, what the side says of the lock.
    pub(super) lock: Option<LockWords>,
}

/// What a side counts of a channel. Free-running, so that differences are to be taken modulo 2^32.
/// The first five begin again at 0 in each session, the others when the side is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Packets sent.
    pub sent: u32,
    /// Own blocks that came back.
    pub reclaimed: u32,
    /// Packets received.
    pub received: u32,
    /// Blocks of the peer given back.
    pub released: u32,
    /// Times that the peer was rung.
    pub rung: u32,
    /// Times that no block was free.
    pub full: u32,
    /// Packets that were refused because they are larger than a block.
    pub too_large: u32,
    /// Packets not sent because the peer does not want them.
    pub filtered: u32,
    /// Packets received and sent back because this side does not want them: before the peer had
    /// heard of the filter.
    pub unwanted: u32,
    /// Times that the peer broke the protocol.
    pub violations: u32,
}

impl ChannelSide {
    /// Reads the directory entry at an offset, and the statistics to which it points.
    pub(super) fn read(source: &(impl Source + ?Sized), at: u32) -> Option<ChannelSide> {
        let front = source.line(at)?;
        let back = source.line(at.checked_add(64)?)?;
        let word = |index: usize| match index < 16 {
            true => front.get(index).copied().unwrap_or(0),
            false => back.get(index - 16).copied().unwrap_or(0),
        };
        let bytes = |first: usize| {
            let mut bytes = [0; 16];
            for (index, part) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                *part = word(first + index).to_le_bytes();
            }
            bytes
        };
        let [id, id_high, kind, priority] = word(directory::ID).to_le_bytes();
        let blocks = word(directory::BLOCKS);
        let (kind, control) = (Kind::of(kind), word(directory::CONTROL));
        let version = match kind {
            Some(Kind::State) => version(&source.line(control)?),
            _ => None,
        };
        let is_lock = kind == Some(Kind::Lock);
        let lock = match is_lock {
            true => Some(LockWords::read(&source.line(control)?)),
            false => None,
        };
        let messages = if is_lock {
            0
        } else {
            word(directory::MESSAGES)
        };
        let semaphore = if is_lock {
            word(directory::MESSAGES)
        } else {
            0
        };
        Some(ChannelSide {
            id: u16::from_le_bytes([id, id_high]),
            name: Name(bytes(directory::NAME)),
            uuid: u128::from_le_bytes(bytes(directory::UUID)),
            kind,
            priority,
            type_hash: word(directory::TYPE),
            pool: Pool::new(blocks as u16, word(directory::SIZE)),
            peer_pool: Pool::new(
                word(directory::PEER_BLOCKS) as u16,
                word(directory::PEER_SIZE),
            ),
            replies: blocks >> 24 != 0,
            requests: messages as u16,
            calls: (messages >> 16) as u16,
            semaphore: semaphore as u16,
            counts: Counts::read(source, word(directory::STATISTICS))?,
            control,
            area: word(directory::POOL),
            version,
            lock,
        })
    }
}

impl Counts {
    /// Packets and returns for which the peer was not rung, because it did not wait for them, or
    /// because one ring was for several.
    pub fn suppressed(&self) -> u32 {
        let published = self.sent.wrapping_add(self.released);
        match published.wrapping_sub(self.rung) {
            // More rings than there was to ring for: torn, or nonsense.
            wrapped if wrapped > i32::MAX as u32 => 0,
            suppressed => suppressed,
        }
    }

    fn read(source: &(impl Source + ?Sized), at: u32) -> Option<Counts> {
        Some(Counts::of(&source.line(at)?))
    }

    /// Those of a statistics line.
    pub(in super::super) fn of(words: &[u32; 16]) -> Counts {
        Counts {
            sent: words[statistics::SENT],
            reclaimed: words[statistics::RECLAIMED],
            received: words[statistics::RECEIVED],
            released: words[statistics::RELEASED],
            rung: words[statistics::RUNG],
            full: words[statistics::FULL],
            too_large: words[statistics::TOO_LARGE],
            filtered: words[statistics::FILTERED],
            unwanted: words[statistics::UNWANTED],
            violations: words[statistics::VIOLATIONS],
        }
    }
}

/// The number of a side's latest value.
fn version(control: &[u32; 16]) -> Option<u32> {
    let latest = control[state::LATEST];
    let word = control[state::PAIRS + (latest & 1) as usize];
    (word & state::IS_SET != 0).then_some(word >> state::NUMBER_SHIFT)
}

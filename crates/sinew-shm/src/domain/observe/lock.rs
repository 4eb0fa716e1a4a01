//! Lock channels, looked at by who is neither side.

use super::super::config::Role;
use super::super::layout::lock;
use super::ChannelSide;

/// What a side says of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LockWords {
    wants: bool,
    holds: bool,
    version: u64,
    poison: u64,
}

/// How a lock channel is. The words of the two sides are not of one instant: while the lock is taken and
/// given back all the time, what is seen of it need never have been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// Bytes of the area.
    pub size: u32,
    /// The side that has the lock; `None` where nobody has.
    pub owner: Option<Role>,
    /// Whether the first side wants or has the lock, and the second. One that wants it for long and does
    /// not have it is dead, or was started again and has not met its peer yet.
    pub wanted: [bool; 2],
    /// The version of each side's copy of the area; `None` where the side is not there. The higher one is
    /// that of the area.
    pub versions: [Option<u64>; 2],
    /// The last owner did not end its work, and nobody has accepted that yet.
    pub is_poisoned: bool,
}

impl LockWords {
    pub(super) fn read(control: &[u32; 16]) -> LockWords {
        let number = |at: usize| u64::from(control[at + 1]) << 32 | u64::from(control[at]);
        LockWords {
            wants: control[lock::WANT] != 0,
            holds: control[lock::HELD] != 0,
            version: number(lock::VERSION),
            poison: number(lock::POISON),
        }
    }
}

impl LockInfo {
    pub(super) fn of(first: Option<&ChannelSide>, second: Option<&ChannelSide>) -> Option<Self> {
        let size = first.or(second)?.pool.size;
        let words = [first, second].map(|side| side.and_then(|side| side.lock));
        if words.iter().all(Option::is_none) {
            return None;
        }
        let has = |words: Option<LockWords>| words.is_some_and(|words| words.wants && words.holds);
        let owner = match words.map(has) {
            [true, _] => Some(Role::First),
            [_, true] => Some(Role::Second),
            _ => None,
        };
        let newest = words.iter().flatten().map(|words| words.version).max();
        let poison = words.iter().flatten().map(|words| words.poison).max();
        Some(LockInfo {
            size,
            owner,
            wanted: words.map(|words| words.is_some_and(|words| words.wants)),
            versions: words.map(|words| words.map(|words| words.version)),
            is_poisoned: newest < poison,
        })
    }
}

//! Versions: 64 bits in two words, which only go up.

use super::super::Violation;
use crate::word::Words;

/// No honest side gets there.
const LIMIT: u64 = 1 << 62;

/// The number in two words, low and high.
pub(super) fn get(line: &Words, at: usize) -> u64 {
    let [low, high] = [0, 1].map(|word| u64::from(line.at(at + word).get()));
    high << 32 | low
}

/// Writes one that is not lower than the one before. Who dies in between leaves one that is not lower
/// either.
pub(super) fn set(line: &Words, at: usize, version: u64) {
    line.at(at + 1).set((version >> 32) as u32);
    line.at(at).set(version as u32);
}

/// A number of the peer's.
pub(super) fn foreign(line: &Words, at: usize) -> Result<u64, Violation> {
    let version = get(line, at);
    is_one(version).then_some(version).ok_or(Violation::Version)
}

/// Whether it can be a version: what the memory holds by chance is begun anew, and what a peer says
/// breaks the protocol.
pub(super) fn is_one(version: u64) -> bool {
    version < LIMIT
}

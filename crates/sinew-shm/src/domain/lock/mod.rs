//! Lock channels: one area that both sides read and write, each alone while it has the lock. For what
//! really needs one: a queue, a state or a message channel never waits for the other side.
//!
//! There is a copy of the area in each segment, with a version. Who takes the lock brings the newer copy
//! over into its own, works there, and gives its copy a new version when it unlocks. So every word still
//! has one writer, and no side maps the other's memory for writing.
//!
//! # Who has it
//! Each side says in a word of its own that it *wants* the lock, and then looks at the peer's word: both
//! at once see each other, at least. Who sees 0 has the lock. Who does not: the second side withdraws at
//! once, the first one looks [`LOOKS`] times more and then withdraws. So nobody waits without a bound, and
//! of two that try at the same time one wins, or neither. Nothing is fair: a side that unlocks and tries
//! again at once may be first again.
//!
//! # When an owner dies
//! The word holds the owner's session. Who opens a segment in which the word is set leaves it there until
//! the peer has acknowledged the new session, and the peer, which finds the session of a dead owner in it,
//! knows as well: the area is *poisoned*. Each of them writes down up to which version, so that it does
//! not matter which one comes first, or dies next. The next owner is told ([`LockError::Poisoned`]), and
//! says that the area is good again ([`Poisoned::accept`]). What it finds is the
//! last version, if its own copy has that; else the dead owner's copy, with what was written so far.
//!
//! An owner whose pairing ends (the peer was started again, or taken for dead) has lost the lock too, and
//! the area is poisoned: its writes so far stay, as those of a dead owner, and are no version.
//!
//! # When the copies do not agree
//! The higher version counts, whoever has it; of two that are the same, the own copy. Versions have 64
//! bits and only go up, in all sessions, as long as the memory is kept. A side whose memory is lost begins
//! with zeros and version 0. If the other side's copy has a version then, that one counts, and the area is
//! poisoned, since the lost copy may have been newer. If neither has one, it is an area of zeros, and new.
//! (Two processes that meet over a socket have new memory each time.)
//!
//! A peer that does not keep to this can tear what is in the area, and keep the lock; a version that
//! nobody can have reached is a [`Violation`](super::Violation).

mod claim;
mod end;
mod handle;
mod poison;
mod version;

pub(super) use claim::Claim;
pub(super) use end::LockEnd;
pub use handle::{AccessError, Area, Guard, LockError, Poisoned};

/// How often the first side looks once more whether the second one withdraws, before it withdraws itself.
/// The second one does so within some ten instructions, unless it has the lock.
pub(super) const LOOKS: u32 = if cfg!(loom) { 1 } else { 64 };

//! Why there are no slots, or none to be had.

use crate::domain::NoRegions;
use crate::linux::link::LinkError;
use crate::linux::map::MapError;

/// Why slots, or a side of one, cannot be had.
#[derive(Debug)]
pub enum SlotsError {
    /// So many slots there cannot be: 1 to [`Regions::MAX`](crate::domain::Regions::MAX).
    Count(u32),
    /// Every slot has its process. End one, or have more slots: that is another file, and the same
    /// number for master and remotes.
    AllTaken {
        /// How many there are.
        slots: u32,
    },
    /// Another process, or another link of this one, is this side of the slot.
    Taken {
        /// Which one.
        slot: u32,
    },
    /// There is no slot of this number.
    NoSlot {
        /// What was asked for, from 0.
        slot: u32,
        /// How many there are.
        slots: u32,
    },
    /// The slots that are there are others: build or load the same configuration everywhere, or end
    /// all who use the file and remove it.
    Differs {
        /// The first thing that differs.
        what: &'static str,
        /// What this side has.
        ours: u64,
        /// What is there.
        theirs: u64,
    },
    /// Something else is there: the wrong path or offset, or nobody has made the slots yet.
    Not(NoRegions),
    /// Somebody has been writing the header for a second: a process that is stopped. Let it go on, or
    /// end it.
    Busy,
    /// The file cannot be opened, mapped or locked.
    Map(MapError),
    /// The link of the slot.
    Link(LinkError),
}

impl core::fmt::Display for SlotsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SlotsError::Count(slots) => write!(
                f,
                "{slots} slots: there can be 1 to {}",
                crate::domain::Regions::MAX
            ),
            SlotsError::AllTaken { slots } => {
                write!(f, "all {slots} slots are taken: end a process that has one")
            }
            SlotsError::Taken { slot } => {
                write!(f, "somebody else is this side of slot {slot} already")
            }
            SlotsError::NoSlot { slot, slots } => {
                write!(
                    f,
                    "there is no slot {slot}: the last one is {}",
                    slots.saturating_sub(1)
                )
            }
            SlotsError::Differs { what, ours, theirs } => write!(
                f,
                "the slots do not fit: {what}: {ours} ({ours:#x}) here, {theirs} ({theirs:#x}) \
                 there: build or load the same configuration, or remove the file when nobody uses it"
            ),
            SlotsError::Not(error) => error.fmt(f),
            SlotsError::Busy => {
                f.write_str("another process has begun to make the slots, and does not go on")
            }
            SlotsError::Map(error) => error.fmt(f),
            SlotsError::Link(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SlotsError {}

impl From<MapError> for SlotsError {
    fn from(error: MapError) -> SlotsError {
        SlotsError::Map(error)
    }
}

impl From<LinkError> for SlotsError {
    fn from(error: LinkError) -> SlotsError {
        SlotsError::Link(error)
    }
}

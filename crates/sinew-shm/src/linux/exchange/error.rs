//! Why an exchange ended without a link.

use std::io;

use rustix::io::Errno;

use super::refusal::{Field, Refusal};
use crate::linux::fds::{self, FdsError};
use crate::linux::memfd::SegmentError;

/// Why two processes do not share memory.
#[derive(Debug)]
pub enum ExchangeError {
    /// This side refused, and told the other so.
    Refused(Refusal),
    /// The other side refused.
    RefusedByPeer(Refusal),
    /// No message within the time limit. The other side is stopped, or no domain of ours.
    Silent,
    /// The other side closed the socket in the middle: it ended, or is no domain of ours.
    HungUp,
    /// An eventfd is shared by both sides, so it needs [`super::Trust::Mutual`]. Take another doorbell.
    EventFdWithoutTrust,
    /// This process could not make its part: usually too many open files, or too little memory.
    Io(io::Error),
}

impl ExchangeError {
    /// What the other side is to be told.
    pub(super) fn to_refusal(&self) -> Option<Refusal> {
        match self {
            ExchangeError::Refused(refusal) => Some(*refusal),
            ExchangeError::EventFdWithoutTrust => Some(Refusal::of(Field::Trouble)),
            ExchangeError::Io(error) => Some(Refusal {
                field: Field::Trouble,
                ours: error.raw_os_error().unwrap_or(0) as u32,
                theirs: 0,
            }),
            ExchangeError::RefusedByPeer(_) | ExchangeError::Silent | ExchangeError::HungUp => None,
        }
    }
}

impl core::fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ExchangeError::Refused(refusal) => write!(f, "refused: {refusal}"),
            ExchangeError::RefusedByPeer(refusal) => {
                write!(f, "refused by the other side: {refusal}")
            }
            ExchangeError::Silent => f.write_str("the other side did not answer in time"),
            ExchangeError::HungUp => f.write_str("the other side hung up"),
            ExchangeError::EventFdWithoutTrust => {
                f.write_str("an eventfd as doorbell needs trust = mutual")
            }
            ExchangeError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExchangeError {}

impl From<Refusal> for ExchangeError {
    fn from(refusal: Refusal) -> Self {
        ExchangeError::Refused(refusal)
    }
}

impl From<FdsError> for ExchangeError {
    fn from(error: FdsError) -> Self {
        match error {
            FdsError::TimedOut => ExchangeError::Silent,
            FdsError::HungUp => ExchangeError::HungUp,
            FdsError::TooMany => refuse(Field::Descriptors, fds::MAX_FDS, fds::MAX_FDS + 1),
            // There was no room for descriptors, and the other side is told by this number.
            FdsError::Truncated => ExchangeError::Io(Errno::MFILE.into()),
            FdsError::WrongLength => ExchangeError::Refused(Refusal::of(Field::Hello)),
            FdsError::Io(error) => ExchangeError::Io(error),
        }
    }
}

impl From<SegmentError> for ExchangeError {
    fn from(error: SegmentError) -> Self {
        let refusal = match error {
            SegmentError::NotMemory => Refusal::of(Field::NotMemory),
            SegmentError::NotSealed { ours, theirs } => Refusal {
                field: Field::Seals,
                ours,
                theirs,
            },
            SegmentError::WrongSize { ours, theirs } => Refusal {
                field: Field::SegmentSize,
                ours: u32::try_from(ours).unwrap_or(u32::MAX),
                theirs: u32::try_from(theirs).unwrap_or(u32::MAX),
            },
            SegmentError::Map(error) => return ExchangeError::Io(io::Error::other(error)),
            SegmentError::Io(error) => return ExchangeError::Io(error),
        };
        ExchangeError::Refused(refusal)
    }
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        ExchangeError::Io(error)
    }
}

/// A refusal by this side, of two counts or sizes.
pub(super) fn refuse(field: Field, ours: usize, theirs: usize) -> ExchangeError {
    ExchangeError::Refused(Refusal {
        field,
        ours: u32::try_from(ours).unwrap_or(u32::MAX),
        theirs: u32::try_from(theirs).unwrap_or(u32::MAX),
    })
}

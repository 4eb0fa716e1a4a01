//! Why a link is not made, and why a call that waits ends.

use std::io;

use crate::domain::{CallError, Difference, Lost, OpenError, Refused};
use crate::linux::bell::FutexError;
use crate::linux::exchange::ExchangeError;
use crate::linux::map::MapError;
use crate::linux::memfd::SegmentError;

/// Why a call that waits did not do it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitError {
    /// The time limit is over.
    TimedOut,
    /// The time limit is over, and a peer is there that does not fit: give both sides the same
    /// configuration.
    Refused(Difference),
    /// The packet is larger than a block of this channel: configure larger ones on both sides.
    TooLarge,
    /// There is no answer: the peer does not know the opcode, or has dropped the message.
    Unanswered(CallError),
    /// The pairing of the handle is over. It, or [`Link::up_within`](super::Link::up_within), says why.
    Lost(Lost),
}

impl From<Lost> for WaitError {
    fn from(lost: Lost) -> WaitError {
        WaitError::Lost(lost)
    }
}

impl From<CallError> for WaitError {
    fn from(error: CallError) -> WaitError {
        match error {
            CallError::Lost(lost) => WaitError::Lost(lost),
            unanswered => WaitError::Unanswered(unanswered),
        }
    }
}

/// What a refusal is for somebody who waits: `Ok` where waiting helps.
pub(super) fn unless_full(refused: Refused) -> Result<(), WaitError> {
    match refused {
        Refused::Full => Ok(()),
        Refused::TooLarge => Err(WaitError::TooLarge),
        Refused::Lost(lost) => Err(WaitError::Lost(lost)),
    }
}

impl core::fmt::Display for WaitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            WaitError::TimedOut => f.write_str("nothing within the time limit"),
            WaitError::Refused(difference) => difference.fmt(f),
            WaitError::TooLarge => Refused::TooLarge.fmt(f),
            WaitError::Unanswered(error) => error.fmt(f),
            WaitError::Lost(lost) => lost.fmt(f),
        }
    }
}

impl std::error::Error for WaitError {}

/// Why there is no link.
#[derive(Debug)]
pub enum LinkError {
    /// No socket at the path, or none can be made: usually nobody listens yet, or the path is wrong.
    Socket(io::Error),
    /// Nobody connected within the time limit.
    Nobody,
    /// The two processes did not agree.
    Exchange(ExchangeError),
    /// The region cannot be mapped, or this side of it is taken.
    Map(MapError),
    /// Memory for a segment cannot be had.
    Segment(SegmentError),
    /// The doorbell cannot be made.
    Bell(FutexError),
    /// The memory and the configuration do not go together.
    Open(OpenError),
}

impl core::fmt::Display for LinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LinkError::Socket(error) => error.fmt(f),
            LinkError::Nobody => f.write_str("nobody connected within the time limit"),
            LinkError::Exchange(error) => error.fmt(f),
            LinkError::Map(error) => error.fmt(f),
            LinkError::Segment(error) => error.fmt(f),
            LinkError::Bell(error) => error.fmt(f),
            LinkError::Open(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LinkError {}

macro_rules! from {
    ($($error:ty => $variant:ident),*) => {$(
        impl From<$error> for LinkError {
            fn from(error: $error) -> LinkError {
                LinkError::$variant(error)
            }
        }
    )*};
}

from!(
    ExchangeError => Exchange,
    MapError => Map,
    SegmentError => Segment,
    FutexError => Bell,
    OpenError => Open
);

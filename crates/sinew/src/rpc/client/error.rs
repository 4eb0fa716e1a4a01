//! How a call can fail, with the likely cause and the remedy.

use core::fmt;

use super::super::status::Status;
use super::OpenError;
use crate::link::{RecvError, SendError};

/// Why a call has no response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// The server ended the call with this status.
    Status(Status),
    /// The deadline passed: the server is slow, gone, or does not know our channel.
    DeadlineExceeded,
    /// Every call slot of the client is in use: wait for a call to end, or configure more.
    TooManyCalls,
    /// The link has no free place: the receiver is slower than the sender; retry.
    Full,
    /// The message does not fit into a packet of this link: shorten it or raise the mtu.
    TooLarge,
    /// A value exceeds the capacity of its field: shorten it, or raise the bound in the .options
    /// file.
    Capacity,
    /// The link is down: connect again.
    Closed,
    /// The answer is no message of the expected type: client and server use different .proto
    /// files, or a capacity is too small.
    Undecodable,
    /// Messages came faster than they were read, and the call's inbox was full.
    Overrun,
    /// The call has ended already.
    Ended,
}

impl CallError {
    /// The status that comes nearest, for tools and exit codes.
    pub const fn status(self) -> Status {
        match self {
            CallError::Status(status) => status,
            CallError::DeadlineExceeded => Status::DEADLINE_EXCEEDED,
            CallError::TooManyCalls | CallError::Full | CallError::Overrun => {
                Status::RESOURCE_EXHAUSTED
            }
            CallError::TooLarge | CallError::Capacity => Status::OUT_OF_RANGE,
            CallError::Closed => Status::UNAVAILABLE,
            CallError::Undecodable => Status::DATA_LOSS,
            CallError::Ended => Status::FAILED_PRECONDITION,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Status(status) => write!(f, "{status}: {}", status.meaning()),
            CallError::DeadlineExceeded => f.write_str(
                "no answer before the deadline: the server is slow, gone, or serves another channel",
            ),
            CallError::TooManyCalls => {
                f.write_str("every call slot is in use: wait for a call to end or configure more")
            }
            CallError::Full => {
                f.write_str("the link is full: the receiver is slower than the sender; retry")
            }
            CallError::TooLarge => f.write_str(
                "the message does not fit into a packet of this link: shorten it or raise the mtu",
            ),
            CallError::Capacity => f.write_str(
                "a value exceeds the capacity of its field: shorten it, or raise the bound in the \
                 .options file",
            ),
            CallError::Closed => f.write_str("the link is down: connect again"),
            CallError::Undecodable => f.write_str(
                "the answer is no message of the expected type: compare the .proto files of both \
                 sides and the capacities",
            ),
            CallError::Overrun => f.write_str(
                "messages came faster than they were read: read faster or configure a larger inbox",
            ),
            CallError::Ended => f.write_str("the call has ended already"),
        }
    }
}

/// As [`fmt::Display`]: a program that returns the error from `main` then shows its cause and
/// remedy.
impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for CallError {}

#[cfg(feature = "micropb")]
impl From<heapless::CapacityError> for CallError {
    fn from(_: heapless::CapacityError) -> Self {
        CallError::Capacity
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        CallError::Status(status)
    }
}

impl From<SendError> for CallError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Full => CallError::Full,
            SendError::TooLarge => CallError::TooLarge,
            SendError::Closed => CallError::Closed,
        }
    }
}

impl From<RecvError> for CallError {
    fn from(_: RecvError) -> Self {
        CallError::Closed
    }
}

impl From<OpenError> for CallError {
    fn from(_: OpenError) -> Self {
        CallError::TooManyCalls
    }
}

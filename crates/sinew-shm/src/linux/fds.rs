//! One small message with a few descriptors over a unix socket, within a time limit.

use core::mem::MaybeUninit;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::vec::Vec;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketType, recvmsg, sendmsg, sockopt,
};

use super::deadline::Deadline;

/// How many descriptors a message may have.
pub const MAX_FDS: usize = 4;

/// Sends `bytes` (at least 1) with `fds` over a connected stream or seqpacket socket.
pub fn send(
    socket: impl AsFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    deadline: Deadline,
) -> Result<(), FdsError> {
    if fds.len() > MAX_FDS {
        return Err(FdsError::TooMany);
    }
    let socket = socket.as_fd();
    let mut rest = bytes;
    let mut fds = fds;
    while !rest.is_empty() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(FdsError::TooMany);
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(socket, &[IoSlice::new(rest)], &mut control, flags) {
            Ok(sent) => {
                rest = rest.get(sent..).unwrap_or(&[]);
                // They went with the first byte.
                fds = &[];
            }
            Err(Errno::AGAIN) => {
                if !deadline.ready(socket, PollFlags::OUT)? {
                    return Err(FdsError::TimedOut);
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives exactly `bytes.len()` bytes (at least 1), and the descriptors that came with them.
///
/// Of a stream, that many bytes are taken and no more; of a seqpacket socket, one message, which
/// must have that length. Descriptors are close-on-exec. With an error, all that came are closed.
pub fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    deadline: Deadline,
) -> Result<Vec<OwnedFd>, FdsError> {
    let socket = socket.as_fd();
    let stream = sockopt::socket_type(socket)? == SocketType::STREAM;
    let mut fds = Vec::new();
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let wanted = rest.len();
        if !deadline.ready(socket, PollFlags::IN)? {
            return Err(FdsError::TimedOut);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let got = match recvmsg(socket, &mut [IoSliceMut::new(rest)], &mut control, flags) {
            Ok(got) => got,
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                fds.extend(some);
            }
        }
        if fds.len() > MAX_FDS {
            return Err(FdsError::TooMany);
        }
        // The kernel closed those for which there was no room.
        if got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(FdsError::Truncated);
        }
        if got.bytes == 0 {
            return Err(FdsError::HungUp);
        }
        if got.flags.contains(ReturnFlags::TRUNC) || (!stream && got.bytes != wanted) {
            return Err(FdsError::WrongLength);
        }
        filled += got.bytes;
    }
    Ok(fds)
}

/// Why a message was not sent or received.
#[derive(Debug)]
pub enum FdsError {
    /// More than [`MAX_FDS`] descriptors. The peer speaks something else, or is hostile.
    TooMany,
    /// Some descriptors were lost. Usually this process has as many open as it may: raise its limit.
    Truncated,
    /// A message of another length. The peer speaks something else, or is hostile.
    WrongLength,
    /// The time is over. The peer is stopped, or does not know that it should speak.
    TimedOut,
    /// The peer closed the socket, usually because it ended.
    HungUp,
    /// The kernel refused; of a socket of another kind always.
    Io(io::Error),
}

impl core::fmt::Display for FdsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            FdsError::TooMany => write!(f, "more than {MAX_FDS} descriptors"),
            FdsError::Truncated => f.write_str("no room for the descriptors: too many open files"),
            FdsError::WrongLength => f.write_str("a message of another length"),
            FdsError::TimedOut => f.write_str("no answer in time"),
            FdsError::HungUp => f.write_str("the peer closed the socket"),
            FdsError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FdsError {}

impl From<Errno> for FdsError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => FdsError::HungUp,
            error => FdsError::Io(error.into()),
        }
    }
}

impl From<io::Error> for FdsError {
    fn from(error: io::Error) -> Self {
        FdsError::Io(error)
    }
}

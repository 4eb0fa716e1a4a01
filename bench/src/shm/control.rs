//! What the two processes say to each other besides what is measured: short texts and descriptors
//! over a unix seqpacket socket, which the child has as its standard input.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::Result;

/// Descriptors in one message, at most.
const DESCRIPTORS: usize = 8;

/// One end of the conversation.
pub struct Control(OwnedFd);

impl Control {
    /// Both ends; the second is for the child.
    pub fn pair() -> Result<(Self, OwnedFd)> {
        let (near, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Control(near), far))
    }

    /// The child's end.
    pub fn inherited() -> Result<Self> {
        let input = std::io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Control(input))
    }

    /// Sends a text.
    pub fn say(&self, text: &str) -> Result<()> {
        self.send(text, &[])
    }

    /// Sends descriptors, at most eight.
    pub fn give(&self, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        self.send("descriptors", descriptors)
    }

    /// The next text, which may not come with descriptors.
    pub fn hear(&self) -> Result<String> {
        Ok(self.receive()?.0)
    }

    /// The next descriptors, exactly `N`.
    pub fn take<const N: usize>(&self) -> Result<[OwnedFd; N]> {
        let (text, descriptors) = self.receive()?;
        descriptors
            .try_into()
            .map_err(|_| format!("expected {N} descriptors, heard \"{text}\"").into())
    }

    fn send(&self, text: &str, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err("too many descriptors for one message".into());
        }
        let text = [IoSlice::new(text.as_bytes())];
        again(|| sendmsg(&self.0, &text, &mut ancillary, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    fn receive(&self) -> Result<(String, Vec<OwnedFd>)> {
        let mut text = [0; 512];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = again(|| {
            let mut into = [IoSliceMut::new(&mut text)];
            recvmsg(&self.0, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        })?;
        if received.bytes == 0 {
            return Err("the other process of the benchmark has ended".into());
        }
        let descriptors = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        });
        let descriptors = descriptors.flatten().collect();
        Ok((
            String::from_utf8_lossy(&text[..received.bytes]).into_owned(),
            descriptors,
        ))
    }
}

fn again<R>(mut call: impl FnMut() -> rustix::io::Result<R>) -> Result<R> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

//! A pair of unix sockets that keep the bounds of messages.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use crate::Result;
use crate::shm::contender::{End, Opening, Waiting};
use crate::shm::payload::{fill, sum};

/// More than the kernel grants without privilege; it takes its own limit then.
const BUFFER: usize = 1 << 20;

/// One end of the socket.
pub struct Seqpacket {
    socket: OwnedFd,
    sending: SendFlags,
    receiving: RecvFlags,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl Seqpacket {
    fn new(socket: OwnedFd, opening: &Opening<'_>) -> Result<Self> {
        set_socket_send_buffer_size(&socket, BUFFER)?;
        set_socket_recv_buffer_size(&socket, BUFFER)?;
        let busy = opening.waiting == Waiting::Busy;
        Ok(Seqpacket {
            socket,
            sending: if busy {
                SendFlags::DONTWAIT
            } else {
                SendFlags::empty()
            },
            receiving: if busy {
                RecvFlags::DONTWAIT
            } else {
                RecvFlags::empty()
            },
            outgoing: vec![0; opening.size],
            incoming: vec![0; opening.size],
        })
    }
}

impl End for Seqpacket {
    const NAME: &'static str = "unix seqpacket";
    const NOTE: &'static str =
        "largest buffers; busy: MSG_DONTWAIT; batched: bursts, it has no receive for many";

    fn near(opening: &Opening<'_>) -> Result<Self> {
        let (near, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        opening.control.give(&[far.as_fd()])?;
        Seqpacket::new(near, opening)
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        let [socket] = opening.control.take()?;
        Seqpacket::new(socket, opening)
    }

    fn send(&mut self, seed: u64) -> Result<bool> {
        fill(&mut self.outgoing, seed);
        match send(&self.socket, &self.outgoing, self.sending) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self) -> Result<Option<u64>> {
        match recv(&self.socket, &mut self.incoming[..], self.receiving) {
            Ok((_, len)) if len == self.incoming.len() => Ok(Some(sum(&self.incoming))),
            Ok((_, len)) => Err(format!("a message of {len} bytes").into()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

//! FRAME and FRAGMENT: how the messages of the network travel.

use super::super::{Decode, Extensions, Head, Priority, Reader, Writer};
use super::{FRAGMENT, FRAME, QOS};

/// In the headers of both: the numbers are those of the reliable channel.
const R: u8 = 0x20;
/// The first fragment of a message.
const FIRST: u8 = 0x2;
/// The message is given up.
const DROP: u8 = 0x3;

/// Stands before the messages of the network, which run to the end of the batch, or up to a byte that
/// [is none of theirs](super::super::network::is_network).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Of which channel the number is.
    pub reliable: bool,
    /// Its number.
    pub sn: u32,
    /// Of which priority the number is. Without QoS agreed, which we never do, there is only
    /// [`Priority::Data`], and another ends the session.
    pub priority: Priority,
}

impl Frame {
    /// Writes it, with its header; the messages are to follow.
    #[inline]
    pub fn encode(&self, w: &mut Writer<'_>) {
        let mut head = w.head(FRAME | if self.reliable { R } else { 0 });
        w.vle32(self.sn);
        encode_priority(self.priority, &mut head, w);
    }
}

impl<'p> Decode<'p> for Frame {
    #[inline]
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let head = Fragment::read_head(header, r);
        Frame {
            reliable: head.reliable,
            sn: head.sn,
            priority: head.priority,
        }
    }
}

/// A piece of a message of the network that does not fit a batch. It runs to the end of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'p> {
    /// Of which channel the number is.
    pub reliable: bool,
    /// Whether more of the same message follow.
    pub more: bool,
    /// Its number; one channel counts its frames and fragments together.
    pub sn: u32,
    /// As in [`Frame`].
    pub priority: Priority,
    /// It is the message's first. Said only where both sides know patch 1.
    pub first: bool,
    /// The message is given up: what came of it is to be forgotten.
    pub drop: bool,
    /// The piece.
    pub payload: &'p [u8],
}

impl<'p> Fragment<'p> {
    /// In the header: there are more of the same message.
    pub const MORE: u8 = 0x40;

    /// Writes it whole, with its header. Nothing can follow it in its batch.
    pub fn encode(&self, w: &mut Writer<'_>) {
        self.encode_head(w);
        w.bytes(self.payload);
    }

    /// Writes all but the piece.
    #[inline(never)]
    pub fn encode_head(&self, w: &mut Writer<'_>) {
        let flags = if self.reliable { R } else { 0 } | if self.more { Self::MORE } else { 0 };
        let mut head = w.head(FRAGMENT | flags);
        w.vle32(self.sn);
        encode_priority(self.priority, &mut head, w);
        if self.first {
            head.unit(w, FIRST);
        }
        if self.drop {
            head.unit(w, DROP);
        }
    }
}

impl<'p> Decode<'p> for Fragment<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let head = Fragment::read_head(header, r);
        Fragment {
            payload: r.rest(),
            ..head
        }
    }
}

impl Fragment<'_> {
    /// Reads all but the piece. A frame begins alike: what it does not have is optional.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn read_head(header: u8, r: &mut Reader<'_>) -> Self {
        let mut head = Fragment {
            reliable: header & R != 0,
            more: header & Self::MORE != 0,
            sn: r.vle32(),
            priority: Priority::Data,
            first: false,
            drop: false,
            payload: &[],
        };
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                QOS => head.priority = Priority::of(ext.number as u8),
                FIRST => head.first = true,
                DROP => head.drop = true,
                _ => ext.unknown(r),
            }
        }
        head
    }
}

#[inline]
fn encode_priority(priority: Priority, head: &mut Head, w: &mut Writer<'_>) {
    if priority != Priority::Data {
        head.number(w, QOS, priority as u32);
    }
}

//! What the two sides of a session have agreed on.

use crate::pubsub::codec::{WhatAmI, Zid};

/// One of the two rows of sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Channel {
    Reliable,
    BestEffort,
}

/// The other side of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its id.
    pub zid: Zid,
    /// Its role.
    pub whatami: WhatAmI,
}

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Agreed {
    /// The number of one's own first frame: another one in each session.
    pub first_sn: u32,
    /// Above every sequence number, less one: a power of two less one.
    pub mask: u32,
    /// Largest packet to send, in bytes.
    pub limit: usize,
    /// Fragments are marked.
    pub patch: u8,
    /// Microseconds without a sign of life after which the peer is gone.
    pub lease: u64,
}

/// Sequence numbers and request ids of 32 bits: 2^28 of them.
pub(super) const RESOLUTION: u8 = 0x0a;

impl Agreed {
    pub(super) const NONE: Agreed = Agreed {
        first_sn: 0,
        mask: mask(RESOLUTION),
        limit: 0,
        patch: 0,
        lease: 0,
    };
}

/// The mask of the sequence numbers of a resolution: they fill whole groups of 7 bits (section 4.3).
pub(super) const fn mask(resolution: u8) -> u32 {
    match resolution & 3 {
        0 => (1 << 7) - 1,
        1 => (1 << 14) - 1,
        _ => (1 << 28) - 1,
    }
}

/// The lesser of two resolutions, for each of its two fields.
pub(super) const fn lesser(one: u8, other: u8) -> u8 {
    let sn = if one & 3 < other & 3 { one } else { other } & 3;
    let request = if one & 12 < other & 12 { one } else { other } & 12;
    sn | request
}

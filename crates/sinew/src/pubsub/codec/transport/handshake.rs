//! INIT and OPEN: how a session begins.

use super::super::{Decode, Extensions, Reader, WhatAmI, Writer, Zid};
use super::{INIT, OPEN, PATCH, RESOLUTION, lease, sizes};

/// In the headers of both: it answers one.
const A: u8 = 0x20;
/// In INIT's header: resolution and size of a batch follow.
const S: u8 = 0x40;
/// In OPEN's header: the lease is in seconds.
const T: u8 = 0x40;

/// Who one is, and what one offers; or, as an answer, what it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init<'p> {
    /// Whether it is the answer.
    pub ack: bool,
    /// [`VERSION`](super::super::VERSION).
    pub version: u8,
    /// What the sender is.
    pub whatami: WhatAmI,
    /// Who the sender is.
    pub zid: Zid,
    /// How many bits numbers have; [`RESOLUTION`], and little else.
    pub resolution: u8,
    /// The largest batch in bytes, with the two of its length.
    pub batch_size: u16,
    /// In the answer: what the opener is to send back in [`Open`].
    pub cookie: &'p [u8],
    /// Which fixes of the protocol the sender knows: 1, the marks of a message's first fragment and of one
    /// that is given up; 0, none.
    pub patch: u8,
}

impl<'p> Init<'p> {
    /// The largest batch where a message does not say it.
    pub const BATCH_SIZE: u16 = 65_535;

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let has_sizes = self.resolution != RESOLUTION || self.batch_size != Init::BATCH_SIZE;
        let flags = if self.ack { A } else { 0 } | if has_sizes { S } else { 0 };
        let mut head = w.head(INIT | flags);
        w.byte(self.version);
        w.byte(self.zid.nibble() | self.whatami as u8);
        self.zid.encode(w);
        if has_sizes {
            w.byte(self.resolution);
            w.two(self.batch_size);
        }
        if self.ack {
            w.zbytes(self.cookie);
        }
        if self.patch != 0 {
            head.number(w, PATCH, u32::from(self.patch));
        }
    }
}

impl<'p> Decode<'p> for Init<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let version = r.one();
        let flags = r.one();
        let mut init = Init {
            ack: header & A != 0,
            version,
            whatami: WhatAmI::of(flags, r),
            zid: Zid::behind(flags, r),
            resolution: RESOLUTION,
            batch_size: Init::BATCH_SIZE,
            cookie: &[],
            patch: 0,
        };
        if header & S != 0 {
            (init.resolution, init.batch_size) = sizes(r);
        }
        if init.ack {
            init.cookie = r.zbytes();
        }
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                PATCH => init.patch = ext.number as u8,
                _ => ext.unknown(r),
            }
        }
        init
    }
}

/// The second step: when the peer may be given up, and where its numbers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<'p> {
    /// Whether it is the answer.
    pub ack: bool,
    /// After how many milliseconds without a sign of life the sender may be given up.
    pub lease_ms: u32,
    /// The number of the sender's first frame, reliable and best-effort alike.
    pub initial_sn: u32,
    /// Not in the answer: the cookie of [`Init`].
    pub cookie: &'p [u8],
}

impl<'p> Open<'p> {
    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let (flag, lease) = super::lease_field(self.lease_ms, T);
        w.byte(OPEN | if self.ack { A } else { 0 } | flag);
        w.vle32(lease);
        w.vle32(self.initial_sn);
        if !self.ack {
            w.zbytes(self.cookie);
        }
    }
}

impl<'p> Decode<'p> for Open<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let ack = header & A != 0;
        let lease_ms = lease(header & T != 0, r);
        let initial_sn = r.vle32();
        let cookie = if ack { &[] } else { r.zbytes() };
        Extensions::skip(header, r);
        Open {
            ack,
            lease_ms,
            initial_sn,
            cookie,
        }
    }
}

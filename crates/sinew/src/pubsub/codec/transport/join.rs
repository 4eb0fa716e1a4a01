//! JOIN: how a node is heard of in a multicast group.

use super::super::writer::vle_len;
use super::super::{Decode, Ext, Extensions, Reader, WhatAmI, Writer, Zid};
use super::{JOIN, PATCH, RESOLUTION, lease, lease_field, sizes};

/// The lease is in seconds.
const T: u8 = 0x20;
/// Resolution and size of a batch follow.
const S: u8 = 0x40;
/// The numbers of each priority.
const QOS: u8 = 0x1 | Ext::BYTES | Ext::MANDATORY;
/// Which shared memory the sender has. Mandatory, and nothing to us.
const SHARED_MEMORY: u8 = 0x2 | Ext::BYTES | Ext::MANDATORY;

/// The numbers that come next on the two channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextSn {
    /// Of the reliable one.
    pub reliable: u32,
    /// Of the best-effort one.
    pub best_effort: u32,
}

impl NextSn {
    fn read(r: &mut Reader<'_>) -> Self {
        NextSn {
            reliable: r.vle32(),
            best_effort: r.vle32(),
        }
    }

    fn encode(&self, w: &mut Writer<'_>) {
        w.vle32(self.reliable);
        w.vle32(self.best_effort);
    }

    fn len(&self) -> usize {
        vle_len(self.reliable) + vle_len(self.best_effort)
    }
}

/// Who one is, said again and again: in a group there is no handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// [`VERSION`](super::super::VERSION).
    pub version: u8,
    /// What the sender is.
    pub whatami: WhatAmI,
    /// Who the sender is.
    pub zid: Zid,
    /// As in [`Init`](super::Init).
    pub resolution: u8,
    /// The largest batch in bytes.
    pub batch_size: u16,
    /// After how many milliseconds without a sign of life the sender may be given up.
    pub lease_ms: u32,
    /// The numbers that come next.
    pub next: NextSn,
    /// Those of each priority, if the sender counts them apart.
    pub priorities: Option<[NextSn; 8]>,
    /// As in [`Init`](super::Init).
    pub patch: u8,
}

impl Join {
    /// The largest batch where a message does not say it.
    pub const BATCH_SIZE: u16 = 8192;

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let has_sizes = self.resolution != RESOLUTION || self.batch_size != Join::BATCH_SIZE;
        let (seconds, lease) = lease_field(self.lease_ms, T);
        let mut head = w.head(JOIN | seconds | if has_sizes { S } else { 0 });
        w.byte(self.version);
        w.byte(self.zid.nibble() | self.whatami as u8);
        self.zid.encode(w);
        if has_sizes {
            w.byte(self.resolution);
            w.two(self.batch_size);
        }
        w.vle32(lease);
        self.next.encode(w);
        if let Some(priorities) = &self.priorities {
            head.bytes(w, QOS, priorities.iter().map(NextSn::len).sum());
            for next in priorities {
                next.encode(w);
            }
        }
        if self.patch != 0 {
            head.number(w, PATCH, u32::from(self.patch));
        }
    }
}

impl<'p> Decode<'p> for Join {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let version = r.one();
        let flags = r.one();
        let (whatami, zid) = (WhatAmI::of(flags, r), Zid::behind(flags, r));
        let (resolution, batch_size) = match header & S {
            0 => (RESOLUTION, Join::BATCH_SIZE),
            _ => sizes(r),
        };
        let lease_ms = lease(header & T != 0, r);
        let next = NextSn::read(r);
        let (mut priorities, mut patch) = (None, 0);
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                QOS => {
                    let mut part = Reader::new(ext.bytes);
                    priorities = Some([(); 8].map(|()| NextSn::read(&mut part)));
                    r.fail_as(&part);
                }
                SHARED_MEMORY => {}
                PATCH => patch = ext.number as u8,
                _ => ext.unknown(r),
            }
        }
        Join {
            version,
            whatami,
            zid,
            resolution,
            batch_size,
            lease_ms,
            next,
            priorities,
            patch,
        }
    }
}

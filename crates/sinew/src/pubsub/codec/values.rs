//! Small values that several messages carry.

use super::{CodecError, Ext, Head, Reader, Writer, Zid};

/// What a node is in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WhatAmI {
    /// Forwards for others.
    Router = 0,
    /// Speaks with other peers, each for itself.
    Peer = 1,
    /// Speaks with one router or peer, which forwards for it.
    Client = 2,
}

impl WhatAmI {
    /// What the low two bits of `byte` say.
    pub(super) fn of(byte: u8, r: &mut Reader<'_>) -> WhatAmI {
        match byte & 3 {
            0 => WhatAmI::Router,
            1 => WhatAmI::Peer,
            2 => WhatAmI::Client,
            _ => {
                r.fail(CodecError::Reserved);
                WhatAmI::Client
            }
        }
    }
}

/// How urgent a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Priority {
    /// The protocol's own messages.
    Control = 0,
    /// Before all data.
    RealTime = 1,
    /// Interactive, high.
    InteractiveHigh = 2,
    /// Interactive, low.
    InteractiveLow = 3,
    /// Data, high.
    DataHigh = 4,
    /// Data: the default.
    #[default]
    Data = 5,
    /// Data, low.
    DataLow = 6,
    /// After all others.
    Background = 7,
}

impl Priority {
    /// What the low three bits of `byte` say.
    pub const fn of(byte: u8) -> Priority {
        match byte & 7 {
            0 => Priority::Control,
            1 => Priority::RealTime,
            2 => Priority::InteractiveHigh,
            3 => Priority::InteractiveLow,
            4 => Priority::DataHigh,
            5 => Priority::Data,
            6 => Priority::DataLow,
            _ => Priority::Background,
        }
    }
}

/// How a network message is to be treated on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos(pub u8);

impl Qos {
    /// Ordinary data that may be dropped where there is no room; what a message without one means.
    pub const DEFAULT: Qos = Qos(0x05);
    /// What Zenoh's own nodes give to declarations and interests: control, never dropped.
    pub const DECLARATION: Qos = Qos(0x08);
    /// What they give to requests and their answers: data, never dropped.
    pub const REQUEST: Qos = Qos(0x0d);

    /// How urgent it is.
    pub const fn priority(self) -> Priority {
        Priority::of(self.0)
    }

    /// Whether who has no room for it waits, instead of dropping it.
    pub const fn is_blocking(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// Whether it leaves at once, instead of waiting for others to fill its batch.
    pub const fn is_express(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Whether who has no room waits for the first of its kind, and drops the next ones meanwhile.
    pub const fn is_block_first(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// The same with this priority.
    #[must_use]
    pub const fn with_priority(self, priority: Priority) -> Qos {
        Qos(self.0 & !7 | priority as u8)
    }

    /// The same, [blocking](Qos::is_blocking) or not.
    #[must_use]
    pub const fn with_blocking(self, on: bool) -> Qos {
        self.with(0x08, on)
    }

    /// The same, [express](Qos::is_express) or not.
    #[must_use]
    pub const fn with_express(self, on: bool) -> Qos {
        self.with(0x10, on)
    }

    /// The same, [waiting for the first](Qos::is_block_first) or not.
    #[must_use]
    pub const fn with_block_first(self, on: bool) -> Qos {
        self.with(0x20, on)
    }

    const fn with(self, bit: u8, on: bool) -> Qos {
        Qos(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// The extension of network messages that carries it.
    pub(super) const EXT: u8 = 0x1 | Ext::NUMBER;

    pub(super) const fn of(ext: &Ext<'_>) -> Qos {
        Qos(ext.number as u8)
    }

    pub(super) fn encode(self, head: &mut Head, w: &mut Writer<'_>) {
        if self != Qos::DEFAULT {
            head.number(w, 0x1, u32::from(self.0));
        }
    }
}

impl Default for Qos {
    fn default() -> Self {
        Qos::DEFAULT
    }
}

/// When something was made, and by whose clock. Two of them order the samples of a key everywhere alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970 in the high 32 bits, their fraction in the low 32.
    pub time: u64,
    /// The node whose clock it is.
    pub id: Zid,
}

impl Timestamp {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let time = r.vle();
        let id = r.zbytes();
        Timestamp {
            time,
            id: Zid::read(id, r),
        }
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.vle(self.time);
        w.zbytes(self.id.as_bytes());
    }
}

/// A publisher, subscriber, queryable or querier, and its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its node.
    pub zid: Zid,
    /// Its number there.
    pub id: u32,
}

impl Entity {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let flags = r.one();
        Entity {
            zid: Zid::behind(flags, r),
            id: r.vle32(),
        }
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.byte(self.zid.nibble());
        self.zid.encode(w);
        w.vle32(self.id);
    }
}

/// Which of which publisher's samples it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// The node.
    pub zid: Zid,
    /// The publisher's number there.
    pub entity: u32,
    /// The sample's number.
    pub sn: u32,
}

impl SourceInfo {
    /// The extension that carries it, in every body.
    pub(super) const EXT: u8 = 0x1 | Ext::BYTES;

    pub(super) fn of(ext: &Ext<'_>, r: &mut Reader<'_>) -> Self {
        let mut part = Reader::new(ext.bytes);
        let Entity { zid, id } = Entity::read(&mut part);
        let sn = part.vle32();
        r.fail_as(&part);
        SourceInfo {
            zid,
            entity: id,
            sn,
        }
    }

    pub(super) fn encode(&self, head: &mut Head, w: &mut Writer<'_>) {
        let entity = Entity {
            zid: self.zid,
            id: self.entity,
        };
        let part = head.part(w, 0x1);
        entity.encode(w);
        w.vle32(self.sn);
        part.end(w);
    }
}

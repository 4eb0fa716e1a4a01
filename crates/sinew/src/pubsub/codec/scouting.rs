//! Scouting: finding nodes on a network. These datagrams have a port and ids of their own.

use super::{CodecError, Decode, Extensions, Reader, WhatAmI, Writer, Zid};

/// The id of [`Scout`].
pub const SCOUT: u8 = 0x01;
/// The id of [`Hello`].
pub const HELLO: u8 = 0x02;

/// In SCOUT's second byte: the id of who asks follows.
const I: u8 = 0x08;
/// In HELLO's header: locators follow.
const L: u8 = 0x20;

/// Asks who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scout {
    /// [`VERSION`](super::VERSION).
    pub version: u8,
    /// Who is to answer, three bits: 1 routers, 2 peers, 4 clients.
    pub what: u8,
    /// Who asks.
    pub zid: Option<Zid>,
}

impl Scout {
    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.byte(SCOUT);
        w.byte(self.version);
        match &self.zid {
            Some(zid) => {
                w.byte(zid.nibble() | I | self.what & 7);
                zid.encode(w);
            }
            None => w.byte(self.what & 7),
        }
    }
}

impl<'p> Decode<'p> for Scout {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let version = r.one();
        let flags = r.one();
        let zid = if flags & I == 0 {
            None
        } else {
            Some(Zid::behind(flags, r))
        };
        Extensions::skip(header, r);
        Scout {
            version,
            what: flags & 7,
            zid,
        }
    }
}

/// Says who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'p> {
    /// [`VERSION`](super::VERSION).
    pub version: u8,
    /// What answers.
    pub whatami: WhatAmI,
    /// Who answers.
    pub zid: Zid,
    /// Where it can be reached; if there are none, where the answer came from.
    pub locators: Locators<'p>,
}

impl<'p> Hello<'p> {
    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.byte(HELLO | if self.locators.count == 0 { 0 } else { L });
        w.byte(self.version);
        w.byte(self.zid.nibble() | self.whatami as u8);
        self.zid.encode(w);
        if self.locators.count != 0 {
            w.vle32(self.locators.count);
            w.bytes(self.locators.bytes);
        }
    }
}

impl<'p> Decode<'p> for Hello<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let version = r.one();
        let flags = r.one();
        let whatami = WhatAmI::of(flags, r);
        let zid = Zid::behind(flags, r);
        let locators = if header & L == 0 {
            Locators::NONE
        } else {
            Locators::read(r)
        };
        Extensions::skip(header, r);
        Hello {
            version,
            whatami,
            zid,
            locators,
        }
    }
}

/// Where a node can be reached: `tcp/192.0.2.1:7447`, as they stand in the packet. Iterates over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locators<'p> {
    count: u32,
    bytes: &'p [u8],
}

impl<'p> Locators<'p> {
    /// No locators.
    pub const NONE: Locators<'static> = Locators {
        count: 0,
        bytes: &[],
    };

    /// These, written into `place`; `None` if they do not fit, or one has more than 255 bytes.
    pub fn new(list: &[&str], place: &'p mut [u8]) -> Option<Self> {
        let mut w = Writer::new(place);
        for locator in list {
            u8::try_from(locator.len()).ok()?;
            w.zbytes(locator.as_bytes());
        }
        let len = w.finish()?;
        let place: &'p [u8] = place;
        Some(Locators {
            count: u32::try_from(list.len()).ok()?,
            bytes: place.get(..len)?,
        })
    }

    fn read(r: &mut Reader<'p>) -> Self {
        let count = r.vle32();
        let (mut start, mut len) = (*r, 0);
        // Each takes a byte at least, so a count that is made up ends with the packet.
        for _ in 0..count {
            if r.zstr().len() > 255 {
                r.fail(CodecError::OutOfRange);
            }
            if r.end(()).is_err() {
                break;
            }
            len = start.len().saturating_sub(r.len());
        }
        Locators {
            count,
            bytes: start.take(len),
        }
    }
}

impl<'p> Iterator for Locators<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        self.count = self.count.checked_sub(1)?;
        let mut r = Reader::new(self.bytes);
        let locator = r.zstr();
        self.bytes = r.rest();
        Some(locator)
    }
}

//! The messages of the transport: between the two ends of a link.

mod frame;
mod handshake;
mod join;

use super::{Decode, Ext, Extensions, Reader, Writer};

pub use frame::{Fragment, Frame};
pub use handshake::{Init, Open};
pub use join::{Join, NextSn};

/// The id of the transport's [`Oam`](super::Oam).
pub const OAM: u8 = 0x00;
/// The id of [`Init`].
pub const INIT: u8 = 0x01;
/// The id of [`Open`].
pub const OPEN: u8 = 0x02;
/// The id of [`Close`].
pub const CLOSE: u8 = 0x03;
/// The id of [`KeepAlive`].
pub const KEEP_ALIVE: u8 = 0x04;
/// The id of [`Frame`].
pub const FRAME: u8 = 0x05;
/// The id of [`Fragment`].
pub const FRAGMENT: u8 = 0x06;
/// The id of [`Join`].
pub const JOIN: u8 = 0x07;

/// The extension of FRAME, FRAGMENT and OAM that carries a priority. Mandatory.
pub(super) const QOS: u8 = 0x1 | Ext::NUMBER | Ext::MANDATORY;
/// The extension of INIT and JOIN that says which fixes of the protocol its sender knows.
const PATCH: u8 = 0x7 | Ext::NUMBER;

/// The resolution that everybody uses: 32 bits for sequence numbers (of which 28 count) and for
/// requests. Bits 0 and 1 are the former, bits 2 and 3 the latter; 0 to 3 for 8, 16, 32 and 64 bits.
pub const RESOLUTION: u8 = 0x0a;

/// Resolution and size of a batch. Two bits of the former mean nothing yet.
fn sizes(r: &mut Reader<'_>) -> (u8, u16) {
    (r.one() & 0x3f, r.two())
}

/// How many milliseconds a lease has, written in seconds or in milliseconds; [`u32::MAX`] if it is
/// more than 49 days.
fn lease(seconds: bool, r: &mut Reader<'_>) -> u32 {
    let lease = r.vle_capped();
    if seconds {
        lease.saturating_mul(1000)
    } else {
        lease
    }
}

/// The flag and the number of a lease: in whole seconds it is shorter.
fn lease_field(ms: u32, seconds: u8) -> (u8, u32) {
    if ms.is_multiple_of(1000) {
        (seconds, ms / 1000)
    } else {
        (0, ms)
    }
}

/// The end of a session, or of one of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// The whole session, else this link.
    pub session: bool,
    /// Why; [`GENERIC`](Close::GENERIC) and the other constants here.
    pub reason: u8,
}

impl Close {
    /// No reason in particular: the node ends.
    pub const GENERIC: u8 = 0;
    /// Something is not supported.
    pub const UNSUPPORTED: u8 = 1;
    /// A message that is not valid here, or another version.
    pub const INVALID: u8 = 2;
    /// No room for another session.
    pub const MAX_SESSIONS: u8 = 3;
    /// No room for another link; also what a router says to an id whose old session still lives.
    pub const MAX_LINKS: u8 = 4;
    /// The lease has passed without a sign of life.
    pub const EXPIRED: u8 = 5;
    /// The peer takes nothing.
    pub const UNRESPONSIVE: u8 = 6;
    /// The peer is the node itself.
    pub const CONNECTION_TO_SELF: u8 = 7;

    const S: u8 = 0x20;

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.byte(CLOSE | if self.session { Self::S } else { 0 });
        w.byte(self.reason);
    }
}

impl<'p> Decode<'p> for Close {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let reason = r.one();
        Extensions::skip(header, r);
        Close {
            session: header & Self::S != 0,
            reason,
        }
    }
}

/// A sign of life, where nothing else is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive;

impl KeepAlive {
    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.byte(KEEP_ALIVE);
    }
}

impl<'p> Decode<'p> for KeepAlive {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        Extensions::skip(header, r);
        KeepAlive
    }
}

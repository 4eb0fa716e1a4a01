//! The messages of Zenoh 1.x, each a plain struct that borrows from the packet.
//!
//! A packet is one *batch*: transport messages back to back. Network messages follow a [`Frame`],
//! until the batch ends or a byte comes whose low five bits are the id of a transport message
//! ([`is_network`]). Every message begins with its *header*, one byte: the id in the low five bits,
//! two flags of the message's own, and whether extensions follow. The reader of a batch takes it, looks
//! at [`id_of`], and calls [`decode`](Decode::decode) of the message it wants; so an engine links only what it knows.
//!
//! ```
//! use sinew::pubsub::codec::{Decode, Push, Reader, WireExpr, Writer, id_of, network};
//!
//! let mut place = [0; 16];
//! let mut writer = Writer::new(&mut place);
//! Push::put(WireExpr::declared(1, true), b"hello").encode(&mut writer);
//! let len = writer.finish().unwrap();
//! assert_eq!(&place[..len], b"\x5d\x01\x01\x05hello");
//!
//! let mut reader = Reader::new(&place[..len]);
//! let header = reader.byte().unwrap();
//! assert_eq!(id_of(header), network::PUSH);
//! assert_eq!(Push::decode(header, &mut reader).unwrap().body.payload, b"hello");
//! ```
//!
//! What is read may use any length that a number has room for, unknown optional extensions are
//! skipped, unknown mandatory ones refused. What is written is minimal: what equals its default is
//! left out. `docs/src/zenoh-wire.md` has the layouts.
//!
//! [`Frame`]: transport::Frame
//! [`is_network`]: network::is_network

mod body;
mod declare;
mod encoding;
mod ext;
mod key;
pub mod network;
mod oam;
mod query;
mod reader;
pub mod scouting;
pub mod transport;
mod values;
mod writer;
mod zid;

pub use body::{Body, Kind};
pub use declare::{Declaration, Declare, EntityKind};
pub use encoding::Encoding;
pub use key::WireExpr;
pub use network::{Interest, Payloads, Push, Request, Response, ResponseFinal};
pub use oam::{Oam, OamBody};
pub use query::{Consolidation, Query, Reply, Target};
pub use reader::Reader;
pub use values::{Entity, Priority, Qos, SourceInfo, Timestamp, WhatAmI};
pub use writer::Writer;
pub use zid::Zid;

use ext::{Ext, Extensions};
use writer::Head;

/// The version of the protocol in INIT, JOIN, SCOUT and HELLO.
pub const VERSION: u8 = 9;

/// The bit of every header that says that extensions follow.
pub const Z: u8 = 0x80;

/// The id of the message that begins with this header.
pub const fn id_of(header: u8) -> u8 {
    header & 0x1f
}

/// A message, as it is read behind its header.
pub trait Decode<'p>: Sized {
    /// Reads what follows `header`. Whether all of it was there and right, [`Reader::end`] says.
    fn read(header: u8, r: &mut Reader<'p>) -> Self;

    /// Reads what follows `header`.
    ///
    /// # Errors
    ///
    /// See [`CodecError`].
    #[inline]
    fn decode(header: u8, r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let message = Self::read(header, r);
        r.end(message)
    }
}

/// Why bytes are not a message. What follows them in the packet cannot be read either: Zenoh's own
/// routers close the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// The packet ends inside the message, or a length in it says more than there is.
    Truncated,
    /// A number is larger than its field: a key's id above 16 bits, an id or sequence number above 32.
    OutOfRange,
    /// A bit pattern that the protocol keeps for later: an extension of the fourth kind, the fourth
    /// role of a node, an unknown target, an id of a node that is all zero.
    Reserved,
    /// No message, declaration or body has this id here. Likely a newer protocol, or a stream that
    /// lost its place.
    Unknown,
    /// An extension that is not known here, and that its sender says must be understood.
    Mandatory,
    /// A key expression, a query's parameters or a locator is not UTF-8.
    NotUtf8,
}

impl core::fmt::Display for CodecError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            CodecError::Truncated => "the packet ends inside a message",
            CodecError::OutOfRange => "a number is larger than its field",
            CodecError::Reserved => "a bit pattern that the protocol keeps for later",
            CodecError::Unknown => "an unknown id of a message",
            CodecError::Mandatory => "an unknown extension that must be understood",
            CodecError::NotUtf8 => "a string that is not UTF-8",
        })
    }
}

impl core::error::Error for CodecError {}

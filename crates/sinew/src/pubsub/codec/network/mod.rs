//! The messages of the network: what stands in a frame, between the two ends and everybody behind them.

mod interest;
mod payloads;
mod push;
mod request;

use super::{Ext, Extensions, Qos, Reader, id_of};

pub use interest::Interest;
pub use payloads::Payloads;
pub use push::Push;
pub use request::{Request, Response, ResponseFinal};

/// The id of [`Interest`].
pub const INTEREST: u8 = 0x19;
/// The id of [`ResponseFinal`].
pub const RESPONSE_FINAL: u8 = 0x1a;
/// The id of [`Response`].
pub const RESPONSE: u8 = 0x1b;
/// The id of [`Request`].
pub const REQUEST: u8 = 0x1c;
/// The id of [`Push`].
pub const PUSH: u8 = 0x1d;
/// The id of [`Declare`](super::Declare).
pub const DECLARE: u8 = 0x1e;
/// The id of the network's [`Oam`](super::Oam).
pub const OAM: u8 = 0x1f;

/// Whether a message with this header is the network's. A frame ends where one begins that is not.
#[inline]
pub const fn is_network(header: u8) -> bool {
    id_of(header) >= INTEREST
}

/// Routers say with it which of their trees a message follows. Mandatory, and nothing to us.
const NODE_ID: u8 = 0x3 | Ext::NUMBER | Ext::MANDATORY;

/// Reads the extensions that most messages have.
#[inline(never)]
pub(super) fn qos(header: u8, r: &mut Reader<'_>) -> Qos {
    let mut qos = Qos::DEFAULT;
    let mut exts = Extensions::of(header);
    while let Some(ext) = exts.next(r) {
        match ext.id {
            Qos::EXT => qos = Qos::of(&ext),
            NODE_ID => {}
            _ => ext.unknown(r),
        }
    }
    qos
}

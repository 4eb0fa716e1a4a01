//! The id of a node.

use core::fmt;

use super::{CodecError, Reader, Writer};

/// The id of a node: 1 to 16 bytes, of which the last is not zero. It must be unique; who opens
/// a session again while the peer still holds the old one is refused, so draw a new one at each boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zid([u8; 16]);

impl Zid {
    /// The node with these bytes, little-endian; zeros at the end do not count. `None` if all are zero
    /// (or there are none), or there are more than 16.
    pub fn new(bytes: &[u8]) -> Option<Zid> {
        let mut zid = [0; 16];
        zid.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (zid != [0; 16]).then_some(Zid(zid))
    }

    /// Its bytes, without zeros at the end: 1 to 16.
    #[inline(never)] // called in many places, none of them often
    pub fn as_bytes(&self) -> &[u8] {
        let mut bytes = &self.0[..];
        while let [front @ .., 0] = bytes {
            bytes = front;
        }
        bytes
    }

    /// Its length less one, in the high four bits of the byte that stands before it.
    pub(super) fn nibble(&self) -> u8 {
        (self.as_bytes().len().wrapping_sub(1) as u8) << 4
    }

    /// Reads as many bytes as the high four bits of `flags` say.
    pub(super) fn behind(flags: u8, r: &mut Reader<'_>) -> Zid {
        let bytes = r.take(usize::from(flags >> 4) + 1);
        Zid::read(bytes, r)
    }

    /// The node with these bytes; that there is none such is wrong with `r`.
    #[inline(never)]
    pub(super) fn read(bytes: &[u8], r: &mut Reader<'_>) -> Zid {
        Zid::new(bytes).unwrap_or_else(|| {
            r.fail(CodecError::Reserved);
            Zid([0; 16])
        })
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.as_bytes());
    }
}

/// As Zenoh's tools print it: hexadecimal, the highest byte first.
impl fmt::Display for Zid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", u128::from_le_bytes(self.0))
    }
}

impl fmt::Debug for Zid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

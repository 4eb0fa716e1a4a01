//! Bytes and numbers: varints, CRC-32 and a cursor that never reads past its end.

pub mod crc32;
pub mod varint;

/// A cursor over received bytes. Every read is checked; a failed one leaves nothing usable.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the front of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Whether everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// A protobuf varint, cut to 32 bits as protobuf does it.
    #[inline]
    pub fn varint32(&mut self) -> Option<u32> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u32::from(first)); // nearly every varint of a packet
        }
        self.long_varint32(u32::from(first & 0x7f))
    }

    fn long_varint32(&mut self, mut value: u32) -> Option<u32> {
        // At most ten bytes, as for 64 bits; what does not fit 32 is cut off.
        for group in 1..10u32 {
            let byte = self.byte()?;
            if group < 5 {
                value |= u32::from(byte & 0x7f) << (7 * group);
            }
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn fixed32(&mut self) -> Option<u32> {
        let bytes: [u8; 4] = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    /// Skips the value of a protobuf field of this wire type; groups are refused.
    pub fn skip(&mut self, wire_type: u32) -> Option<()> {
        match wire_type {
            0 => self.varint32().map(drop),
            1 => self.take(8).map(drop),
            2 => {
                let len = self.varint32()?;
                self.take(len as usize).map(drop)
            }
            5 => self.take(4).map(drop),
            _ => None,
        }
    }
}

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

    /// All that has not been read.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
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
    // A packet has seven or eight of them, nearly all of one byte: inlined, each costs four
    // instructions instead of twenty-odd.
    #[inline(always)]
    pub fn varint32(&mut self) -> Option<u32> {
        match self.rest.split_first() {
            Some((&first, rest)) if first < 0x80 => {
                self.rest = rest;
                Some(u32::from(first)) // nearly every varint of a packet
            }
            _ => {
                let (value, rest) = long_varint32(self.rest)?;
                self.rest = rest;
                Some(value)
            }
        }
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn fixed32(&mut self) -> Option<u32> {
        let bytes: [u8; 4] = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    /// Skips the value of a protobuf field of this wire type; groups are refused.
    #[inline]
    pub fn skip(&mut self, wire_type: u32) -> Option<()> {
        *self = self.skipped(wire_type)?;
        Some(())
    }

    #[inline(never)] // rare, and by value as above
    fn skipped(mut self, wire_type: u32) -> Option<Self> {
        let len = match wire_type {
            0 | 2 => {
                let (value, rest) = long_varint32(self.rest)?;
                self.rest = rest;
                if wire_type == 0 { 0 } else { value as usize }
            }
            1 => 8,
            5 => 4,
            _ => return None,
        };
        self.take(len)?;
        Some(self)
    }
}

/// A varint of any length, and what follows it. By value, so that the cursor of the caller can
/// stay in registers.
#[inline(never)] // one copy for all fields
fn long_varint32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    if let [first @ 0x80..=0xff, second @ 0..=0x7f, rest @ ..] = bytes {
        // The longest that calls in order have.
        return Some((u32::from(first & 0x7f) | u32::from(*second) << 7, rest));
    }
    let (mut value, mut rest) = (0, bytes);
    // At most ten bytes, as for 64 bits; what does not fit 32 is cut off.
    for group in 0..10u32 {
        let (&byte, behind) = rest.split_first()?;
        rest = behind;
        if group < 5 {
            value |= u32::from(byte & 0x7f) << (7 * group);
        }
        if byte < 0x80 {
            return Some((value, rest));
        }
    }
    None
}

/// Copies `from` over the front of `to`, as far as both go: without the panic for unequal lengths that
/// `copy_from_slice` would link.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// These bytes as text, where they are UTF-8.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    match bytes.utf8_chunks().next() {
        None => Some(""),
        Some(chunk) => chunk.invalid().is_empty().then_some(chunk.valid()),
    }
}

//! A checked cursor over what was received.

use super::CodecError;

/// A cursor over the bytes of a packet. Every read is checked; after a failed one, what is left is
/// not worth reading.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'p> {
    rest: &'p [u8],
}

impl<'p> Reader<'p> {
    /// A cursor at the front of `bytes`.
    pub const fn new(bytes: &'p [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// How many bytes are left.
    pub const fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, which stays.
    pub const fn peek(&self) -> Option<u8> {
        match self.rest {
            [first, ..] => Some(*first),
            [] => None,
        }
    }

    /// Everything that is left.
    pub const fn rest(&mut self) -> &'p [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    /// The next byte.
    ///
    /// # Errors
    ///
    /// [`CodecError::Truncated`] at the end.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, CodecError> {
        let (&first, rest) = self.rest.split_first().ok_or(CodecError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    ///
    /// [`CodecError::Truncated`] where there are fewer.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'p [u8], CodecError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(CodecError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Two bytes, little-endian: batch sizes are written so, and nothing else.
    ///
    /// # Errors
    ///
    /// [`CodecError::Truncated`] where there are fewer.
    pub fn two(&mut self) -> Result<u16, CodecError> {
        Ok(u16::from(self.byte()?) | u16::from(self.byte()?) << 8)
    }

    /// A number of up to 32 bits.
    ///
    /// # Errors
    ///
    /// [`CodecError::OutOfRange`] above 32 bits, [`CodecError::Truncated`].
    #[inline(never)] // called everywhere
    pub fn vle32(&mut self) -> Result<u32, CodecError> {
        self.quick32()
    }

    /// The same, where it must be fast: nearly every number of a packet has one byte.
    #[inline]
    pub(super) fn quick32(&mut self) -> Result<u32, CodecError> {
        match self.rest.split_first() {
            Some((&first, rest)) if first < 0x80 => {
                self.rest = rest;
                Ok(u32::from(first))
            }
            _ => match self.long()? {
                (value, false) => Ok(value),
                (_, true) => Err(CodecError::OutOfRange),
            },
        }
    }

    /// A number of up to 16 bits: ids of keys.
    ///
    /// # Errors
    ///
    /// [`CodecError::OutOfRange`] above 16 bits, [`CodecError::Truncated`].
    pub fn vle16(&mut self) -> Result<u16, CodecError> {
        u16::try_from(self.vle32()?).map_err(|_| CodecError::OutOfRange)
    }

    /// A number of any size; above 32 bits it counts as [`u32::MAX`].
    ///
    /// # Errors
    ///
    /// [`CodecError::Truncated`].
    pub fn vle_capped(&mut self) -> Result<u32, CodecError> {
        let (value, over) = self.long()?;
        Ok(if over { u32::MAX } else { value })
    }

    /// A number of up to 64 bits: time stamps.
    ///
    /// # Errors
    ///
    /// [`CodecError::Truncated`].
    pub fn vle(&mut self) -> Result<u64, CodecError> {
        let mut value = 0;
        for group in 0..8u32 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * group);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        // The ninth byte is the last, and has eight bits of the number.
        Ok(value | u64::from(self.byte()?) << 56)
    }

    /// Bytes with their length before them.
    ///
    /// # Errors
    ///
    /// [`CodecError::Truncated`] where the packet has fewer.
    #[inline(never)] // called everywhere
    pub fn zbytes(&mut self) -> Result<&'p [u8], CodecError> {
        // A length that no memory can hold is one that the packet does not have.
        let len = self.vle32().map_err(|_| CodecError::Truncated)?;
        self.take(usize::try_from(len).map_err(|_| CodecError::Truncated)?)
    }

    /// A string with its length before it.
    ///
    /// # Errors
    ///
    /// [`CodecError::NotUtf8`], [`CodecError::Truncated`].
    pub fn zstr(&mut self) -> Result<&'p str, CodecError> {
        text(self.zbytes()?)
    }

    /// A number of any length: its low 32 bits, and whether there are more.
    // One copy for all fields, without 64-bit arithmetic: only time stamps need that.
    #[inline(never)]
    fn long(&mut self) -> Result<(u32, bool), CodecError> {
        let (mut value, mut over) = (0, false);
        for group in 0..9u32 {
            let byte = self.byte()?;
            let last = byte < 0x80 || group == 8;
            let bits = u32::from(if group == 8 { byte } else { byte & 0x7f });
            match group {
                0..4 => value |= bits << (7 * group),
                4 => {
                    value |= bits << 28;
                    over |= bits > 0xf;
                }
                _ => over |= bits != 0,
            }
            if last {
                break;
            }
        }
        Ok((value, over))
    }
}

/// These bytes as text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, CodecError> {
    core::str::from_utf8(bytes).map_err(|_| CodecError::NotUtf8)
}

//! A checked cursor over what was received.

use super::{CodecError, body::PUT};

/// A cursor over the bytes of a packet. What cannot be read is remembered, and reads as 0 or as nothing
/// from then on, so that a message is read without a question after each field:
/// [`end`](Reader::end) says it once.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'p> {
    rest: &'p [u8],
    error: Option<CodecError>,
}

impl<'p> Reader<'p> {
    /// A cursor at the front of `bytes`.
    pub const fn new(bytes: &'p [u8]) -> Self {
        Reader {
            rest: bytes,
            error: None,
        }
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

    /// The next byte: the header of a message.
    ///
    /// # Errors
    ///
    /// [`CodecError::Truncated`] at the end, or what was wrong before.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, CodecError> {
        let byte = self.one();
        self.end(byte)
    }

    /// What was read, if all of it was there and right.
    ///
    /// # Errors
    ///
    /// The first thing that was wrong.
    #[inline]
    pub fn end<T>(&self, value: T) -> Result<T, CodecError> {
        match self.error {
            None => Ok(value),
            Some(error) => Err(error),
        }
    }

    /// Remembers what is wrong, unless something was before.
    #[inline(never)]
    pub fn fail(&mut self, error: CodecError) {
        self.rest = &[];
        self.error.get_or_insert(error);
    }

    /// What is wrong with a part is wrong with the whole.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn fail_as(&mut self, part: &Reader<'_>) {
        if let Some(error) = part.error {
            self.fail(error);
        }
    }

    /// The next byte.
    // Out of line on small cores, where its copies would be a third of this code.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub fn one(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&first, rest)) => {
                self.rest = rest;
                first
            }
            None => {
                self.fail(CodecError::Truncated);
                0
            }
        }
    }

    /// Everything that is left.
    pub const fn rest(&mut self) -> &'p [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    /// The next `len` bytes.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn take(&mut self, len: usize) -> &'p [u8] {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                taken
            }
            None => {
                self.fail(CodecError::Truncated);
                &[]
            }
        }
    }

    /// Two bytes, little-endian: batch sizes are written so, and nothing else.
    pub fn two(&mut self) -> u16 {
        u16::from(self.one()) | u16::from(self.one()) << 8
    }

    /// A number of up to 32 bits; above it is [`CodecError::OutOfRange`].
    #[inline(never)] // called everywhere
    pub fn vle32(&mut self) -> u32 {
        let value = self.vle();
        if value >> 32 != 0 {
            self.fail(CodecError::OutOfRange);
        }
        value as u32
    }

    /// A number of up to 16 bits; above it is [`CodecError::OutOfRange`].
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn vle16(&mut self) -> u16 {
        let value = self.vle32();
        if value > 0xffff {
            self.fail(CodecError::OutOfRange);
        }
        value as u16
    }

    /// A number of any size; above 32 bits it counts as [`u32::MAX`].
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn vle_capped(&mut self) -> u32 {
        u32::try_from(self.vle()).unwrap_or(u32::MAX)
    }

    /// A number of up to 64 bits: time stamps.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn vle(&mut self) -> u64 {
        let (low, more) = self.groups();
        if !more {
            return low.into();
        }
        let (middle, more) = self.groups();
        // The ninth byte is the last, and has eight bits of the number.
        let high = if more { self.one() } else { 0 };
        u64::from(low) | u64::from(middle) << 28 | u64::from(high) << 56
    }

    /// Up to four groups of seven bits of a number, and whether there are more: what small cores have
    /// room for in a register.
    #[cfg_attr(target_os = "none", inline(never))]
    fn groups(&mut self) -> (u32, bool) {
        let mut value = 0;
        for group in 0..4u32 {
            let byte = self.one();
            value |= u32::from(byte & 0x7f) << (7 * group);
            if byte < 0x80 {
                return (value, false);
            }
        }
        (value, true)
    }

    /// Bytes with their length before them.
    #[inline(never)] // called everywhere
    pub fn zbytes(&mut self) -> &'p [u8] {
        // A length that no memory can hold is one that the packet does not have.
        let len = self.vle_capped();
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// A string with its length before it; what is no text is [`CodecError::NotUtf8`].
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn zstr(&mut self) -> &'p str {
        let bytes = self.zbytes();
        self.text(bytes)
    }

    /// These bytes as text.
    #[inline(never)] // the check is large
    pub(super) fn text(&mut self, bytes: &'p [u8]) -> &'p str {
        crate::wire::text(bytes).unwrap_or_else(|| {
            self.fail(CodecError::NotUtf8);
            ""
        })
    }

    /// A key's number, PUT without options, and a payload, where they all are short; else nothing is read.
    #[inline]
    pub(super) fn short_sample(&mut self) -> Option<(u8, &'p [u8])> {
        let [scope @ 0..0x80, PUT, len @ 0..0x80, rest @ ..] = self.rest else {
            return None;
        };
        let (payload, rest) = rest.split_at_checked(usize::from(*len))?;
        self.rest = rest;
        Some((*scope, payload))
    }
}

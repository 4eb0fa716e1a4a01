//! A cursor over a place that is written.

use super::{Ext, Z};

/// A cursor over a place. What does not fit is counted, so that a message is written without a
/// question after each field: [`finish`](Writer::finish) says it once.
#[derive(Debug)]
pub struct Writer<'p> {
    place: &'p mut [u8],
    /// Where the next byte goes, or would go.
    at: usize,
    /// What stands before this is not written: `place` begins here.
    skip: usize,
}

/// No place is as long.
const FULL: usize = usize::MAX;

impl<'p> Writer<'p> {
    /// A cursor at the front of `place`.
    pub const fn new(place: &'p mut [u8]) -> Self {
        Writer::behind(place, 0)
    }

    /// A cursor behind the first `at` bytes of `place`, which are kept.
    #[inline]
    pub const fn behind(place: &'p mut [u8], at: usize) -> Self {
        Writer { place, at, skip: 0 }
    }

    /// Writes only a part of a message: what is behind its first `skip` bytes, as far as there is
    /// place. A message that is cut into several packets is written once for each, and every byte of
    /// it goes straight where it leaves from.
    pub const fn window(place: &'p mut [u8], skip: usize) -> Self {
        Writer { place, at: 0, skip }
    }

    /// How many bytes are written, or would be if there were place for them.
    pub const fn total(&self) -> usize {
        self.at
    }

    /// How many bytes were written, or `None` if something did not fit. Not for windows.
    #[inline]
    pub const fn finish(self) -> Option<usize> {
        if self.at > self.place.len() {
            None
        } else {
            Some(self.at)
        }
    }

    /// The next `len` bytes of the place, to be written later; `None` if they do not fit.
    #[inline]
    pub fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        let at = self.at.checked_sub(self.skip);
        self.at = self.at.saturating_add(len);
        self.place.get_mut(at?..)?.get_mut(..len)
    }

    /// One byte.
    #[inline(never)] // called everywhere; what is fast writes arrays
    pub fn byte(&mut self, byte: u8) {
        match self.room(1) {
            Some([room]) => *room = byte,
            _ => self.beyond(&[byte]),
        }
    }

    /// These bytes, with one check for all; `false` where not all of them fit, and none was written.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self, bytes: [u8; N]) -> bool {
        let at = self.at.checked_sub(self.skip);
        let room = at.and_then(|at| self.place.get_mut(at..)?.first_chunk_mut());
        if let Some(room) = room {
            *room = bytes;
            self.at = self.at.saturating_add(N);
            return true;
        }
        false
    }

    /// These bytes, as they are.
    #[cfg_attr(target_os = "none", inline(never))] // as in the reader
    #[cfg_attr(not(target_os = "none"), inline)]
    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.room(bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.beyond(bytes),
        }
    }

    /// These bytes, with their length before them.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn zbytes(&mut self, bytes: &[u8]) {
        self.vle_len(bytes.len());
        self.bytes(bytes);
    }

    /// Two bytes, little-endian.
    pub fn two(&mut self, value: u16) {
        let [low, high] = value.to_le_bytes();
        self.byte(low);
        self.byte(high);
    }

    /// A number of up to 32 bits, in one to five bytes.
    #[inline(never)]
    pub fn vle32(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// A number of up to 64 bits, in one to nine bytes.
    pub fn vle(&mut self, mut value: u64) {
        for _ in 0..8 {
            if value < 0x80 {
                break;
            }
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        // The ninth byte is the last, and has eight bits of the number.
        self.byte(value as u8);
    }

    /// A length. Above 32 bits nothing fits.
    #[inline(never)]
    pub fn vle_len(&mut self, len: usize) {
        match u32::try_from(len) {
            Ok(len) => self.vle32(len),
            Err(_) => self.refuse(),
        }
    }

    /// What is to be written has no form on the wire: as if it did not fit.
    pub(super) const fn refuse(&mut self) {
        self.at = FULL;
    }

    /// The header of a message, to which extensions can be added.
    #[inline(never)]
    pub fn head(&mut self, header: u8) -> Head {
        let head = Head(self.at);
        self.byte(header);
        head
    }

    /// Adds flags to a byte written before.
    #[inline(never)]
    fn or(&mut self, at: usize, bits: u8) {
        let at = at.checked_sub(self.skip);
        if let Some(byte) = at.and_then(|at| self.place.get_mut(at)) {
            *byte |= bits;
        }
    }

    /// Writes what of `bytes`, which were counted, there is place for.
    #[inline(never)]
    fn beyond(&mut self, bytes: &[u8]) {
        let start = self.at.saturating_sub(bytes.len());
        let (from, to) = (
            self.skip.saturating_sub(start),
            start.saturating_sub(self.skip),
        );
        let seen = bytes.get(from..).unwrap_or_default();
        let room = self.place.get_mut(to..).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(seen) {
            *to = *from;
        }
    }
}

/// Where the last header is, of a message or of one of its extensions. Another extension sets the bit
/// in it that says so: then nobody has to count them before. They are written in the order of their ids.
#[derive(Debug)]
pub struct Head(usize);

impl Head {
    /// An extension without a value.
    #[inline(never)]
    pub fn unit(&mut self, writer: &mut Writer<'_>, id: u8) {
        writer.or(self.0, Z);
        *self = writer.head(id);
    }

    /// An extension whose value is a number.
    #[inline(never)]
    pub fn number(&mut self, writer: &mut Writer<'_>, id: u8, value: u32) {
        self.unit(writer, id | Ext::NUMBER);
        writer.vle32(value);
    }

    /// An extension whose value is what is written up to [`Part::end`]: less than 128 bytes.
    pub fn part(&mut self, writer: &mut Writer<'_>, id: u8) -> Part {
        self.unit(writer, id | Ext::BYTES);
        writer.byte(0);
        Part(writer.total())
    }

    /// An extension whose value is `len` bytes, which the caller writes next.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn bytes(&mut self, writer: &mut Writer<'_>, id: u8, len: usize) {
        self.unit(writer, id | Ext::BYTES);
        writer.vle_len(len);
    }
}

/// Where the value of an extension begins; its length is the byte before.
#[must_use]
pub struct Part(usize);

impl Part {
    /// The value ends here.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn end(self, writer: &mut Writer<'_>) {
        let len = writer.total().saturating_sub(self.0);
        writer.or(self.0.saturating_sub(1), len as u8);
    }
}

/// How many bytes a number takes.
pub(super) const fn vle_len(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

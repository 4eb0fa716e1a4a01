//! A length before each packet.
//!
//! ```text
//! length of the packet: 2 or 4 bytes, little-endian | packet
//! ```
//! For streams that neither lose nor damage bytes: there is no check, and no way to find the next
//! packet after an error. So a length above the place ends the stream.
//!
//! A carrier that has a frame in one piece needs no decoder: [`Width::prefix`] and [`split`] work in
//! the buffer that a frame leaves from or has arrived in.

use super::{FrameError, FrameStats, count};
use crate::wire::copy;

/// How many bytes say how long the packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// For packets of up to 65,535 bytes: Zenoh's batches.
    Two,
    /// For packets of up to 4,294,967,295 bytes.
    Four,
}

impl Width {
    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Width::Two => 2,
            Width::Four => 4,
        }
    }

    /// The longest packet in bytes.
    pub const fn max_packet(self) -> usize {
        match self {
            Width::Two => u16::MAX as usize,
            Width::Four => u32::MAX as usize,
        }
    }

    /// Writes the length of a packet to the front of `out`; `None` where it does not fit.
    pub fn prefix(self, packet_len: usize, out: &mut [u8]) -> Option<()> {
        let len = u32::try_from(packet_len).ok()?;
        let out = out.get_mut(..self.bytes())?;
        if packet_len > self.max_packet() {
            return None;
        }
        copy(out, &len.to_le_bytes());
        Some(())
    }
}

/// The bytes that the frame of a packet of `packet_len` bytes takes.
pub const fn encoded_len(width: Width, packet_len: usize) -> usize {
    packet_len.saturating_add(width.bytes())
}

/// Writes the frame of one packet to the front of `out` and returns its length; `None` where it
/// does not fit, or the length does not fit the width.
pub fn encode(width: Width, packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let len = encoded_len(width, packet.len());
    let out = out.get_mut(..len)?;
    width.prefix(packet.len(), out)?;
    copy(out.get_mut(width.bytes()..)?, packet);
    Some(len)
}

/// The packet whose frame begins `bytes`; `None` while a part of it is missing.
/// [`FrameError::TooLarge`] where its length is above `max`.
pub fn split(width: Width, bytes: &[u8], max: usize) -> Result<Option<&[u8]>, FrameError> {
    let Some((prefix, rest)) = bytes.split_at_checked(width.bytes()) else {
        return Ok(None);
    };
    let mut len = [0; 4];
    copy(&mut len, prefix);
    match usize::try_from(u32::from_le_bytes(len)) {
        Ok(len) if len <= max => Ok(rest.get(..len)),
        _ => Err(FrameError::TooLarge),
    }
}

/// Takes the frames of one stream apart.
#[derive(Clone, Debug)]
pub struct Decoder {
    width: Width,
    /// The prefix as far as it has arrived.
    expected: u32,
    /// How many bytes of prefix and packet have arrived.
    seen: usize,
    failed: bool,
    stats: FrameStats,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub const fn new(width: Width) -> Decoder {
        Decoder {
            width,
            expected: 0,
            seen: 0,
            failed: false,
            stats: FrameStats::ZERO,
        }
    }

    /// What has arrived so far.
    pub const fn stats(&self) -> &FrameStats {
        &self.stats
    }

    /// As [`super::Decoder::decode`]; after an error it is the same error for ever.
    pub fn decode<'p>(
        &mut self,
        place: &'p mut [u8],
        input: &mut &[u8],
    ) -> Result<Option<&'p [u8]>, FrameError> {
        if self.failed {
            return Err(FrameError::TooLarge);
        }
        let prefix = self.width.bytes();
        while let Some((&first, rest)) = input.split_first() {
            if self.seen < prefix {
                *input = rest;
                self.expected |= u32::from(first) << (8 * self.seen);
                self.seen += 1;
                if self.seen < prefix {
                    continue;
                }
            }
            let at = self.seen - prefix;
            let expected = usize::try_from(self.expected).unwrap_or(usize::MAX);
            if expected > place.len() {
                self.failed = true;
                count(&mut self.stats.too_large);
                return Err(FrameError::TooLarge);
            }
            let run = expected.saturating_sub(at).min(input.len());
            let (run, rest) = input.split_at_checked(run).unwrap_or_default();
            copy(place.get_mut(at..).unwrap_or_default(), run);
            *input = rest;
            self.seen += run.len();
            if self.seen - prefix >= expected {
                self.expected = 0;
                self.seen = 0;
                count(&mut self.stats.frames);
                return Ok(place.get(..expected));
            }
        }
        Ok(None)
    }
}

//! A length before each packet.
//!
//! ```text
//! length of the packet: 4 bytes, little-endian | packet
//! ```
//! For streams that neither lose nor damage bytes: there is no check, and no way to find the next
//! packet after an error. So a length above the place ends the stream.

use super::{FrameError, FrameStats, copy, count};

const PREFIX: usize = 4;

/// The bytes that the frame of a packet of `packet_len` bytes takes.
pub const fn encoded_len(packet_len: usize) -> usize {
    packet_len.saturating_add(PREFIX)
}

/// Writes the frame of one packet to the front of `out` and returns its length; `None` where it
/// does not fit, or the length does not fit 32 bits.
pub fn encode(packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let prefix = u32::try_from(packet.len()).ok()?.to_le_bytes();
    let len = encoded_len(packet.len());
    let (front, rest) = out.get_mut(..len)?.split_at_mut_checked(PREFIX)?;
    copy(front, &prefix);
    copy(rest, packet);
    Some(len)
}

/// Takes the frames of one stream apart.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// The prefix as far as it has arrived.
    expected: u32,
    /// How many bytes of prefix and packet have arrived.
    seen: usize,
    failed: bool,
    stats: FrameStats,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub const fn new() -> Decoder {
        Decoder {
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
        while let Some((&first, rest)) = input.split_first() {
            if self.seen < PREFIX {
                *input = rest;
                self.expected |= u32::from(first) << (8 * self.seen);
                self.seen += 1;
                if self.seen < PREFIX {
                    continue;
                }
            }
            let at = self.seen - PREFIX;
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
            if self.seen - PREFIX >= expected {
                self.expected = 0;
                self.seen = 0;
                count(&mut self.stats.frames);
                return Ok(place.get(..expected));
            }
        }
        Ok(None)
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

//! Consistent overhead byte stuffing with a CRC-32, delimited by zeros.
//!
//! ```text
//! 00 | COBS(packet | CRC-32 of the packet, little-endian) | 00
//! ```
//! The leading zero cuts noise off, so that it costs no packet. Receivers do without it; zeros may
//! be shared and repeated. The overhead is 7 bytes and one more per 254.

use super::body::FCS_LEN;
use super::{Body, FrameStats, count};
use crate::wire::crc32::Crc32;

const DELIMITER: u8 = 0;
/// The code of a block of 254 bytes, the only one that no zero follows.
const FULL_BLOCK: u8 = 0xff;

/// The most bytes that the frame of a packet of `packet_len` bytes takes.
pub const fn max_encoded_len(packet_len: usize) -> usize {
    let content = packet_len.saturating_add(FCS_LEN);
    content.saturating_add(content / 254).saturating_add(3)
}

/// Writes the frame of one packet to the front of `out` and returns its length; `None` where it
/// does not fit.
pub fn encode(packet: &[u8], out: &mut [u8]) -> Option<usize> {
    let fcs = Crc32::new().update(packet).finish().to_le_bytes();
    *out.first_mut()? = DELIMITER;
    // Each block begins with a code, its length, that is known at its end.
    let (mut code_at, mut at) = (1, 2);
    for &byte in packet.iter().chain(&fcs) {
        if byte != DELIMITER {
            *out.get_mut(at)? = byte;
            at += 1;
        }
        if byte == DELIMITER || at - code_at == usize::from(FULL_BLOCK) {
            *out.get_mut(code_at)? = (at - code_at) as u8;
            code_at = at;
            at += 1;
        }
    }
    *out.get_mut(code_at)? = (at - code_at) as u8;
    *out.get_mut(at)? = DELIMITER;
    Some(at + 1)
}

/// Takes the frames of one stream apart.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// Bytes still to come of the current block.
    block_left: u8,
    /// The current block stands for a zero behind it, unless the frame ends there.
    owes_zero: bool,
    is_empty: bool,
    body: Body,
    stats: FrameStats,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub const fn new() -> Decoder {
        Decoder {
            block_left: 0,
            owes_zero: false,
            is_empty: true,
            body: Body::new(),
            stats: FrameStats::ZERO,
        }
    }

    /// What has arrived so far. Noise is counted as a bad frame; a block that a delimiter cuts off
    /// is a bad escape.
    pub const fn stats(&self) -> &FrameStats {
        &self.stats
    }

    /// As [`super::Decoder::decode`]; a frame larger than `place` is counted and dropped.
    pub fn decode<'p>(&mut self, place: &'p mut [u8], input: &mut &[u8]) -> Option<&'p [u8]> {
        while let Some((&first, rest)) = input.split_first() {
            if first == DELIMITER {
                *input = rest;
                if let Some(len) = self.end(place.len()) {
                    return place.get(..len);
                }
            } else if self.block_left == 0 {
                *input = rest;
                if self.owes_zero {
                    self.body.push(place, &[0]);
                }
                self.block_left = first - 1;
                self.owes_zero = first != FULL_BLOCK;
                self.is_empty = false;
            } else {
                let left = usize::from(self.block_left);
                let block = input.get(..left).unwrap_or(input);
                let run = block
                    .iter()
                    .position(|&byte| byte == DELIMITER)
                    .unwrap_or(block.len());
                let (run, rest) = input.split_at_checked(run).unwrap_or_default();
                *input = rest;
                self.block_left -= run.len() as u8;
                self.body.push(place, run);
            }
        }
        None
    }

    /// The length of the packet that the delimiter completes, and the start of the next frame.
    fn end(&mut self, room: usize) -> Option<usize> {
        let len = if self.is_empty {
            None // a repeated delimiter
        } else if self.block_left > 0 {
            count(&mut self.stats.bad_escape);
            None
        } else {
            self.body.end(room, 0, true, &mut self.stats)
        };
        self.block_left = 0;
        self.owes_zero = false;
        self.is_empty = true;
        self.body = Body::new();
        len
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

//! The inside of a frame that ends with its CRC-32, while it arrives.

use super::{FrameStats, count};
use crate::wire::copy;
use crate::wire::crc32::{Crc32, RESIDUE};

/// Length of the CRC behind the packet.
pub(super) const FCS_LEN: usize = 4;

/// Packet and CRC as far as they have arrived.
///
/// What lies beyond the place is counted and checked, but not stored. So a place has to be as
/// large as the packet only: the CRC behind it needs no room.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub crc: Crc32,
    pub len: usize,
}

impl Body {
    pub const fn new() -> Body {
        Body {
            crc: Crc32::new(),
            len: 0,
        }
    }

    /// Takes bytes in; all but the first `place.len()` are only counted and checked.
    #[inline]
    pub fn push(&mut self, place: &mut [u8], bytes: &[u8]) {
        self.crc = self.crc.update(bytes);
        copy(place.get_mut(self.len..).unwrap_or_default(), bytes);
        self.len = self.len.saturating_add(bytes.len());
    }

    /// The length of the packet, now that the frame is complete; `None` and counted where it is no
    /// good packet of at most `room` bytes behind `head` other bytes.
    pub fn end(
        &self,
        room: usize,
        head: usize,
        is_ours: bool,
        stats: &mut FrameStats,
    ) -> Option<usize> {
        let fault = match self.len.checked_sub(head + FCS_LEN) {
            // The shortest head for another address is two bytes.
            None if is_ours || self.len < 2 + FCS_LEN => &mut stats.too_short,
            _ if self.crc.finish() != RESIDUE => &mut stats.bad_crc,
            Some(len) if is_ours && len <= room => {
                count(&mut stats.frames);
                return Some(len);
            }
            Some(_) if is_ours => &mut stats.too_large,
            _ => &mut stats.other_address,
        };
        count(fault);
        None
    }
}

//! Protobuf base-128 varints of 32 bits.

/// Writes `value` at `place[at..]`, in as few bytes as it takes (at most 5), and returns the index
/// behind it; `None` where it does not fit.
#[inline]
pub fn write32(place: &mut [u8], mut at: usize, mut value: u32) -> Option<usize> {
    while value >= 0x80 {
        *place.get_mut(at)? = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    *place.get_mut(at)? = value as u8;
    Some(at + 1)
}

//! CRC-32/IEEE, reflected, as in zlib (wire reference, section HDLC).
//!
//! Polynomial `EDB88320` reflected, start `FFFFFFFF`, final exclusive-or `FFFFFFFF`. Two tables,
//! one result: 16 entries (64 B) for small targets, and with the feature `fast-crc` eight times
//! 256 entries (8 KiB), a third of the instructions per byte.

/// What [`Crc32::finish`] gives for any bytes followed by their own CRC, little-endian.
///
/// So a receiver checks a trailing CRC without knowing where it begins.
pub const RESIDUE: u32 = 0x2144_df1c;

const POLYNOMIAL: u32 = 0xedb8_8320;

/// A CRC under way; pieces give the same result as the whole.
///
/// ```
/// use sinew::wire::crc32::Crc32;
/// let crc = Crc32::new().update(b"12345").update(b"6789");
/// assert_eq!(crc.finish(), 0xcbf4_3926);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crc32(u32);

impl Crc32 {
    /// The CRC of no bytes.
    pub const fn new() -> Crc32 {
        Crc32(!0)
    }

    /// With these bytes added.
    #[must_use]
    #[inline]
    pub fn update(self, bytes: &[u8]) -> Crc32 {
        Crc32(table::update(self.0, bytes))
    }

    /// With one byte added.
    #[must_use]
    #[inline]
    pub fn byte(self, byte: u8) -> Crc32 {
        Crc32(table::step(self.0, byte))
    }

    /// The CRC of all bytes so far.
    pub const fn finish(self) -> u32 {
        !self.0
    }
}

impl Default for Crc32 {
    fn default() -> Self {
        Crc32::new()
    }
}

/// The register after `bits` shifts.
const fn shift(mut register: u32, bits: u32) -> u32 {
    let mut i = 0;
    while i < bits {
        register = (register >> 1) ^ (POLYNOMIAL * (register & 1));
        i += 1;
    }
    register
}

#[cfg(not(feature = "fast-crc"))]
mod table {
    use super::shift;

    static NIBBLES: [u32; 16] = {
        let mut table = [0; 16];
        let mut i = 0;
        while i < 16 {
            table[i] = shift(i as u32, 4);
            i += 1;
        }
        table
    };

    #[inline]
    pub fn step(mut register: u32, byte: u8) -> u32 {
        register ^= u32::from(byte);
        register = NIBBLES[(register & 15) as usize] ^ (register >> 4);
        NIBBLES[(register & 15) as usize] ^ (register >> 4)
    }

    pub fn update(register: u32, bytes: &[u8]) -> u32 {
        bytes
            .iter()
            .fold(register, |register, &byte| step(register, byte))
    }
}

#[cfg(feature = "fast-crc")]
mod table {
    use super::shift;

    /// `TABLES[n][b]`: what byte `b` leaves in the register when `n` zero bytes follow it.
    static TABLES: [[u32; 256]; 8] = {
        let mut tables = [[0; 256]; 8];
        let mut byte = 0;
        while byte < 256 {
            let mut n = 0;
            while n < 8 {
                tables[n][byte] = shift(byte as u32, 8 * (n as u32 + 1));
                n += 1;
            }
            byte += 1;
        }
        tables
    };

    #[inline]
    fn after(zero_bytes: usize, word: u64, index: u32) -> u32 {
        TABLES[zero_bytes & 7][(word >> (8 * index)) as u8 as usize]
    }

    #[inline]
    pub fn step(register: u32, byte: u8) -> u32 {
        after(0, u64::from(register ^ u32::from(byte)), 0) ^ (register >> 8)
    }

    pub fn update(mut register: u32, bytes: &[u8]) -> u32 {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            // The CRC is linear: the eight bytes are looked up independently and combined.
            let word = u64::from_le_bytes(*word) ^ u64::from(register);
            register = after(7, word, 0)
                ^ after(6, word, 1)
                ^ after(5, word, 2)
                ^ after(4, word, 3)
                ^ after(3, word, 4)
                ^ after(2, word, 5)
                ^ after(1, word, 6)
                ^ after(0, word, 7);
        }
        rest.iter()
            .fold(register, |register, &byte| step(register, byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_match_zlib() {
        assert_eq!(Crc32::new().finish(), 0);
        assert_eq!(Crc32::new().update(b"123456789").finish(), 0xcbf4_3926);
        assert_eq!(Crc32::new().update(&[0; 32]).finish(), 0x190a_55ad);
        assert_eq!(Crc32::new().update(&[0xff; 32]).finish(), 0xff6c_ab0b);
    }

    #[test]
    fn every_length_and_byte_agrees_with_the_bitwise_definition() {
        let mut bytes = [0u8; 300];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = (i * 167 + i / 256) as u8;
        }
        let mut register = !0u32;
        let mut by_byte = Crc32::new();
        for len in 0..bytes.len() {
            assert_eq!(
                Crc32::new().update(&bytes[..len]).finish(),
                !register,
                "{len} bytes"
            );
            assert_eq!(by_byte.finish(), !register, "{len} single bytes");
            register = shift(register ^ u32::from(bytes[len]), 8);
            by_byte = by_byte.byte(bytes[len]);
        }
    }

    #[test]
    fn bytes_followed_by_their_crc_leave_the_residue() {
        let crc = Crc32::new().update(b"sinew");
        assert_eq!(crc.update(&crc.finish().to_le_bytes()).finish(), RESIDUE);
    }
}

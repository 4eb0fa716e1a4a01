//! CRC-32C (Castagnoli), bit by bit: it runs at compile time or once at open, so it is small
//! rather than fast.

/// A CRC over bytes that are added one after another.
#[derive(Clone, Copy)]
pub(super) struct Crc(u32);

impl Crc {
    pub(super) const NEW: Crc = Crc(u32::MAX);

    pub(super) const fn byte(self, byte: u8) -> Crc {
        let mut crc = self.0 ^ byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = (crc & 1).wrapping_neg();
            crc = (crc >> 1) ^ (0x82F6_3B78 & carry);
            bit += 1;
        }
        Crc(crc)
    }

    pub(super) const fn bytes(self, bytes: &[u8]) -> Crc {
        let mut crc = self;
        let mut rest = bytes;
        while let [first, tail @ ..] = rest {
            crc = crc.byte(*first);
            rest = tail;
        }
        crc
    }

    pub(super) const fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Crc;

    #[test]
    fn known_values() {
        // RFC 3720, appendix B.4.
        assert_eq!(Crc::NEW.bytes(b"123456789").value(), 0xE306_9283);
        assert_eq!(Crc::NEW.bytes(&[0; 32]).value(), 0x8A91_36AA);
        assert_eq!(Crc::NEW.bytes(&[0xFF; 32]).value(), 0x62A8_AB43);
    }
}

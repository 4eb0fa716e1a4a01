//! Samples that begin with their number, so that whoever takes them sees what is missing.

use std::collections::HashMap;

/// Bytes of a number: little-endian.
pub const BYTES: usize = size_of::<u64>();

/// Writes a number at the beginning.
pub fn write(payload: &mut [u8], number: u64) {
    if let Some(place) = payload.first_chunk_mut::<BYTES>() {
        *place = number.to_le_bytes();
    }
}

/// What is known of the numbers of each key.
#[derive(Debug, Default)]
pub struct Numbers {
    next: HashMap<String, u64>,
}

/// What the number of a sample says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// The next one, or the first of its key.
    Next,
    /// So many before it did not come.
    Lost(u64),
    /// It came before, or one after it did.
    Old,
    /// There is none: the payload is too short.
    None,
}

impl Numbers {
    /// Takes up a sample. A publisher that begins at zero again has begun anew.
    pub fn see(&mut self, key: &str, payload: &[u8]) -> Found {
        let Some(bytes) = payload.first_chunk::<BYTES>() else {
            return Found::None;
        };
        let number = u64::from_le_bytes(*bytes);
        let Some(next) = self.next.get_mut(key) else {
            self.next.insert(key.into(), number.wrapping_add(1));
            return Found::Next;
        };
        let expected = *next;
        if number < expected && number > 0 {
            return Found::Old;
        }
        *next = number.wrapping_add(1);
        match number.checked_sub(expected) {
            None | Some(0) => Found::Next,
            Some(lost) => Found::Lost(lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repetitions_and_new_beginnings_are_told_apart() {
        let mut numbers = Numbers::default();
        let mut see = |key, number: u64| numbers.see(key, &number.to_le_bytes());
        assert_eq!(see("a", 5), Found::Next);
        assert_eq!(see("b", 0), Found::Next);
        assert_eq!(see("a", 6), Found::Next);
        assert_eq!(see("a", 10), Found::Lost(3));
        assert_eq!(see("a", 7), Found::Old);
        assert_eq!(see("a", 11), Found::Next);
        assert_eq!(see("a", 0), Found::Next);
        assert_eq!(see("a", 2), Found::Lost(1));
        assert_eq!(numbers.see("a", b"short"), Found::None);
    }
}

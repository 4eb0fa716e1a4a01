//! What is carried: every byte is written by the sender and read by the receiver.
//!
//! A message is a run of words, `seed`, `seed + STEP`, ...; the seed differs from message to message.
//! Its sum has a closed form, so that both sides can be checked after a round at no cost inside of it.

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const NEXT: u64 = 0xD134_2543_DE82_EF95;

/// The seed of the `n`-th message of a round.
#[inline]
pub fn seed(n: u64) -> u64 {
    n.wrapping_mul(NEXT).wrapping_add(STEP)
}

/// Word `index` of a message.
#[inline]
pub fn word(seed: u64, index: usize) -> u64 {
    seed.wrapping_add((index as u64).wrapping_mul(STEP))
}

/// Writes every byte of `place`, whose length is a multiple of eight.
#[inline]
pub fn fill(place: &mut [u8], seed: u64) {
    // The short sizes are spelled out, so that the compiler needs no loop for them.
    if let Ok(place) = <&mut [u8; 8]>::try_from(&mut *place) {
        *place = seed.to_le_bytes();
    } else if let Ok(place) = <&mut [u8; 64]>::try_from(&mut *place) {
        fill_words(place, seed);
    } else {
        fill_words(place, seed);
    }
}

#[inline(always)]
fn fill_words(place: &mut [u8], seed: u64) {
    for (index, bytes) in place.as_chunks_mut().0.iter_mut().enumerate() {
        *bytes = word(seed, index).to_le_bytes();
    }
}

/// Reads every byte of `message`, eight at a time.
#[inline]
pub fn sum(message: &[u8]) -> u64 {
    if let Ok(message) = <&[u8; 8]>::try_from(message) {
        u64::from_le_bytes(*message)
    } else if let Ok(message) = <&[u8; 64]>::try_from(message) {
        sum_words(message)
    } else {
        sum_words(message)
    }
}

#[inline(always)]
fn sum_words(message: &[u8]) -> u64 {
    let words = message.as_chunks().0.iter();
    words.fold(0, |sum, bytes| {
        u64::wrapping_add(sum, u64::from_le_bytes(*bytes))
    })
}

/// What [`sum`] gives for a message of `size` bytes that [`fill`] wrote.
pub fn expected(size: usize, seed: u64) -> u64 {
    let words = (size / 8) as u64;
    let steps = words * (words - 1) / 2;
    words
        .wrapping_mul(seed)
        .wrapping_add(steps.wrapping_mul(STEP))
}

/// Sums of many messages, in their order.
#[derive(Default, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    /// Takes the next message's sum in.
    #[inline]
    pub fn add(&mut self, sum: u64) {
        self.0 = self.0.wrapping_mul(NEXT).wrapping_add(sum);
    }

    /// Of `n` messages of one direction.
    pub fn of_stream(size: usize, n: u64) -> Self {
        let mut digest = Digest::default();
        (0..n).for_each(|n| digest.add(expected(size, seed(n))));
        digest
    }

    /// Of the answers to `n` calls: the seed of each is the sum of its request.
    pub fn of_answers(size: usize, n: u64) -> Self {
        let mut digest = Digest::default();
        (0..n).for_each(|n| digest.add(expected(size, expected(size, seed(n)))));
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_a_filled_message_is_the_expected_one() {
        for size in [8, 64, 1024, 65_536] {
            let mut message = vec![0; size];
            fill(&mut message, seed(7));
            assert_eq!(sum(&message), expected(size, seed(7)));
            message[size - 1] ^= 1;
            assert_ne!(sum(&message), expected(size, seed(7)));
        }
    }
}

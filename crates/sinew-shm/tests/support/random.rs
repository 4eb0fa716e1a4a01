//! Random enough, and the same again from the same seed.
#![allow(dead_code)]

/// xorshift64. The seed is not 0.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn byte(&mut self) -> u8 {
        (self.next() >> 24) as u8
    }

    pub fn word(&mut self) -> u32 {
        (self.next() >> 24) as u32
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// As `below`, by bits that vary more.
    pub fn index(&mut self, len: usize) -> usize {
        (self.next() >> 20) as usize % len
    }

    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Sleeps for up to so many microseconds.
    pub fn sleep(&mut self, most: u64) {
        std::thread::sleep(std::time::Duration::from_micros(self.below(most)));
    }
}

//! What goes over the link, and what must be true of it.

use std::collections::HashSet;

use sinew_shm::domain::{Channel, Config, EndRef, Packet, Pool};

use super::random::Random;

/// A value of the state channel: a packet as well.
pub type Value = [u8; 4096];
pub const STATE: u16 = 4;
const VALUES: Channel = Channel::of::<Value>(STATE, "state");

/// Words of an area, which are all the same whenever nobody has the lock.
pub const WORDS: usize = 24;
pub const AREA: u16 = 5;
const SHARED: Channel = Channel::lock(AREA, "shared", 4 * WORDS as u32);
/// A message channel, behind everything: whoever looks for packets does not take it up.
pub const MESSAGES: u16 = 6;
pub const CALLS: u16 = 3;
pub const BLOCKS: u16 = 4;
const TALK: Channel = Channel::messages(MESSAGES, "messages", 6, CALLS)
    .with_memory(Pool::new(BLOCKS, 900))
    .priority(255);

pub const CHANNELS: &[Channel] = &[
    Channel::new(1, "urgent", Pool::new(8, 64)).priority(0),
    Channel::new(2, "bulk", Pool::new(4, 4096)).priority(200),
    Channel::new(3, "unlike", Pool::new(3, 100)).pools(Pool::new(5, 200), Pool::new(3, 1000)),
    VALUES,
    SHARED,
    TALK,
];
pub const LINK: Config = Config::new(CHANNELS);

pub const REPLYING: &[Channel] = &[
    Channel::new(1, "urgent", Pool::new(8, 64)).priority(0),
    Channel::new(2, "bulk", Pool::new(4, 4096))
        .priority(200)
        .with_replies(),
    Channel::new(3, "unlike", Pool::new(3, 100)).pools(Pool::new(5, 200), Pool::new(3, 1000)),
    VALUES,
    SHARED,
    TALK.with_replies(),
];
pub const MUTUAL: Config = Config::new(REPLYING).mutual();

/// Sender's life, pairing, sequence number in it; then bytes that follow from these; then their sum.
pub const HEADER: usize = 24;
pub const SUM: usize = 8;
pub const LEAST: usize = HEADER + SUM;

/// Of which life and pairing of its sender a packet is.
pub type Token = (u64, u64);

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Writes a packet that fills `place`.
pub fn write(place: &mut [u8], (life, pairing): Token, sequence: u64) {
    let middle = place.len() - SUM;
    for (word, value) in place.chunks_exact_mut(8).zip([life, pairing, sequence]) {
        word.copy_from_slice(&value.to_le_bytes());
    }
    let mut bytes = Random(life ^ sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for part in place[HEADER..middle].chunks_mut(8) {
        let next = bytes.next().to_le_bytes();
        part.copy_from_slice(&next[..part.len()]);
    }
    let sum = sum(&place[..middle]);
    place[middle..].copy_from_slice(&sum.to_le_bytes());
}

/// Checks the sum of a packet.
pub fn is_intact(bytes: &[u8]) {
    let middle = bytes.len() - SUM;
    let found = u64::from_le_bytes(bytes[middle..].try_into().unwrap());
    assert_eq!(found, sum(&bytes[..middle]), "the sum of a packet");
}

/// What one side has received.
#[derive(Default)]
pub struct Received {
    /// Of the peer, in this pairing.
    token: Option<Token>,
    /// Of all pairings before.
    old: HashSet<Token>,
    /// Per channel.
    pub next: [u64; 3],
    buffer: Vec<u8>,
}

impl Received {
    pub fn begin_pairing(&mut self) {
        self.old.extend(self.token.take());
        self.next = [0; 3];
    }

    /// The peer's life.
    pub fn life(&self) -> u64 {
        self.token.map_or(0, |(life, _)| life)
    }

    /// Checks a packet; false where the pairing ended meanwhile.
    pub fn check<R: EndRef>(&mut self, at: usize, packet: &Packet<'_, R>) -> bool {
        self.buffer.resize(packet.len(), 0);
        match packet.copy_to(&mut self.buffer) {
            Ok(copied) => assert_eq!(copied, packet.len(), "a packet is copied whole"),
            Err(_) => return false,
        }
        let bytes = &self.buffer;
        assert!(bytes.len() >= LEAST, "{} bytes on {at}", bytes.len());
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let (token, sequence) = ((word(0), word(8)), word(16));
        is_intact(bytes);
        assert!(!self.old.contains(&token), "{token:?} is over");
        assert_eq!(*self.token.get_or_insert(token), token, "another life");
        assert_eq!(sequence, self.next[at], "in order, each once, on {at}");
        self.next[at] += 1;
        true
    }
}

/// What one side has seen of the peer's values in one pairing.
#[derive(Default)]
pub struct Values {
    pub token: Option<Token>,
    next: u64,
}

impl Values {
    /// Checks a value: whole, of one life and pairing, and no earlier one than before.
    pub fn check(&mut self, value: &Value, version: u32) {
        let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
        let (token, sequence) = ((word(0), word(8)), word(16));
        is_intact(value);
        assert_eq!(*self.token.get_or_insert(token), token, "another life");
        assert!(sequence >= self.next, "{sequence} after {}", self.next);
        assert_eq!(u64::from(version), sequence + 1, "the number of a value");
        self.next = sequence;
    }
}

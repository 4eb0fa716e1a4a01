//! What goes over the links.

use std::time::Duration;

use sinew_shm::domain::{Channel, Config, Pool};
use sinew_shm::linux::link::Options;

use super::random::Random;

pub const CHANNELS: &[Channel] = &[
    Channel::new(1, "urgent", Pool::new(8, 64)).priority(0),
    Channel::new(2, "bulk", Pool::new(4, 500)).priority(200),
];
pub const LINK: Config = Config::new(CHANNELS);

/// Longer than any wait takes, however loaded the machine is.
pub const HANGS: Duration = Duration::from_secs(30);
/// After so long without a sign of life the master gives a remote up.
pub const SILENCE: Duration = Duration::from_secs(3);

/// Those of the master; a remote does not judge by `silence`.
pub fn options(silence: Duration) -> Options {
    let mut options = Options::default();
    options.end.heartbeat = 20;
    options.end.silence = silence.as_millis() as u32;
    options
}

/// Of which link and which moment a packet is.
#[derive(Clone, Copy)]
pub struct Label {
    pub slot: u32,
    pub pairing: u64,
    pub channel: u16,
    pub sequence: u64,
}

/// The one packet that has this label.
pub fn packet(label: Label, most: usize) -> Vec<u8> {
    let words = [
        u64::from(label.slot) << 16 | u64::from(label.channel),
        label.pairing,
        label.sequence,
        u64::from(std::process::id()),
    ];
    let mix = words.iter().fold(1, |mix: u64, word| {
        (mix ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
    });
    let mut random = Random(mix);
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let len = bytes.len() + random.below((most - bytes.len()) as u64 + 1) as usize;
    while bytes.len() < len {
        bytes.extend(random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

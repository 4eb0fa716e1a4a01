//! What the tests of nodes share.
#![allow(dead_code)]

use std::time::{Duration, Instant};

use sinew::pubsub::codec::Qos;
use sinew::pubsub::session::PublisherOptions;
use sinew_io::apart::{self, Listener};
use sinew_io::endpoint::{Endpoint, Use};

/// Longer than anything takes that comes about at all.
pub const SOON: Duration = Duration::from_secs(60);

/// A publisher that waits where the link is full.
pub const WAITS: PublisherOptions = PublisherOptions {
    qos: Qos::REQUEST,
    ..PublisherOptions::DEFAULT
};

/// Longer than a batch, and than what a link keeps for a peer that does not read.
pub const LARGE: usize = 600_000;

pub fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text, Use::Batches).unwrap()
}

/// Serves an endpoint of this kind that nobody else uses.
pub fn listener(kind: &str) -> Listener {
    let at = match kind {
        "tcp" | "udp" => format!("{kind}:{}:7447", super::support::fresh_host()),
        _ => format!("{kind}:{}", super::support::fresh_path("sock").display()),
    };
    apart::listen(&endpoint(&at)).unwrap()
}

/// What the `number`th sample of a publisher holds: what was made of another, or in parts, shows.
pub fn payload(publisher: u8, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![publisher ^ number as u8; len];
    bytes[0] = publisher;
    bytes[1..5].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The publisher and the number of a sample, which is whole.
pub fn read(payload: &[u8]) -> (u8, u32) {
    let number = u32::from_le_bytes(payload[1..5].try_into().unwrap());
    let (publisher, fill) = (payload[0], payload[0] ^ number as u8);
    let torn = payload[5..].iter().position(|&byte| byte != fill);
    assert_eq!(torn, None, "of {}, by {publisher}", payload.len());
    (publisher, number)
}

/// Waits for what another thread does.
pub fn until(mut seen: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !seen() {
        assert!(Instant::now() < end, "not in {SOON:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

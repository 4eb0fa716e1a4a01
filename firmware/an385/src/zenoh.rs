//! What the images that are nodes of Zenoh have in common.

use core::time::Duration;

use sinew::pubsub::codec::Zid;
use sinew::pubsub::session::Config;

use crate::{BATCH, uart};

/// Between two bursts of samples.
pub const PERIOD: Duration = Duration::from_millis(50);

/// Both halves of the link over the UART.
pub fn link() -> (uart::Sender<BATCH>, uart::Receiver<BATCH>) {
    uart::halves()
}

/// A peer with this name in its id, that asks again each 0.2 s: a UART can lose packets, and the other
/// side can come later. A board that can draw a random id takes one.
pub fn config(name: &[u8]) -> Option<Config> {
    Some(Config {
        batching: Duration::from_millis(10),
        resend: 200_000,
        ..Config::peer(Zid::new(name)?)
    })
}

//! The link for calls: one channel named `rpc`, which both sides derive from the packet size.
//!
//! Its hash, like that of every configuration, is compared when two sides meet.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sinew_shm::domain::{Channel, Config, Pool};

use crate::lock;

/// Blocks of one direction.
pub const BLOCKS: u16 = 16;

/// The id of the channel.
pub const CHANNEL: u16 = 1;

/// The link for calls with packets of up to `mtu` bytes. The sides need not trust each other.
///
/// Each size that was ever asked for stays allocated, some 100 bytes.
pub fn calls(mtu: usize) -> Config<'static> {
    static KNOWN: Mutex<BTreeMap<u32, &'static [Channel; 1]>> = Mutex::new(BTreeMap::new());
    let size = u32::try_from(mtu).unwrap_or(u32::MAX);
    let make = || {
        let channel = Channel::new(CHANNEL, "rpc", Pool::new(BLOCKS, size));
        &*Box::leak(Box::new([channel]))
    };
    Config::new(*lock(&KNOWN).entry(size).or_insert_with(make))
}

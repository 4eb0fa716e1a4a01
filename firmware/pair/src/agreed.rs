//! What both cores agree on.

use sinew_shm::domain::{Channel, Config, Pool};

/// The id of the channel of calls.
pub const CALLS: u16 = 1;
/// The id of the channel of messages of five words.
pub const MESSAGES: u16 = 2;

/// The largest packet of a call in bytes.
pub const MTU: usize = 64;

/// Calls first: nobody waits for messages here.
pub const LINK: Config = Config::new(&[
    Channel::new(CALLS, "rpc", Pool::new(16, MTU as u32)),
    Channel::messages(MESSAGES, "count", 4, 4),
]);
const _: () = assert!(LINK.check().is_ok());

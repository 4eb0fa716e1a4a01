//! What the board and the Linux process on the other side of its memory, or of its UART, agree on.

use sinew_shm::domain::{Channel, Config, Pool};

/// The id of the channel of calls.
pub const CALLS: u16 = 1;

/// The largest packet in bytes: the largest header and a message of a few numbers.
pub const MTU: usize = 64;

/// One channel of calls: what `shm:` endpoints with `mtu=64` have as well.
pub const LINK: Config = Config::new(&[Channel::new(CALLS, "rpc", Pool::new(16, MTU as u32))]);
const _: () = assert!(LINK.check().is_ok());

/// The largest batch of a session of Zenoh over the UART, in bytes: it is cut into fragments where a
/// sample is larger, and holds the cookie of a router.
pub const BATCH: usize = 128;

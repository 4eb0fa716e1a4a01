//! What the board and the Linux process on the other side of its memory, or of its UART, agree on.

use sinew_shm::domain::{Channel, Config, Pool};

/// The id of the channel of calls.
pub const CALLS: u16 = 1;

/// The largest packet in bytes: the largest header and a message of a few numbers.
pub const MTU: usize = 64;

/// One channel of packets of at most `N` bytes: what `shm:` endpoints with `mtu=N` have as well.
pub const fn link<const N: usize>() -> Config<'static> {
    Config::new(const { &[Channel::new(CALLS, "rpc", Pool::new(16, N as u32))] })
}

/// The one of calls.
pub const LINK: Config = link::<MTU>();
const _: () = assert!(LINK.check().is_ok() && link::<BATCH>().check().is_ok());

/// The largest batch of a session of Zenoh, in bytes: it is cut into fragments where a
/// sample is larger, and holds the cookie of a router.
pub const BATCH: usize = 128;

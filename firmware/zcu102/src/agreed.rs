//! What the Cortex-R5F and the Linux program agree on. Addresses are those of the chip, and the same for
//! both cores, but for [`TCM`].

use sinew_shm::domain::{Channel, Config, Pool};

/// The id of the channel of calls.
pub const CALLS: u16 = 1;

/// The largest packet in bytes: the largest header and a message of a few numbers.
pub const MTU: usize = 64;

/// One channel of calls: what `shm:` endpoints with `mtu=64` have as well.
pub const LINK: Config = Config::new(&[Channel::new(CALLS, "rpc", Pool::new(16, MTU as u32))]);
const _: () = assert!(LINK.check().is_ok());

/// The on-chip memory, in which the link lies, from its first byte on.
pub const OCM: usize = 0xfffc_0000;

/// Where the memories that are coupled to the Cortex-R5F are, for that core, and their bytes with the gap
/// between them.
///
/// Linux sees them at 0xffe0_0000 on the chip. This emulator does not have them: the first bytes of the
/// common memory are in their place.
pub const TCM: usize = 0;
/// See [`TCM`].
pub const TCM_LEN: usize = 0x3_0000;

/// Of [`TCM`], what holds code and nothing else.
pub const CODE_LEN: usize = 0x1_0000;

/// Words by which Linux starts the core, in a page of the on-chip memory: see `boot`.
pub const CONTROL: usize = 0xfffe_0000;
/// Linux's: the number of the start that is wanted. Another number is another start.
pub const START: usize = 0;
/// The core's: the number of the start that it has followed last.
pub const STARTED: usize = 64;
/// The core's: 1 while it waits for a start, 0 while the image runs.
pub const WAITS: usize = 68;

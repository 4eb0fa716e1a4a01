//! Two threads joined by block queues: a packet is written once and read where it lies.
//!
//! ```
//! use sinew_io::{Client, Server, threads};
//! # use sinew::rpc::{Call, Input, MethodKind, Service};
//! # struct Nothing;
//! # impl Service for Nothing {
//! #     fn kind(&self, _: u32, _: u32) -> Option<MethodKind> { None }
//! #     fn handle(&mut self, _: &mut Call<'_>, _: Input<'_>) -> bool { false }
//! # }
//! # let services = Nothing;
//! let (near, mut far) = threads::link();
//! let server = Server::new(services);
//! let thread = std::thread::spawn(move || server.serve(&mut far, 1));
//! let client = Client::new(near, 1);
//! drop(client); // the link closes, and the server's thread ends
//! thread.join().unwrap();
//! ```

use std::sync::Mutex;

use sinew::link::queue::{QueueRx, QueueTx, pair};
use sinew_shm::{Queue, StdLock};

use crate::endpoint::DEFAULT_MTU;
use crate::lock;
pub use crate::parked::Parked;

/// Packets in flight per direction of [`link()`].
const BLOCKS: usize = 16;

/// A queue of the size that [`link()`] uses.
type DefaultQueue = Queue<StdLock, BLOCKS, DEFAULT_MTU>;

/// A link over queues of the default size. They are taken from a pool that grows by as many as
/// are in use at the same time.
pub fn link() -> (
    QueueLink<BLOCKS, DEFAULT_MTU>,
    QueueLink<BLOCKS, DEFAULT_MTU>,
) {
    static POOL: Mutex<Vec<&'static [DefaultQueue; 2]>> = Mutex::new(Vec::new());
    let mut pool = lock(&POOL);
    let open = |[there, back]: &'static [DefaultQueue; 2]| over(there, back);
    loop {
        if let Some(ends) = pool.iter().find_map(|queues| open(queues)) {
            return ends;
        }
        pool.push(Box::leak(Box::new([const { Queue::new() }; 2])));
    }
}

/// A link over these queues: what the first end sends on `there`, the second receives, and back.
///
/// `None` while something of an earlier link over them is alive.
#[allow(clippy::type_complexity)]
pub fn over<const BLOCKS: usize, const SIZE: usize>(
    there: &'static Queue<StdLock, BLOCKS, SIZE>,
    back: &'static Queue<StdLock, BLOCKS, SIZE>,
) -> Option<(QueueLink<BLOCKS, SIZE>, QueueLink<BLOCKS, SIZE>)> {
    let (near, far) = pair(there, back)?;
    Some((Parked::new(near), Parked::new(far)))
}

/// One end of a link between threads.
pub type QueueLink<const BLOCKS: usize, const SIZE: usize> =
    Parked<QueueTx<StdLock, BLOCKS, SIZE>, QueueRx<StdLock, BLOCKS, SIZE>>;

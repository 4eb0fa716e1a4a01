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

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use sinew::frame::FrameStats;
use sinew::link::queue::{End, QueueRx, QueueTx, pair};
use sinew::link::{Rx, Tx};
use sinew_shm::{Queue, StdLock};

use crate::counted::Counted;
use crate::endpoint::DEFAULT_MTU;
use crate::link::{Link, Traffic, Want};
use crate::lock;

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
    Some((QueueLink::new(near), QueueLink::new(far)))
}

/// One end of a link between threads.
pub struct QueueLink<const BLOCKS: usize, const SIZE: usize> {
    tx: Counted<QueueTx<StdLock, BLOCKS, SIZE>>,
    rx: Counted<QueueRx<StdLock, BLOCKS, SIZE>>,
    parker: Arc<Parker>,
    waker: Waker,
}

impl<const BLOCKS: usize, const SIZE: usize> QueueLink<BLOCKS, SIZE> {
    fn new((tx, rx): End<StdLock, BLOCKS, SIZE>) -> Self {
        let parker = Arc::new(Parker::default());
        QueueLink {
            tx: Counted::new(tx),
            rx: Counted::new(rx),
            waker: parker.clone().into(),
            parker,
        }
    }

    /// The halves, for a driver that arms them instead of sleeping on the link.
    pub fn split(self) -> End<StdLock, BLOCKS, SIZE> {
        (self.tx.half, self.rx.half)
    }
}

impl<const BLOCKS: usize, const SIZE: usize> Link for QueueLink<BLOCKS, SIZE> {
    type Tx = Counted<QueueTx<StdLock, BLOCKS, SIZE>>;
    type Rx = Counted<QueueRx<StdLock, BLOCKS, SIZE>>;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        (&mut self.tx, &mut self.rx)
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        if want == Want::Place {
            self.tx.arm(&self.waker);
        }
        self.rx.arm(&self.waker);
        self.parker.park(timeout);
    }

    fn waker(&mut self) -> Waker {
        self.waker.clone()
    }

    fn traffic(&self) -> Traffic {
        let frames = FrameStats {
            frames: self.rx.packets,
            ..FrameStats::default()
        };
        Traffic {
            bytes_in: self.rx.bytes,
            bytes_out: self.tx.bytes,
            frames,
        }
    }
}

/// Puts one thread to sleep. The peer is woken after the lock is released, and only once.
#[derive(Default)]
struct Parker {
    state: Mutex<State>,
    condvar: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Awake,
    Parked,
    Woken,
}

impl Parker {
    fn park(&self, timeout: Option<Duration>) {
        let mut state = lock(&self.state);
        if *state == State::Awake {
            *state = State::Parked;
            // Once: whoever sleeps looks again anyhow, and std's loop reads the clock twice more.
            state = match timeout {
                None => self
                    .condvar
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(span) => {
                    let result = self.condvar.wait_timeout(state, span);
                    result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *state = State::Awake;
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Woken);
        if before == State::Parked {
            self.condvar.notify_one();
        }
    }
}

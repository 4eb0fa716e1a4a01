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

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use rustix::thread::futex;
use sinew::frame::FrameStats;
use sinew::link::queue::{End, QueueRx, QueueTx, pair};
use sinew::link::{Rx, Tx};
use sinew_shm::{Queue, StdLock};

use crate::alarm::Alarm;
use crate::counted::Counted;
use crate::endpoint::DEFAULT_MTU;
use crate::link::{Link, Traffic, Want};
use crate::lock;
use crate::sleep::timespec;

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
    alarm: Alarm,
}

impl<const BLOCKS: usize, const SIZE: usize> QueueLink<BLOCKS, SIZE> {
    fn new((tx, rx): End<StdLock, BLOCKS, SIZE>) -> Self {
        let parker = Arc::new(Parker::default());
        let waker = Waker::from(parker.clone());
        QueueLink {
            tx: Counted::new(tx),
            rx: Counted::new(rx),
            alarm: Alarm::new(waker.clone()),
            parker,
            waker,
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
        // The packet that the driver cannot take up yet would wake it again and again.
        if want != Want::Place || !self.rx.has_peeked() {
            self.rx.arm(&self.waker);
        }
        let timeout = timeout.filter(|&span| !self.alarm.covers(span));
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
            dropped: 0,
        }
    }
}

/// Puts one thread to sleep on a word that the kernel watches: neither side takes a lock, and the
/// clock is not read.
#[derive(Default)]
struct Parker(AtomicU32);

const AWAKE: u32 = 0;
const PARKED: u32 = 1;
const WOKEN: u32 = 2;

impl Parker {
    /// May return early; whoever sleeps looks again.
    fn park(&self, timeout: Option<Duration>) {
        let awake = self
            .0
            .compare_exchange(AWAKE, PARKED, Ordering::Relaxed, Ordering::Relaxed);
        if awake.is_ok() {
            let timeout = timeout.map(timespec);
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, PARKED, timeout.as_ref());
        }
        // Reads what the waker that is swallowed here has published.
        self.0.swap(AWAKE, Ordering::Acquire);
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.0.swap(WOKEN, Ordering::Release) == PARKED {
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }
}

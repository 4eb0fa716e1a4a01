//! Both sides of a link in one program: two threads, or a test.
//!
//! ```
//! use sinew_shm::domain::{Channel, Config, Options, Pool, Receiver, Sender};
//! use sinew_shm::local;
//!
//! const LINK: Config = Config::new(&[Channel::new(1, "control", Pool::new(8, 64))]);
//!
//! let (near, far) = local::pair(LINK, Options::default())?;
//! let rx = Receiver::new(&far, 1).unwrap();
//! let thread = std::thread::spawn(move || loop {
//!     if let Some(packet) = rx.receive().unwrap() {
//!         break packet.len();
//!     }
//! });
//! Sender::new(&near, 1).unwrap().send(b"ping").unwrap();
//! assert_eq!(thread.join().unwrap(), 4);
//! # Ok::<(), sinew_shm::domain::OpenError>(())
//! ```

use core::ptr::NonNull;
use std::boxed::Box;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use std::vec;
use std::vec::Vec;

use crate::domain::{
    Block, Coherent, Config, Doorbell, End, Memory, OpenError, Options, Parts, Platform, Role, Slot,
};
use crate::lock::StdLock;
use crate::word::{Line, Segment};

/// What both ends are made of. The memory is freed with the last of them.
pub struct Local {
    _memory: Arc<[Heap; 3]>,
}

impl Platform for Local {
    type Lock = StdLock;
    type Doorbell = Neighbour;
    type Cache = Coherent;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

/// Rings by looking for the other end at once, in the thread that rings: who waits there is woken by
/// its waker, and nobody has to wait for a doorbell.
pub struct Neighbour {
    end: OnceLock<Weak<End<Local>>>,
    start: Instant,
}

impl Doorbell for Neighbour {
    fn ring(&self) {
        if let Some(end) = self.end.get().and_then(Weak::upgrade) {
            end.look(self.start.elapsed().as_millis() as u32);
        }
    }
}

/// One end of a link inside this program.
pub type LocalEnd = Arc<End<Local>>;

/// Both ends of a link inside this program, up: packets are read where they lie.
pub fn pair(config: Config<'static>, options: Options) -> Result<(LocalEnd, LocalEnd), OpenError> {
    open(config, options, true)
}

/// As [`pair`], but neither end trusts the other, as between processes: for tests.
#[doc(hidden)]
pub fn pair_untrusted(
    config: Config<'static>,
    options: Options,
) -> Result<(LocalEnd, LocalEnd), OpenError> {
    open(config, options, false)
}

fn open(
    config: Config<'static>,
    options: Options,
    is_trusted: bool,
) -> Result<(LocalEnd, LocalEnd), OpenError> {
    // What is no configuration has no length either.
    config.check().map_err(OpenError::Config)?;
    let memory = Arc::new([
        Heap::new(config.segment_len(Role::First)),
        Heap::new(config.segment_len(Role::Second)),
        Heap::new(config.exchange_len()),
    ]);
    let start = Instant::now();
    let end = |role: Role| {
        let [first, second, exchange] = &*memory;
        let (mine, peer) = match role {
            Role::First => (first, second),
            Role::Second => (second, first),
        };
        let exchange = (config.exchange_len() > 0).then(|| exchange.segment());
        // SAFETY: the memory can be read and written as long as the end lives, whose platform keeps
        // it; each segment is the own one of one of the two ends; nothing else reaches into it,
        // because a `Heap` gives out nothing but segments, here.
        let memory_of_end = unsafe {
            let (mine, peer) = (mine.segment(), peer.segment());
            match is_trusted {
                true => Memory::in_program(mine, peer, exchange),
                false => Memory::new(mine, peer, exchange),
            }
        };
        // Just made.
        let memory_of_end = memory_of_end.zeroed();
        let parts = Parts {
            doorbell: Neighbour {
                end: OnceLock::new(),
                start,
            },
            cache: Coherent,
            platform: Local {
                _memory: memory.clone(),
            },
            slots: config.channels.iter().map(|_| Slot::EMPTY).collect(),
            blocks: vec![Block::NEW; config.blocks()],
        };
        End::open(memory_of_end, config, role, parts, options).map(Arc::new)
    };
    let (first, second) = (end(Role::First)?, end(Role::Second)?);
    let _ = first.doorbell().end.set(Arc::downgrade(&second));
    let _ = second.doorbell().end.set(Arc::downgrade(&first));
    // The second side acknowledges the first and rings; what that comes to, it sees itself.
    first.look(0);
    second.look(0);
    first.look(0);
    Ok((first, second))
}

/// Zeroed memory that is only reached as a segment.
struct Heap {
    lines: NonNull<[Line]>,
}

// SAFETY: it is an address and a length; the memory behind it is reached as a segment only, and
// freed by whoever has the one `Heap` of it.
unsafe impl Send for Heap {}
// SAFETY: as above; nothing changes behind a shared reference but what segments allow.
unsafe impl Sync for Heap {}

impl Heap {
    fn new(bytes: usize) -> Heap {
        let lines = vec![Line::ZERO; Line::count(bytes)].into_boxed_slice();
        Heap {
            lines: NonNull::from(Box::leak(lines)),
        }
    }

    fn segment(&self) -> Segment {
        // SAFETY: as many lines are there, aligned, readable and writable, and no reference to them
        // is made; what is made of the segment keeps the heap.
        unsafe { Segment::from_heap(self.lines) }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: made from a box in `new`, and freed once; whoever used a segment of it kept the
        // heap, and is gone.
        drop(unsafe { Box::from_raw(self.lines.as_ptr()) });
    }
}

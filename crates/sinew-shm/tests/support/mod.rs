//! Two ends in one program, looked at by hand.
#![allow(dead_code)]

use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use sinew_shm::domain::{
    Block, Cache, Config, End, Memory, Options, Parts, Platform, Role, Silent, Slot, Uses,
};
use sinew_shm::{Line, StdLock, Unshared};

/// An end of one thread, without a doorbell.
pub struct Solo;

impl Platform for Solo {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

/// An end that threads share, without a doorbell.
pub struct Threads;

impl Platform for Threads {
    type Lock = StdLock;
    type Doorbell = Silent;
    type Cache = Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

/// An end of one thread that can do nothing but packets.
pub struct Lean;

impl Platform for Lean {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
    const USES: Uses = Uses::PACKETS;
}

/// Caches that see each other, and blocks in turns, on every machine.
#[derive(Clone, Copy)]
pub struct Fetching;

// SAFETY: it does nothing.
unsafe impl Cache for Fetching {
    const PREFETCHES: bool = true;
    fn clean(&self, _: NonNull<u8>, _: usize) {}
    fn invalidate(&self, _: NonNull<u8>, _: usize) {}
}

/// Zeros that live on; Miri finds them in the list, and so does not take them for lost.
pub fn lines(bytes: usize) -> &'static mut [Line] {
    static KEPT: Mutex<Vec<AtomicPtr<Line>>> = Mutex::new(Vec::new());
    let lines = Box::leak(vec![Line::ZERO; Line::count(bytes)].into_boxed_slice());
    let first = AtomicPtr::new(lines.as_mut_ptr());
    KEPT.lock().unwrap().push(first);
    lines
}

/// Memory for both sides, in one program.
pub fn memory(config: &Config) -> (Memory, Memory) {
    Memory::pair(
        lines(config.segment_len(Role::First)),
        lines(config.segment_len(Role::Second)),
        lines(config.exchange_len()),
    )
}

pub fn parts<P>(platform: P, config: &Config) -> Parts<P>
where
    P: Platform<Slots = Vec<Slot>, Blocks = Vec<Block>, Cache = Fetching, Doorbell = Silent>,
{
    Parts {
        doorbell: Silent,
        cache: Fetching,
        platform,
        slots: config.channels.iter().map(|_| Slot::EMPTY).collect(),
        blocks: vec![Block::NEW; config.blocks()],
    }
}

/// Both ends, open and not looked at yet.
pub fn open(config: Config<'static>) -> (Rc<End<Solo>>, Rc<End<Solo>>) {
    let (first, second) = memory(&config);
    let open = |memory, role| {
        let parts = parts(Solo, &config);
        Rc::new(End::open(memory, config, role, parts, Options::default()).unwrap())
    };
    (open(first, Role::First), open(second, Role::Second))
}

/// Both ends, up.
pub fn up(config: Config<'static>) -> (Rc<End<Solo>>, Rc<End<Solo>>) {
    let (first, second) = open(config);
    first.look(0);
    second.look(0);
    first.look(0);
    (first, second)
}

/// Whether somebody was woken.
pub struct Flag(AtomicBool);

impl Flag {
    pub fn new() -> Arc<Flag> {
        Arc::new(Flag(AtomicBool::new(false)))
    }

    pub fn waker(self: &Arc<Flag>) -> Waker {
        self.clone().into()
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Flag>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

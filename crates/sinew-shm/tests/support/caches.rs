//! Two sides whose caches do not see each other: each works on its own copy of the memory, and only
//! what it writes back and forgets by [`Cache`] crosses. In between lines are written back and
//! fetched at random, as caches do.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;

use sinew_shm::domain::{
    Block, Cache, Config, Doorbell, End, Memory, Options, Parts, Platform, Role, Slot, Status,
};
use sinew_shm::{Segment, Unshared};

use crate::random::Random;
use crate::support::lines;

type Ram = Rc<RefCell<Vec<u8>>>;

/// What one side's cache holds of one segment.
struct Cached {
    ram: Ram,
    /// What this side reads and writes.
    copy: Segment,
    /// What the copy was when it last was the same as memory: a line that differs is dirty.
    fetched: RefCell<Vec<u8>>,
    line: usize,
    /// Whether this side may write it.
    is_writable: bool,
}

impl Cached {
    fn new(ram: &Ram, line: usize, is_writable: bool) -> Cached {
        let bytes = ram.borrow();
        let copy = Segment::from_lines(lines(bytes.len()));
        let cached = Cached {
            ram: ram.clone(),
            copy,
            fetched: RefCell::new(vec![0; copy.len()]),
            line,
            is_writable,
        };
        (0..cached.count()).for_each(|index| cached.fetch(index));
        cached
    }

    fn count(&self) -> usize {
        self.copy.len() / self.line
    }

    /// The bytes of a line of the copy.
    fn copied(&self, index: usize) -> Vec<u8> {
        assert!(index < self.count());
        let line = vec![0; self.line];
        // SAFETY: the line is inside; both sides run in this thread, so nobody writes it now.
        unsafe {
            let from = self.copy.base().add(index * self.line);
            from.copy_to_nonoverlapping(NonNull::from(&*line).cast(), self.line);
        }
        line
    }

    fn write_back(&self, index: usize) {
        let range = index * self.line..(index + 1) * self.line;
        let copied = self.copied(index);
        let fetched = &mut self.fetched.borrow_mut()[range.clone()];
        if copied != *fetched {
            assert!(self.is_writable, "a word of the other side was written");
            fetched.copy_from_slice(&copied);
            self.ram.borrow_mut()[range].copy_from_slice(&copied);
        }
    }

    fn is_dirty(&self, index: usize) -> bool {
        let range = index * self.line..(index + 1) * self.line;
        self.copied(index) != self.fetched.borrow()[range]
    }

    /// Takes a line from memory; what was written to it and not back is lost.
    fn fetch(&self, index: usize) {
        assert!(index < self.count());
        let range = index * self.line..(index + 1) * self.line;
        let ram = &self.ram.borrow()[range.clone()];
        self.fetched.borrow_mut()[range.clone()].copy_from_slice(ram);
        // SAFETY: the line is inside; no reference into the copy lives during a call of the link.
        unsafe {
            let to = self.copy.base().add(range.start);
            NonNull::from(ram)
                .cast()
                .copy_to_nonoverlapping(to, self.line);
        }
    }
}

/// The cache of one side.
#[derive(Clone)]
pub struct Caches {
    segments: Rc<Vec<Cached>>,
    random: Rc<RefCell<Random>>,
}

impl Caches {
    fn each_line(&self, at: NonNull<u8>, len: usize, act: impl Fn(&Cached, usize)) {
        let holds = |cached: &&Cached| {
            let base = cached.copy.base().addr().get();
            (base..base + cached.copy.len()).contains(&at.addr().get())
        };
        let cached = self
            .segments
            .iter()
            .find(holds)
            .expect("memory of the link");
        let first = at.addr().get() - cached.copy.base().addr().get();
        for index in first / cached.line..(first + len).div_ceil(cached.line) {
            act(cached, index);
        }
    }

    /// What a cache does by itself: writes a dirty line back, or forgets a clean one.
    pub fn stir(&self) {
        let mut random = self.random.borrow_mut();
        let cached = &self.segments[random.index(self.segments.len())];
        let index = random.index(cached.count());
        if cached.is_dirty(index) {
            cached.write_back(index);
        } else {
            cached.fetch(index);
        }
    }
}

// SAFETY: it copies between memories of its own.
unsafe impl Cache for Caches {
    fn clean(&self, at: NonNull<u8>, len: usize) {
        self.stir();
        self.each_line(at, len, Cached::write_back);
    }

    fn invalidate(&self, at: NonNull<u8>, len: usize) {
        self.stir();
        self.each_line(at, len, Cached::fetch);
    }
}

/// Counts how often it was rung.
#[derive(Clone, Default)]
pub struct Rings(Rc<Cell<u32>>);

impl Rings {
    /// How often since the last call.
    pub fn take(&self) -> u32 {
        self.0.take()
    }
}

impl Doorbell for Rings {
    fn ring(&self) {
        self.0.set(self.0.get() + 1);
    }
}

/// What an end is made of on such a chip.
pub struct Chip;

impl Platform for Chip {
    type Lock = Unshared;
    type Doorbell = Rings;
    type Cache = Caches;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

pub type ChipEnd = Rc<End<Chip>>;

/// The memory of a link, as it is behind the caches.
pub struct Board {
    config: Config<'static>,
    first: Ram,
    second: Ram,
    exchange: Ram,
    random: Rc<RefCell<Random>>,
}

impl Board {
    pub fn new(config: Config<'static>, seed: u64) -> Board {
        // Whatever stood there before.
        let ram = |bytes: usize| {
            let bytes = bytes.next_multiple_of(256);
            Rc::new(RefCell::new(vec![0x5A; bytes]))
        };
        Board {
            config,
            first: ram(config.segment_len(Role::First)),
            second: ram(config.segment_len(Role::Second)),
            exchange: ram(config.exchange_len()),
            random: Rc::new(RefCell::new(Random(seed * 2 + 1))),
        }
    }

    /// Opens a side, with a cache that holds whatever memory holds now.
    pub fn open(&self, role: Role) -> ChipEnd {
        let (mine, peer) = match role {
            Role::First => (&self.first, &self.second),
            Role::Second => (&self.second, &self.first),
        };
        let line = 1 << self.config.line_log2;
        let mut segments = vec![
            Cached::new(mine, line, true),
            Cached::new(peer, line, false),
        ];
        if self.config.exchange_len() > 0 {
            segments.push(Cached::new(&self.exchange, line, true));
        }
        let exchange = segments.get(2).map(|cached| cached.copy);
        // SAFETY: the copies live on, and are this side's alone.
        let memory = unsafe { Memory::new(segments[0].copy, segments[1].copy, exchange) };
        let parts = Parts {
            doorbell: Rings::default(),
            cache: Caches {
                segments: Rc::new(segments),
                random: self.random.clone(),
            },
            platform: Chip,
            slots: self.config.channels.iter().map(|_| Slot::EMPTY).collect(),
            blocks: vec![Block::NEW; self.config.blocks()],
        };
        let end = End::open(memory, self.config, role, parts, Options::default());
        Rc::new(end.unwrap())
    }

    /// Both sides, up.
    pub fn up(&self) -> (ChipEnd, ChipEnd) {
        let (first, second) = (self.open(Role::First), self.open(Role::Second));
        settle(&first, &second);
        (first, second)
    }
}

/// Looks from both sides in turn, until the link is up.
pub fn settle(first: &ChipEnd, second: &ChipEnd) {
    for _ in 0..4 {
        if [first, second].map(|end| end.look(0)) == [Status::Up; 2] {
            first.doorbell().take();
            second.doorbell().take();
            return;
        }
    }
    panic!("{:?} and {:?}", first.status(), second.status());
}

//! The memory of a link as a foreign program has it: every word of it can be read and written.
//!
//! Places are word indices. They are those of the wire reference, written down here once more, so
//! that a test fails where the layout moves.
#![allow(dead_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use sinew_shm::Segment;
use sinew_shm::domain::{Config, Memory, Role};

pub const MAGIC: usize = 0;
pub const VERSION: usize = 1;
pub const PROBE: usize = 2;
pub const LENGTH: usize = 3;
pub const SHAPE: usize = 4;
pub const DIRECTORY: usize = 5;
pub const HASH: usize = 6;
pub const SESSION: usize = 16;
pub const ACKNOWLEDGED: usize = 17;
pub const STATE: usize = 18;
pub const FAULT: usize = 19;
pub const HEARTBEAT: usize = 32;
const ENTRIES: usize = 64;
const ENTRY: usize = 32;

pub const DOWN: u32 = 0;
pub const READY: u32 = 2;
pub const FAULTY: u32 = 4;

/// In the control line of a channel.
pub const WAKE_PACKETS: usize = 0;
pub const WAKE_RETURNS: usize = 1;
pub const FILTER: usize = 4;
/// In the statistics line of a channel.
pub const SENT: usize = 0;
pub const RECLAIMED: usize = 1;
pub const RECEIVED: usize = 2;
pub const RELEASED: usize = 3;
pub const VIOLATIONS: usize = 7;
/// In an entry of a ring.
pub const SEQUENCE: usize = 0;
pub const BLOCK: usize = 1;
pub const LEN: usize = 2;
pub const FLAGS: usize = 3;

#[repr(C, align(64))]
struct Row([AtomicU32; 16]);

/// A segment that lives as long as the program.
#[derive(Clone, Copy)]
pub struct Raw {
    rows: &'static [Row],
}

/// Where the parts of a channel lie, and how many entries its rings have.
#[derive(Clone, Copy, Default, Debug)]
pub struct Places {
    pub control: usize,
    pub statistics: usize,
    pub ring: usize,
    pub capacity: u32,
    pub returns: usize,
    pub returns_capacity: u32,
}

impl Raw {
    pub fn new(bytes: usize) -> Raw {
        let row = || Row([const { AtomicU32::new(0) }; 16]);
        let rows: Vec<_> = (0..bytes.div_ceil(64)).map(|_| row()).collect();
        Raw {
            rows: Box::leak(rows.into_boxed_slice()),
        }
    }

    /// Memory that is there already.
    ///
    /// # Safety
    /// `bytes` bytes, whole lines, can be read at `base` for ever, and written where that is done.
    /// Whoever else uses them does so as words.
    pub unsafe fn from_raw(base: NonNull<u8>, bytes: usize) -> Raw {
        assert!(base.addr().get().is_multiple_of(64) && bytes.is_multiple_of(64));
        // SAFETY: as the caller says; words are atomic.
        let rows = unsafe { std::slice::from_raw_parts(base.cast().as_ptr(), bytes / 64) };
        Raw { rows }
    }

    pub fn segment(&self) -> Segment {
        let base = NonNull::from(self.rows).cast();
        // SAFETY: the rows live for ever, may be written through a shared reference, and are only
        // reached as words by anything but the ends.
        unsafe { Segment::from_raw(base, size_of_val(self.rows)) }
            .expect("aligned and not too long")
    }

    /// Words of it.
    pub fn len(&self) -> usize {
        self.rows.len() * 16
    }

    pub fn at(&self, word: usize) -> &AtomicU32 {
        &self.rows[word / 16].0[word % 16]
    }

    pub fn get(&self, word: usize) -> u32 {
        u32::from_le(self.at(word).load(Ordering::Relaxed))
    }

    pub fn set(&self, word: usize, value: u32) {
        self.at(word).store(value.to_le(), Ordering::Relaxed);
    }

    pub fn fill(&self, mut value: impl FnMut() -> u32) {
        for word in 0..self.len() {
            self.set(word, value());
        }
    }

    pub fn copy_into(&self, words: &mut Vec<u32>) {
        words.clear();
        words.extend((0..self.len()).map(|word| self.get(word)));
    }

    pub fn is_like(&self, words: &[u32]) -> bool {
        words.len() == self.len() && (0..self.len()).all(|word| self.get(word) == words[word])
    }

    /// A word of a channel's directory entry.
    pub fn directory(&self, index: usize, word: usize) -> usize {
        ENTRIES + index * ENTRY + word
    }

    /// What the directory says of a channel: to be asked before anything is spoilt.
    pub fn places(&self, index: usize) -> Places {
        let entry = |word| self.get(self.directory(index, word));
        let place = |word| entry(word) as usize / 4;
        Places {
            control: place(4),
            statistics: place(5),
            ring: place(6),
            capacity: 1 << (entry(1) >> 16 & 0xFF),
            returns: place(7),
            returns_capacity: 1 << (entry(9) >> 16 & 0xFF),
        }
    }
}

/// The memory of both sides.
#[derive(Clone, Copy)]
pub struct Pair {
    pub first: Raw,
    pub second: Raw,
    pub exchange: Option<Raw>,
}

impl Pair {
    /// As much as the largest of these configurations needs.
    pub fn new(configs: &[Config]) -> Pair {
        let most = |len: &dyn Fn(&Config) -> usize| configs.iter().map(len).max().unwrap_or(0);
        let exchange = most(&|config| config.exchange_len());
        Pair {
            first: Raw::new(most(&|config| config.segment_len(Role::First))),
            second: Raw::new(most(&|config| config.segment_len(Role::Second))),
            exchange: (exchange > 0).then(|| Raw::new(exchange)),
        }
    }

    /// The segment that a side writes.
    pub fn of(&self, role: Role) -> Raw {
        match role {
            Role::First => self.first,
            Role::Second => self.second,
        }
    }

    /// The memory of one side, which another one may have had before.
    ///
    /// # Safety
    /// At most one end at a time is open on the memory of each role.
    pub unsafe fn memory(&self, role: Role) -> Memory {
        let (mine, peer) = (self.of(role), self.of(role.peer()));
        let exchange = self.exchange.map(|raw| raw.segment());
        // SAFETY: the memory lives for ever, other users of it are words, and the caller says that
        // there is no other end.
        unsafe { Memory::new(mine.segment(), peer.segment(), exchange) }
    }

    /// Everything 0, as new memory is.
    pub fn clear(&self) {
        let both = [self.first, self.second];
        for raw in both.into_iter().chain(self.exchange) {
            raw.fill(|| 0);
        }
    }
}

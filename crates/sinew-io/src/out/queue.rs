//! Buffers on their way out: each was a place, and moves here as it is.

use std::collections::VecDeque;

use super::Pending;

/// Memory that packets are written into, and leave from.
pub(crate) struct Chunk {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Chunk {
    /// What is to be written.
    pub(crate) fn unsent(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Behind that, all that is free.
    pub(crate) fn free(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// The first bytes of what was free are to be written too.
    pub(crate) fn add(&mut self, count: usize) {
        self.end += count;
    }

    /// Moves what is to be written to another chunk; what is free stays where it is.
    pub(crate) fn move_to(&mut self, other: &mut Chunk) {
        let unsent = self.unsent();
        if let Some(free) = other.free().get_mut(..unsent.len()) {
            free.copy_from_slice(unsent);
            other.add(unsent.len());
            self.start = self.end;
        }
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

/// A bounded number of chunks, written one after the other.
pub(crate) struct Queue {
    waiting: VecDeque<Chunk>,
    /// The one that was written last is on top: it is still in the processor's cache.
    spare: Vec<Chunk>,
    size: usize,
    depth: usize,
}

impl Queue {
    /// For chunks of `size` bytes; with `depth` of them waiting there is no room.
    pub(crate) fn new(size: usize, depth: usize) -> Queue {
        Queue {
            waiting: VecDeque::with_capacity(depth + 1),
            spare: Vec::with_capacity(depth + 2),
            size,
            depth,
        }
    }

    /// An empty chunk, kept from before or new: never more of them than were in use at a time.
    pub(crate) fn take(&mut self) -> Chunk {
        self.spare().unwrap_or_else(|| Chunk {
            bytes: vec![0; self.size].into(),
            start: 0,
            end: 0,
        })
    }

    /// As [`Queue::take`], but only of those that are kept.
    pub(crate) fn spare(&mut self) -> Option<Chunk> {
        self.spare.pop()
    }

    /// This is written when all before it has been.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.waiting.push_back(chunk);
    }
}

impl Pending for Queue {
    fn unsent(&self) -> &[u8] {
        self.waiting.front().map_or(&[], Chunk::unsent)
    }

    fn sent(&mut self, count: usize) {
        let Some(first) = self.waiting.front_mut() else {
            return;
        };
        first.start += count;
        if first.start >= first.end
            && let Some(mut done) = self.waiting.pop_front()
        {
            done.clear();
            self.spare.push(done);
        }
    }

    fn clear(&mut self) {
        self.waiting.clear();
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < self.depth
    }
}

//! The frames of a byte link that wait to be written, one behind the other.

use crate::out::Pending;

/// Bytes that are framed and wait to be written, at least; room for several packets, so that one
/// write takes them all, and few enough that nothing urgent waits long behind them.
const BATCH: usize = 8192;

/// Frames in one piece of memory.
pub(super) struct Batch {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    max_frame: usize,
}

impl Batch {
    pub(super) fn new(max_frame: usize) -> Batch {
        Batch {
            bytes: vec![0; BATCH.max(2 * max_frame)].into(),
            start: 0,
            end: 0,
            max_frame,
        }
    }

    /// The free end, all of it in one piece.
    pub(super) fn free(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// This many bytes have been written to the free end.
    pub(super) fn add(&mut self, framed: usize) {
        self.end += framed;
    }
}

impl Pending for Batch {
    fn unsent(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn sent(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            self.clear();
        }
    }

    fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    fn has_room(&self) -> bool {
        self.bytes.len() - self.unsent().len() >= self.max_frame
    }
}

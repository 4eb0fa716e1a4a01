//! The memory that an end works on.

use crate::word::{Line, Segment};

/// The memory of one side.
pub struct Memory {
    pub(super) mine: Segment,
    pub(super) peer: Segment,
    pub(super) exchange: Option<Segment>,
    /// Both sides are in this program.
    pub(super) is_local: bool,
    /// What this side writes is all zeros.
    pub(super) is_zeroed: bool,
}

impl Memory {
    /// Memory that is shared with another program or core.
    ///
    /// # Safety
    /// * `mine` and `exchange` can be written, `peer` can be read, as long as the [`End`](super::End) lives
    ///   that is opened on this memory, and `mine` is the own segment of no other end.
    /// * Nothing else in this program reads or writes any of them through references.
    pub unsafe fn new(mine: Segment, peer: Segment, exchange: Option<Segment>) -> Memory {
        Memory {
            mine,
            peer,
            exchange,
            is_local: false,
            is_zeroed: false,
        }
    }

    /// The own segment and the exchange segment are new and all zeros: nothing of an earlier user is
    /// there, which a peer is not to find, and so nothing needs to be cleared.
    pub fn zeroed(mut self) -> Memory {
        self.is_zeroed = true;
        self
    }

    /// As [`Memory::new`], where both sides are in this program.
    ///
    /// # Safety
    /// As there, and the peer's end is this program's own code too.
    #[cfg(all(feature = "std", not(loom)))]
    pub(crate) unsafe fn in_program(
        mine: Segment,
        peer: Segment,
        exchange: Option<Segment>,
    ) -> Memory {
        Memory {
            mine,
            peer,
            exchange,
            is_local: true,
            is_zeroed: false,
        }
    }

    /// Memory for both sides of a link inside one program: the first side's, and the second's.
    ///
    /// Both sides are then this program's own code, so packets are read where they lie. `exchange`
    /// is empty where no channel has replies.
    pub fn pair(
        first: &'static mut [Line],
        second: &'static mut [Line],
        exchange: &'static mut [Line],
    ) -> (Memory, Memory) {
        let (first, second) = (Segment::from_lines(first), Segment::from_lines(second));
        let exchange = (!exchange.is_empty()).then(|| Segment::from_lines(exchange));
        let memory = |mine, peer| Memory {
            mine,
            peer,
            exchange,
            is_local: true,
            is_zeroed: false,
        };
        (memory(first, second), memory(second, first))
    }
}

//! What a side notes on each block, in private memory.

/// The books on one block, of either side.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(super) state: State,
    /// The block behind in the line of the free ones, or in that of the answered ones.
    pub(super) next: u16,
    /// Bytes of an answer.
    pub(super) len: u32,
}

impl Block {
    /// Of a block that nobody has used.
    pub const NEW: Block = Block {
        state: State::Free,
        next: NONE,
        len: 0,
    };
}

/// Where a block is. Of the peer's blocks: `Held` is with us, anything else is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Held,
    Lent,
    Answered,
}

pub(super) const NONE: u16 = u16::MAX;

/// How many books the line of the free ones has that begins with `first`; `None` where one in it is not
/// free, or one that is free is not in it.
pub(super) fn free_line(books: &[Block], first: u16) -> Option<usize> {
    let (mut in_line, mut at) = (0, first);
    while let Some(book) = books.get(usize::from(at)) {
        in_line += 1;
        at = book.next;
        if book.state != State::Free || in_line > books.len() {
            return None;
        }
    }
    let free = books
        .iter()
        .filter(|book| book.state == State::Free)
        .count();
    (in_line == free).then_some(free)
}

//! What a side notes on each block, in private memory.

/// The books on one block, of either side.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub(super) state: State,
    /// The block behind in the line of the free ones, or in that of the answered ones.
    pub(super) next: u16,
    /// Bytes of an answer; of a call, its token.
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

/// Where a block or a call is. Of the peer's: `Held` is with us, anything else is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Held,
    Lent,
    Answered,
    /// A call that is open, whose answer nobody wants.
    Unwanted,
}

pub(super) const NONE: u16 = u16::MAX;

/// How many books the line of the free ones has that begins with `first`; `None` where one in it is not
/// free.
pub(super) fn line_len(books: &[Block], first: u16) -> Option<usize> {
    let (mut in_line, mut at) = (0, first);
    while let Some(book) = books.get(usize::from(at)) {
        in_line += 1;
        at = book.next;
        if book.state != State::Free || in_line > books.len() {
            return None;
        }
    }
    Some(in_line)
}

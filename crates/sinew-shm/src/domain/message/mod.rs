//! Message channels: five words and an opcode, with and without an answer.
//!
//! A message is one line of shared memory, and an answer is one line: there is nothing else to fetch.
//! Both sides send and both answer. What keeps them from standing still when everybody asks and nobody
//! takes up: an answer has a place of its own, that of its call, and never queues behind messages.
//!
//! * A message goes while fewer than `requests` wait to be taken up; the receiver says how many it
//!   took. A call goes while fewer than `calls` are open. Otherwise nothing has moved: [`Refused::Full`](super::Refused::Full).
//! * A call is known by its *token*: its place, and a number that differs from the one before in that
//!   place. It is answered once, by whoever holds the [`Answer`], in any order. An answer that is
//!   dropped answers by itself: [`CallError::Dropped`].
//! * A place is used again when its answer has been taken up, or, if the caller no longer wants it,
//!   when it has come.

mod answering;
mod calling;
mod end;
mod given;
mod handle;
mod memory;
mod typed;

use super::port::Cache;
use crate::word::BlockArea;

pub(super) use answering::Asked;
pub(super) use calling::{Answered, Asking};
pub(super) use end::MessageEnd;
pub use given::{Given, Passing};
pub use handle::{Answer, Call, CallError, Message, Messages, Pending};
pub use memory::{Buffer, Loan, Returned, Unsent};
pub use typed::{TypedCall, TypedLoan, Word, Words};

/// What an answer says.
pub(super) mod status {
    pub const DONE: u8 = 0;
    pub const UNKNOWN_OPCODE: u8 = 1;
    pub const DROPPED: u8 = 2;
}

/// Begins to fetch the memory of a call, where it has some: it is read soon.
#[inline(always)]
fn fetch<C: Cache>(pool: &BlockArea, token: u32, cache: &C) {
    if C::PREFETCHES
        && token != 0
        && let Some(start) = pool.start(place(token))
    {
        cache.prefetch(start);
    }
}

/// The place in a token.
pub(super) fn place(token: u32) -> u16 {
    token as u16
}

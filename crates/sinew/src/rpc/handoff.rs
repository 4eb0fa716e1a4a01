//! What a call looks like once it has been handed to a task.

use super::status::Status;

/// A step of a client stream, owned, for the task that serves the call: [`StreamIn`] with the
/// responder or writer in it.
///
/// [`StreamIn`]: super::StreamIn
#[derive(Debug)]
pub enum Handoff<T, D> {
    /// The call opens; `D` answers it.
    Open(D),
    /// An item.
    Item(T),
    /// The client's stream is complete.
    End,
    /// The call has ended from outside: drop its responder.
    Closed(Status),
}

//! What every handle of an open call can do, whatever carries it: traits that
//! [`ServerStreaming`](super::ServerStreaming) and its siblings promise for their streams.
//!
//! Code that is generic over the placement brings them in with one line:
//! `use sinew::rpc::streams::*;`.

use super::client::CallError;

/// The handle of a call in flight.
///
/// Dropping it abandons the call, by the rule of Pigweed's C++ client (wire reference,
/// section Client): an incomplete client stream is completed, so that the server can end its call;
/// otherwise nothing is sent, and what the server still says is refused. This holds for blocking
/// and for async handles, and for the futures of async calls.
pub trait CallHandle: Sized {
    /// Ends the call and tells the server so (CANCELLED). A call that has ended stays as it is.
    fn cancel(self);
}

/// Reads the items of a server's stream.
pub trait ItemReader<T>: CallHandle {
    /// The next item; `None` after the last one, where the stream ended with OK. Any other end is
    /// an error.
    fn next(&mut self) -> Result<Option<T>, CallError>;
}

/// Sends the items of a client's stream.
pub trait ItemSender<T>: CallHandle {
    /// Sends one item. A full link is waited for until the call's time-out, then reported as
    /// [`CallError::Full`]; the item can be sent again. [`CallError::Ended`] where the call has
    /// ended: reading on says how.
    fn send(&mut self, item: &T) -> Result<(), CallError>;

    /// Tells the server that no more items come; its own may still. Doing so again does nothing.
    fn complete(&mut self) -> Result<(), CallError>;
}

/// Waits for the one response to a client's stream.
pub trait ResponseReader<T>: CallHandle {
    /// Completes the stream and waits for the response. The server may also have ended the call
    /// before; that is reported here.
    fn finish_and_wait(self) -> Result<T, CallError>;
}

/// [`ItemReader`] for a caller that must not block.
pub trait AsyncItemReader<T>: CallHandle {
    /// See [`ItemReader::next`]. Dropping the future loses no item.
    fn next(&mut self) -> impl Future<Output = Result<Option<T>, CallError>> + Send;
}

/// [`ItemSender`] for a caller that must not block.
pub trait AsyncItemSender<T>: CallHandle {
    /// See [`ItemSender::send`].
    fn send(&mut self, item: &T) -> impl Future<Output = Result<(), CallError>> + Send;

    /// See [`ItemSender::complete`].
    fn complete(&mut self) -> impl Future<Output = Result<(), CallError>> + Send;
}

/// [`ResponseReader`] for a caller that must not block.
pub trait AsyncResponseReader<T>: CallHandle {
    /// See [`ResponseReader::finish_and_wait`].
    fn finish_and_wait(self) -> impl Future<Output = Result<T, CallError>> + Send;
}

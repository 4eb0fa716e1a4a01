//! How a typed client reaches its service.
//!
//! Generated clients are generic over these traits: a link implements them by sending packets
//! (`sinew-io`), [`Direct`] by calling a borrowed service in the same image with no bytes at all,
//! a mock by playing back. Neither the service nor the client changes.

use super::client::CallError;
use super::message::{Encode, Method, MethodKind};
use super::server::{Cx, FromSlot, Responder, Stop};
use super::status::Status;

/// Calls a unary method and waits for its response.
pub trait Unary<M: Method> {
    /// The response, before the deadline, or why there is none.
    fn unary(&mut self, request: &M::Request) -> Result<M::Response, CallError>;
}

/// Opens the other three kinds of calls; the handles are the implementation's.
pub trait ServerStreaming<M: Method> {
    /// Reads the items, then the final status.
    type Stream;
    /// Opens the call.
    fn server_stream(&mut self, request: &M::Request) -> Result<Self::Stream, CallError>;
}

/// See [`ServerStreaming`].
pub trait ClientStreaming<M: Method> {
    /// Sends the items, then waits for the response.
    type Stream;
    /// Opens the call.
    fn client_stream(&mut self) -> Result<Self::Stream, CallError>;
}

/// See [`ServerStreaming`].
pub trait BidiStreaming<M: Method> {
    /// Sends and reads items, then the final status.
    type Stream;
    /// Opens the call.
    fn bidi(&mut self) -> Result<Self::Stream, CallError>;
}

/// [`Unary`] for a caller that must not block. The future may be dropped at any time: the call is
/// then abandoned.
pub trait AsyncUnary<M: Method> {
    /// The response, before the deadline, or why there is none.
    fn unary(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<M::Response, CallError>> + Send;
}

/// [`ServerStreaming`] for a caller that must not block.
pub trait AsyncServerStreaming<M: Method> {
    /// Reads the items, then the final status.
    type Stream;
    /// Opens the call.
    fn server_stream(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<Self::Stream, CallError>> + Send;
}

/// [`ClientStreaming`] for a caller that must not block.
pub trait AsyncClientStreaming<M: Method> {
    /// Sends the items, then waits for the response.
    type Stream;
    /// Opens the call.
    fn client_stream(&mut self) -> impl Future<Output = Result<Self::Stream, CallError>> + Send;
}

/// [`BidiStreaming`] for a caller that must not block.
pub trait AsyncBidiStreaming<M: Method> {
    /// Sends and reads items, then the final status.
    type Stream;
    /// Opens the call.
    fn bidi(&mut self) -> impl Future<Output = Result<Self::Stream, CallError>> + Send;
}

/// A service that the caller borrows: unary methods that answer at once are called directly, with
/// no bytes at all. A method that defers is answered with UNIMPLEMENTED here; reach such a service
/// through a loopback queue.
#[derive(Debug)]
pub struct Direct<'s, S>(pub &'s mut S);

/// Runs one handler directly; generated code calls it from its implementations of [`Unary`] for
/// [`Direct`].
pub fn direct<R: Encode>(
    handler: impl FnOnce(Cx<'_, Responder<R>>) -> Result<R, Stop>,
) -> Result<R, CallError>
where
    Responder<R>: FromSlot,
{
    handler(Cx::direct(MethodKind::Unary))
        .map_err(|stop| CallError::Status(stop.status().unwrap_or(Status::INTERNAL)))
}

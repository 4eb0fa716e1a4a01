//! How a typed client reaches its service.
//!
//! Generated clients are generic over these traits: a link implements them by sending packets
//! (`sinew-io`), [`Direct`] by calling a borrowed service in the same image with no bytes at all,
//! a mock by playing back. Neither the service nor the client changes.

use super::client::CallError;
use super::message::{Encode, Method, MethodKind};
use super::server::{Cx, FromSlot, Responder, Stop};
use super::status::Status;
use super::streams::{
    AsyncItemReader, AsyncItemSender, AsyncResponseReader, ItemReader, ItemSender, ResponseReader,
};

/// Calls a unary method and waits for its response.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the unary method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct(&mut service)` needs a service with this method; `&Client` of \
            `sinew-io` reaches every method through a link"
)]
pub trait Unary<M: Method> {
    /// The response, before the deadline, or why there is none.
    fn unary(&mut self, request: &M::Request) -> Result<M::Response, CallError>;
}

/// Opens the other three kinds of calls; the handles are the implementation's.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the streaming method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct` and mocks reach no streams: use a link, in one thread `sinew_io::loopback`",
    note = "or bound code by the methods it calls, such as `Unary<method::X>`, not by `Reach`"
)]
pub trait ServerStreaming<M: Method> {
    /// Reads the items, then the final status.
    type Stream: ItemReader<M::Response>;
    /// Opens the call.
    fn server_stream(&mut self, request: &M::Request) -> Result<Self::Stream, CallError>;
}

/// See [`ServerStreaming`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the streaming method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct` and mocks reach no streams: use a link, in one thread `sinew_io::loopback`",
    note = "or bound code by the methods it calls, such as `Unary<method::X>`, not by `Reach`"
)]
pub trait ClientStreaming<M: Method> {
    /// Sends the items, then waits for the response.
    type Stream: ItemSender<M::Request> + ResponseReader<M::Response>;
    /// Opens the call.
    fn client_stream(&mut self) -> Result<Self::Stream, CallError>;
}

/// See [`ServerStreaming`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the streaming method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct` and mocks reach no streams: use a link, in one thread `sinew_io::loopback`",
    note = "or bound code by the methods it calls, such as `Unary<method::X>`, not by `Reach`"
)]
pub trait BidiStreaming<M: Method> {
    /// Sends and reads items, then the final status.
    type Stream: ItemSender<M::Request> + ItemReader<M::Response>;
    /// Opens the call.
    fn bidi(&mut self) -> Result<Self::Stream, CallError>;
}

/// [`Unary`] for a caller that must not block. The future may be dropped at any time: the call is
/// then abandoned.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the unary method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct(&mut service)` needs a service with this method; `&AsyncClient` of \
            `sinew-io` reaches every method through a link"
)]
pub trait AsyncUnary<M: Method> {
    /// The response, before the deadline, or why there is none.
    fn unary(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<M::Response, CallError>> + Send;
}

/// [`ServerStreaming`] for a caller that must not block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the streaming method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct` and mocks reach no streams: use a link, between tasks `sinew_io::threads`",
    note = "or bound code by the methods it calls, such as `AsyncUnary<method::X>`, not by `AsyncReach`"
)]
pub trait AsyncServerStreaming<M: Method> {
    /// Reads the items, then the final status.
    type Stream: AsyncItemReader<M::Response>;
    /// Opens the call.
    fn server_stream(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<Self::Stream, CallError>> + Send;
}

/// [`ClientStreaming`] for a caller that must not block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the streaming method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct` and mocks reach no streams: use a link, between tasks `sinew_io::threads`",
    note = "or bound code by the methods it calls, such as `AsyncUnary<method::X>`, not by `AsyncReach`"
)]
pub trait AsyncClientStreaming<M: Method> {
    /// Sends the items, then waits for the response.
    type Stream: AsyncItemSender<M::Request> + AsyncResponseReader<M::Response>;
    /// Opens the call.
    fn client_stream(&mut self) -> impl Future<Output = Result<Self::Stream, CallError>> + Send;
}

/// [`BidiStreaming`] for a caller that must not block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot call the streaming method `{M}`",
    label = "has no way to call `{M}`",
    note = "`Direct` and mocks reach no streams: use a link, between tasks `sinew_io::threads`",
    note = "or bound code by the methods it calls, such as `AsyncUnary<method::X>`, not by `AsyncReach`"
)]
pub trait AsyncBidiStreaming<M: Method> {
    /// Sends and reads items, then the final status.
    type Stream: AsyncItemSender<M::Request> + AsyncItemReader<M::Response>;
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

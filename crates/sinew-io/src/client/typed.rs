//! The typed way in: what generated clients need, for `&Client` and for one with a time-out.

use std::marker::PhantomData;
use std::time::Duration;

use sinew::rpc::streams::{CallHandle, ItemReader, ItemSender, ResponseReader};
use sinew::rpc::{
    BidiStreaming, CallError, ClientStreaming, Decode, Method, ServerStreaming, Status, Unary,
};

use super::{CallEvent, Client, RawCall};
use crate::link::Link;

/// A client with a time-out of its own; see [`Client::with_timeout`].
pub struct Caller<'c, L, const CALLS: usize, const INBOX: usize> {
    pub(super) client: &'c Client<L, CALLS, INBOX>,
    pub(super) timeout: Duration,
}

impl<L, const CALLS: usize, const INBOX: usize> Copy for Caller<'_, L, CALLS, INBOX> {}

impl<L, const CALLS: usize, const INBOX: usize> Clone for Caller<'_, L, CALLS, INBOX> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize> Unary<M>
    for Caller<'_, L, CALLS, INBOX>
{
    fn unary(&mut self, request: &M::Request) -> Result<M::Response, CallError> {
        let mut inner = self.client.inner.borrow_mut();
        inner.unary(M::ID, request, self.timeout, M::Response::decode)
    }
}

impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize> Unary<M>
    for &Client<L, CALLS, INBOX>
{
    fn unary(&mut self, request: &M::Request) -> Result<M::Response, CallError> {
        Unary::<M>::unary(&mut self.with_timeout(self.timeout), request)
    }
}

impl<'c, M: Method, L: Link, const CALLS: usize, const INBOX: usize> ServerStreaming<M>
    for Caller<'c, L, CALLS, INBOX>
{
    type Stream = ServerStream<'c, M, L, CALLS, INBOX>;

    fn server_stream(&mut self, request: &M::Request) -> Result<Self::Stream, CallError> {
        let slot = self
            .client
            .inner
            .borrow_mut()
            .start(M::ID, Some(request), self.timeout)?;
        Ok(ServerStream {
            call: RawCall {
                client: self.client,
                slot,
            },
            method: PhantomData,
        })
    }
}

macro_rules! streaming {
    ($($trait:ident::$open:ident($($arg:ident: $ty:ty)?) -> $stream:ident;)*) => {$(
        impl<'c, M: Method, L: Link, const CALLS: usize, const INBOX: usize> $trait<M>
            for &'c Client<L, CALLS, INBOX>
        {
            type Stream = $stream<'c, M, L, CALLS, INBOX>;

            fn $open(&mut self $(, $arg: $ty)?) -> Result<Self::Stream, CallError> {
                $trait::<M>::$open(&mut self.with_timeout(self.timeout) $(, $arg)?)
            }
        }
    )*};
}
streaming! {
    ServerStreaming::server_stream(request: &M::Request) -> ServerStream;
    ClientStreaming::client_stream() -> ClientStream;
    BidiStreaming::bidi() -> BidiStream;
}

macro_rules! opened_empty {
    ($($trait:ident::$open:ident -> $stream:ident;)*) => {$(
        impl<'c, M: Method, L: Link, const CALLS: usize, const INBOX: usize> $trait<M>
            for Caller<'c, L, CALLS, INBOX>
        {
            type Stream = $stream<'c, M, L, CALLS, INBOX>;

            fn $open(&mut self) -> Result<Self::Stream, CallError> {
                let call = self.client.start(M::ID, &[], self.timeout)?;
                Ok($stream { call, method: PhantomData })
            }
        }
    )*};
}
opened_empty! {
    ClientStreaming::client_stream -> ClientStream;
    BidiStreaming::bidi -> BidiStream;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Its functions are those of [`sinew::rpc::streams`], here without an import.
        pub struct $name<'c, M, L: Link, const CALLS: usize, const INBOX: usize> {
            call: RawCall<'c, L, CALLS, INBOX>,
            method: PhantomData<fn() -> M>,
        }

        impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize>
            $name<'_, M, L, CALLS, INBOX>
        {
            /// See [`CallHandle::cancel`].
            pub fn cancel(self) {
                self.call.cancel();
            }
        }

        impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize> CallHandle
            for $name<'_, M, L, CALLS, INBOX>
        {
            fn cancel(self) {
                self.cancel();
            }
        }
    )*};
}
handles! {
    /// Reads the items of a server's stream.
    ServerStream;
    /// Sends the items of a client's stream, then waits for the response.
    ClientStream;
    /// Sends and reads items.
    BidiStream;
}

macro_rules! readers {
    ($($name:ident)*) => {$(
        impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize>
            $name<'_, M, L, CALLS, INBOX>
        {
            /// See [`ItemReader::next`].
            #[allow(clippy::should_implement_trait)]
            pub fn next(&mut self) -> Result<Option<M::Response>, CallError> {
                match self.call.next_with(M::Response::decode)? {
                    CallEvent::Item(Some(item)) => Ok(Some(item)),
                    CallEvent::Item(None) => {
                        self.call.end(Status::DATA_LOSS);
                        Err(CallError::Undecodable)
                    }
                    CallEvent::Completed(Status::OK, _) => Ok(None),
                    CallEvent::Completed(status, _) => Err(CallError::Status(status)),
                }
            }
        }

        impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize> ItemReader<M::Response>
            for $name<'_, M, L, CALLS, INBOX>
        {
            fn next(&mut self) -> Result<Option<M::Response>, CallError> {
                self.next()
            }
        }
    )*};
}
readers!(ServerStream BidiStream);

macro_rules! writers {
    ($($name:ident)*) => {$(
        impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize>
            $name<'_, M, L, CALLS, INBOX>
        {
            /// See [`ItemSender::send`].
            pub fn send(&mut self, item: &M::Request) -> Result<(), CallError> {
                self.call.send(item)
            }

            /// See [`ItemSender::complete`].
            pub fn complete(&mut self) -> Result<(), CallError> {
                self.call.complete()
            }
        }

        impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize> ItemSender<M::Request>
            for $name<'_, M, L, CALLS, INBOX>
        {
            fn send(&mut self, item: &M::Request) -> Result<(), CallError> {
                self.send(item)
            }

            fn complete(&mut self) -> Result<(), CallError> {
                self.complete()
            }
        }
    )*};
}
writers!(ClientStream BidiStream);

impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize>
    ClientStream<'_, M, L, CALLS, INBOX>
{
    /// See [`ResponseReader::finish_and_wait`].
    pub fn finish_and_wait(self) -> Result<M::Response, CallError> {
        match self.call.complete() {
            Ok(()) | Err(CallError::Ended) => {}
            Err(error) => return Err(error),
        }
        match self.call.next_with(M::Response::decode)? {
            CallEvent::Completed(Status::OK, response) => response.ok_or(CallError::Undecodable),
            CallEvent::Completed(status, _) => Err(CallError::Status(status)),
            CallEvent::Item(_) => Err(CallError::Undecodable),
        }
    }
}

impl<M: Method, L: Link, const CALLS: usize, const INBOX: usize> ResponseReader<M::Response>
    for ClientStream<'_, M, L, CALLS, INBOX>
{
    fn finish_and_wait(self) -> Result<M::Response, CallError> {
        self.finish_and_wait()
    }
}

//! A call in flight.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::task::Poll;

use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::streams::{AsyncItemReader, AsyncItemSender, AsyncResponseReader, CallHandle};
use sinew::rpc::{self, CallError, ClientCall, Decode, Method, Status};

use super::AsyncClient;
use super::driver::{CALLS, Inner};
use crate::client::packet_len;
use crate::client::state::End;
use crate::lock;

/// The handle of a call: items out and in, as far as its method has them. Dropping it abandons the
/// call, see [`CallHandle`]; [`AsyncCall::cancel`] tells the server.
///
/// Its functions are those of [`sinew::rpc::streams`], here without an import.
pub struct AsyncCall<M> {
    pub(super) client: AsyncClient,
    pub(super) slot: usize,
    pub(super) method: PhantomData<fn() -> M>,
}

impl<M: Method> AsyncCall<M> {
    /// See [`AsyncItemSender::send`].
    pub fn send(&mut self, item: &M::Request) -> impl Future<Output = Result<(), CallError>> + Send
    where
        M::Request: Sync,
    {
        self.act(packet_len(item), |_, call, place| call.item(place, item))
    }

    /// See [`AsyncItemSender::complete`].
    pub fn complete(&mut self) -> impl Future<Output = Result<(), CallError>> + Send {
        self.act(HEADER_MAX, |engine, call, place| {
            Some(engine.complete(call, place))
        })
    }

    async fn act(
        &mut self,
        min: usize,
        mut fill: impl FnMut(&mut rpc::Client<CALLS>, &ClientCall, &mut [u8]) -> Option<usize>,
    ) -> Result<(), CallError> {
        let slot = self.slot;
        let act = |inner: &mut Inner| {
            let call = inner.call(slot)?;
            inner.reserve(min)?;
            inner.send(min, |engine, place| fill(engine, &call, place))
        };
        self.client.when_free(act).await
    }

    /// See [`AsyncItemReader::next`].
    pub async fn next(&mut self) -> Result<Option<M::Response>, CallError> {
        match self.event().await? {
            (Some(Status::OK), _) => Ok(None),
            (Some(status), _) => Err(CallError::Status(status)),
            (None, item) => item.map(Some).ok_or(CallError::Undecodable),
        }
    }

    /// See [`AsyncResponseReader::finish_and_wait`].
    pub async fn finish_and_wait(mut self) -> Result<M::Response, CallError> {
        match self.complete().await {
            Ok(()) | Err(CallError::Ended) => self.response().await,
            Err(error) => Err(error),
        }
    }

    /// See [`CallHandle::cancel`].
    pub fn cancel(self) {
        self.end(|engine, call, place| engine.cancel(call, Status::CANCELLED, place));
    }

    pub(super) async fn response(&mut self) -> Result<M::Response, CallError> {
        match self.event().await? {
            (Some(Status::OK), response) => response.ok_or(CallError::Undecodable),
            (Some(status), _) => Err(CallError::Status(status)),
            (None, _) => Err(CallError::Undecodable),
        }
    }

    /// An item, or the final status with the response.
    fn event(
        &mut self,
    ) -> impl Future<Output = Result<(Option<Status>, Option<M::Response>), CallError>> + Send {
        let slot = self.slot;
        poll_fn(move |cx| {
            let mut inner = lock(&self.client.alive.0.inner);
            let (state, waker) = inner.states.get_mut(slot).ok_or(CallError::Ended)?;
            Poll::Ready(if let Some(front) = state.inbox.front() {
                let message = M::Response::decode(front);
                state.inbox.pop();
                match state.end {
                    Some(End::Done(status, true)) if state.inbox.is_empty() => {
                        state.end = Some(End::Told);
                        Ok((Some(status), message))
                    }
                    _ => Ok((None, message)),
                }
            } else {
                match state.end.replace(End::Told) {
                    None => {
                        state.end = None;
                        *waker = Some(cx.waker().clone());
                        return Poll::Pending;
                    }
                    Some(End::Done(status, _)) => Ok((Some(status), M::Response::decode(&[]))),
                    Some(End::Failed(error)) => Err(error),
                    Some(End::Told) => Err(CallError::Ended),
                }
            })
        })
    }
}

impl<M> AsyncCall<M> {
    /// Ends the call on this side, where it has not ended, with what the engine wants to say.
    fn end(&self, say: impl FnOnce(&mut rpc::Client<CALLS>, &ClientCall, &mut [u8]) -> usize) {
        let mut inner = lock(&self.client.alive.0.inner);
        if let Ok(call) = inner.call(self.slot) {
            inner.say(|engine, place| say(engine, &call, place));
        }
    }
}

impl<M> Drop for AsyncCall<M> {
    fn drop(&mut self) {
        self.end(|engine, call, place| engine.abandon(call, place));
        let mut inner = lock(&self.client.alive.0.inner);
        if let Some((state, waker)) = inner.states.get_mut(self.slot) {
            state.call = None;
            *waker = None;
        }
    }
}

impl<M: Method> CallHandle for AsyncCall<M> {
    fn cancel(self) {
        self.cancel();
    }
}

impl<M: Method> AsyncItemReader<M::Response> for AsyncCall<M> {
    fn next(&mut self) -> impl Future<Output = Result<Option<M::Response>, CallError>> + Send {
        self.next()
    }
}

impl<M: Method<Request: Sync>> AsyncItemSender<M::Request> for AsyncCall<M> {
    fn send(&mut self, item: &M::Request) -> impl Future<Output = Result<(), CallError>> + Send {
        self.send(item)
    }

    fn complete(&mut self) -> impl Future<Output = Result<(), CallError>> + Send {
        self.complete()
    }
}

impl<M: Method> AsyncResponseReader<M::Response> for AsyncCall<M> {
    fn finish_and_wait(self) -> impl Future<Output = Result<M::Response, CallError>> + Send {
        self.finish_and_wait()
    }
}

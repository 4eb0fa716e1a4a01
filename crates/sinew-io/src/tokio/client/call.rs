//! A call in flight.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::task::Poll;

use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{self, CallError, ClientCall, Decode, Method, Status};

use super::AsyncClient;
use super::driver::CALLS;
use crate::client::packet_len;
use crate::client::state::End;
use crate::lock;

/// The handle of a call: items out and in, as far as its method has them. Dropping it cancels the
/// call.
pub struct AsyncCall<M> {
    pub(super) client: AsyncClient,
    pub(super) slot: usize,
    pub(super) method: PhantomData<fn() -> M>,
}

impl<M: Method> AsyncCall<M> {
    /// Sends an item of the client's stream. A full link is waited for until the call's time-out,
    /// then reported as `Full`; the item can be sent again.
    pub fn send(&mut self, item: &M::Request) -> impl Future<Output = Result<(), CallError>> + Send
    where
        M::Request: Sync,
    {
        self.act(packet_len(item), |_, call, place| call.item(place, item))
    }

    /// Tells the server that the client's stream is complete.
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
        let act = poll_fn(|cx| {
            let mut inner = lock(&self.client.alive.0.inner);
            let call = inner.call(slot)?;
            std::task::ready!(inner.reserve(cx, min))?;
            Poll::Ready(inner.send(min, |engine, place| fill(engine, &call, place)))
        });
        let done = ::tokio::time::timeout(self.client.timeout, act).await;
        done.unwrap_or(Err(CallError::Full))
    }

    /// The next item; `None` after the last one, where the stream ended with OK. Any other end is
    /// an error.
    pub async fn next(&mut self) -> Result<Option<M::Response>, CallError> {
        match self.event().await? {
            (Some(Status::OK), _) => Ok(None),
            (Some(status), _) => Err(CallError::Status(status)),
            (None, item) => item.map(Some).ok_or(CallError::Undecodable),
        }
    }

    /// Completes the client's stream and waits for the response.
    pub async fn finish_and_wait(mut self) -> Result<M::Response, CallError> {
        match self.complete().await {
            Ok(()) | Err(CallError::Ended) => self.response().await,
            Err(error) => Err(error),
        }
    }

    /// Ends the call and tells the server: the same as dropping it.
    pub fn cancel(self) {}

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

impl<M> Drop for AsyncCall<M> {
    fn drop(&mut self) {
        let mut inner = lock(&self.client.alive.0.inner);
        if let Ok(call) = inner.call(self.slot) {
            inner.say(|engine, place| engine.cancel(&call, Status::CANCELLED, place));
        }
        if let Some((state, waker)) = inner.states.get_mut(self.slot) {
            state.call = None;
            *waker = None;
        }
    }
}

//! A client that many tasks share; one task drives it.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use sinew::link::{Rx, Tx};
use sinew::rpc::{
    AsyncBidiStreaming, AsyncClientStreaming, AsyncServerStreaming, AsyncUnary, CallError,
    DEFAULT_TIMEOUT, Encode, Method,
};

use crate::lock;

mod call;
mod driver;

pub use call::AsyncCall;
use driver::{Inner, Shared, drive};

/// A client for any number of tasks: cloned freely, `&AsyncClient` is what generated async clients
/// are made over. Dropping a call's future or handle abandons the call, see
/// [`CallHandle`](sinew::rpc::streams::CallHandle). When the last clone is dropped, the link
/// closes.
#[derive(Clone)]
pub struct AsyncClient {
    alive: Arc<Alive>,
    timeout: Duration,
}

/// Closes the link when the last client goes.
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        let mut inner = lock(&self.0.inner);
        inner.closed = true;
        let driver = inner.driver.take();
        drop(inner);
        driver.inspect(Waker::wake_by_ref);
    }
}

impl AsyncClient {
    /// A client over these halves. Its driver is a task of the current runtime; `keep` is dropped
    /// with the link.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn over(
        tx: Box<dyn Tx + Send>,
        rx: Box<dyn Rx + Send>,
        keep: Option<Box<dyn Send>>,
        channel: u32,
    ) -> AsyncClient {
        let shared = Arc::new(Shared::new(tx, channel));
        let driven = shared.clone();
        ::tokio::spawn(async move {
            drive(&driven, rx).await;
            drop(keep);
        });
        AsyncClient {
            alive: Arc::new(Alive(shared)),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The same client with this time-out: for a unary or client-stream call until its response,
    /// for streams of the server until the next item.
    pub fn with_timeout(&self, timeout: Duration) -> AsyncClient {
        AsyncClient {
            alive: self.alive.clone(),
            timeout,
        }
    }

    /// Tries to send until the link is not full any more, or time is up.
    async fn when_free<T>(
        &self,
        mut send: impl FnMut(&mut Inner) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let shared = &self.alive.0;
        let sent = async {
            loop {
                // Listens before it tries, so that no place is missed.
                let place = shared.senders.tasks.notified();
                let result = send(&mut lock(&shared.inner));
                match result {
                    Err(CallError::Full) => place.await,
                    _ => return result,
                }
            }
        };
        let sent = ::tokio::time::timeout(self.timeout, sent).await;
        sent.unwrap_or(Err(CallError::Full))
    }

    /// Opens a call; without a request where the client streams.
    async fn start<M: Method, Q: Encode + Sync + ?Sized>(
        self,
        request: Option<&Q>,
    ) -> Result<AsyncCall<M>, CallError> {
        let clock = self.alive.0.clock;
        let open = |inner: &mut Inner| inner.open(M::ID, request, self.timeout, clock.now());
        let slot = self.when_free(open).await?;
        Ok(AsyncCall {
            client: self,
            slot,
            method: PhantomData,
        })
    }
}

impl<M: Method<Request: Sync>> AsyncUnary<M> for &AsyncClient {
    fn unary(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<M::Response, CallError>> + Send {
        let call = self.clone().start::<M, _>(Some(request));
        async move { call.await?.response().await }
    }
}

impl<M: Method<Request: Sync>> AsyncServerStreaming<M> for &AsyncClient {
    type Stream = AsyncCall<M>;

    fn server_stream(
        &mut self,
        request: &M::Request,
    ) -> impl Future<Output = Result<AsyncCall<M>, CallError>> + Send {
        self.clone().start(Some(request))
    }
}

impl<M: Method<Request: Sync>> AsyncClientStreaming<M> for &AsyncClient {
    type Stream = AsyncCall<M>;

    fn client_stream(&mut self) -> impl Future<Output = Result<AsyncCall<M>, CallError>> + Send {
        self.clone().start(None::<&[u8]>)
    }
}

impl<M: Method<Request: Sync>> AsyncBidiStreaming<M> for &AsyncClient {
    type Stream = AsyncCall<M>;

    fn bidi(&mut self) -> impl Future<Output = Result<AsyncCall<M>, CallError>> + Send {
        self.clone().start(None::<&[u8]>)
    }
}

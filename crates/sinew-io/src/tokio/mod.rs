//! Async drivers: a client that many tasks share, a server task per link, and [nodes](pubsub) that
//! publish, subscribe and query.
//!
//! They run over any halves of a link by `arm` alone; tokio gives tasks and timers. Carriers of
//! this crate wake from the reactor thread, so tokio's own I/O driver is not needed.

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::lock;
use crate::open::{ConnectError, Halves, open_halves};

mod client;
pub mod pubsub;
mod server;

pub use client::{AsyncCall, AsyncClient};
pub use server::serve;

/// An async client over the link that the endpoint names. Its driver is a task of the current
/// runtime.
pub async fn connect(endpoint: &Endpoint) -> Result<AsyncClient, ConnectError> {
    let at = endpoint.clone();
    let opened = ::tokio::task::spawn_blocking(move || open_halves(&at)).await;
    let failed = |error| ConnectError::Io(endpoint.clone(), std::io::Error::other(error));
    let Halves { tx, rx, keep } = opened.map_err(failed)??;
    Ok(AsyncClient::over(tx, rx, keep, endpoint.channel))
}

/// A waker that stays the same while the task behind it is polled with different ones.
#[derive(Default)]
pub(crate) struct Relay(Mutex<Option<Waker>>);

impl Relay {
    pub(crate) fn set(&self, waker: &Waker) {
        let mut known = lock(&self.0);
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = lock(&self.0).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The runtime's time so much later.
pub(crate) fn after(span: Duration) -> ::tokio::time::Instant {
    let now = ::tokio::time::Instant::now();
    now.checked_add(span)
        .unwrap_or(now + Duration::from_secs(86_400))
}

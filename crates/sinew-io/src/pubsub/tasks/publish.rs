//! Publishing from a task.

use std::time::Duration;

use ::tokio::time::timeout_at;
use sinew::pubsub::codec::Body;
use sinew::pubsub::session::{Put, PutError};

use super::super::node::Publisher;
use super::send::{send, try_send};
use crate::tokio::after;

/// Publishes on one key. Dropping it withdraws the key.
///
/// A future that is dropped while it waits has sent nothing: what the link had taken of the sample is
/// taken back. Where it is ready, the sample is on its way.
pub struct AsyncPublisher {
    pub(super) publisher: Publisher,
}

impl AsyncPublisher {
    /// Publishes a value. Where the link is full and the policy is to block, it waits.
    pub async fn put(&self, payload: &[u8]) -> Result<Put, PutError> {
        self.publish(&Body::put(payload)).await
    }

    /// Publishes that there is no value any more.
    pub async fn delete(&self) -> Result<Put, PutError> {
        self.publish(&Body::del()).await
    }

    /// Publishes a value with options.
    pub async fn publish(&self, body: &Body<'_>) -> Result<Put, PutError> {
        let Publisher { node, id, blocks } = &self.publisher;
        let publish = send(node.shared(), *blocks, |session, tx, now| {
            session.publish(tx, *id, body, now)
        });
        publish.await
    }

    /// Publishes a value of `len` bytes that `fill` writes straight into the batch it leaves in. It is
    /// called at most once, and not before there is a place. What stands there before is not defined. A
    /// value that does not fit one batch is [`PutError::TooLarge`].
    pub async fn put_with(
        &self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put, PutError> {
        let Publisher { node, id, blocks } = &self.publisher;
        let mut fill = Some(fill);
        let put = send(node.shared(), *blocks, |session, tx, now| {
            session.put_with(tx, *id, len, now, |room| {
                if let Some(fill) = fill.take() {
                    fill(room);
                }
            })
        });
        put.await
    }

    /// Publishes a value if the link takes all of it at once, for handlers and other code that must
    /// not wait; else it is [`PutError::Full`], or dropped where that is the policy.
    pub fn try_put(&self, payload: &[u8]) -> Result<Put, PutError> {
        let Publisher { node, id, blocks } = &self.publisher;
        let body = Body::put(payload);
        try_send(node.shared(), *blocks, |session, tx, now| {
            session.publish(tx, *id, &body, now)
        })
    }

    /// Whether somebody subscribes; `None` where that is not known.
    pub fn is_heard(&self) -> Option<bool> {
        self.publisher.is_heard()
    }

    /// Waits until somebody subscribes, and returns what [`AsyncPublisher::is_heard`] says then: what is
    /// put earlier goes to nobody.
    pub async fn wait_heard(&self, timeout: Duration) -> Option<bool> {
        let room = &self.publisher.node.shared().room;
        let until = after(timeout);
        loop {
            let seen = room.count();
            let heard = self.is_heard();
            let told = timeout_at(until, room.changed(seen));
            if heard == Some(true) || told.await.is_err() {
                return heard;
            }
        }
    }
}

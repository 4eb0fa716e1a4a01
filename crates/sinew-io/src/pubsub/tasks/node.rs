//! A node that tasks share.

use std::time::Duration;

use sinew::pubsub::codec::{Body, Zid};
use sinew::pubsub::session::{
    Ask, AskError, DeclareError, Peer, PublisherOptions, Put, PutError, Question, Sample, State,
    Stats,
};

use super::super::node::{Node, NotOpen, Queryable, SendOnceError, Subscriber};
use super::super::query::Mailbox;
use super::super::{Overflow, Status, key_expr};
use super::{AsyncPublisher, AsyncReplies, AsyncResponder, AsyncSamples, send};
use crate::tokio::after;

/// A node in the network of Zenoh, for tasks; copies are handles of the same one.
///
/// A task keeps its session up, and opens it again when it is lost. Everything declared is declared
/// again then. The node ends when the last handle, publisher, subscriber and queryable is gone, or
/// the runtime.
#[derive(Clone)]
pub struct AsyncNode {
    node: Node,
}

impl AsyncNode {
    pub(super) fn new(node: Node) -> AsyncNode {
        AsyncNode { node }
    }

    /// The id of this node. It changes where the other side holds a session of the old one.
    pub fn zid(&self) -> Zid {
        self.node.zid()
    }

    /// How far the session is.
    pub fn state(&self) -> State {
        self.node.state()
    }

    /// How the connection is: sessions so far, and why there is none.
    pub fn status(&self) -> Status {
        self.node.status()
    }

    /// What the session has counted.
    pub fn stats(&self) -> Stats {
        self.node.stats()
    }

    /// Who is on the other side, while there is a session.
    pub fn peer(&self) -> Option<Peer> {
        self.node.peer()
    }

    /// Waits until there is a session.
    pub async fn wait_open(&self, timeout: Duration) -> Result<Peer, NotOpen> {
        let room = &self.node.shared().room;
        let until = after(timeout);
        loop {
            let seen = room.count();
            if let Some(result) = self.node.opened() {
                return result;
            }
            if ::tokio::time::timeout_at(until, room.changed(seen))
                .await
                .is_err()
            {
                return self.node.opened().unwrap_or_else(|| self.node.not_open());
            }
        }
    }

    /// A publisher on `key`, with the usual options.
    pub fn publisher(&self, key: &str) -> Result<AsyncPublisher, DeclareError> {
        self.publisher_with(key, PublisherOptions::DEFAULT)
    }

    /// A publisher on `key`.
    pub fn publisher_with(
        &self,
        key: &str,
        options: PublisherOptions,
    ) -> Result<AsyncPublisher, DeclareError> {
        let publisher = self.node.publisher_with(key, options)?;
        Ok(AsyncPublisher { publisher })
    }

    /// Publishes once, on a key that is not declared.
    pub async fn put(
        &self,
        key: &str,
        body: &Body<'_>,
        options: PublisherOptions,
    ) -> Result<Put, SendOnceError> {
        let key = key_expr(key).map_err(SendOnceError::Key)?;
        let sent = send::send(
            self.node.shared(),
            options.qos.is_blocking(),
            |session, tx, now| session.publish_on(tx, key, options, body, now),
        );
        sent.await.map_err(SendOnceError::Put)
    }

    /// Calls `handler` with every sample on `key`, in the node's task: it should be short. While it runs,
    /// nothing else is received. It may publish with [`AsyncPublisher::try_put`], or spawn a task.
    pub fn subscriber(
        &self,
        key: &str,
        handler: impl FnMut(&Sample<'_>) + Send + 'static,
    ) -> Result<Subscriber, DeclareError> {
        self.node.subscriber(key, handler)
    }

    /// The samples on `key`, to be taken out by a task, from a queue of so many.
    pub fn samples(
        &self,
        key: &str,
        most: usize,
        overflow: Overflow,
    ) -> Result<AsyncSamples, DeclareError> {
        let samples = self.node.samples(key, most, overflow)?;
        Ok(AsyncSamples { samples })
    }

    /// Calls `handler` with every query for `key`, in the node's task; what it does not know at once, it
    /// leaves to a task that it spawns with the responder. `complete`: it knows all that there is for its
    /// key.
    pub fn queryable(
        &self,
        key: &str,
        complete: bool,
        mut handler: impl FnMut(&Question<'_>, AsyncResponder) + Send + 'static,
    ) -> Result<Queryable, DeclareError> {
        self.node
            .queryable(key, complete, move |question, responder| {
                handler(question, AsyncResponder { responder });
            })
    }

    /// Asks; the answers are what is returned, as they arrive.
    pub async fn ask(&self, ask: &Ask<'_>) -> Result<AsyncReplies, AskError> {
        let mailbox = Mailbox::default();
        let query = send::ask(self.node.shared(), ask, &mailbox).await?;
        let replies = self.node.replies(ask, query, mailbox);
        Ok(AsyncReplies { replies })
    }

    /// Everything that waits in a batch leaves now.
    pub fn flush(&self) -> Result<(), PutError> {
        self.node.flush()
    }
}

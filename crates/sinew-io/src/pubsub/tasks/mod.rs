//! The async driver: a node with a task instead of a thread. Its handles are those of the blocking one,
//! except where they wait.

use std::time::Duration;

use crate::apart::Apart;
use crate::endpoint::{Endpoint, Use};

use super::{CONNECT_TIMEOUT, Node, OpenError, Options, Source};

mod drive;
mod node;
mod publish;
mod query;
mod samples;
mod send;

pub use node::AsyncNode;
pub use publish::AsyncPublisher;
pub use query::{AsyncReplies, AsyncResponder};
pub use samples::AsyncSamples;

/// A client of the router at an endpoint, when its session is open.
///
/// # Panics
/// Outside of a tokio runtime; so do all that start a node.
pub async fn connect(endpoint: &str) -> Result<AsyncNode, OpenError> {
    let endpoint = Endpoint::parse(endpoint, Use::Batches).map_err(OpenError::Endpoint)?;
    let node = open(&endpoint, Options::client());
    match node.wait_open(CONNECT_TIMEOUT).await {
        Ok(_) => Ok(node),
        Err(error) => Err(OpenError::NotOpen(error)),
    }
}

/// A node that opens a session at the endpoint, now and whenever it is lost. It need not come about at
/// once: see [`AsyncNode::wait_open`] and [`AsyncNode::status`].
pub fn open(endpoint: &Endpoint, options: Options) -> AsyncNode {
    start(Source::dial(endpoint), options)
}

/// A node on a link that there is, whose other side opens the session: one that a
/// [listener](crate::apart::listen) gave, which waits in a thread of its own
/// (`tokio::task::spawn_blocking`). When the link is lost, the node has ended.
pub fn accept(apart: Apart, options: Options) -> AsyncNode {
    start(Source::Accepted(Some(apart)), options)
}

/// A node on a link that there is, which opens the session; when the link is lost, it has ended.
pub fn over(apart: Apart, options: Options) -> AsyncNode {
    start(Source::Given(Some(apart)), options)
}

fn start(source: Source, options: Options) -> AsyncNode {
    let (node, driver) = Node::new(source, options);
    ::tokio::spawn(drive::drive(driver));
    AsyncNode::new(node)
}

/// Later than anybody waits.
const LONG: Duration = Duration::from_secs(86_400);

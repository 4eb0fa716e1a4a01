//! Publish, subscribe and query from tasks: a node with a session of Zenoh, on any link.
//!
//! ```no_run
//! use sinew_io::pubsub::Overflow;
//! use sinew_io::tokio::pubsub;
//!
//! # async fn lamp() -> Result<(), Box<dyn std::error::Error>> {
//! let node = pubsub::connect("tcp:127.0.0.1:7447").await?;
//! let lamp = node.publisher("demo/lamp")?;
//! lamp.put(b"on").await?;
//!
//! let mut switches = node.samples("demo/switch/*", 16, Overflow::Wait)?;
//! while let Some(switch) = switches.recv().await {
//!     lamp.put(&switch.payload).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! It is the node of [`sinew_io::pubsub`](crate::pubsub) with a task in place of its thread: options,
//! samples, answers and errors are those. What waits there for a place, a sample or an answer is async
//! here, and can be dropped at any time: a `recv` has then taken nothing, and a `put` has sent nothing,
//! also where the link had taken a part of it already.

pub use crate::pubsub::tasks::{
    AsyncNode, AsyncPublisher, AsyncReplies, AsyncResponder, AsyncSamples, accept, connect, open,
    over,
};

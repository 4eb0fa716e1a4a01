//! Samples for a task.

use std::future::poll_fn;

use super::super::OwnedSample;
use super::super::node::Samples;

/// A subscription whose samples wait in a queue. Dropping it ends the subscription.
pub struct AsyncSamples {
    pub(super) samples: Samples,
}

impl AsyncSamples {
    /// The next sample; `None` when the node has ended. A future that is dropped has taken nothing.
    pub async fn recv(&mut self) -> Option<OwnedSample> {
        // Others get their turn, however fast samples come.
        ::tokio::task::coop::consume_budget().await;
        let Samples { queue, subscriber } = &self.samples;
        let taken = poll_fn(|cx| queue.poll(cx)).await?;
        Some(subscriber.taken(taken))
    }

    /// Samples that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.samples.dropped()
    }
}

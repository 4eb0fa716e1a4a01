//! A sample with memory of its own, and a queue of them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Waker;
#[cfg(feature = "tokio")]
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use sinew::pubsub::codec::{Body, Kind, Qos, SourceInfo, Timestamp};
use sinew::pubsub::session::Sample;

use crate::lock;

/// A sample that borrows from nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedSample {
    /// Its key.
    pub key: String,
    /// A value, or that there is none any more.
    pub kind: Kind,
    /// The value.
    pub payload: Vec<u8>,
    /// What it is, as Zenoh writes it: `text/plain;utf8`.
    pub encoding: String,
    /// What came along.
    pub attachment: Option<Vec<u8>>,
    /// When it was made.
    pub timestamp: Option<Timestamp>,
    /// Who made it.
    pub source: Option<SourceInfo>,
    /// How it was sent.
    pub qos: Qos,
    /// On the reliable channel.
    pub reliable: bool,
}

impl OwnedSample {
    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        let attachment = self.attachment.as_ref().map_or(0, Vec::len);
        size_of::<OwnedSample>()
            + self.key.len()
            + self.payload.len()
            + self.encoding.len()
            + attachment
    }

    pub(super) fn of(key: &str, qos: Qos, reliable: bool, body: &Body<'_>) -> OwnedSample {
        OwnedSample {
            key: key.to_owned(),
            kind: body.kind,
            payload: body.payload.to_vec(),
            encoding: body.encoding.to_string(),
            attachment: body.attachment.map(<[u8]>::to_vec),
            timestamp: body.timestamp,
            source: body.source,
            qos,
            reliable,
        }
    }
}

impl From<&Sample<'_>> for OwnedSample {
    fn from(sample: &Sample<'_>) -> OwnedSample {
        OwnedSample::of(sample.key, sample.qos, sample.reliable, &sample.body)
    }
}

/// What happens when samples come faster than they are taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overflow {
    /// The node takes nothing more from its link until there is room: over a stream, the publisher
    /// feels it. A packet that has been begun is finished, so there may be a few more in the queue.
    /// 64 MiB are a full queue, too, however few samples they are.
    #[default]
    Wait,
    /// The oldest goes, and is counted. So it is where the queue has more than 64 MiB.
    DropOldest,
}

/// More bytes are a full queue. One sample may be larger.
const BYTES: usize = 64 << 20;

/// Samples that have arrived and were not taken out.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<Waiting>,
    come: Condvar,
    most: usize,
    overflow: Overflow,
}

#[derive(Debug, Default)]
struct Waiting {
    samples: VecDeque<OwnedSample>,
    /// Of all of them.
    bytes: usize,
    dropped: u64,
    /// No more will come.
    ended: bool,
    /// A task that waits for a sample.
    task: Option<Waker>,
}

/// What was taken out.
pub(super) struct Taken {
    pub(super) sample: OwnedSample,
    /// The queue was full, and the driver may wait for this.
    pub(super) frees: bool,
}

impl Waiting {
    /// Whether there are so many samples, or no room for so many bytes more.
    fn has(&self, most: usize, more: usize) -> bool {
        self.samples.len() >= most || self.bytes.saturating_add(more) >= BYTES
    }

    fn pop(&mut self) -> Option<OwnedSample> {
        let sample = self.samples.pop_front()?;
        self.bytes -= sample.size();
        Some(sample)
    }
}

impl Queue {
    pub(super) fn new(most: usize, overflow: Overflow) -> Queue {
        Queue {
            state: Mutex::default(),
            come: Condvar::new(),
            most: most.max(1),
            overflow,
        }
    }

    pub(super) fn put(&self, sample: &Sample<'_>) {
        let sample = OwnedSample::from(sample);
        let mut state = lock(&self.state);
        if self.overflow == Overflow::DropOldest {
            while state.has(self.most, sample.size()) && state.pop().is_some() {
                state.dropped += 1;
            }
        }
        state.bytes += sample.size();
        state.samples.push_back(sample);
        let task = state.task.take();
        drop(state);
        self.come.notify_one();
        task.inspect(Waker::wake_by_ref);
    }

    /// No more will come.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.ended = true;
        let task = state.task.take();
        drop(state);
        self.come.notify_all();
        task.inspect(Waker::wake_by_ref);
    }

    /// The next sample, `None` after the last one.
    #[cfg(feature = "tokio")]
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Option<Taken>> {
        let mut state = lock(&self.state);
        let taken = self.pop(&mut state);
        if taken.is_none() && !state.ended {
            state.task = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(taken)
    }

    /// Whether the link has to wait for who takes samples out.
    pub(super) fn is_full(&self) -> bool {
        self.overflow == Overflow::Wait && lock(&self.state).has(self.most, 0)
    }

    fn pop(&self, state: &mut Waiting) -> Option<Taken> {
        let was_full = self.overflow == Overflow::Wait && state.has(self.most, 0);
        let sample = state.pop()?;
        let frees = was_full && !state.has(self.most, 0);
        Some(Taken { sample, frees })
    }

    pub(super) fn take(&self, timeout: Option<Duration>) -> Option<Taken> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = lock(&self.state);
        loop {
            if let Some(taken) = self.pop(&mut state) {
                return Some(taken);
            }
            if state.ended {
                return None;
            }
            state = match until {
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    let waited = self.come.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .come
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        lock(&self.state).dropped
    }
}

/// A queue of samples, shared by the driver and whoever takes them.
pub(super) type SharedQueue = Arc<Queue>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_large_samples_is_full_before_there_are_many() {
        let third = vec![0; BYTES / 3];
        let sample = Sample {
            key: "demo/k",
            qos: Qos::DEFAULT,
            reliable: true,
            body: Body::put(&third),
        };
        let now = Some(Duration::ZERO);
        let queue = Queue::new(1000, Overflow::Wait);
        (0..2).for_each(|_| queue.put(&sample));
        assert!(!queue.is_full());
        (0..2).for_each(|_| queue.put(&sample));
        assert!(queue.is_full());
        let frees = || queue.take(now).map(|taken| taken.frees);
        // Once, when there is room again: with three there is none yet.
        assert_eq!(
            [frees(), frees(), frees()].map(Option::unwrap),
            [false, true, false]
        );
        let queue = Queue::new(1000, Overflow::DropOldest);
        (0..4).for_each(|_| queue.put(&sample));
        assert!(queue.dropped() >= 1);
        assert!(lock(&queue.state).bytes <= BYTES);
    }
}

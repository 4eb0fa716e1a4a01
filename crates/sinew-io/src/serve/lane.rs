//! Where deferred answers and streams wait for their link's thread: a queue per link, in a static
//! that is used again by later links.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use sinew::link::queue::{QueuePort, QueueRx, QueueTx, one_way};
use sinew::link::{Port, Rx, SendError, Tx};
use sinew_shm::{Bell, Queue, StdLock};

use crate::endpoint::MAX_MTU;
use crate::lock;

/// Packets that one lane holds.
const BLOCKS: usize = 16;

/// A port whose queue outlives every link, so that answers from other threads can point at it.
pub(super) struct Lane {
    queue: Queue<StdLock, BLOCKS, MAX_MTU>,
    bell: Bell<StdLock>,
    /// Into the queue as it is open now.
    port: Mutex<Option<QueuePort<StdLock, BLOCKS, MAX_MTU>>>,
    mtu: AtomicUsize,
}

impl Lane {
    pub(super) fn leak() -> &'static Lane {
        Box::leak(Box::new(Lane {
            queue: Queue::new(),
            bell: Bell::new(),
            port: Mutex::new(None),
            mtu: AtomicUsize::new(0),
        }))
    }

    /// Whether something waits here. The link's thread is then awake, or waits for its carrier.
    pub(super) fn is_waiting(&self) -> bool {
        let stats = self.queue.stats();
        stats.sent != stats.received.wrapping_add(stats.discarded)
    }

    /// Opens the lane for a link; `None` while it is open.
    pub(super) fn open(&'static self, mtu: usize) -> Option<LaneEnd> {
        let (tx, rx) = one_way(&self.queue)?;
        self.mtu.store(mtu.min(MAX_MTU), Ordering::Relaxed);
        *lock(&self.port) = Some(tx.port(1, &self.bell));
        Some(LaneEnd {
            lane: self,
            rx,
            _tx: tx,
            is_armed: false,
        })
    }

    fn port(&self) -> Result<QueuePort<StdLock, BLOCKS, MAX_MTU>, SendError> {
        (*lock(&self.port)).ok_or(SendError::Closed)
    }
}

impl Port for Lane {
    fn mtu(&self) -> usize {
        self.mtu.load(Ordering::Relaxed)
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mtu = self.mtu();
        if min > mtu {
            return Err(SendError::TooLarge);
        }
        self.port()?.send(min, &mut |place| {
            fill(place.get_mut(..mtu).unwrap_or_default())
        })
    }

    fn arm(&self, waker: &Waker) {
        match self.port() {
            Ok(port) => port.arm(waker),
            Err(_) => waker.wake_by_ref(),
        }
    }

    fn ring(&self) {
        self.bell.ring();
    }
}

/// The end of a lane at which the link's thread takes packets out. Dropping it closes the lane.
pub(super) struct LaneEnd {
    lane: &'static Lane,
    rx: QueueRx<StdLock, BLOCKS, MAX_MTU>,
    _tx: QueueTx<StdLock, BLOCKS, MAX_MTU>,
    /// The waker is registered, and nothing has come since.
    is_armed: bool,
}

impl LaneEnd {
    pub(super) fn lane(&self) -> &'static Lane {
        self.lane
    }

    /// Whether a call has ended outside of the engine.
    pub(super) fn take_ring(&mut self) -> bool {
        let rung = self.lane.bell.take();
        self.is_armed &= !rung;
        rung
    }

    /// The oldest packet.
    pub(super) fn peek(&mut self) -> Option<&[u8]> {
        let packet = self.rx.peek().ok().flatten();
        self.is_armed &= packet.is_none();
        packet
    }

    pub(super) fn release(&mut self) {
        self.rx.release();
    }

    /// Moves up to `limit` packets to the carrier: how many, and what stopped it.
    pub(super) fn pump<T: Tx + ?Sized>(
        &mut self,
        tx: &mut T,
        limit: usize,
    ) -> (usize, Option<SendError>) {
        for moved in 0..limit {
            let Some(packet) = self.peek() else {
                return (moved, None);
            };
            match tx.place(packet.len()) {
                Ok(place) => {
                    if let Some(front) = place.get_mut(..packet.len()) {
                        front.copy_from_slice(packet);
                    }
                    // A carrier that closes here says so at the next place.
                    let _ = tx.commit(packet.len());
                }
                Err(error @ (SendError::Full | SendError::Closed)) => return (moved, Some(error)),
                Err(SendError::TooLarge) => {}
            }
            self.release();
        }
        (limit, None)
    }

    /// Wakes `waker` at the next packet or ring. Costs nothing while that has not happened.
    pub(super) fn arm(&mut self, waker: &Waker) {
        if !self.is_armed {
            self.is_armed = true;
            self.rx.arm(waker);
            self.lane.bell.arm(waker);
        }
    }
}

impl Drop for LaneEnd {
    fn drop(&mut self) {
        // The lane outlives the link, and would keep the descriptor that its waker writes to.
        self.lane.bell.take();
        self.lane.bell.arm(Waker::noop());
        self.rx.arm(Waker::noop());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Ear;

    impl Wake for Ear {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn lane_of_a_link_that_has_ended_keeps_no_waker() {
        let lane = Lane::leak();
        for rings in [0, 1] {
            let ear = Arc::new(Ear);
            let mut end = lane.open(64).unwrap();
            end.arm(&ear.clone().into());
            assert_eq!(Arc::strong_count(&ear), 3);
            for _ in 0..rings {
                lane.ring();
            }
            drop(end);
            assert_eq!(Arc::strong_count(&ear), 1);
        }
    }
}

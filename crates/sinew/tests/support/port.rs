//! A port over a bounded queue.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Waker;

use sinew::link::{Port, SendError};

use super::wire::Seen;

/// A port over a bounded queue that the test empties.
#[derive(Debug)]
pub struct TestPort {
    mtu: usize,
    capacity: usize,
    queue: Mutex<VecDeque<Vec<u8>>>,
    wakers: Mutex<Vec<Waker>>,
    rings: AtomicU32,
    closed: AtomicBool,
}

impl TestPort {
    pub fn leak(mtu: usize, capacity: usize) -> &'static TestPort {
        Box::leak(Box::new(TestPort {
            mtu,
            capacity,
            queue: Mutex::default(),
            wakers: Mutex::default(),
            rings: AtomicU32::new(0),
            closed: AtomicBool::new(false),
        }))
    }

    /// Takes the oldest packet's bytes.
    pub fn take(&self) -> Option<Vec<u8>> {
        let packet = self.queue.lock().unwrap().pop_front();
        for waker in self.wakers.lock().unwrap().drain(..) {
            waker.wake();
        }
        packet
    }

    /// Takes the oldest packet.
    pub fn pop(&self) -> Option<Seen> {
        self.take().map(|bytes| Seen::of(&bytes))
    }

    pub fn len(&self) -> usize {
        self.queue.lock().unwrap().len()
    }

    pub fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

impl Port for TestPort {
    fn mtu(&self) -> usize {
        self.mtu
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(SendError::Closed);
        }
        if min > self.mtu {
            return Err(SendError::TooLarge);
        }
        let mut queue = self.queue.lock().unwrap();
        if queue.len() >= self.capacity {
            return Err(SendError::Full);
        }
        // A place may be no larger than asked for: who asks for too little must notice.
        let mut place = vec![0xAA; min];
        let len = fill(&mut place);
        if len > 0 {
            place.truncate(len);
            queue.push_back(place);
        }
        Ok(())
    }

    fn arm(&self, waker: &Waker) {
        if self.queue.lock().unwrap().len() < self.capacity {
            waker.wake_by_ref();
        } else {
            self.wakers.lock().unwrap().push(waker.clone());
        }
    }

    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
    }
}

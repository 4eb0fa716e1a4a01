//! The talk's ring: a mutex and a condition variable, nothing of Sinew.
//!
//! The control sends plain structs through it, the calls send packets; so what differs between the
//! two is what a call costs.

use std::sync::{Condvar, Mutex};

const SLOTS: usize = 8;

/// A bounded ring of values.
pub struct Ring<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    slots: [T; SLOTS],
    written: usize,
    read: usize,
}

impl<T: Copy + Default> Ring<T> {
    pub fn new() -> Self {
        Ring {
            state: Mutex::new(State {
                slots: [T::default(); SLOTS],
                written: 0,
                read: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Puts a value in; waits where the ring is full. The peer is woken after the lock is released.
    pub fn push(&self, value: &T) {
        let mut state = self.state.lock().expect("no thread panics with the lock");
        while state.written - state.read == SLOTS {
            state = self
                .changed
                .wait(state)
                .expect("no thread panics with the lock");
        }
        let index = state.written % SLOTS;
        state.slots[index] = *value;
        state.written += 1;
        drop(state);
        self.changed.notify_one();
    }

    /// Takes the oldest value out; waits for one.
    pub fn pop(&self) -> T {
        let mut state = self.state.lock().expect("no thread panics with the lock");
        while state.written == state.read {
            state = self
                .changed
                .wait(state)
                .expect("no thread panics with the lock");
        }
        let value = state.slots[state.read % SLOTS];
        state.read += 1;
        value
    }
}

//! For tests: a side dies after so many of its stores to shared words, is interrupted before one of
//! its accesses, or never makes some stores. The code above the words is what ships.

use std::cell::Cell;

/// What is to happen during the next call, on this thread.
#[derive(Clone, Copy)]
pub(crate) struct Trial {
    /// Stores that are still made; those after them are not.
    pub(crate) stores: u32,
    /// Accesses before the interruption.
    pub(crate) accesses: u32,
    /// The interruption.
    pub(crate) interrupt: Option<fn()>,
    /// Whether a store to an address, of a value, is made.
    pub(crate) keep: Option<fn(usize, u32) -> bool>,
}

impl Trial {
    /// Everything happens, undisturbed.
    pub(crate) const NONE: Trial = Trial {
        stores: u32::MAX,
        accesses: u32::MAX,
        interrupt: None,
        keep: None,
    };
}

std::thread_local! {
    static TRIAL: Cell<Trial> = const { Cell::new(Trial::NONE) };
}

/// Runs a call under a trial; what it left of the stores and accesses.
pub(crate) fn under(trial: Trial, call: impl FnOnce()) -> Trial {
    TRIAL.set(trial);
    call();
    TRIAL.replace(Trial::NONE)
}

/// Before each access.
#[inline]
pub(super) fn access() {
    let mut trial = TRIAL.get();
    let is_now = trial.accesses == 0;
    trial.accesses = trial.accesses.wrapping_sub(1);
    let interrupt = if is_now { trial.interrupt.take() } else { None };
    TRIAL.set(trial);
    if let Some(interrupt) = interrupt {
        TRIAL.set(Trial {
            keep: trial.keep,
            ..Trial::NONE
        });
        interrupt();
        TRIAL.set(trial);
    }
}

/// Whether the store to this address is made.
#[inline]
pub(super) fn store(at: usize, value: u32) -> bool {
    access();
    let mut trial = TRIAL.get();
    if trial.keep.is_some_and(|keep| !keep(at, value)) {
        return false;
    }
    let alive = trial.stores > 0;
    trial.stores = trial.stores.saturating_sub(1);
    TRIAL.set(trial);
    alive
}

/// Whether the side is dead: what is written from now on is not.
pub(super) fn is_over() -> bool {
    TRIAL.get().stores == 0
}

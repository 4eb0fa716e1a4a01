//! What makes several contexts one writer.

/// Mutual exclusion between all contexts that send on one queue.
///
/// It is held for a few tens of instructions, never while a caller writes a block and never while
/// somebody is woken. What runs inside does not panic, wait, or take the same lock again.
///
/// # Safety
/// * `with` runs `f` while no other context runs anything under the same lock: no other thread,
///   and, where the implementation is `Sync` and the queue is used in interrupt handlers, no
///   handler either.
/// * What one context did under the lock happens before what the next one does under it.
pub unsafe trait Lock {
    /// A lock that nobody holds.
    const NEW: Self;

    /// Runs `f` alone.
    fn with<R>(&self, f: impl FnOnce() -> R) -> R;
}

/// No lock: sender, receiver and every handle stay in one context.
///
/// It is not `Sync`, so the compiler keeps a queue with it out of other threads, interrupt
/// handlers and plain statics. For a loopback inside one task, and to count what a lock costs.
///
/// ```compile_fail,E0277
/// # use sinew_shm::{Queue, Unshared};
/// static QUEUE: Queue<Unshared, 2, 8> = Queue::new();
/// ```
pub struct Unshared(core::marker::PhantomData<*const ()>);

// SAFETY: the type is neither Send nor Sync, so all uses are in one context, one after another;
// what runs under the lock does not take it again.
unsafe impl Lock for Unshared {
    const NEW: Self = Unshared(core::marker::PhantomData);

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// For threads: the mutex of the standard library.
#[cfg(feature = "std")]
pub struct StdLock(std::sync::Mutex<()>);

#[cfg(feature = "std")]
// SAFETY: a mutex excludes all other threads and orders its holders; signal handlers cannot hold
// a reference to it by safe means.
unsafe impl Lock for StdLock {
    const NEW: Self = StdLock(std::sync::Mutex::new(()));

    #[inline]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        // What runs inside does not panic, so a poisoned lock guards a sound state.
        let _held = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        f()
    }
}

/// For tasks and interrupt handlers of one image: a critical section of the `critical-section`
/// crate, whose implementation the image chooses.
#[cfg(feature = "critical-section")]
pub struct CriticalSectionLock(());

#[cfg(feature = "critical-section")]
// SAFETY: a critical section excludes all other contexts of the image and orders its holders; that
// is the contract of critical_section::Impl.
unsafe impl Lock for CriticalSectionLock {
    const NEW: Self = CriticalSectionLock(());

    #[inline]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        critical_section::with(|_| f())
    }
}

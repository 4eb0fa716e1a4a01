//! What tasks and interrupt handlers of one core share.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::{Ordering, compiler_fence};

use sinew_shm::Lock;

/// Masks interrupts while it is held, so that tasks and interrupt handlers of this core share a
/// queue.
pub struct Masked(());

// SAFETY: there is one core, and nothing else runs on it while its interrupts are masked; the
// fences keep what happens under the lock between the two instructions.
unsafe impl Lock for Masked {
    const NEW: Self = Masked(());

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = mask();
        let result = f();
        // SAFETY: from the `mask` above.
        unsafe { unmask(before) }
        result
    }
}

/// Masks interrupts, and gives what they were before.
#[inline(always)]
pub fn mask() -> u32 {
    let before: u32;
    // SAFETY: reads and sets PRIMASK only.
    unsafe {
        asm!("mrs {}, PRIMASK", "cpsid i", out(reg) before, options(nomem, nostack, preserves_flags));
    }
    compiler_fence(Ordering::SeqCst);
    before
}

/// Makes interrupts what they were before a [`mask`].
///
/// # Safety
/// Once for each `mask`, the last one first: who masked them relies on it.
#[inline(always)]
pub unsafe fn unmask(before: u32) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: gives PRIMASK the value that it had before.
    unsafe {
        asm!("msr PRIMASK, {}", in(reg) before, options(nomem, nostack, preserves_flags));
    }
}

/// Something in a static that the main program makes and interrupt handlers use.
pub struct Late<T: 'static>(UnsafeCell<Option<&'static T>>);

// SAFETY: the cell is only reached with interrupts masked, on the one core, and gives out shared
// references.
unsafe impl<T: Sync> Sync for Late<T> {}

impl<T: Sync> Late<T> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Late(UnsafeCell::new(None))
    }

    /// From now on it is there.
    pub fn set(&self, value: &'static T) {
        // SAFETY: nobody else is in the cell while interrupts are masked.
        Masked::NEW.with(|| unsafe { *self.0.get() = Some(value) });
    }

    /// What was set.
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: as above.
        Masked::NEW.with(|| unsafe { *self.0.get() })
    }
}

impl<T: Sync> Default for Late<T> {
    fn default() -> Self {
        Late::new()
    }
}

/// Sleeps until the next interrupt, unless `busy` says that there is something to do: what an
/// interrupt handler changes in between is not missed.
pub fn sleep_unless(busy: impl FnOnce() -> bool) {
    Masked::NEW.with(|| {
        if !busy() {
            sinew_rt::sleep();
        }
    });
}

//! The lock of the block queue on one core.

use core::arch::asm;
use core::sync::atomic::{Ordering, compiler_fence};

/// Masks interrupts while it is held, so that tasks and interrupt handlers of this core share a
/// queue.
pub struct Masked(());

// SAFETY: there is one core, and nothing else runs on it while its interrupts are masked; the
// fences keep what happens under the lock between the two instructions.
unsafe impl sinew_shm::Lock for Masked {
    const NEW: Self = Masked(());

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let before: u32;
        // SAFETY: reads and sets PRIMASK only.
        unsafe {
            asm!("mrs {}, PRIMASK", "cpsid i", out(reg) before, options(nomem, nostack, preserves_flags));
        }
        compiler_fence(Ordering::SeqCst);
        let result = f();
        compiler_fence(Ordering::SeqCst);
        // SAFETY: gives PRIMASK the value that it had before.
        unsafe {
            asm!("msr PRIMASK, {}", in(reg) before, options(nomem, nostack, preserves_flags));
        }
        result
    }
}

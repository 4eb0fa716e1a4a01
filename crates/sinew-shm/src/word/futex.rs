//! Words on which the kernel can wait: in mapped memory, and of one process alone.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// What the kernel's futex calls take.
pub(crate) type KernelWord = AtomicU32;

/// A shared word at a fixed address, with one writer, for the kernel's futex calls.
///
/// Holding one proves that the address is aligned and mapped for as long as it is used.
#[derive(Clone, Copy)]
pub(crate) struct FutexWord(NonNull<AtomicU32>);

// SAFETY: all access is by atomic loads and stores.
unsafe impl Send for FutexWord {}
// SAFETY: as above.
unsafe impl Sync for FutexWord {}

impl FutexWord {
    /// # Safety
    ///
    /// `at` must be aligned to 4, and four bytes from there mapped until the last use of this or of a
    /// copy of it. Whoever writes them does so by aligned words.
    pub(crate) unsafe fn new(at: NonNull<u8>) -> Self {
        FutexWord(at.cast())
    }

    /// What the kernel is given. Only loads are done through it, unless one's own segment holds it.
    pub(crate) fn word(&self) -> &AtomicU32 {
        // SAFETY: aligned and mapped, by the contract of `new`; an AtomicU32 may change at any time.
        unsafe { self.0.as_ref() }
    }

    /// What the writer did before it stored this value happens before what follows here.
    pub(crate) fn load(&self) -> u32 {
        // Relaxed and a fence, as only a relaxed load is sound in memory that is mapped read-only.
        let value = self.word().load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        value
    }

    /// Publishes what was done before it.
    ///
    /// # Safety
    ///
    /// The word must be mapped for writing.
    pub(crate) unsafe fn store(&self, value: u32) {
        self.word().store(value, Ordering::Release);
    }
}

/// A word of this process, by which its threads wake each other. Its writers take turns.
pub(crate) struct OwnWord(AtomicU32);

impl OwnWord {
    pub(crate) const fn new() -> Self {
        OwnWord(AtomicU32::new(0))
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }

    /// What the writer did before it stored this value happens before what follows here.
    pub(crate) fn load(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Publishes what was done before it.
    pub(crate) fn store(&self, value: u32) {
        self.0.store(value, Ordering::Release);
    }
}

/// A word's place as the kernel wants it.
pub(crate) fn address(word: &AtomicU32) -> *mut c_void {
    word.as_ptr().cast()
}

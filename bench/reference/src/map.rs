//! A shared mapping of a whole file.

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes that another process writes too.
pub struct Map {
    base: NonNull<u8>,
    len: usize,
}

impl Map {
    /// Maps the first `len` bytes of `file`, all pages present.
    pub fn new(file: impl AsFd, len: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses an address that nothing else uses; the file is a memfd of at
        // least `len` bytes that nobody truncates.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Map { base, len })
    }

    /// The word at offset `at`, which is a multiple of four.
    #[inline]
    pub fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at.is_multiple_of(4) && at + 4 <= self.len);
        // SAFETY: aligned (the base is a page) and inside of the map; all access to it, by both
        // processes, is atomic.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// The `len` bytes at `at`.
    ///
    /// # Safety
    ///
    /// They lie in the map, and nobody, in either process, writes them during `'a`.
    #[inline]
    pub unsafe fn bytes<'a>(&self, at: usize, len: usize) -> &'a [u8] {
        debug_assert!(at + len <= self.len);
        // SAFETY: inside of the map and not written, by the caller's promise.
        unsafe { slice::from_raw_parts(self.base.as_ptr().add(at), len) }
    }

    /// The `len` bytes at `at`, to write.
    ///
    /// # Safety
    ///
    /// They lie in the map, and nobody else, in either process, touches them during `'a`.
    #[inline]
    pub unsafe fn bytes_mut<'a>(&self, at: usize, len: usize) -> &'a mut [u8] {
        debug_assert!(at + len <= self.len);
        // SAFETY: inside of the map and ours alone, by the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr().add(at), len) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping of `new`; no borrow outlives the ring that owns it. A
        // failure leaves the pages mapped, which harms nobody.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

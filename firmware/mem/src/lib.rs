//! Memory functions that are small: words where there are words left, then bytes.
//!
//! Those of `compiler_builtins` are unrolled for speed and take 2.5 KB. Words are read and written
//! unaligned: one instruction on cores that can (Armv7-M), several on others. On RISC-V, where it would be
//! more than byte by byte, only aligned ones are.
//!
//! A crate of its own, because the compiler must not see a `memcpy` in these loops and call it.
#![no_std]
#![no_builtins]

use core::ffi::c_int;

type Word = u32;
const WORD: usize = size_of::<Word>();

/// Whether words may be read and written at addresses of which this is the bitwise or.
#[inline(always)]
fn has_words(at: usize) -> bool {
    !cfg!(target_arch = "riscv32") || at.is_multiple_of(WORD)
}

/// # Safety
/// As C's `memcpy`.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    let mut at = 0;
    // SAFETY: the caller gives `len` valid bytes on both sides, and `at` stays within them. On RISC-V
    // both sides are aligned where words are copied.
    unsafe {
        if has_words(to as usize | from as usize) {
            while len - at >= WORD {
                copy_word(to.add(at).cast(), from.add(at).cast());
                at += WORD;
            }
        }
        while at < len {
            to.add(at).write(from.add(at).read());
            at += 1;
        }
    }
    to
}

/// # Safety
/// Both are valid, and aligned where [`has_words`] wants it.
#[inline(always)]
unsafe fn copy_word(to: *mut Word, from: *const Word) {
    // SAFETY: as the caller says.
    unsafe {
        match cfg!(target_arch = "riscv32") {
            true => to.write(from.read()),
            false => to.write_unaligned(from.read_unaligned()),
        }
    }
}

/// # Safety
/// As C's `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= len {
        // `to` is outside of the source or before it, so ascending order reads before it writes.
        // SAFETY: as the caller's.
        return unsafe { memcpy(to, from, len) };
    }
    let mut at = len;
    while at > 0 {
        at -= 1;
        // SAFETY: `at` is below `len`, and both sides have `len` valid bytes.
        unsafe { to.add(at).write(from.add(at).read()) };
    }
    to
}

/// # Safety
/// As C's `memset`.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn memset(to: *mut u8, byte: c_int, len: usize) -> *mut u8 {
    let word = Word::from(byte as u8) * 0x0101_0101;
    let mut at = 0;
    // SAFETY: the caller gives `len` valid bytes, and `at` stays within them. On RISC-V they are aligned
    // where words are written.
    unsafe {
        if has_words(to as usize) {
            while len - at >= WORD {
                copy_word(to.add(at).cast(), &raw const word);
                at += WORD;
            }
        }
        while at < len {
            to.add(at).write(byte as u8);
            at += 1;
        }
    }
    to
}

/// # Safety
/// As C's `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> c_int {
    for at in 0..len {
        // SAFETY: `at` is below `len`, and both sides have `len` valid bytes.
        let (a, b) = unsafe { (a.add(at).read(), b.add(at).read()) };
        if a != b {
            return c_int::from(a) - c_int::from(b);
        }
    }
    0
}

/// The names that the Arm EABI gives them: a compiler calls these.
#[cfg(target_arch = "arm")]
mod aeabi {
    use super::*;

    macro_rules! copies {
        ($($name:ident = $function:ident;)*) => {$(
            /// # Safety
            /// As C's function.
            #[unsafe(no_mangle)]
            unsafe extern "aapcs" fn $name(to: *mut u8, from: *const u8, len: usize) {
                // SAFETY: as the caller's.
                unsafe { $function(to, from, len) };
            }
        )*};
    }
    copies! {
        __aeabi_memcpy = memcpy;
        __aeabi_memcpy4 = memcpy;
        __aeabi_memcpy8 = memcpy;
        __aeabi_memmove = memmove;
        __aeabi_memmove4 = memmove;
        __aeabi_memmove8 = memmove;
    }

    macro_rules! sets {
        ($($set:ident $clear:ident;)*) => {$(
            /// # Safety
            /// As C's `memset`, with the arguments of the Arm EABI.
            #[unsafe(no_mangle)]
            unsafe extern "aapcs" fn $set(to: *mut u8, len: usize, byte: c_int) {
                // SAFETY: as the caller's.
                unsafe { memset(to, byte, len) };
            }

            /// # Safety
            /// As C's `memset` with zero.
            #[unsafe(no_mangle)]
            unsafe extern "aapcs" fn $clear(to: *mut u8, len: usize) {
                // SAFETY: as the caller's.
                unsafe { memset(to, 0, len) };
            }
        )*};
    }
    sets! {
        __aeabi_memset __aeabi_memclr;
        __aeabi_memset4 __aeabi_memclr4;
        __aeabi_memset8 __aeabi_memclr8;
    }
}

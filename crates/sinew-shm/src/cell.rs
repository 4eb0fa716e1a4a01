//! Bytes and private state behind a shared reference. Loom checks each access for a race.

#[cfg(not(loom))]
use core::cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// Makes a constructor `const`, except under loom, whose types cannot be.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) -> Self $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $name($($arg: $ty),*) -> Self $body
        #[cfg(loom)]
        $(#[$meta])*
        #[allow(clippy::new_without_default)]
        $vis fn $name($($arg: $ty),*) -> Self $body
    };
}

/// An array of equal values, in a constant where the build allows it.
macro_rules! array {
    ($value:expr; $len:expr) => {{
        #[cfg(not(loom))]
        let all = [const { $value }; $len];
        #[cfg(loom)]
        let all: [_; $len] = core::array::from_fn(|_| $value);
        all
    }};
}

/// Something that several contexts reach and one at a time uses.
pub(crate) struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    const_fn! {
        pub(crate) fn new(value: T) -> Self {
            Cell(UnsafeCell::new(value))
        }
    }

    /// For reading. Valid while nobody writes.
    #[inline(always)]
    pub(crate) fn read(&self) -> *const T {
        #[cfg(not(loom))]
        return self.0.get();
        #[cfg(loom)]
        return self.0.with(|value| value);
    }

    /// For writing. Valid while nobody else reads or writes.
    #[inline(always)]
    pub(crate) fn write(&self) -> *mut T {
        #[cfg(not(loom))]
        return self.0.get();
        #[cfg(loom)]
        return self.0.with_mut(|value| value);
    }
}

/// Keeps what different sides write on different cache lines, where there are caches and memory.
///
/// Cores of 32 bits have little of either, and the local form needs no cache maintenance there.
#[cfg_attr(target_pointer_width = "64", repr(align(64)))]
#[cfg_attr(not(target_pointer_width = "64"), repr(align(4)))]
pub(crate) struct Line<T>(pub(crate) T);

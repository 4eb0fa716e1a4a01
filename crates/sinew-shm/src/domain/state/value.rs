//! What can be a value: something of a fixed size, the same on every machine.

use super::super::crc::Crc;

/// Part of a value: numbers, arrays of parts, and what [`value!`](crate::value) makes.
pub trait Plain: Sized {
    /// Bytes of it.
    const SIZE: usize;
    /// Of what it is made: the same on both sides, or they do not fit.
    const HASH: u32;
    /// Writes it, little-endian, to the front; nothing where there is no room.
    fn put(&self, to: &mut [u8]);
    /// Reads it from the front; zeros where there is not enough.
    fn take(from: &[u8]) -> Self;
}

/// A whole value: a [`Plain`] whose bytes can be held.
pub trait Value: Plain {
    /// As many bytes as it has.
    type Bytes: AsRef<[u8]> + AsMut<[u8]>;
    /// All of them 0.
    const ZERO: Self::Bytes;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            impl Plain for $number {
                const SIZE: usize = size_of::<$number>();
                const HASH: u32 = hash_of(stringify!($number));
                #[inline]
                fn put(&self, to: &mut [u8]) {
                    if let Some(to) = to.first_chunk_mut() {
                        *to = self.to_le_bytes();
                    }
                }
                #[inline]
                fn take(from: &[u8]) -> Self {
                    from.first_chunk().map_or(0 as $number, |from| <$number>::from_le_bytes(*from))
                }
            }

            impl Value for $number {
                type Bytes = [u8; size_of::<$number>()];
                const ZERO: Self::Bytes = [0; size_of::<$number>()];
            }
        )*
    };
}

numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

impl<F: Plain, const N: usize> Plain for [F; N] {
    const SIZE: usize = F::SIZE * N;
    const HASH: u32 = join(join(hash_of("[]"), F::HASH), N as u32);

    #[inline]
    fn put(&self, to: &mut [u8]) {
        for (field, to) in self.iter().zip(to.chunks_exact_mut(F::SIZE.max(1))) {
            field.put(to);
        }
    }

    #[inline]
    fn take(from: &[u8]) -> Self {
        let at = |index: usize| from.get(index * F::SIZE..).unwrap_or_default();
        core::array::from_fn(|index| F::take(at(index)))
    }
}

impl<const N: usize> Value for [u8; N] {
    type Bytes = [u8; N];
    const ZERO: [u8; N] = [0; N];
}

/// The hash of a name.
#[doc(hidden)]
pub const fn hash_of(name: &str) -> u32 {
    Crc::NEW.bytes(name.as_bytes()).value()
}

/// The hash of two things, one after the other.
#[doc(hidden)]
pub const fn join(first: u32, second: u32) -> u32 {
    Crc::NEW
        .bytes(&first.to_le_bytes())
        .bytes(&second.to_le_bytes())
        .value()
}

/// Makes a struct that can be the value of a [`State`](crate::domain::State): its fields are numbers,
/// arrays of them, or other such structs. The names of the fields and their types go into its hash.
///
/// ```
/// sinew_shm::value! {
///     /// Where the arm is.
///     #[derive(Clone, Copy, PartialEq, Debug)]
///     pub struct Pose {
///         /// Metres.
///         pub at: [f32; 3],
///         /// Microseconds since the start.
///         pub time: u64,
///     }
/// }
/// use sinew_shm::domain::{Plain, Value};
/// assert_eq!(Pose::SIZE, 20);
/// let pose = Pose { at: [1.0, 2.0, 3.0], time: 4 };
/// let mut bytes = Pose::ZERO;
/// pose.put(&mut bytes);
/// assert_eq!(Pose::take(&bytes), pose);
/// ```
#[macro_export]
macro_rules! value {
    (
        $(#[$about:meta])*
        $public:vis struct $name:ident {
            $($(#[$field_about:meta])* $field_public:vis $field:ident : $kind:ty),* $(,)?
        }
    ) => {
        $(#[$about])*
        $public struct $name {
            $($(#[$field_about])* $field_public $field: $kind,)*
        }

        impl $crate::domain::Plain for $name {
            const SIZE: usize = 0 $(+ <$kind as $crate::domain::Plain>::SIZE)*;
            const HASH: u32 = {
                let hash = $crate::domain::hash_of("struct");
                $(
                    let hash = $crate::domain::join(
                        $crate::domain::join(hash, $crate::domain::hash_of(stringify!($field))),
                        <$kind as $crate::domain::Plain>::HASH,
                    );
                )*
                hash
            };

            #[inline]
            fn put(&self, to: &mut [u8]) {
                let _ = &to;
                $(
                    self.$field.put(to);
                    let to = to
                        .get_mut(<$kind as $crate::domain::Plain>::SIZE..)
                        .unwrap_or_default();
                )*
                let _ = to;
            }

            #[inline]
            fn take(from: &[u8]) -> Self {
                $(
                    let $field = <$kind as $crate::domain::Plain>::take(from);
                    let from = from
                        .get(<$kind as $crate::domain::Plain>::SIZE..)
                        .unwrap_or_default();
                )*
                let _ = from;
                $name { $($field),* }
            }
        }

        impl $crate::domain::Value for $name {
            type Bytes = [u8; <$name as $crate::domain::Plain>::SIZE];
            const ZERO: Self::Bytes = [0; <$name as $crate::domain::Plain>::SIZE];
        }
    };
}

//! State channels: the latest value of each side, for who wants to know how things are and not what
//! happened meanwhile.
//!
//! Neither side ever waits for the other, or tries again, whatever the other does: the four copies of
//! H. R. Simpson ("Four-slot fully asynchronous communication mechanism", IEE Proceedings 137 E,
//! 1990). A value is whole: never part of one and part of another. Whoever else may read the memory
//! (an observer) can do so as well, and finds out if the value changed under it.

mod copies;
mod handle;
mod value;

pub(super) use copies::StateEnd;
pub use handle::State;
pub use value::{Plain, Value, hash_of, join};

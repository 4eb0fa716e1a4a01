//! Links between processes of one Linux machine, and with memory that a device or emulator shares.
//!
//! | module | what it is for |
//! |---|---|
//! | [`map`] | a range of a file, memfd or device in this process |
//! | [`region`] | a configured part of a file or of physical memory |
//! | [`memfd`] | sealed segments: fixed size, one writer |
//! | [`barrier`] | the asymmetric fence |
//!

pub mod barrier;
pub mod map;
pub mod memfd;
pub mod region;

pub use map::Mapping;
pub use memfd::Segment;
pub use region::Region;


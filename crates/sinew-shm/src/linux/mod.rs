//! Links between processes of one Linux machine, and with memory that a device or emulator shares.
//!
//! | module | what it is for |
//! |---|---|
//! | [`map`] | a range of a file, memfd or device in this process |
//! | [`region`] | a configured part of a file or of physical memory |
//! | [`memfd`] | sealed segments: fixed size, one writer |
//! | [`fds`] | one message with descriptors over a unix socket |
//! | [`exchange`] | two processes check each other and trade their segments |
//! | [`place`] | where a socket listens in the file system |
//! | [`bell`] | doorbells: socket byte, eventfd, futex; waiting with a time limit and notice of death |
//! | `record` | locks on bytes of a file, which the kernel frees when a process is gone |
//! | `role` | who is which side in a region |
//! | [`slots`] | one master and several remotes in one region |
//! | [`overlap`] | a core that runs is not written over |
//! | [`process`] | one side of a link in a process, made of all these |
//! | [`link`] | what a program holds: an end that can wait |
//!
//! Everything that waits takes a time limit ([`Deadline`]), and everything a peer sends is checked.

pub mod bell;
mod deadline;
pub mod exchange;
pub mod fds;
pub mod link;
pub mod map;
pub mod memfd;
pub mod overlap;
pub mod place;
pub mod process;
mod record;
pub mod region;
mod role;
pub mod slots;

pub use deadline::Deadline;
pub use link::Link;
pub use map::Mapping;
pub use memfd::Segment;
pub use region::Region;
pub use slots::Slots;

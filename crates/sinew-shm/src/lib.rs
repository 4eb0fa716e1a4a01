//! Shared memory between domains: blocks that are written once and read where they lie.
//!
//! | module | what it is for | who uses it |
//! |---|---|---|
//! | [`queue`] | packets from many producers to one consumer, in a static | `sinew::link::queue` |
//! | [`domain`] | links between domains: threads, processes, cores | `sinew::link::domain`, users |
//! | `local` (feature `std`) | both sides of such a link in one program | users, `sinew-io` |
//! | `linux` (feature) | such a link between Linux processes | users, `sinew-io` |
//! | [`bell`] | wakes one driver from anywhere | `sinew::link::queue` |
//! | [`lock`] | who may be a producer: threads, interrupt handlers, one context | users, who choose |
//! | `word`, `cell` | every access to shared words and bytes; loom checks it | the modules above |
//!
//! The local form ([`queue`]) lives inside one domain: threads, tasks and interrupt handlers of one
//! program. [`domain`] joins two, over memory that each writes a half of.
//! Shared words are written by one side each, with plain loads and stores; where several contexts
//! are one side (the producers of a queue), a [`lock::Lock`] makes them one writer. There is no
//! atomic read-modify-write, so it runs on cores that have none, and no heap.
#![no_std]

#[cfg(any(test, feature = "std", loom))]
extern crate std;

#[macro_use]
mod cell;
pub mod bell;
pub mod domain;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod linux;
#[cfg(all(feature = "std", not(loom)))]
pub mod local;
pub mod lock;
pub mod queue;
mod waiters;
mod word;

pub use bell::Bell;
#[cfg(feature = "critical-section")]
pub use lock::CriticalSectionLock;
#[cfg(feature = "std")]
pub use lock::StdLock;
pub use lock::{Lock, Unshared};
pub use queue::{Closed, Handle, Place, Queue, Receiver, Refused, Sender, Stats};
#[cfg(loom)]
#[doc(hidden)]
pub use word::{DOMAIN_MUTANTS, LOCK_MUTANTS, MESSAGE_MUTANTS, MUTANTS};
pub use word::{Line, Segment};

//! The asymmetric fence: one side pays for both.
//!
//! Two sides that each store a word and then load the other's (a sender that looks whether the
//! receiver sleeps, a receiver that looks once more before it sleeps) need a full fence in between.
//! The side that does this rarely may call [`heavy`] instead: it makes every thread of every
//! registered process on this machine execute a full fence. The side that does it often then needs
//! only to keep its compiler from reordering.
//!
//! Both conditions must hold, or the fences stay: the frequent side called [`register`] and it gave
//! true, and every call of [`heavy`] on the rare side gives true. The frequent side must know that
//! its peer will call it, and must trust it to: a peer that does not loses its own wake-ups only.
//! Cores with an image of their own never take part.

use rustix::thread::{MembarrierCommand, membarrier};

/// Lets [`heavy`] of other processes reach the threads of this one. False: the kernel cannot.
pub fn register() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// A full fence here and in every running thread of every registered process.
///
/// False: the kernel cannot, and nothing happened. Costs an interrupt on each other core that runs
/// such a thread.
#[must_use = "where it is false, there was no fence"]
pub fn heavy() -> bool {
    membarrier(MembarrierCommand::GlobalExpedited).is_ok()
}

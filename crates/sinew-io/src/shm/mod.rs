//! Links over shared memory: a channel of a domain link (`sinew_shm::domain`) carries the packets.
//!
//! | module | what it is for |
//! |---|---|
//! | [`config`] | what both sides of a link for calls have in common |
//! | [`threads`] | both sides in this program |

pub mod config;
pub mod threads;

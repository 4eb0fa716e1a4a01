//! Links over shared memory: a channel of a domain link (`sinew_shm::domain`) carries the packets.
//!
//! | module | what it is for |
//! |---|---|
//! | [`config`] | what both sides of a link for calls have in common |
//! | [`threads`] | both sides in this program |
//! | [`process`] | one side of a link to another process |
//! | `call_link` | what such a link is made with, and why there is none |
//! | `dial`, `greet` | `shm:PATH` as its client and as its server |
//! | `region` | `shm:FILE?doorbell=SOCKET`: memory that an emulator or another core shares |
//! | `waiter`, `spin` | how a thread waits |
//! | `watch` | how tasks do |
//! | `apart` | the halves for two threads |

mod apart;
pub(crate) mod call_link;
pub mod config;
pub(crate) mod dial;
pub(crate) mod greet;
pub mod process;
pub(crate) mod region;
mod spin;
pub mod threads;
mod waiter;
mod watch;

//! Sinew's domain links between two processes: sealed memfds that one side alone can write, sessions,
//! every word of the peer checked.

mod calls;
mod lend;
mod link;
mod mutual;
mod queue;
mod scalar;
mod typed;

pub use calls::QueueCalls;
pub use lend::LendMut;
pub use mutual::InPlace;
pub use queue::Queue;
pub use scalar::ScalarCall;
pub use typed::TypedCall;

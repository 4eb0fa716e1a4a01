//! Sinew's domain links between two processes: sealed memfds that one side alone can write, sessions,
//! every word of the peer checked.

mod calls;
mod link;
mod mutual;
mod typed;
mod untrusting;

pub use calls::QueueCalls;
pub use mutual::InPlace;
pub use typed::TypedCall;
pub use untrusting::Queue;

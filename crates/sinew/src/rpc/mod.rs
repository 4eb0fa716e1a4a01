//! Typed calls: pw_rpc's packets, a client and a server engine.
pub mod packet;

mod ids;
mod message;
mod status;

pub use ids::id;
pub use message::{Decode, Encode, Message, Method, MethodId, MethodKind, Raw};
pub use status::Status;

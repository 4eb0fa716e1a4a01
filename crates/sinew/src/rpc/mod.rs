//! Typed calls: pw_rpc's packets, a client and a server engine (the wire reference is
//! `docs/src/wire.md` in the repository).
//!
//! One unary call, from the generated client to the service and back:
//! 1. the client opens a call ([`Client::open`]) and encodes the request straight into the place
//!    that the link gave ([`ClientCall::request`]); the link sends it;
//! 2. the driver of the other side takes the packet up with a place for the answer in hand and
//!    gives both to [`Server::handle`];
//! 3. the engine finds the service by its id, generated code decodes the request and calls the
//!    handler, whose response is encoded into that place; the driver commits it;
//! 4. the client's driver gives the packet to [`Client::handle`], which names the call.
//!
//! Anything that takes longer is a deferred answer ([`Cx::defer`]): a [`Responder`] or a
//! [`Writer`] that points at a static [`Slot`] and sends through the link's port.
//!
//! # Versions of a message
//! Unknown fields are skipped and absent ones have their default, so an old client works with a
//! new service and the reverse, as long as field numbers keep their meaning.

#[cfg(feature = "micropb")]
pub mod micropb;
#[cfg(feature = "micropb")]
pub mod mock;
pub mod packet;
pub mod streams;

mod client;
mod handoff;
mod ids;
mod message;
mod reach;
mod schema;
mod server;
mod status;

pub use client::{
    CallError, Client, ClientCall, DEFAULT_TIMEOUT, Event, Inbox, OpenError, Overrun, Received,
    Stats as ClientStats,
};
pub use handoff::Handoff;
pub use ids::id;
pub use message::{Decode, Encode, Message, Method, MethodId, MethodKind, Raw};
pub use reach::{
    AsyncBidiStreaming, AsyncClientStreaming, AsyncServerStreaming, AsyncUnary, BidiStreaming,
    ClientStreaming, Direct, ServerStreaming, Unary, direct,
};
pub use schema::Schema;
pub use server::{
    AnswerError, Call, Channels, Cx, DEFAULT_LIFETIME, FromSlot, Input, Responder, Server, Service,
    Slot, Stats as ServerStats, Stop, StreamCx, StreamIn, Via, Writer,
};
pub use status::Status;

//! What only Sinew's driver can show with Zenoh's stack: lost links, lost datagrams, sleep, and what
//! it puts on the wire.

pub mod links;
mod loss;
mod wire;

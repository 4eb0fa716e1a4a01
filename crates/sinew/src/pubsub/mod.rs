//! Publish, subscribe and query: Zenoh 1.x on packet links.
//!
//! | module | what it is for | who uses it |
//! |---|---|---|
//! | [`session`] | the engine: one session with a router or a peer, on one link | drivers, firmware |
//! | [`keyexpr`] | key expressions: which are valid, which meet | `session`, applications |
//! | [`codec`] | every message as a plain struct: reading and writing, nothing else | `session` |
//!
//! A publisher, without heap:
//!
//! ```
//! use sinew::pubsub::session::{Config, Fixed, PublisherOptions, Session};
//! # use sinew::{link::Tx, pubsub::codec::Zid, time::Instant};
//! # fn demo(tx: &mut dyn Tx, now: Instant) -> Result<(), Box<dyn std::error::Error>> {
//! # let zid = Zid::new(b"sensor").unwrap();
//! let mut session = Session::new(Config::client(zid), Fixed::<1>::new());
//! let lamp = session.publisher("demo/lamp", PublisherOptions::DEFAULT)?;
//! session.open(now);
//! // ... when it is open:
//! let became = session.put(tx, lamp, b"on", now)?;
//! # Ok(()) }
//! ```

pub mod codec;
pub mod keyexpr;
pub mod session;

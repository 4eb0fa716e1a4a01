//! Publish, subscribe and query: Zenoh 1.x on packet links.
//!
//! | module | what it is for |
//! |---|---|
//! | [`codec`] | every message as a plain struct: reading and writing, nothing else |

pub mod codec;

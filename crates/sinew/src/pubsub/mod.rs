//! Publish, subscribe and query: Zenoh 1.x on packet links.
//!
//! | module | what it is for | who uses it |
//! |---|---|---|
//! | [`keyexpr`] | key expressions: which are valid, which meet | `session`, applications |
//! | [`codec`] | every message as a plain struct: reading and writing, nothing else | `session` |

pub mod codec;
pub mod keyexpr;

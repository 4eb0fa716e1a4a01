//! Rust from .proto files: messages of fixed capacity, and per service its trait and its clients.
//!
//! In the `main` of a `build.rs`:
//!
//! ```no_run
//! sinew_gen::build(&["proto/demo.proto"]);
//! ```
//!
//! and where the code is to be: `sinew::include_proto!("demo");`. The crate needs `sinew` with the
//! feature `micropb` and nothing else.
//!
//! | file | what it is for |
//! |---|---|
//! | `builder` | what the user says: files, include folders, where to |
//! | `schema` | .proto files to descriptors |
//! | `messages` | message types, by micropb-gen |
//! | `tidy` | what micropb-gen wrote, made readable |
//! | `service` | the code of services |
//! | `names` | names of Rust for names of a .proto |
#![forbid(unsafe_code)]

mod builder;
mod messages;
mod names;
mod schema;
mod service;
mod tidy;

pub use builder::{Builder, build};

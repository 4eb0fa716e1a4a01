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
//! Bounds of strings, bytes, repeated fields and maps come from `demo.options` beside `demo.proto`,
//! one rule per line (`demo.Log.text max_size:64`), or from `sinew/options.proto` in the .proto.
//!
//! | module | what it is for |
//! |---|---|
//! | `builder` | what the user says, and the run |
//! | `compile`, `sources` | .proto files to descriptors, and back to source lines |
//! | `select` | what code is made for |
//! | `options`, `bounds` | the capacity of every field that needs one |
//! | `check` | names, ids and types that cannot be |
//! | `messages`, `tidy`, `mend`, `accessors`, `paths` | message types, by micropb-gen, made readable and right |
//! | `embed` | the schema that a device keeps of itself |
//! | `schema`, `service`, `names` | the code of services |
//! | `output` | generated files, written or compared |
//! | `report` | mistakes with their source lines |
#![forbid(unsafe_code)]

mod accessors;
mod bounds;
mod builder;
mod check;
mod compile;
mod embed;
mod mend;
mod messages;
mod names;
mod options;
mod output;
mod paths;
mod report;
mod schema;
mod select;
mod service;
mod sources;
mod tidy;

pub use builder::{Builder, build};
pub use output::{Stale, write};
pub use report::{Mistake, Report};

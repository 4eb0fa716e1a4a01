//! What the generator makes of hard .proto files, compiled here and called by the tests.
#![no_std]
#![forbid(unsafe_code)]
#![allow(missing_docs)]

/// Every kind of field, in several packages.
pub mod features {
    sinew::include_proto!("features");
}

/// Two versions of one message.
pub mod versions {
    sinew::include_proto!("versions");
}

/// A .proto without a package.
pub mod rootless {
    sinew::include_proto!("rootless");
}

/// Names that Rust, its prelude, or the generated code use, too.
pub mod hostile {
    sinew::include_proto!("hostile");
}

//! The generator, for build time only: `.proto` in, readable Rust out.
#![forbid(unsafe_code)]

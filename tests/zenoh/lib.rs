//! Nothing: the tests of this package compare Sinew with Zenoh's own crates.

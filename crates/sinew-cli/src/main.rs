//! The `sinew` command: see `sinew --help`.
fn main() {}

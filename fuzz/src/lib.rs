//! The fuzz targets: what must hold for any input.
//!
//! Guided by coverage, on stable; what is found goes to the first folder, so that the committed
//! corpus stays small (nightly adds the address sanitizer: leave `-s none` out):
//! ```text
//! mkdir -p fuzz/target/found
//! cargo fuzz run -s none hdlc fuzz/target/found fuzz/corpus/hdlc -- -runs=1000000
//! ```
//! Without cargo-fuzz: mutations of the corpus from a fixed seed, and how many were run.
//! ```text
//! cargo run --release --bin hdlc -- 1000000
//! ```
//!
//! A new target is a module here, a file in `fuzz_targets` and a `[[bin]]` in Cargo.toml.

pub mod mutate;

mod client;
mod domain;
mod hdlc;
mod keyexpr;
mod observer;
mod packet;
mod script;
mod server;
mod session;
mod zenoh;

pub use client::client;
pub use domain::domain;
pub use hdlc::hdlc;
pub use keyexpr::keyexpr;
pub use observer::observer;
pub use packet::packet;
pub use server::server;
pub use session::session;
pub use zenoh::zenoh;

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// The main function of a target: libFuzzer's under cargo-fuzz, [`mutate::main`] otherwise.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::$name(data));
        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::mutate::main(stringify!($name), $crate::$name)
        }
    };
}

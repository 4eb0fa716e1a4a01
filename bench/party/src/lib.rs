//! One process of the publish and subscribe benchmark, whoever takes part.
//!
//! A contender implements [`Party`] and calls [`run`] with the words of its command line:
//!
//! ```text
//! publish | subscribe | ping | pong | router
//!     --path peer | router | shm   --endpoint tcp/127.0.0.1:7447
//!     --size BYTES   --batched yes | no   [--core N]   [--set NAME=VALUE]...
//! ```
//!
//! Where there is no router, the one who subscribes or answers listens at the endpoint, and the other
//! one connects. `run` prints `{"ready":1}` when the party is open, then takes orders from its standard
//! input, a line each, and answers with a line of JSON. It ends with its standard input.
//!
//! | role | order | answer |
//! |---|---|---|
//! | publish | `publish MS` | `sent`: all samples so far |
//! | publish | `pace RATE MS`: samples with the time in them | `sent` |
//! | subscribe | `begin` | `received`: all samples so far |
//! | subscribe | `end SENT MS`: waits so long for all that were sent | see [`Meter`] |
//! | ping | `ping MS` | percentiles of round trips, µs, and their `count` |
//!
//! Clocks, counts and loops are here, so that they are the same for all.
#![forbid(unsafe_code)]

mod meter;
mod options;
mod orders;
mod percentiles;
mod publish;

pub use meter::Meter;
pub use options::{Options, Path, Role};
pub use orders::run;

/// What goes wrong in a benchmark is told to its reader and nothing else.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Whoever takes part.
pub trait Party {
    /// A publisher, once somebody subscribes to it.
    fn publisher(options: &Options) -> Result<impl Publisher>;

    /// Subscribes, and has every sample's payload taken from then on, in a thread of its own. What is
    /// returned is kept until the end. Returns when a publisher may connect.
    fn subscriber(
        options: &Options,
        take: impl FnMut(&[u8]) + Send + Sync + 'static,
    ) -> Result<impl Sized>;

    /// One who sends a sample and waits for the same in return, once the other one answers.
    fn pinger(options: &Options) -> Result<impl Pinger>;

    /// Sends every sample back, in a thread of its own. Returns when a pinger may connect.
    fn ponger(options: &Options) -> Result<impl Sized>;

    /// What all others connect to, if the contender has that.
    fn router(_: &Options) -> Result<impl Sized> {
        Err::<(), _>("this party is no router".into())
    }
}

/// Publishes on a key that is declared.
pub trait Publisher {
    /// Publishes a payload of `size` bytes that `write` writes, however much it has to wait. `write`
    /// expects zeros or an earlier payload, and writes all that differs from it.
    fn put(&mut self, size: usize, write: impl FnOnce(&mut [u8])) -> Result<()>;

    /// Sends what still waits for others to come along.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Makes round trips.
pub trait Pinger {
    /// Sends a payload and waits until it is back.
    fn round(&mut self, payload: &[u8]) -> Result<()>;
}

//! `sinew pub`, `sinew sub` and `sinew get`: nodes in the network of Zenoh.
//!
//! | module | what it is for |
//! |---|---|
//! | `place` | where the other side is, and nodes that stay in touch with it |
//! | `key` | key expressions that a user wrote |
//! | `show` | samples as text and as JSON |
//! | `sequence` | gaps between samples that carry a number |

pub mod get;
mod key;
mod place;
pub mod publish;
mod sequence;
mod show;
pub mod subscribe;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::failure::Failure;

/// Whether Ctrl-C was pressed.
#[derive(Clone, Default)]
struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on Ctrl-C is only noted.
    fn listen() -> Result<Interrupt, Failure> {
        let noted = Interrupt::default();
        let flag = noted.0.clone();
        ctrlc::set_handler(move || flag.store(true, Ordering::Release))
            .map_err(|error| Failure::internal("cannot listen for Ctrl-C", error))?;
        Ok(noted)
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A time above zero.
fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be above zero: give e.g. 100ms or 5s".into()),
        Ok(span) => Ok(span),
        Err(error) => Err(format!("{error}: give e.g. 100ms, 5s or 2min")),
    }
}

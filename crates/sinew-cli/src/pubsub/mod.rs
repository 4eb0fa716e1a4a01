//! `sinew pub`, `sub`, `get` and `reply`: nodes in the network of Zenoh.
//!
//! | module | what it is for |
//! |---|---|
//! | `place` | where the other side is, and nodes that stay in touch with it |
//! | `key` | key expressions that a user wrote |
//! | `show` | samples as text and as JSON |
//! | `sequence` | gaps between samples that carry a number |

pub mod get;
pub mod key;
mod place;
pub mod publish;
pub mod reply;
mod sequence;
mod show;
pub mod subscribe;

pub use place::batches;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sinew::pubsub::codec::Encoding;
use sinew::rpc::Status;
use sinew_io::pubsub::Options;

use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::output::thousands;

/// Whether Ctrl-C was pressed.
#[derive(Clone, Default)]
struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on Ctrl-C is only noted.
    fn listen() -> Result<Interrupt, Failure> {
        let noted = Interrupt::default();
        let flag = noted.0.clone();
        at_ctrl_c(move || flag.store(true, Ordering::Release))?;
        Ok(noted)
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The longest words about an encoding that the wire carries.
const SCHEMA: usize = 255;

fn encoding(text: &str) -> Result<String, String> {
    match Encoding::parse(text).schema.len() {
        0..=SCHEMA => Ok(text.into()),
        long => Err(format!(
            "its words have {long} bytes, {SCHEMA} are possible: shorten them"
        )),
    }
}

/// What is in a file; - is standard input.
fn payload(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| {
        Failure::usage(
            format!("cannot read {}: {error}", path.display()),
            "check the path; - is standard input",
        )
    })
}

/// How long what was sent may take to arrive.
fn linger(meet: &place::Meet) -> Duration {
    match meet.loses() {
        true => Duration::ZERO,
        false => Duration::from_secs(365 * 86_400),
    }
}

fn too_large(bytes: usize) -> Failure {
    let limit = Options::client().largest as u64;
    Failure::outcome(
        Status::OUT_OF_RANGE,
        format!("a value of {} bytes is too large", thousands(bytes as u64)),
        format!(
            "send it in parts: a message has at most {} MiB here, with its key and all that goes \
             with it",
            limit >> 20
        ),
    )
}

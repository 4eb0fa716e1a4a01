//! Who takes part.

use std::path::{Path as FilePath, PathBuf};
use std::process::Command;

use sinew_bench_party::Path;

use super::case::{Case, Measure};
use crate::Result;

/// The program that a contender's parties are.
enum Program {
    /// This one, with the name of a party.
    Own(&'static str),
    /// `bench/zenoh-peer`.
    Zenoh,
}

/// Somebody who takes part.
pub struct Contender {
    pub name: &'static str,
    program: Program,
    /// `--set` on its command line.
    settings: &'static [&'static str],
    /// `--set` of the router between its parties.
    router: &'static [&'static str],
    /// Of what it takes part in.
    takes: fn(&Case) -> bool,
    pub note: &'static str,
}

pub const SOCKET: &str = "bare socket";
pub const ZENOH: &str = "zenoh";
pub const SAME: &str = "zenoh, one payload";
pub const LOW_LATENCY: &str = "zenoh, low latency";
pub const SINEW: &str = "sinew";

/// Everybody, in the order of the results.
///
/// Another one is a line here and a file in [`super::parties`].
pub const ALL: &[Contender] = &[
    Contender {
        name: SOCKET,
        program: Program::Own("socket"),
        settings: &[],
        router: &[],
        takes: |case| match case.measure {
            Measure::Wire => false,
            // It has no clock that ends a batch.
            Measure::Latency(_) => !case.batched,
            _ => case.path == Path::Peer,
        },
        note: "TCP, the same bytes, nothing else",
    },
    Contender {
        name: ZENOH,
        program: Program::Zenoh,
        settings: &[],
        router: &[],
        takes: |case| case.path != Path::Shm,
        note: "Rust, crates.io, 16 batches queued; each payload is new",
    },
    Contender {
        name: SAME,
        program: Program::Zenoh,
        settings: &["payload=same"],
        router: &[],
        takes: |case| case.path != Path::Shm && case.measure.is_rate(),
        note: "one payload made once and shared by all samples, as Zenoh measures itself",
    },
    Contender {
        name: LOW_LATENCY,
        program: Program::Zenoh,
        settings: &["transport=lowlatency"],
        // Each link is of low latency if both of its ends are.
        router: &["transport=lowlatency"],
        // It cuts no fragments.
        takes: |case| case.path != Path::Shm && !case.batched && case.size < 65_000,
        note: "its low-latency transport: no queue, no sequence numbers",
    },
    Contender {
        name: SINEW,
        program: Program::Own("sinew"),
        settings: &[],
        router: &[],
        takes: |_| true,
        note: "each payload is written in the batch it leaves in; 1 ms of batching",
    },
];

impl Contender {
    /// Whether it takes part.
    pub fn takes(&self, case: &Case) -> bool {
        (self.takes)(case)
    }

    /// Its program with what comes before the role.
    pub fn command(&self) -> Result<Command> {
        match self.program {
            Program::Own(party) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["pubsub-party", party]);
                Ok(command)
            }
            Program::Zenoh => Ok(zenoh()?),
        }
    }

    /// What comes after it for this contender alone.
    pub fn settings(&self) -> impl Iterator<Item = &'static str> {
        set(self.settings)
    }

    /// The same of the router.
    pub fn router(&self) -> impl Iterator<Item = &'static str> {
        set(self.router)
    }
}

fn set(settings: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    settings.iter().flat_map(|setting| ["--set", setting])
}

/// `zenoh-peer`, which is also everybody's router.
pub fn zenoh() -> Result<Command> {
    let program = zenoh_peer();
    if !program.exists() {
        return Err("bench/zenoh-peer is not built; `make bench BENCH=pubsub` builds it".into());
    }
    let mut command = Command::new(program);
    // Two cores: more threads that receive only take turns on them.
    command.env("ZENOH_RUNTIME", "(rx: (worker_threads: 1))");
    Ok(command)
}

fn zenoh_peer() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("zenoh-peer/target/release/zenoh-peer")
}

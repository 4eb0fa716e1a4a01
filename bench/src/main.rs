//! Benchmarks and instruction gates.
//!
//! * `sinew-bench rpc`: the talk's experiment (two threads on one core, ring with mutex and
//!   condition variable), the call without a hop, `sinew call` from start to exit, and the
//!   instruction counts; writes `bench/results/rpc.csv`.
//! * `sinew-bench shm`: shared memory between two processes and its peers; writes
//!   `bench/results/shm.csv`. `--quick` takes 20 s and writes nothing, `--only TEXT` as well and takes
//!   only the cases with the text in their names, `--calls` measures only single calls.
//!   `sinew-bench shm-child` is its second process, `sinew-bench shm-calls NAME N` what callgrind runs.
//! * `sinew-bench pubsub`: publish and subscribe against the Rust Zenoh and a bare socket; writes
//!   `bench/results/pubsub.csv` and a plot. `--only TEXT` takes only the cases with the text in their
//!   names, `--seconds N` about so long; with either it writes nothing. `sinew-bench pubsub-party NAME ...`
//!   is one of its processes.
//! * `sinew-bench counts [--gate]`: instructions per call and per byte, and those of `steps`, by
//!   callgrind; with `--gate` it fails above the limits of [`counts::CASES`] and of the steps.
//! * `sinew-bench steps`: instructions of each step of a domain link, as a rule and at worst.
//! * `sinew-bench case NAME N`, `sinew-bench step NAME N`: runs one counted case N times; what
//!   callgrind runs.
#![forbid(unsafe_code)]

use std::process::ExitCode;

mod batched;
mod cases;
mod counts;
mod csv;
mod nohop;
mod pubsub;
mod ring;
mod shm;
mod startup;
mod steps;
mod talk;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["rpc"] => rpc(),
        ["shm"] => shm(shm::Effort::FULL).and_then(|rows| csv::write("shm", &rows)),
        ["shm", "--quick"] => shm(shm::Effort::QUICK).map(drop),
        ["shm", "--only", cases] => {
            shm::run(shm::Effort::QUICK, cases).map(|rows| shm::print(&rows))
        }
        ["shm", "--calls"] => shm::per_call().map(|rows| shm::print_calls(&rows)),
        ["shm-calls", name, n] => shm::calls(name, n.parse().unwrap_or(0)),
        ["shm-child"] => shm::child(),
        ["pubsub", effort @ ..] => pubsub::run(effort),
        ["pubsub-party", name, party @ ..] => return pubsub::party(name, party),
        ["counts"] => all_counts(false),
        ["counts", "--gate"] => all_counts(true),
        ["steps"] => steps::check(false),
        ["step", name, n] => steps::run(name, n.parse().unwrap_or(0)),
        ["case", name, n] => cases::run(name, n.parse().unwrap_or(0)),
        _ => Err(
            "usage: sinew-bench rpc | shm [--quick] | pubsub | counts [--gate] | steps | case NAME N".into(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sinew-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What goes wrong in a benchmark is told to its reader and nothing else.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn rpc() -> Result<()> {
    let mut rows = talk::run()?;
    rows.extend(nohop::run());
    rows.extend(startup::run()?);
    csv::print(&rows);
    rows.extend(counts::run(false)?);
    csv::write("rpc", &rows)
}

fn all_counts(gate: bool) -> Result<()> {
    let counts = counts::run(gate);
    // Both are shown, whatever the first says.
    let steps = steps::check(gate);
    counts?;
    steps
}

fn shm(effort: shm::Effort) -> Result<Vec<csv::Row>> {
    let mut rows = shm::run(effort, "")?;
    shm::print(&rows);
    let calls = shm::per_call()?;
    shm::print_calls(&calls);
    rows.extend(calls);
    Ok(rows)
}

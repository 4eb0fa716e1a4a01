//! Instructions by callgrind: the same number in every run, whatever else the machine does.
//!
//! Each case runs under callgrind twice, for N and 2 N rounds; the difference is what N rounds
//! take, without start-up.

use std::process::Command;

use crate::Result;
use crate::csv::{self, Row};

/// One counted case.
pub struct Case {
    /// What `sinew-bench case` calls it.
    pub name: &'static str,
    /// What it measures.
    pub what: &'static str,
    /// The unit of the figure.
    pub unit: &'static str,
    /// Rounds of the first run.
    pub rounds: u64,
    /// Units in one round.
    pub units: u64,
    /// The gate, in instructions per unit, where there is one.
    pub limit: Option<f64>,
}

/// Every case with its gate.
pub const CASES: [Case; 8] = [
    Case {
        name: "rpc",
        what: "typed call, no hop, both sides",
        unit: "instructions/call",
        rounds: 2_000,
        units: 1,
        limit: Some(1_000.0),
    },
    Case {
        name: "rpc-queue",
        what: "the same through a block queue each way, no lock (loopback)",
        unit: "instructions/call",
        rounds: 2_000,
        units: 1,
        limit: Some(1_150.0),
    },
    Case {
        name: "rpc-queue-locked",
        what: "the same through queues that threads may share (std mutex)",
        unit: "instructions/call",
        rounds: 2_000,
        units: 1,
        limit: None,
    },
    Case {
        name: "rpc-threads",
        what: "the same with the drivers of sinew-io, two threads together",
        unit: "instructions/call",
        rounds: 2_000,
        units: 1,
        limit: None,
    },
    Case {
        name: "pubsub-batch",
        what: "8 bytes published into a batch, no driver",
        unit: "instructions/sample",
        rounds: 10_000,
        units: 1,
        limit: Some(150.0),
    },
    Case {
        name: "pubsub-run",
        what: "8 bytes taken in from a batch, no driver",
        unit: "instructions/sample",
        rounds: 10_000,
        units: 1,
        limit: Some(55.0),
    },
    Case {
        name: "hdlc-encode",
        what: "HDLC frame of 512 mixed bytes, encode",
        unit: "instructions/byte",
        rounds: 500,
        units: crate::cases::HDLC_BYTES as u64,
        limit: Some(12.0),
    },
    Case {
        name: "hdlc-decode",
        what: "HDLC frame of 512 mixed bytes, decode",
        unit: "instructions/byte",
        rounds: 500,
        units: crate::cases::HDLC_BYTES as u64,
        limit: Some(15.0),
    },
];

/// Counts every case; with `gate`, fails where one is above its limit.
pub fn run(gate: bool) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut above = Vec::new();
    for case in &CASES {
        let count = |rounds: u64| callgrind(&["case", case.name, &rounds.to_string()], &[]);
        let once = count(case.rounds)?;
        let twice = count(2 * case.rounds)?;
        let per_unit = twice.saturating_sub(once) as f64 / (case.rounds * case.units) as f64;
        let mut note = case.what.to_string();
        if let Some(limit) = case.limit {
            note += &format!("; limit {limit}");
            if per_unit > limit {
                above.push(format!("{}: {per_unit:.1} > {limit}", case.name));
            }
        }
        rows.push(csv::row(
            case.name,
            "instructions",
            per_unit,
            case.unit,
            &note,
        ));
    }
    csv::print(&rows);
    if gate && !above.is_empty() {
        return Err(format!("above the limit: {}", above.join(", ")).into());
    }
    Ok(rows)
}

/// Instructions of a whole run of this program with `arguments`, or of what callgrind's `options`
/// make it collect.
pub fn callgrind(arguments: &[&str], options: &[&str]) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(std::env::current_exe()?)
        .args(arguments)
        .output()
        .map_err(|error| format!("missing capability: valgrind ({error})"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{arguments:?} failed under callgrind:\n{text}").into());
    }
    let collected = text
        .lines()
        .find_map(|line| line.split("Collected :").nth(1))
        .ok_or("callgrind printed no count")?;
    Ok(collected.trim().parse()?)
}

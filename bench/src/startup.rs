//! `sinew call` from start to exit, against `sinew serve` on this machine.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::Result;
use crate::csv::{Row, spread};

const RUNS: usize = 41;

/// Times whole runs of the tool, beside a run that only prints its version.
pub fn run() -> Result<Vec<Row>> {
    let tool = std::env::current_exe()?.with_file_name("sinew");
    if !tool.exists() {
        return Err("missing: the sinew binary beside this one (make bench builds it)".into());
    }
    let mut server = Served(
        Command::new(&tool)
            .args(["serve", "tcp:127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let stdout = server.0.stdout.take().ok_or("no output of sinew serve")?;
    let mut ready = String::new();
    BufReader::new(stdout).read_line(&mut ready)?;
    let endpoint = ready
        .split_whitespace()
        .find(|word| word.starts_with("tcp:"))
        .ok_or("sinew serve names no endpoint")?
        .to_string();

    let (mut calls, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let call = ["call", &endpoint, "demo.Cache/GetValue", "{}"];
        calls.push(whole_run(Command::new(&tool).args(call))?);
        idle.push(whole_run(Command::new(&tool).arg("--version"))?);
    }
    let note = format!("start to exit; {RUNS} interleaved runs");
    Ok(vec![
        spread("sinew call over tcp", "time", calls, "ms", &note),
        spread("sinew --version", "time", idle, "ms", &note),
    ])
}

fn whole_run(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status()?;
    let elapsed = start.elapsed().as_secs_f64() * 1_000.0;
    if !status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(elapsed)
}

/// A server that ends with the benchmark.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

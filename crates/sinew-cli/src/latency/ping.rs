//! `sinew ping`: one small call after another.

use std::time::{Duration, Instant};

use serde_json::json;
use sinew::rpc::Status;
use sinew_io::Client;

use super::times::{self, Times};
use super::{Came, ECHO, came, interrupted, nobody, request, size, tell_refused};
use crate::connection;
use crate::endpoint::At;
use crate::failure::Failure;
use crate::output;
use crate::span;

/// Measure how long a small call takes, and whether any is lost.
///
/// Works with any pw_rpc server: one that has pw.rpc.Benchmark echoes, any other says that it has not. Ctrl-C ends
/// it and shows the times.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// How many calls; without it, until Ctrl-C
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// From one call to the next
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = span::any)]
    interval: Duration,
    /// Bytes that go there and come back
    #[arg(short, long, value_name = "BYTES", default_value = "16", value_parser = size)]
    size: usize,
    /// How long an answer may take; what takes longer is lost
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::above_zero)]
    timeout: Duration,
}

const EXAMPLES: &str = "Examples:
  sinew ping serial:/dev/ttyUSB0?baud=921600
  sinew ping tcp:localhost:33000 --count 1000 --interval 1ms";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let request = request(args.size)?;
    let link = connection::open(&endpoint, None)?;
    let client = Client::new(link, endpoint.channel);
    let stop = interrupted()?;
    let (mut times, mut sent, mut lost) = (Times::new(), 0, 0);
    let mut response = Vec::new();
    let mut is_refused = false;
    let mut next = Instant::now();
    while args.count.is_none_or(|count| sent < count) {
        let start = Instant::now();
        let result = client.unary_raw(ECHO, &request, &mut response, args.timeout);
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        sent += 1;
        let came = came(result, &client, &endpoint)?;
        if matches!(came, Came::Refused) && !std::mem::replace(&mut is_refused, true) {
            tell_refused(&endpoint);
        }
        let is_lost = matches!(came, Came::Nothing);
        match is_lost {
            true => lost += 1,
            false => times.add(nanos),
        }
        let line = match (output::is_json(), is_lost) {
            (true, true) => json!({ "call": sent, "lost": true }).to_string(),
            (true, false) => json!({ "call": sent, "ns": nanos }).to_string(),
            (false, true) => format!("{sent}: no answer"),
            (false, false) => format!("{sent}: {}", times::span(nanos)),
        };
        if !output::line_of_many(&line)? {
            return Ok(());
        }
        next += args.interval;
        let left = match args.count {
            Some(count) if sent == count => Duration::ZERO,
            _ => next.saturating_duration_since(Instant::now()),
        };
        if stop.recv_timeout(left).is_ok() {
            break;
        }
    }
    let answered = sent - lost;
    if output::is_json() {
        let whole = json!({
            "sent": sent, "answered": answered, "lost": lost, "times": times.json(),
            "echoed": (answered > 0).then_some(!is_refused),
        });
        output::line(&whole.to_string())?;
    } else {
        output::line(&format!("\n{sent} sent, {answered} answered, {lost} lost"))?;
        if times.count() > 0 {
            output::line(&times.line())?;
            output::line(times.picture().trim_end())?;
        }
    }
    match (answered, lost) {
        (_, 0) => Ok(()),
        (0, _) => Err(nobody(&client, &endpoint, args.timeout)),
        _ => Err(Failure::outcome(
            Status::DATA_LOSS,
            format!("{lost} of {sent} calls had no answer"),
            "give --timeout a longer time, or look at the line",
        )),
    }
}

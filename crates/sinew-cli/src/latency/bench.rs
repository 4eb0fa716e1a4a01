//! `sinew bench`: as many small calls as the server and the link take.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use serde_json::json;
use sinew::rpc::{CallError, Status};
use sinew_io::Client;
use sinew_io::client::CallEvent;

use super::times::Times;
use super::{Came, ECHO, came, interrupted, nobody, request, size, tell_refused};
use crate::connection;
use crate::endpoint::At;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::span;

/// The most calls in flight.
const CALLS: usize = 64;
/// What waits for one of them.
const INBOX: usize = 1024;

/// Measure how many small calls a server takes in a second, with so many of them on their way.
///
/// Works with any pw_rpc server, as `sinew ping` does.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// How many calls are on their way at a time, up to 64
    #[arg(short = 'n', long, value_name = "N", default_value = "1", value_parser = RangedU64ValueParser::<usize>::new().range(1..=CALLS as u64))]
    in_flight: usize,
    /// How long it is measured
    #[arg(long = "for", value_name = "TIME", id = "duration", default_value = "5s", value_parser = span::above_zero)]
    duration: Duration,
    /// Bytes that go there and come back
    #[arg(short, long, value_name = "BYTES", default_value = "16", value_parser = size)]
    size: usize,
    /// How long an answer may take; what takes longer is lost
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::above_zero)]
    timeout: Duration,
}

const EXAMPLES: &str = "Examples:
  sinew bench tcp:localhost:33000 --in-flight 16
  sinew bench qemu:firmware/target/thumbv7m-none-eabi/release/shared";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let request = request(args.size)?;
    let link = connection::open(&endpoint, None)?;
    let client: Client<_, CALLS, INBOX> = Client::with_capacities(link, endpoint.channel);
    let stop = interrupted()?;
    let shown = Progress::steps("measuring", args.duration.as_millis() as u64);
    let mut times = Times::new();
    let (mut lost, mut is_refused) = (0, false);
    let mut flying = VecDeque::new();
    let mut response = Vec::new();
    let before = client.traffic();
    let start = Instant::now();
    let mut is_ending = false;
    loop {
        is_ending |= start.elapsed() >= args.duration || stop.try_recv().is_ok();
        while !is_ending && flying.len() < args.in_flight {
            let sent = Instant::now();
            let call = client.start(ECHO, &request, args.timeout);
            let call = call.map_err(|error| match came(Err(error), &client, &endpoint) {
                Err(failure) => failure,
                Ok(_) => Failure::internal("a call cannot be started", error),
            })?;
            flying.push_back((sent, call));
        }
        let Some((sent, call)) = flying.pop_front() else {
            break;
        };
        let result = match call.next_event(&mut response, args.timeout) {
            Ok(Some(CallEvent::Completed(Status::OK, ()))) => Ok(()),
            Ok(Some(CallEvent::Completed(status, ()))) => Err(CallError::Status(status)),
            Ok(_) => Err(CallError::DeadlineExceeded),
            Err(error) => Err(error),
        };
        match came(result, &client, &endpoint)? {
            Came::Nothing => lost += 1,
            Came::Refused if !std::mem::replace(&mut is_refused, true) => tell_refused(&endpoint),
            Came::Refused | Came::Back => {
                let nanos = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
                times.add(nanos);
            }
        }
        shown.bar().set_position(start.elapsed().as_millis() as u64);
    }
    let seconds = start.elapsed().as_secs_f64();
    drop(shown);
    let traffic = client.traffic();
    let calls = times.count();
    if calls == 0 && lost > 0 {
        return Err(nobody(&client, &endpoint, args.timeout));
    }
    let per_second = calls as f64 / seconds;
    let bytes = (traffic.bytes_in + traffic.bytes_out) - (before.bytes_in + before.bytes_out);
    if output::is_json() {
        let whole = json!({
            "calls": calls, "lost": lost, "seconds": seconds, "calls_per_second": per_second,
            "in_flight": args.in_flight, "size": args.size, "bytes": bytes,
            "times": times.json(), "echoed": (calls > 0).then_some(!is_refused),
        });
        return output::line(&whole.to_string());
    }
    output::line(&format!(
        "{} calls a second, {} in flight: {} calls in {seconds:.2} s, {lost} lost, {:.1} bytes a call",
        output::thousands(per_second as u64),
        args.in_flight,
        output::thousands(calls),
        bytes as f64 / calls.max(1) as f64,
    ))?;
    if calls > 0 {
        output::line(&times.line())?;
        output::line(times.picture().trim_end())?;
    }
    Ok(())
}

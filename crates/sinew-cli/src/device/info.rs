//! `sinew info`: who a device is, and what it has counted.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sinew::rpc::Status;
use sinew_io::Endpoint;

use super::times::percentile;
use super::{Counter, Device, Observed, State, Trouble};
use crate::connection::unreachable;
use crate::endpoint::At;
use crate::failure::Failure;
use crate::output::{self, thousands};

/// Show what a device is, since when it runs, and what it has counted.
///
/// The device says it by itself where it serves sinew.Device.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    at: At,
}

const EXAMPLES: &str = "Examples:
  sinew info tcp:localhost:33000
  sinew info serial:/dev/ttyUSB0?baud=921600 --json";

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let link = sinew_io::open(&endpoint).map_err(|error| unreachable(&endpoint, None, &error))?;
    let mut device = Device::new(link, &endpoint);
    let state = device
        .ask()
        .map_err(|trouble| failed(&device, &endpoint, &trouble))?;
    match output::is_json() {
        true => output::line(&as_json(&endpoint, &state).to_string()),
        false => output::line(page(&endpoint, &state).trim_end()),
    }
}

fn failed(device: &Device, endpoint: &Endpoint, trouble: &Trouble) -> Failure {
    let at = &endpoint.address;
    if let Some(failure) = device.silence(trouble) {
        return failure;
    }
    match trouble {
        Trouble::Silent => Failure::outcome(
            Status::NOT_FOUND,
            format!("{at} does not say what it is: it has no sinew.Device"),
            "a server of Sinew says it where sinew_services::device::Observed stands around its services; `sinew list` \
             says what it serves",
        ),
        Trouble::Call(error) => Failure::outcome(
            error.status(),
            format!("{at} could not be asked what it is: {error}"),
            "look at the device and the line, then ask again",
        ),
        Trouble::Wrong(what) => Failure::outcome(
            Status::DATA_LOSS,
            format!("{at} {what}"),
            "build its image again: device and tool are of different releases, or the line is damaged",
        ),
    }
}

fn page(endpoint: &Endpoint, state: &State) -> String {
    let about = &state.about;
    let words = [&about.name, &about.version, &about.build].map(String::as_str);
    let title = words.into_iter().filter(|word| !word.is_empty());
    let title = title.collect::<Vec<_>>().join(" ");
    let mut page = format!("{}\n", bold(&title));
    page += &format!("{endpoint} · up {}\n", span(state.uptime));
    if !state.methods.is_empty() {
        page += &format!("\n{}", methods(&state.methods));
    }
    page + &format!("\n{}", counters(&state.counters))
}

fn methods(all: &[Observed]) -> String {
    let head = [
        "method",
        "calls",
        "errors",
        "p50",
        "p99",
        "bytes in",
        "bytes out",
    ];
    let rows = all.iter().map(|method| {
        let time = |share| {
            let bound = percentile(&method.times, share);
            bound.map_or("-".into(), |bound| bound.to_string())
        };
        [
            method.name.clone(),
            thousands(method.calls),
            thousands(method.errors),
            time(0.5),
            time(0.99),
            thousands(method.bytes_in),
            thousands(method.bytes_out),
        ]
    });
    table(head, rows.collect())
}

/// Groups in which nothing was counted take one line.
fn counters(all: &[Counter]) -> String {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for group in groups(all) {
        let of_group = all.iter().filter(|counter| counter.group == group);
        let counted: Vec<_> = of_group.filter(|counter| counter.value > 0).collect();
        if counted.is_empty() {
            rows.push([group.into(), "nothing".into(), String::new()]);
        }
        for (at, counter) in counted.into_iter().enumerate() {
            let group = if at == 0 { group } else { "" };
            rows.push([group.into(), counter.name.clone(), thousands(counter.value)]);
        }
    }
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)].map(|width| width.max(7));
    let head = ["counted", "", ""];
    let mut text = line(&head, &widths, &[false, false, true]);
    text += &rule(&widths);
    for row in &rows {
        text += &line(
            &row.each_ref().map(String::as_str),
            &widths,
            &[false, false, true],
        );
    }
    text
}

/// In the order in which they come.
pub fn groups(all: &[Counter]) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for counter in all {
        if !groups.contains(&counter.group.as_str()) {
            groups.push(&counter.group);
        }
    }
    groups
}

/// The first column is text, the others are numbers.
fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let widths: Vec<usize> = (0..N)
        .map(|at| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain([head[at].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let is_number: Vec<bool> = (0..N).map(|at| at > 0).collect();
    let mut text = line(&head, &widths, &is_number) + &rule(&widths);
    for row in &rows {
        text += &line(&row.each_ref().map(String::as_str), &widths, &is_number);
    }
    text
}

fn line(cells: &[&str], widths: &[usize], is_number: &[bool]) -> String {
    let cells = cells.iter().zip(widths).zip(is_number);
    let padded: Vec<String> = cells
        .map(|((cell, width), is_number)| match is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        })
        .collect();
    padded.join("  ").trim_end().to_owned() + "\n"
}

fn rule(widths: &[usize]) -> String {
    let width = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
    "─".repeat(width) + "\n"
}

fn bold(text: &str) -> String {
    match output::has_colour() {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.into(),
    }
}

/// In whole seconds, of which the largest two units are shown: `3 h 12 min`.
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [
        ("d", 86_400, 365_000_000),
        ("h", 3_600, 24),
        ("min", 60, 60),
        ("s", 1, 60),
    ];
    let mut words = units
        .into_iter()
        .map(|(unit, size, of)| (seconds / size % of, unit))
        .skip_while(|(count, unit)| *count == 0 && *unit != "s");
    let words = words
        .by_ref()
        .take(2)
        .map(|(count, unit)| format!("{count} {unit}"));
    words.collect::<Vec<_>>().join(" ")
}

fn as_json(endpoint: &Endpoint, state: &State) -> Value {
    let mut counters = Map::new();
    for counter in &state.counters {
        let group = counters.entry(&counter.group).or_insert_with(|| json!({}));
        group[&counter.name] = json!(counter.value);
    }
    let method = |method: &Observed| {
        let time = |share| percentile(&method.times, share).and_then(|bound| bound.micros());
        json!({
            "name": method.name,
            "calls": method.calls,
            "errors": method.errors,
            "bytes_in": method.bytes_in,
            "bytes_out": method.bytes_out,
            "p50_below_us": time(0.5),
            "p90_below_us": time(0.9),
            "p99_below_us": time(0.99),
            "times": method.times,
        })
    };
    let methods: Vec<_> = state.methods.iter().map(method).collect();
    json!({
        "endpoint": endpoint.to_string(),
        "name": state.about.name,
        "version": state.about.version,
        "build": state.about.build,
        "uptime_s": state.uptime.as_secs_f64(),
        "counters": counters,
        "methods": methods,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        let spans = [0, 59, 60, 3_599, 3_600, 90_061, 40_000_000].map(Duration::from_secs);
        assert_eq!(
            spans.map(span),
            [
                "0 s",
                "59 s",
                "1 min 0 s",
                "59 min 59 s",
                "1 h 0 min",
                "1 d 1 h",
                "462 d 23 h"
            ]
        );
    }
}

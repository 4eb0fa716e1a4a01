//! What a party is told, and what it answers.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::publish::Source;
use crate::{Meter, Options, Party, Pinger, Publisher, Result, Role, percentiles};

/// Runs a party with the words of its command line, until its standard input ends.
pub fn run<P: Party>(words: impl IntoIterator<Item = String>) -> ExitCode {
    match Options::read(words).and_then(|options| serve::<P>(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("party: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve<P: Party>(options: &Options) -> Result<()> {
    if let Some(core) = options.core {
        // Threads inherit it.
        let mut cores = CpuSet::new();
        cores.set(core);
        sched_setaffinity(None, &cores)?;
    }
    match options.role {
        Role::Publish => {
            let mut source = Source::new(P::publisher(options)?, options.size);
            obey(|order| publishes(&mut source, order))
        }
        Role::Subscribe => {
            // Whoever sends the same payload over and over says so.
            let numbered = options.setting("payload") != Some("same");
            let (meter, take) = Meter::new(options.size, numbered);
            let _open = P::subscriber(options, take)?;
            obey(|order| match order {
                ["begin"] => Ok(format!("{{\"received\":{}}}", meter.begin())),
                ["end", sent, patience] => Ok(meter.end(sent.parse()?, time(patience)?)),
                _ => unknown(order),
            })
        }
        Role::Ping => {
            let mut pinger = P::pinger(options)?;
            let payload = vec![7; options.size];
            obey(|order| match order {
                ["ping", time_of] => round_trips(&mut pinger, &payload, time(time_of)?),
                _ => unknown(order),
            })
        }
        Role::Pong => {
            let _open = P::ponger(options)?;
            obey(unknown)
        }
        Role::Router => {
            let _open = P::router(options)?;
            obey(unknown)
        }
    }
}

fn publishes<P: Publisher>(source: &mut Source<P>, order: &[&str]) -> Result<String> {
    match order {
        ["publish", time_of] => source.publish(time(time_of)?)?,
        ["pace", rate, time_of] => source.pace(rate.parse()?, time(time_of)?)?,
        _ => return unknown(order),
    }
    Ok(format!("{{\"sent\":{}}}", source.sent))
}

fn round_trips(pinger: &mut impl Pinger, payload: &[u8], time: Duration) -> Result<String> {
    let until = Instant::now() + time;
    let mut times = Vec::new();
    let mut start = Instant::now();
    while start < until {
        pinger.round(payload)?;
        let end = Instant::now();
        times.push(u32::try_from((end - start).as_nanos()).unwrap_or(u32::MAX));
        start = end;
    }
    Ok(format!("{{{}}}", percentiles::told(&mut times)))
}

fn obey(mut order: impl FnMut(&[&str]) -> Result<String>) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{{\"ready\":1}}")?;
    output.flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        writeln!(output, "{}", order(&words)?)?;
        output.flush()?;
    }
    Ok(())
}

fn unknown(order: &[&str]) -> Result<String> {
    Err(format!("no such order for this role: {}", order.join(" ")).into())
}

fn time(ms: &str) -> Result<Duration> {
    Ok(Duration::from_millis(ms.parse()?))
}

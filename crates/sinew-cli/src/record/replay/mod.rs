//! `sinew replay`: recorded calls again, and whether a server answers as it did.
//!
//! | module | what it is for |
//! |---|---|
//! | `read` | the calls in a file, which may be anybody's |
//! | `drive` | makes them |
//! | `compare` | what came against what was recorded |

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sinew::rpc::id;
use sinew::rpc::packet::HEADER_MAX;

mod compare;
mod drive;
mod read;

use super::line::Line;
use crate::connection::unreachable;
use crate::endpoint::At;
use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::output::{self, counted, has_colour, thousands};
use crate::progress::Progress;
use crate::schema::nearest;
use crate::span;
use compare::Ignored;
use drive::{Drive, Pace, Stopped, Verdict, Waits, Who};
use read::{Call, Recorded};

/// Make recorded calls again, and compare the answers.
///
/// Requests and the items of clients leave as far apart as they did, and never before what had come before them.
/// Messages are compared by their fields, by the schemas in the file. What the recorder asked for itself and
/// calls of the services of package sinew, which tell of a device, are left out unless --only names them. Ends with exit code 1 where an answer differs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What `sinew record` has written
    file: PathBuf,
    #[command(flatten)]
    at: At,
    /// Do not keep the recorded time between calls
    #[arg(long)]
    fast: bool,
    /// So many times as fast as recorded
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "fast", value_parser = speed)]
    speed: f64,
    /// Only calls of this method or service; may be given several times
    #[arg(long, value_name = "METHOD")]
    only: Vec<String>,
    /// Leave a field out of the comparison: package.Message.field; may be given several times
    #[arg(long, value_name = "FIELD")]
    ignore: Vec<String>,
    /// How much longer than in the recording the server may stay silent
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::any)]
    timeout: Duration,
}

const EXAMPLES: &str = "Examples:
  sinew replay calls.mcap tcp:localhost:33000
  sinew replay calls.mcap 'exec:sinew serve stdio:' --fast --only demo.Cache
  sinew replay calls.mcap serial:/dev/ttyUSB0 --ignore demo.Reading.micros";

/// Calls that differ are shown up to here.
const SHOWN: u64 = 10;

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if f64::is_finite(speed) && speed > 0.0 => Ok(speed),
        _ => Err("give a number above 0, as in 2 or 0.5; --fast does not wait at all".into()),
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let endpoint = args.at.endpoint()?;
    let recorded = read::read(&args.file)?;
    let calls = args.select(&recorded)?;
    let left_out = match args.only.is_empty() {
        true => (recorded.calls.len() - calls.len()) as u64,
        false => 0,
    };
    let ignored = args.ignored(&recorded)?;
    args.tell(&recorded);
    let link = sinew_io::open(&endpoint).map_err(|error| unreachable(&endpoint, None, &error))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let set = interrupted.clone();
    at_ctrl_c(move || set.store(true, Ordering::Release))?;
    let pace = Pace {
        speed: (!args.fast).then_some(args.speed),
        timeout: args.timeout,
    };
    let mut result = Outcome::new(&recorded, calls.len() as u64, left_out);
    let mut drive = Drive::new(
        &recorded,
        calls,
        Line(link),
        endpoint.channel,
        pace,
        &ignored,
        std::process::id(),
    );
    let stopped = loop {
        let look = |waits: Option<&Waits<'_>>| {
            result.tell(waits);
            interrupted.load(Ordering::Acquire)
        };
        match drive.next(look) {
            Ok(Some(verdict)) => result.add(&verdict)?,
            Ok(None) => break None,
            Err(why) => break Some(why),
        }
    };
    result.close()?;
    let at = endpoint.address.to_string();
    match stopped {
        Some(Stopped::Interrupted) => Err(Failure::Cancelled),
        Some(Stopped::LinkLost) => Err(Failure::ConnectionLost {
            endpoint: at,
            help: "the server stopped or closed the link: look at its log, then replay again".into(),
        }),
        Some(Stopped::Silent) => Err(Failure::Timeout {
            what: format!("no answer from {at}"),
            help: "`sinew call` says what is the matter: channel, framing, speed, or a server that is not there"
                .into(),
        }),
        Some(Stopped::TooLarge(bytes, limit)) => Err(Failure::TooLarge {
            bytes,
            limit,
            room: limit.saturating_sub(HEADER_MAX),
        }),
        None => result.verdict(&at),
    }
}

impl Args {
    /// The calls that are to be made, by their places.
    fn select(&self, recorded: &Recorded) -> Result<Vec<usize>, Failure> {
        let file = self.file.display();
        let calls = || recorded.calls.iter().enumerate();
        if self.only.is_empty() {
            let calls: Vec<usize> = calls()
                .filter(|(_, call)| !is_tools(call))
                .map(|(at, _)| at)
                .collect();
            return match (calls.is_empty(), recorded.calls.is_empty()) {
                (false, _) => Ok(calls),
                (true, false) => Err(Failure::usage(
                    format!("{file} has no calls but those of the tool itself"),
                    "record the calls of others by `sinew record --at`, or name what is to be made by --only",
                )),
                (true, true) => Err(Failure::usage(
                    format!("there are no calls in {file}"),
                    "record some by `sinew record --at`",
                )),
            };
        }
        for name in &self.only {
            if !calls().any(|(_, call)| is_named(call, name)) {
                return Err(self.unknown(name, recorded));
            }
        }
        let is_wanted = |call: &Call| self.only.iter().any(|name| is_named(call, name));
        Ok(calls()
            .filter(|(_, call)| is_wanted(call))
            .map(|(at, _)| at)
            .collect())
    }

    fn unknown(&self, name: &str, recorded: &Recorded) -> Failure {
        let mut names: Vec<&str> = recorded.calls.iter().map(|call| &*call.method).collect();
        names.sort_unstable();
        names.dedup();
        let near = nearest(&name.replace('/', "."), names.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("did you mean {near}?\n"));
        Failure::usage(
            format!("there is no call of {name} in {}", self.file.display()),
            format!("{hint}there are calls of\n  {}", names.join("\n  ")),
        )
    }

    fn ignored(&self, recorded: &Recorded) -> Result<Ignored, Failure> {
        let known = || recorded.methods.values();
        let messages = || known().flat_map(|it| [&it.request, &it.response]).flatten();
        for name in &self.ignore {
            let mut pools = messages().map(|message| message.parent_pool());
            if pools.any(|pool| compare::has_field(pool, name)) {
                continue;
            }
            let mut fields: Vec<String> = messages()
                .flat_map(|message| message.fields().map(|field| field.full_name().to_owned()))
                .collect();
            fields.sort_unstable();
            fields.dedup();
            let near = nearest(name, fields.iter().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean {near}?"),
                None => {
                    "write it as package.Message.field; `sinew describe` shows the fields".into()
                }
            };
            return Err(Failure::usage(
                format!("no message has a field {name}"),
                help,
            ));
        }
        Ok(self.ignore.iter().cloned().collect())
    }

    /// What of the file is not whole.
    fn tell(&self, recorded: &Recorded) {
        let file = self.file.display();
        if recorded.is_cut {
            output::note(&format!(
                "{file} has no end, because its recorder was ended: what is there is replayed"
            ));
        }
        if recorded.strays > 0 {
            output::note(&format!(
                "{} messages in {file} are of calls that had begun before, and are left out",
                thousands(recorded.strays)
            ));
        }
    }
}

/// The services of package sinew, by which the tool asks a device for itself: their answers differ each time.
const TOOLS: [u32; 3] = [id("sinew.Reflection"), id("sinew.Log"), id("sinew.Device")];

/// Whether a call is the recorder's own, or a question of the tool.
fn is_tools(call: &Call) -> bool {
    call.link == 0 || TOOLS.contains(&call.ids.0)
}

/// Whether a call is of the method or service, with what stands before its name or without.
fn is_named(call: &Call, name: &str) -> bool {
    let method = call.method.replace('/', ".");
    let service = call.method.split('/').next().unwrap_or_default();
    let name = name.replace('/', ".");
    let suffix = format!(".{name}");
    [&*method, service]
        .iter()
        .any(|full| **full == name || full.ends_with(&suffix))
}

/// What came of it.
struct Outcome<'r> {
    recorded: &'r Recorded,
    as_json: bool,
    methods: BTreeMap<&'r str, Tally>,
    different: u64,
    done: u64,
    all: u64,
    /// Calls of the tool itself, which are not made again.
    left_out: u64,
    shown: Progress,
}

/// Calls of a method.
#[derive(Clone, Copy, Default)]
struct Tally {
    same: u64,
    different: u64,
}

impl<'r> Outcome<'r> {
    fn new(recorded: &'r Recorded, all: u64, left_out: u64) -> Outcome<'r> {
        Outcome {
            recorded,
            as_json: output::is_json(),
            methods: BTreeMap::new(),
            different: 0,
            done: 0,
            all,
            left_out,
            shown: Progress::steps("replaying", all),
        }
    }

    /// Shows what is waited for.
    fn tell(&self, waits: Option<&Waits<'_>>) {
        let text = waits.map_or(String::new(), |waits| {
            let left = waits.until.saturating_duration_since(Instant::now());
            let span = humantime::format_duration(Duration::from_secs(left.as_secs()));
            let what = format!("call {}, {}", waits.call.number, waits.call.method);
            match waits.who {
                Who::Client => format!("waits {span} for the time of {what}; --fast does not"),
                Who::Server => format!("waits up to {span} for the server in {what}"),
            }
        });
        let bar = self.shown.bar();
        if bar.message() != text {
            bar.set_message(text);
        }
    }

    fn add(&mut self, verdict: &Verdict) -> Result<(), Failure> {
        let Some(call) = self.recorded.calls.get(verdict.at) else {
            return Ok(());
        };
        self.done += 1;
        self.shown.bar().set_position(self.done);
        let tally = self.methods.entry(&call.method).or_default();
        let Some(wrong) = &verdict.wrong else {
            tally.same += 1;
            return Ok(());
        };
        tally.different += 1;
        self.different += 1;
        let difference = &wrong.difference;
        if self.as_json {
            let line = json!({
                "call": call.number, "method": call.method, "place": wrong.place, "field": difference.path,
                "recorded": difference.recorded, "came": difference.came,
            });
            return output::line(&line.to_string());
        }
        if self.different > SHOWN {
            return Ok(());
        }
        let [red, green, bold, end] = match has_colour() {
            true => ["\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"],
            false => [""; 4],
        };
        let known = self.recorded.methods.get(&call.method);
        let mut text = format!("{bold}{}, call {}{end}", call.method, call.number);
        if let Some(read::What::Request(request)) = call.entries.first().map(|it| &it.what) {
            let schema = known.and_then(|known| known.request.as_ref());
            text += &format!(" {}", compare::text(request, schema));
        }
        text += &format!(": {}", wrong.place);
        if !difference.path.is_empty() {
            text += &format!(", {}", difference.path);
        }
        let or_nothing = |value: &Option<String>| value.clone().unwrap_or("(nothing)".into());
        text += &format!("\n  {red}- {}{end}", or_nothing(&difference.recorded));
        text += &format!("\n  {green}+ {}{end}", or_nothing(&difference.came));
        output::line(&text)
    }

    /// The summary.
    fn close(&self) -> Result<(), Failure> {
        let same = self.done - self.different;
        if self.as_json {
            let methods: Vec<_> = self
                .methods
                .iter()
                .map(|(name, tally)| {
                    json!({ "method": name, "same": tally.same, "different": tally.different })
                })
                .collect();
            let all = json!({
                "calls": self.all, "made": self.done, "same": same, "different": self.different,
                "left_out": self.left_out, "methods": methods,
            });
            return output::line(&all.to_string());
        }
        if self.different > SHOWN {
            let more = thousands(self.different - SHOWN);
            output::line(&format!("{more} more differ; --json shows all"))?;
        }
        if self.different > 0 {
            output::line("")?;
        }
        let names = self.methods.keys().map(|name| name.len());
        let width = names.max().unwrap_or(0).max("method".len());
        output::line(&format!(
            "{:width$}  {:>9}  {:>9}",
            "method", "same", "different"
        ))?;
        for (name, tally) in &self.methods {
            let (same, different) = (thousands(tally.same), thousands(tally.different));
            output::line(&format!("{name:width$}  {same:>9}  {different:>9}"))?;
        }
        if self.left_out > 0 {
            let calls = counted(self.left_out, "call", "calls");
            output::line(&format!(
                "left out: {calls} of the tool itself, which --only makes by name"
            ))?;
        }
        Ok(())
    }

    fn verdict(&self, at: &str) -> Result<(), Failure> {
        match self.different {
            0 => Ok(()),
            different => Err(Failure::Different {
                what: format!(
                    "{at} answered {} of {} calls otherwise than recorded",
                    thousands(different),
                    thousands(self.done)
                ),
                help: "- is what was recorded, + what came; --ignore leaves fields out that differ each time"
                    .into(),
            }),
        }
    }
}

//! `sinew log`: what devices have to say, as it happens.
//!
//! | module | what it is for |
//! |---|---|
//! | `reader` | the records of one device, also when it or its link has begun again |
//! | `show` | records as lines, and what became of those that are missing |
//! | `texts` | the texts of deferred records, made in a process of its own |
//!
//! Each device has a thread that reads; one writes what they read.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use sinew_io::{Address, Endpoint};
use sinew_services::{RecordsRequest, Severity};

use crate::endpoint::Options;
use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::output;
use crate::span;

mod reader;
mod show;
pub mod texts;

use show::{Filter, Show, Times};
use texts::{Elf, Texts};

/// Show what devices have to say, as it happens.
///
/// A device says it by itself where it serves sinew.Log, beside its other services. Where the device or its link begins
/// again, the command goes on. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// tcp:HOST:PORT, udp:HOST:PORT, unix:PATH, shm:PATH, serial:PATH?baud=N, qemu:IMAGE or
    /// exec:COMMAND; with several, each line begins with its own
    #[arg(required = true, value_name = "ENDPOINT")]
    endpoints: Vec<Endpoint>,
    #[command(flatten)]
    options: Options,
    /// The least severe records that are wanted
    #[arg(short, long, value_name = "SEVERITY", default_value = "trace")]
    least: Least,
    /// Only records of modules that begin with this
    #[arg(
        short,
        long,
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    module: String,
    /// Only records whose text contains this
    #[arg(
        short,
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    grep: String,
    #[command(flatten)]
    elf: Elf,
    /// The times of records: since the start of the device, by the clock of this machine (UTC), or both
    #[arg(short, long, default_value = "uptime")]
    time: Times,
    /// End when everything that waits there has been read
    #[arg(long, conflicts_with = "duration")]
    once: bool,
    /// End after this time, for example 10s
    #[arg(long = "for", value_name = "TIME", id = "duration", value_parser = span::any)]
    duration: Option<Duration>,
    /// Wait for devices that are not there yet
    #[arg(long)]
    wait: bool,
}

const EXAMPLES: &str = "Examples:
  sinew log serial:/dev/ttyUSB0?baud=921600 --least warn
  sinew log tcp:10.0.0.2:33000 tcp:10.0.0.3:33000 --time clock
  sinew log serial:/dev/ttyUSB0 --elf target/thumbv7em-none-eabihf/release/image
  sinew log tcp:localhost:33000 --once --json | jq .text";

/// Severities, as they are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Least {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl From<Least> for Severity {
    fn from(least: Least) -> Self {
        match least {
            Least::Trace => Severity::Any,
            Least::Debug => Severity::Debug,
            Least::Info => Severity::Info,
            Least::Warn => Severity::Warn,
            Least::Error => Severity::Error,
        }
    }
}

/// What is read, and not yet written. Then the device waits, and counts what it drops.
const WAITING: usize = 256;

/// What the thread of a device tells.
enum Told {
    Happened(reader::What),
    /// It is over.
    Ended(Result<(), Failure>),
}

pub fn run(args: Args) -> Result<(), Failure> {
    let mut endpoints = Vec::new();
    for endpoint in &args.endpoints {
        if endpoint.address == Address::Stdio {
            return Err(Failure::usage(
                "stdio: is where the records are written",
                "give another endpoint; exec:COMMAND starts a server of its own",
            ));
        }
        endpoints.push(args.options.apply(endpoint)?);
    }
    let wants = args.wants()?;
    let (stop, told) = (Arc::new(AtomicBool::new(false)), sync_channel(WAITING));
    let (tell, told): (SyncSender<(usize, Told)>, _) = told;
    let flag = stop.clone();
    at_ctrl_c(move || flag.store(true, Ordering::Release))?;
    let mut show = Show::new(&endpoints, args.time, output::is_json());
    let mut texts = Vec::new();
    for endpoint in &endpoints {
        texts.push(args.elf.texts(endpoint)?);
    }
    let mut threads: Vec<JoinHandle<Option<Failure>>> = Vec::new();
    for (at, endpoint) in endpoints.iter().enumerate() {
        let reader = reader::Reader {
            endpoint: endpoint.clone(),
            wants: wants.clone(),
            wait: args.wait,
            stop: stop.clone(),
            heard: Cell::default(),
        };
        let tell = tell.clone();
        threads.push(thread::spawn(move || {
            let ended = reader.run(|what| tell.send((at, Told::Happened(what))).is_ok());
            match tell.send((at, Told::Ended(ended))) {
                Err(SendError((_, Told::Ended(Err(failure))))) => Some(failure),
                _ => None,
            }
        }));
    }
    drop(tell);
    let filter = Filter {
        least: args.least.into(),
        module: args.module.clone(),
        grep: args.grep.clone(),
    };
    let mut result = write(&told, &args, &filter, &mut show, &mut texts, &stop);
    // First, so that each thread keeps what it comes to now.
    drop(told);
    // Ctrl-C ends it whatever was heard; not so the end of its time.
    let is_wanted = stop.swap(true, Ordering::AcqRel) || args.duration.is_none();
    for thread in threads {
        let Ok(Some(failure)) = thread.join() else {
            continue;
        };
        if !is_wanted {
            if endpoints.len() > 1 {
                output::note(&format!("{failure}"));
            }
            result = result.and(Err(failure));
        }
    }
    result
}

/// Writes what is told, until all have ended, or it is enough.
fn write(
    told: &Receiver<(usize, Told)>,
    args: &Args,
    filter: &Filter,
    show: &mut Show,
    texts: &mut [Option<Texts>],
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let end = args.duration.map(|span| Instant::now() + span);
    let mut result = Ok(());
    let alone = texts.len() == 1;
    while !stop.load(Ordering::Acquire) {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            break;
        }
        let (at, what) = match told.recv_timeout(left.unwrap_or(reader::TICK).min(reader::TICK)) {
            Ok(_) if stop.load(Ordering::Acquire) => break,
            Ok(told) => told,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match what {
            Told::Happened(what) => {
                let texts = texts.get_mut(at).and_then(Option::as_mut);
                for line in show.lines(at, what, texts, filter) {
                    if !output::line_of_many(&line)? {
                        return Ok(());
                    }
                }
            }
            Told::Ended(Err(failure)) => {
                if !alone {
                    output::note(&format!("{failure}"));
                }
                result = result.and(Err(failure));
            }
            Told::Ended(Ok(())) => {}
        }
    }
    result
}

impl Args {
    fn wants(&self) -> Result<RecordsRequest, Failure> {
        let mut wants = RecordsRequest {
            least: self.least.into(),
            until_empty: self.once,
            ..RecordsRequest::default()
        };
        wants.module.push_str(&self.module).map_err(|_| {
            Failure::usage("the module's name is too long", "give its first 24 bytes")
        })?;
        Ok(wants)
    }
}

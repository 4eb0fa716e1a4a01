//! `sinew record` and `sinew replay`: calls, streams, logs and samples in an MCAP file.
//!
//! | module | what it is for |
//! |---|---|
//! | `format` | what is in the file, for both |
//! | `file` | writes it: packets and samples in |
//! | `own` | streams that the recorder asks for itself |
//! | `line` | packets on a link, without an engine |
//! | `replay` | reads it, makes the calls again, compares the answers |

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use prost_reflect::DescriptorPool;
use serde_json::json;
use sinew::rpc::MethodKind;
use sinew_io::endpoint::{EndpointError, Use};
use sinew_io::pubsub::{self, Node, Options, OwnedSample, Subscriber};
use sinew_io::relay::{Event, Relay, Totals};
use sinew_io::{Address, Endpoint};

mod file;
mod format;
mod line;
mod own;
pub mod replay;

use crate::connection::{takes_several, unreachable};
use crate::failure::Failure;
use crate::log::texts::Elf;
use crate::output::{self, counted};
use crate::progress::Progress;
use crate::pubsub::key;
use crate::schema::{self, Place};
use crate::serve::{cannot_serve, end_at_ctrl_c, say};
use crate::{json, reflect, relay, span};
use file::{Counts, Recording};
use line::Line;
use own::{Own, Stream};

/// Record calls, streams and logs into an MCAP file.
///
/// With --at, the recorder stands between clients and the endpoint: it serves the one, passes each packet on to the
/// other, and records the calls. It also records the log of each device that has sinew.Log, and the server streams
/// that --stream names. At an endpoint with frame=zenoh it records what is published there.
///
/// Schemas come from the servers, or from --proto, and are in the file, so that Foxglove and any reader of MCAP
/// decode the messages. Ctrl-C ends the recording and completes the file; whatever ends it otherwise, what is older
/// than a second is in it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is recorded; channel=, frame= and mtu= are those of the endpoint's own links
    #[arg(value_name = "ENDPOINT", required = true, value_parser = endpoint)]
    endpoints: Vec<Endpoint>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Serve here, pass everything on to the endpoint, and record the calls
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoint)]
    at: Option<Endpoint>,
    /// Record a server stream as well: SERVICE/METHOD, or SERVICE/METHOD=JSON with a request
    #[arg(long, value_name = "METHOD[=JSON]")]
    stream: Vec<String>,
    /// Do not record the devices' logs: each has one reader
    #[arg(long)]
    no_log: bool,
    #[command(flatten)]
    elf: Elf,
    /// Which keys are recorded at endpoints with frame=zenoh [default: **]
    #[arg(long, value_name = "KEY", value_parser = key::parse)]
    key: Option<String>,
    /// A .proto file with the services; without any, the servers are asked
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// A folder in which imports are looked up
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = span::any)]
    span: Option<Duration>,
}

const EXAMPLES: &str = "Examples:
  sinew record serial:/dev/ttyUSB0 --at tcp:127.0.0.1:33000 -o calls.mcap
  sinew record tcp:10.0.0.2:33000 tcp:10.0.0.3:33000 -o logs.mcap
  sinew record tcp:10.0.0.2:33000 --stream 'demo.Kinds/Count={\"n\": 1000}' --for 10s -o count.mcap
  sinew record serial:/dev/ttyUSB0 --elf target/thumbv7em-none-eabihf/release/image -o log.mcap
  sinew record 'tcp:127.0.0.1:7447?frame=zenoh' --key 'sensor/**' -o sensors.mcap";

/// What is recorded of samples where nothing is said.
const EVERY_KEY: &str = "**";
/// How often the file is brought up to date, and how old what a crash takes can be.
const FLUSH: Duration = Duration::from_secs(1);
/// How often it is looked whether there is anything left to record.
const LOOK: Duration = Duration::from_millis(50);

fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::parse(text, Use::Any)
}

/// What is recorded of an endpoint.
struct Part<'a> {
    endpoint: &'a Endpoint,
    source: usize,
    streams: Vec<Stream>,
    /// The recorder's own link, for the streams.
    line: Option<Line>,
    /// The recorder's own node, for samples.
    node: Option<Node>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    args.check()?;
    let texts = args.endpoints.iter().map(|at| args.elf.texts(at));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let pools = args.endpoints.iter().map(|endpoint| args.ask(endpoint));
    let pools = pools.collect::<Result<Vec<_>, _>>()?;
    let streams = args.endpoints.iter().zip(&pools);
    let streams = streams.map(|(endpoint, pool)| args.streams(endpoint, pool.as_ref()));
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    args.check_something(&streams)?;
    let (end, ended) = channel();
    end_at_ctrl_c(end)?;
    let recording = Arc::new(Recording::new(&args.output)?);
    let is_one = args.endpoints.len() == 1;
    let mut parts = Vec::new();
    let known = pools.into_iter().zip(texts).zip(streams);
    for (endpoint, ((pool, texts), streams)) in args.endpoints.iter().zip(known) {
        let source = recording.add(endpoint, pool, texts, is_one);
        let line = match streams.is_empty() {
            true => None,
            false => Some(Line(
                sinew_io::open(endpoint).map_err(|error| unreachable(endpoint, None, &error))?,
            )),
        };
        parts.push(Part {
            node: args.node(endpoint)?,
            endpoint,
            source,
            streams,
            line,
        });
    }
    // Only when all else is there: a recording that does not begin leaves an earlier file as it is.
    let held = recording.hold();
    let relay = args.relay(&recording)?;
    recording.begin(held)?;
    let subscribers = parts
        .iter()
        .filter_map(|part| args.subscribe(part, &recording));
    let _subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
    args.greet(relay.as_ref())?;
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let mut own = Vec::new();
        let mut nodes = Vec::new();
        for part in parts {
            nodes.extend(part.node);
            let Some(line) = part.line else { continue };
            let streams = Own {
                recording: &recording,
                source: part.source,
                endpoint: part.endpoint,
                streams: part.streams,
                stop: &stop,
            };
            own.push(scope.spawn(|| streams.run(line)));
        }
        let is_over = || match &relay {
            Some(relay) => relay.is_over(),
            None => nodes.is_empty() && own.iter().all(thread::ScopedJoinHandle::is_finished),
        };
        let result = args.watch(&recording, &ended, start, is_over);
        stop.store(true, Ordering::Release);
        result
    });
    if let Some(relay) = relay {
        tell_lost(&relay.stop());
    }
    let result = result.and(recording.finish());
    args.summary(&recording.counts(), start.elapsed())?;
    result
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        if self.key.is_some() && !self.endpoints.iter().any(is_zenoh) {
            return Err(Failure::usage(
                "--key is for samples, and no endpoint here has frame=zenoh",
                "record at the router, as in 'tcp:127.0.0.1:7447?frame=zenoh'; a board's samples come there by \
                 `sinew relay BOARD 'tcp:127.0.0.1:7447?frame=zenoh'`",
            ));
        }
        let Some(at) = &self.at else { return Ok(()) };
        if self.endpoints.len() != 1 {
            return Err(Failure::usage(
                "--at is for one endpoint",
                "start a recorder for each endpoint that clients are to reach through it",
            ));
        }
        let zenoh = self.endpoints.iter().chain([at]).any(is_zenoh);
        if zenoh {
            return Err(Failure::usage(
                "--at passes calls on, and frame=zenoh has none",
                "leave --at out to record what is published there",
            ));
        }
        let is_stdio = |endpoint: &Endpoint| endpoint.address == Address::Stdio;
        if self.endpoints.iter().any(is_stdio) {
            return Err(Failure::usage(
                "stdio: is no endpoint that others can be passed on to",
                "name it as --at: `sinew record ENDPOINT --at stdio:`",
            ));
        }
        Ok(())
    }

    fn check_something(&self, streams: &[Vec<Stream>]) -> Result<(), Failure> {
        let is_samples = self.endpoints.iter().any(is_zenoh);
        if self.at.is_some() || is_samples || streams.iter().any(|streams| !streams.is_empty()) {
            return Ok(());
        }
        Err(Failure::usage(
            "there is nothing to record: no device here has sinew.Log",
            "name a server stream by --stream, or record the calls of others: --at says where they come in",
        ))
    }

    /// What is known of the endpoint's services.
    fn ask(&self, endpoint: &Endpoint) -> Result<Option<DescriptorPool>, Failure> {
        if !self.proto.is_empty() {
            return schema::load(&self.proto, &self.include).map(Some);
        }
        if is_zenoh(endpoint) {
            return Ok(None);
        }
        match reflect::ask(endpoint, reflect::PATIENCE) {
            Ok((_, pool)) => Ok(Some(pool)),
            Err(failure @ Failure::NoConnection { .. }) => Err(failure),
            // A method can be named only where it is known.
            Err(failure) if !self.stream.is_empty() => Err(failure),
            Err(failure) => {
                output::note(&format!(
                    "{failure}; its messages are recorded as bytes: --proto FILE gives them names and fields"
                ));
                Ok(None)
            }
        }
    }

    /// What the recorder asks for itself.
    fn streams(
        &self,
        endpoint: &Endpoint,
        pool: Option<&DescriptorPool>,
    ) -> Result<Vec<Stream>, Failure> {
        let Some(pool) = pool.filter(|_| !is_zenoh(endpoint)) else {
            return Ok(Vec::new());
        };
        let place = match self.proto.is_empty() {
            true => Place::Server,
            false => Place::Files,
        };
        let mut streams = Vec::new();
        for text in &self.stream {
            let (name, request) = text.split_once('=').unwrap_or((text, "{}"));
            let method = match schema::find(pool, name, place) {
                Err(unknown) => schema::find(&format::own()?, name, place).map_err(|_| unknown)?,
                Ok(method) => method,
            };
            if method.id.kind != MethodKind::ServerStream {
                return Err(Failure::usage(
                    format!("{} is no stream of the server alone", method.name),
                    "call it through the recorder: --at says where calls come in",
                ));
            }
            let request = json::to_bytes(request, "the request", &method.request)?;
            streams.push(Stream { method, request });
        }
        // With one link, that is for those who come in.
        let has_room = self.at.is_none() || takes_several(endpoint);
        let mut log = schema::methods(pool).into_iter();
        let log = log.find(|method| method.id == format::RECORDS);
        let is_named = |stream: &Stream| stream.method.id == format::RECORDS;
        let is_wanted = has_room && !self.no_log && !streams.iter().any(is_named);
        if let Some(method) = log.filter(|_| is_wanted) {
            let request = Vec::new();
            streams.push(Stream { method, request });
        }
        if !streams.is_empty() && !has_room {
            return Err(Failure::usage(
                format!(
                    "{} has one link, which is for those who come in by --at",
                    endpoint.address
                ),
                "leave --stream out, and call the method through the recorder",
            ));
        }
        Ok(streams)
    }

    /// The recorder's own node, with a session.
    fn node(&self, endpoint: &Endpoint) -> Result<Option<Node>, Failure> {
        if !is_zenoh(endpoint) {
            return Ok(None);
        }
        let node = pubsub::open(endpoint, Options::client());
        let opened = node.wait_open(sinew_io::open::CONNECT_TIMEOUT);
        opened.map_err(|error| Failure::NoConnection {
            endpoint: endpoint.address.to_string(),
            cause: error.to_string(),
            help: "start the router, or a peer that listens there; or correct the endpoint".into(),
        })?;
        Ok(Some(node))
    }

    fn subscribe(
        &self,
        part: &Part<'_>,
        recording: &Arc<Recording>,
    ) -> Option<Result<Subscriber, Failure>> {
        let (recording, source) = (recording.clone(), part.source);
        let key = self.key.as_deref().unwrap_or(EVERY_KEY);
        let subscriber = part.node.as_ref()?.subscriber(key, move |sample| {
            let sample = OwnedSample::from(sample);
            recording.sample(source, SystemTime::now(), &sample);
        });
        Some(subscriber.map_err(|error| Failure::internal("cannot subscribe", error)))
    }

    /// The way through, where there is one. It is the first source.
    fn relay(&self, recording: &Arc<Recording>) -> Result<Option<Relay>, Failure> {
        let (Some(at), [far]) = (&self.at, &*self.endpoints) else {
            return Ok(None);
        };
        let number = |link: u64| u32::try_from(link).unwrap_or(u32::MAX);
        let (packets, links) = (recording.clone(), recording.clone());
        let relay = Relay::start_watched(
            at,
            far,
            move |event| {
                if let Event::Closed(link, _) = event {
                    links.closed(0, number(link));
                }
                relay::tell(&event, false);
            },
            move |passing| packets.packet(0, number(passing.link), passing.time, passing.packet),
        );
        relay.map(Some).map_err(|error| cannot_serve(at, error))
    }

    fn greet(&self, relay: Option<&Relay>) -> Result<(), Failure> {
        let is_link = self
            .at
            .as_ref()
            .is_some_and(|at| at.address == Address::Stdio);
        let all: Vec<String> = self.endpoints.iter().map(Endpoint::to_string).collect();
        let what = match relay {
            Some(relay) => format!("{} to {}", relay.served(), all.join(", ")),
            None => all.join(", "),
        };
        say(
            is_link || output::is_json(),
            &format!("recording {what} in {}", self.output.display()),
        )
    }

    /// Keeps the file up to date until there is nothing more to record, or it is to end.
    fn watch(
        &self,
        recording: &Recording,
        ended: &Receiver<()>,
        start: Instant,
        is_over: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        let shown = Progress::waiting("recording");
        let mut flushed = start;
        loop {
            let left = self.span.map(|span| span.saturating_sub(start.elapsed()));
            if left == Some(Duration::ZERO) || is_over() {
                break;
            }
            // An error means that nobody is left who could end it.
            match ended.recv_timeout(left.map_or(LOOK, |left| left.min(LOOK))) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => break,
            }
            if flushed.elapsed() >= FLUSH {
                flushed = Instant::now();
                recording.flush()?;
                let counts = said(&recording.counts());
                shown.bar().set_message(format!("recorded {counts}"));
            }
        }
        Ok(())
    }

    fn summary(&self, counts: &Counts, span: Duration) -> Result<(), Failure> {
        let path = self.output.display().to_string();
        if output::is_json() {
            let all = json!({
                "file": path, "calls": counts.calls, "messages": counts.messages, "bytes": counts.bytes,
                "entries": counts.entries, "not_pw_rpc": counts.strange, "seconds": span.as_secs_f64(),
            });
            return output::line(&all.to_string());
        }
        let entries = counted(counts.entries, "entry", "entries");
        output::note(&format!("{path}: {}; {entries} in all", said(counts)));
        Ok(())
    }
}

/// Says what has not passed, where there is something, and so is not in the file.
fn tell_lost(totals: &Totals) {
    let lost = [
        totals.forth.too_large,
        totals.back.too_large,
        totals.bad_frames,
        totals.dropped,
        totals.refused,
    ];
    if lost.iter().any(|&count| count > 0) {
        output::note(&format!("not all has passed: {}", relay::summary(totals)));
    }
}

fn is_zenoh(endpoint: &Endpoint) -> bool {
    endpoint.framing.name() == "zenoh"
}

/// What is in the file.
fn said(counts: &Counts) -> String {
    let mut text = format!(
        "{}, {}, {}",
        counted(counts.calls, "call", "calls"),
        counted(counts.messages, "message", "messages"),
        counted(counts.bytes, "byte", "bytes")
    );
    if counts.strange > 0 {
        let packets = counted(counts.strange, "packet", "packets");
        text += &format!("; {packets} left out: no pw_rpc");
    }
    text
}

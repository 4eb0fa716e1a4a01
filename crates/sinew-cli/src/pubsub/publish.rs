//! `sinew pub`: publishes values.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::{Map, Value};
use sinew::pubsub::codec::{Body, Encoding, Kind, Priority, Qos};
use sinew::pubsub::session::{PublisherOptions, Put, PutError};
use sinew::rpc::Status;
use sinew_io::pubsub::{Options, Publisher};

use super::place::{Meet, Nodes, TICK};
use super::{Interrupt, encoding, key, linger, payload, sequence, too_large};
use crate::failure::Failure;
use crate::output::{self, thousands};
use crate::progress::Progress;
use crate::span::above_zero;

/// Publish values on a key of a Zenoh network.
///
/// At its end it says what became of the samples. Heard: sent, and somebody there subscribes.
/// Sent: sent, and it is not known whether anybody does (a router says so only with
/// --wait-subscriber). Unheard: not sent, because nobody there subscribes. Dropped: not sent,
/// because the link was full. Between two peers (--peer, --listen) it is known: the first sample
/// waits until the other one has said who subscribes there, 3 s at most.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The key, as in demo/lamp
    #[arg(value_parser = key::parse)]
    key: String,
    /// The value
    #[arg(allow_negative_numbers = true, required_unless_present_any = ["file", "size", "delete"],
          conflicts_with_all = ["file", "size", "delete"])]
    value: Option<String>,
    /// Publish what is in this file; - is standard input, up to its end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "delete"])]
    file: Option<PathBuf>,
    /// Publish so many bytes, which begin with the number of the sample (8 bytes, little-endian)
    #[arg(long, value_name = "BYTES", conflicts_with = "delete",
          value_parser = clap::value_parser!(u64).range(sequence::BYTES as u64..=1 << 30))]
    size: Option<u64>,
    /// Publish that the key has no value any more
    #[arg(long)]
    delete: bool,
    #[command(flatten)]
    meet: Meet,
    /// How many samples [default: 1; with --rate or --every, until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// So many a second [default: as many as the link takes]
    #[arg(long, value_name = "HZ", value_parser = rate, conflicts_with = "every")]
    rate: Option<f64>,
    /// One in this time, for example 100ms
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    every: Option<Duration>,
    /// What the value is: text/plain, application/json;SCHEMA, or words of your own
    #[arg(long, value_parser = encoding)]
    encoding: Option<String>,
    /// A text that goes with each sample
    #[arg(long, value_name = "TEXT", allow_negative_numbers = true)]
    attachment: Option<String>,
    /// Who is served first where many wait
    #[arg(long, value_enum, default_value = "data")]
    priority: Prio,
    /// Leave at once, also where others are batched
    #[arg(long)]
    express: bool,
    /// Send on the channel whose losses may go unrepaired
    #[arg(long)]
    best_effort: bool,
    /// What happens where the link is full: wait, or drop the sample
    #[arg(long, value_enum, default_value = "block")]
    congestion: Congestion,
    /// How long a sample may wait for others to share its packet, for example 1ms
    #[arg(long, value_name = "TIME", value_parser = above_zero)]
    batching: Option<Duration>,
    /// Ask who subscribes, and publish when somebody does; give up after TIME [default: 10s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "10s", value_parser = above_zero)]
    wait_subscriber: Option<Duration>,
}

const EXAMPLES: &str = "Examples:
  sinew pub demo/lamp on
  sinew pub demo/camera --file picture.jpg --encoding image/jpeg
  sinew pub demo/load --size 64 --count 1000000 --batching 1ms --listen tcp:127.0.0.1:7448";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Prio {
    RealTime,
    InteractiveHigh,
    InteractiveLow,
    DataHigh,
    Data,
    DataLow,
    Background,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Congestion {
    Block,
    Drop,
}

impl From<Prio> for Priority {
    fn from(prio: Prio) -> Priority {
        match prio {
            Prio::RealTime => Priority::RealTime,
            Prio::InteractiveHigh => Priority::InteractiveHigh,
            Prio::InteractiveLow => Priority::InteractiveLow,
            Prio::DataHigh => Priority::DataHigh,
            Prio::Data => Priority::Data,
            Prio::DataLow => Priority::DataLow,
            Prio::Background => Priority::Background,
        }
    }
}

fn rate(text: &str) -> Result<f64, &'static str> {
    let rate: f64 = text.parse().unwrap_or(0.0);
    match (1e-6..=1e9).contains(&rate) {
        true => Ok(rate),
        false => Err("give samples a second, for example 0.5 or 1000"),
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    let payload = args.payload()?;
    let interrupt = Interrupt::listen()?;
    let counts = Arc::new(Counts::default());
    let (send, ended) = channel();
    // A thread of its own, since a full link may hold it for ever.
    let (asked, shared) = (interrupt.clone(), counts.clone());
    let wished = args.wished();
    let key = args.key.clone();
    thread::spawn(move || {
        let _ = send.send(args.publish(payload, &asked, &shared));
    });
    let mut given_up = None;
    let mut shown = None;
    let result = loop {
        match ended.recv_timeout(TICK) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Disconnected) => {
                break Err(Failure::internal("publishing ended", "its thread panicked"));
            }
            Err(RecvTimeoutError::Timeout) if !interrupt.is_set() => {
                let samples = counts.samples.load(Ordering::Relaxed);
                // Without an end there is nothing to come to, and before the first one it connects.
                if let Some(wished) = wished.filter(|_| samples > 0) {
                    let what = || Progress::steps(format!("publishing {key}"), wished);
                    let shown: &mut Progress = shown.get_or_insert_with(what);
                    shown.bar().set_position(samples);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let since: &mut Instant = given_up.get_or_insert_with(Instant::now);
                if since.elapsed() > LAST {
                    break Ok(());
                }
            }
        }
    };
    drop(shown);
    if result.is_ok() || counts.samples.load(Ordering::Relaxed) > 0 {
        output::line(&match output::is_json() {
            true => counts.json().to_string(),
            false => counts.text(),
        })?;
    }
    result?;
    counts.verdict(wished)
}

/// How long Ctrl-C waits for what is under way.
const LAST: Duration = Duration::from_millis(500);
/// How long a session that is lost may stay away.
const AWAY: Duration = Duration::from_secs(30);

impl Args {
    fn payload(&self) -> Result<Vec<u8>, Failure> {
        if let Some(size) = self.size {
            return Ok(vec![b'.'; size as usize]);
        }
        let Some(path) = &self.file else {
            return Ok(self.value.clone().unwrap_or_default().into_bytes());
        };
        payload(path)
    }

    /// How many samples; `None`: until Ctrl-C.
    fn wished(&self) -> Option<u64> {
        match self.rate.is_some() || self.every.is_some() {
            true => self.count,
            false => Some(self.count.unwrap_or(1)),
        }
    }

    fn options(&self) -> PublisherOptions {
        PublisherOptions {
            qos: Qos::DEFAULT
                .with_priority(self.priority.into())
                .with_blocking(self.congestion == Congestion::Block)
                .with_express(self.express),
            reliable: !self.best_effort,
            filter: self.wait_subscriber.is_some(),
        }
    }

    fn publish(
        &self,
        mut payload: Vec<u8>,
        interrupt: &Interrupt,
        counts: &Counts,
    ) -> Result<(), Failure> {
        let (key, options) = (self.key.clone(), self.options());
        let mut node = Options::client();
        node.batching = self.batching.unwrap_or_default();
        node.linger = linger(&self.meet);
        let nodes = self.meet.open(
            node,
            interrupt,
            Box::new(move |node| {
                node.publisher_with(&key, options)
                    .map_err(|error| Failure::internal("cannot publish", error))
            }),
        );
        let mut nodes = nodes?;
        if let Some(patience) = self.wait_subscriber {
            wait_heard(&mut nodes, patience, interrupt)?;
        }
        let pause = self
            .every
            .or(self.rate.map(|rate| Duration::from_secs_f64(1.0 / rate)));
        let mut due = Instant::now();
        let mut looked = due;
        let wished = self.wished().unwrap_or(u64::MAX);
        for number in 0..wished {
            if let Some(pause) = pause {
                sleep_until(due, &mut nodes, interrupt)?;
                // What could not be sent in an outage is left out, not sent in a burst: it is old.
                let late = Instant::now().saturating_duration_since(due);
                due += if late > LATE { late } else { pause };
            }
            if interrupt.is_set() {
                break;
            }
            if self.size.is_some() {
                sequence::write(&mut payload, number);
            }
            let body = Body {
                kind: if self.delete { Kind::Del } else { Kind::Put },
                encoding: Encoding::parse(self.encoding.as_deref().unwrap_or_default()),
                attachment: self.attachment.as_deref().map(str::as_bytes),
                ..Body::put(&payload)
            };
            if !put(&mut nodes, &body, interrupt, counts)? {
                break;
            }
            if (pause.is_some() || number % 256 == 0) && looked.elapsed() > TICK {
                looked = Instant::now();
                nodes.look()?;
            }
        }
        // Here the nodes end, which lets everything arrive.
        drop(nodes);
        Ok(())
    }
}

/// A pause of this length is an outage; shorter delays are made up for, so that the rate holds.
const LATE: Duration = Duration::from_secs(1);

type Publishers = Nodes<Publisher>;

fn wait_heard(
    nodes: &mut Publishers,
    patience: Duration,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let started = Instant::now();
    while !interrupt.is_set() {
        nodes.look()?;
        let mut all = nodes.all().iter();
        if all.any(|party| party.has.is_heard() == Some(true)) {
            return Ok(());
        }
        if started.elapsed() > patience {
            let span = humantime::format_duration(patience);
            return Err(Failure::outcome(
                Status::DEADLINE_EXCEEDED,
                format!("nobody subscribed within {span}"),
                "start the subscriber, compare the keys, or wait longer: --wait-subscriber=1h",
            ));
        }
        thread::sleep(TICK / 10);
    }
    Ok(())
}

fn sleep_until(due: Instant, nodes: &mut Publishers, interrupt: &Interrupt) -> Result<(), Failure> {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() || interrupt.is_set() {
            return Ok(());
        }
        if left > TICK {
            nodes.look()?;
        }
        thread::sleep(left.min(TICK));
    }
}

/// Publishes to everybody who is there; where nobody is, somebody has to come first. `false`:
/// interrupted.
fn put(
    nodes: &mut Publishers,
    body: &Body<'_>,
    interrupt: &Interrupt,
    counts: &Counts,
) -> Result<bool, Failure> {
    let mut away = None;
    loop {
        let mut is_done = false;
        for party in nodes.all() {
            match party.publish(body) {
                Ok(put) => {
                    counts.count(put);
                    is_done = true;
                }
                Err(PutError::TooLarge) => return Err(too_large(body.payload.len())),
                // It has no session now.
                Err(_) => {}
            }
        }
        if is_done {
            counts.samples.fetch_add(1, Ordering::Relaxed);
            return Ok(true);
        }
        if interrupt.is_set() {
            return Ok(false);
        }
        let since: &mut Instant = away.get_or_insert_with(Instant::now);
        if !nodes.listens() && since.elapsed() > AWAY {
            return Err(nodes.lost());
        }
        nodes.look()?;
        thread::sleep(TICK / 10);
    }
}

/// What became of the samples, for each that there was somebody to send it to.
#[derive(Debug, Default)]
struct Counts {
    samples: AtomicU64,
    heard: AtomicU64,
    sent: AtomicU64,
    unheard: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    fn count(&self, put: Put) {
        let counter = match put {
            Put::Heard => &self.heard,
            Put::Sent => &self.sent,
            Put::Unheard => &self.unheard,
            Put::Dropped => &self.dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// By what became of them.
    fn became(&self) -> [(&'static str, u64); 4] {
        [
            ("heard", &self.heard),
            ("sent", &self.sent),
            ("unheard", &self.unheard),
            ("dropped", &self.dropped),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }

    fn json(&self) -> Value {
        let became = self
            .became()
            .map(|(name, count)| (name.into(), count.into()));
        let mut counts = Map::from_iter(became);
        let samples = self.samples.load(Ordering::Relaxed);
        counts.insert("samples".into(), samples.into());
        Value::Object(counts)
    }

    fn text(&self) -> String {
        let became: Vec<String> = self
            .became()
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{} {name}", thousands(*count)))
            .collect();
        match self.samples.load(Ordering::Relaxed) {
            0 => "no samples".into(),
            1 => format!("1 sample: {}", became.join(", ")),
            many => format!("{} samples: {}", thousands(many), became.join(", ")),
        }
    }

    /// Whether all that was wished has left.
    fn verdict(&self, wished: Option<u64>) -> Result<(), Failure> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let samples = read(&self.samples);
        if let Some(wished) = wished.filter(|wished| *wished > samples) {
            let (samples, wished) = (thousands(samples), thousands(wished));
            return Err(Failure::outcome(
                Status::CANCELLED,
                format!("interrupted after {samples} of {wished} samples"),
                "what is said to be sent or heard has left",
            ));
        }
        let dropped = read(&self.dropped);
        if dropped > 0 {
            return Err(Failure::outcome(
                Status::RESOURCE_EXHAUSTED,
                format!(
                    "{} samples were dropped: the link was full",
                    thousands(dropped)
                ),
                "let it wait (--congestion block), or publish less often (--rate)",
            ));
        }
        if read(&self.heard) + read(&self.sent) == 0 && samples > 0 {
            return Err(Failure::outcome(
                Status::NOT_FOUND,
                "nobody there subscribes to this key, so nothing was sent",
                "start the subscriber first (--wait-subscriber waits for it), or compare the keys",
            ));
        }
        Ok(())
    }
}

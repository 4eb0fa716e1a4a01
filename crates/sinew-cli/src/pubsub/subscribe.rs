//! `sinew sub`: takes samples, shows them or counts them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use sinew::pubsub::codec::{Body, Qos};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{PublisherOptions, Stats};
use sinew::rpc::Status;
use sinew_io::pubsub::{Node, Options, Overflow, OwnedSample, Publisher, Samples, Subscriber};

use super::place::{Meet, Nodes, TICK};
use super::sequence::{Found, Numbers};
use super::{Interrupt, key, show};
use crate::failure::Failure;
use crate::output::{self, thousands};

/// Subscribe to keys of a Zenoh network.
///
/// Samples are written one by one as they come, or counted with --rate, until Ctrl-C. What the
/// sessions have missed is said at the end. A publisher that sends faster than samples are written
/// has to wait, where it is ready to.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Key expressions, as in demo/lamp, demo/* or **
    #[arg(value_name = "KEY", required = true, value_parser = key::parse)]
    keys: Vec<String>,
    #[command(flatten)]
    meet: Meet,
    /// End after so many samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Write what came along with each sample as well
    #[arg(short, long)]
    verbose: bool,
    /// Write how many came, each second, in place of the samples
    #[arg(long)]
    rate: bool,
    /// Find gaps by the numbers that `sinew pub --size` writes
    #[arg(long)]
    sequence: bool,
    /// Publish each sample again on this key, in place of writing it
    #[arg(long, value_name = "KEY", value_parser = key::parse)]
    echo: Option<String>,
}

const EXAMPLES: &str = "Examples:
  sinew sub 'demo/**'
  sinew sub demo/load --rate --sequence --connect udp:127.0.0.1:7447
  sinew sub 'demo/**' --json --listen tcp:127.0.0.1:7448 | jq .payload";

/// Samples that wait for being written, for each key and session. Then the publisher waits.
const WAITING: usize = 1024;

pub fn run(args: Args) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let tally = Arc::new(Tally::default());
    match args.rate || args.echo.is_some() {
        true => args.count_all(&interrupt, &tally),
        false => args.show_all(&interrupt, &tally),
    }
}

impl Args {
    /// Writes each sample.
    fn show_all(&self, interrupt: &Interrupt, tally: &Arc<Tally>) -> Result<(), Failure> {
        let (send, samples) = sync_channel(1);
        let carriers = Arc::new(Mutex::new(Vec::new()));
        let started = carriers.clone();
        let (keys, tallies, numbered) = (self.keys.clone(), tally.clone(), self.sequence);
        let make = move |node: &Node| {
            let mut all = Vec::new();
            if let Ok(mut started) = started.lock() {
                // A thread keeps its stack until it is joined, or its handle has gone.
                started.retain(|thread: &JoinHandle<()>| !thread.is_finished());
            }
            for at in 0..keys.len() {
                let (keys, key) = split(&keys, at);
                let samples = node.samples(key, WAITING, Overflow::Wait);
                let samples = samples.map_err(refused)?;
                let tally = numbered.then(|| tallies.clone());
                let (carrier, thread) = Carrier::start(samples, keys, tally, send.clone());
                all.push(carrier);
                if let Ok(mut started) = started.lock() {
                    started.push(thread);
                }
            }
            Ok(all)
        };
        let nodes = self.meet.open(Options::client(), interrupt, Box::new(make));
        let mut nodes = nodes?;
        self.greet(&mut nodes);
        let result = self.write_all(&mut nodes, &samples, interrupt, tally);
        self.close(tally, &nodes.stats());
        // So that nobody waits for its being taken, and the sessions end in order.
        drop(samples);
        drop(nodes);
        let threads = carriers.lock().map(|mut all| std::mem::take(&mut *all));
        for thread in threads.unwrap_or_default() {
            let _ = thread.join();
        }
        result?;
        self.verdict(tally)
    }

    fn write_all<H>(
        &self,
        nodes: &mut Nodes<H>,
        samples: &Receiver<OwnedSample>,
        interrupt: &Interrupt,
        tally: &Tally,
    ) -> Result<(), Failure> {
        let mut looked = Instant::now();
        let mut was_quiet = true;
        while !interrupt.is_set() && !self.is_enough(tally) {
            match samples.recv_timeout(TICK) {
                Ok(sample) => {
                    // Who sends it is told of first.
                    if std::mem::take(&mut was_quiet) {
                        nodes.look()?;
                    }
                    tally.count(sample.payload.len());
                    let text = match output::is_json() {
                        true => show::json(&sample),
                        false => show::text(&sample, self.verbose),
                    };
                    if !output::line_of_many(&text)? {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => was_quiet = true,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if looked.elapsed() > TICK {
                looked = Instant::now();
                nodes.look()?;
            }
        }
        Ok(())
    }

    /// Counts samples, and publishes them again where that is asked for.
    fn count_all(&self, interrupt: &Interrupt, tally: &Arc<Tally>) -> Result<(), Failure> {
        let (keys, tallies) = (self.keys.clone(), tally.clone());
        let (echo, numbered) = (self.echo.clone(), self.sequence);
        let make = move |node: &Node| {
            let mut all: Vec<Subscriber> = Vec::new();
            for at in 0..keys.len() {
                let echo = echo.as_deref().map(|key| back(node, key)).transpose()?;
                let (keys, key) = split(&keys, at);
                let mut counter = Counter {
                    tally: tallies.clone(),
                    numbers: numbered.then(Numbers::default),
                };
                let handler = move |sample: &sinew::pubsub::session::Sample<'_>| {
                    if is_of(&keys, sample.key) {
                        return;
                    }
                    counter.count(sample.key, sample.body.payload);
                    if let Some(echo) = &echo {
                        let body = Body {
                            timestamp: None,
                            source: None,
                            ..sample.body
                        };
                        if echo.publish(&body).is_err() {
                            counter.tally.unanswered.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                };
                all.push(node.subscriber(key, handler).map_err(refused)?);
            }
            Ok(all)
        };
        let nodes = self.meet.open(Options::client(), interrupt, Box::new(make));
        let mut nodes = nodes?;
        self.greet(&mut nodes);
        let mut last = Second::new(tally, &nodes.stats());
        while !interrupt.is_set() && !self.is_enough(tally) {
            thread::sleep(TICK / 10);
            nodes.look()?;
            if self.rate && last.started.elapsed() >= Duration::from_secs(1) {
                let now = Second::new(tally, &nodes.stats());
                if !output::line_of_many(&now.text(&last, self))? {
                    break;
                }
                last = now;
            }
        }
        self.close(tally, &nodes.stats());
        self.verdict(tally)
    }

    fn greet<H>(&self, nodes: &mut Nodes<H>) {
        let at = nodes.at().clone();
        for party in nodes.all() {
            if let Some(who) = party.who() {
                output::note(&format!(
                    "subscribed to {} at {at}, {who}",
                    self.keys.join(", ")
                ));
            }
        }
    }

    fn is_enough(&self, tally: &Tally) -> bool {
        self.count.is_some_and(|count| tally.samples() >= count)
    }

    /// What there was, and what there was not.
    fn close(&self, tally: &Tally, stats: &Stats) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (samples, bytes) = (tally.samples(), read(&tally.bytes));
        let mut all = vec![match samples {
            1 => "1 sample".into(),
            many => format!("{} samples", thousands(many)),
        }];
        all.push(format!("{} bytes", thousands(bytes)));
        let names = ["opened", "messages", "dropped"];
        for (name, count) in stats.iter() {
            if count > 0 && !names.contains(&name) {
                all.push(format!("{name} {}", thousands(count.into())));
            }
        }
        if self.sequence {
            for (name, count) in [
                ("lost", &tally.lost),
                ("out of order", &tally.old),
                ("without a number", &tally.unnumbered),
            ] {
                if read(count) > 0 || name == "lost" {
                    all.push(format!("{name} {}", thousands(read(count))));
                }
            }
        }
        if read(&tally.unanswered) > 0 {
            all.push(format!("not echoed {}", thousands(read(&tally.unanswered))));
        }
        output::note(&all.join(", "));
    }

    fn verdict(&self, tally: &Tally) -> Result<(), Failure> {
        match tally.lost.load(Ordering::Relaxed) {
            0 => Ok(()),
            lost => Err(Failure::outcome(
                Status::DATA_LOSS,
                format!("{} samples are missing by their numbers", thousands(lost)),
                "where the publisher waits (--congestion block) and the link loses nothing (tcp, \
                 unix, shm), none are; else publish less often",
            )),
        }
    }
}

fn refused(error: impl ToString) -> Failure {
    Failure::internal("cannot subscribe", error)
}

/// The key at a place, and those before it.
fn split(keys: &[String], at: usize) -> (Vec<String>, &str) {
    let (before, rest) = keys.split_at(at);
    (before.to_vec(), rest.first().map_or("", String::as_str))
}

/// Whether one of these takes the sample: then it has been taken.
fn is_of(keys: &[String], key: &str) -> bool {
    let sample = KeyExpr::unchecked(key);
    let mut keys = keys.iter().map(|key| KeyExpr::unchecked(key));
    keys.any(|key| key.intersects(sample))
}

/// Answers on this key.
fn back(node: &Node, key: &str) -> Result<Publisher, Failure> {
    let options = PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(true),
        ..PublisherOptions::DEFAULT
    };
    node.publisher_with(key, options)
        .map_err(|error| Failure::internal("cannot publish", error))
}

/// Carries samples of one key and session to who writes them, until it is dropped.
struct Carrier {
    is_over: Arc<AtomicBool>,
}

impl Carrier {
    fn start(
        samples: Samples,
        keys: Vec<String>,
        tally: Option<Arc<Tally>>,
        to: SyncSender<OwnedSample>,
    ) -> (Carrier, JoinHandle<()>) {
        let is_over = Arc::new(AtomicBool::new(false));
        let carrier = Carrier {
            is_over: is_over.clone(),
        };
        let thread = thread::spawn(move || {
            let mut numbers = Numbers::default();
            loop {
                let Some(sample) = samples.next_within(Some(TICK)) else {
                    // What had arrived before has been carried.
                    match is_over.load(Ordering::Acquire) {
                        true => break,
                        false => continue,
                    }
                };
                if is_of(&keys, &sample.key) {
                    continue;
                }
                if let Some(tally) = &tally {
                    tally.see(numbers.see(&sample.key, &sample.payload));
                }
                if to.send(sample).is_err() {
                    break;
                }
            }
        });
        (carrier, thread)
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// What has come, over all keys and sessions.
#[derive(Debug, Default)]
struct Tally {
    samples: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    old: AtomicU64,
    unnumbered: AtomicU64,
    unanswered: AtomicU64,
}

impl Tally {
    fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    fn see(&self, found: Found) {
        let (counter, count) = match found {
            Found::Next => return,
            Found::Lost(count) => (&self.lost, count),
            Found::Old => (&self.old, 1),
            Found::None => (&self.unnumbered, 1),
        };
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// Counts samples of one key and session.
struct Counter {
    tally: Arc<Tally>,
    numbers: Option<Numbers>,
}

impl Counter {
    fn count(&mut self, key: &str, payload: &[u8]) {
        if let Some(numbers) = &mut self.numbers {
            self.tally.see(numbers.see(key, payload));
        }
        self.tally.count(payload.len());
    }
}

/// The counters at one time.
struct Second {
    started: Instant,
    samples: u64,
    bytes: u64,
    lost: u64,
    missed: u32,
}

impl Second {
    fn new(tally: &Tally, stats: &Stats) -> Second {
        Second {
            started: Instant::now(),
            samples: tally.samples(),
            bytes: tally.bytes.load(Ordering::Relaxed),
            lost: tally.lost.load(Ordering::Relaxed),
            missed: stats.missed_reliable.wrapping_add(stats.missed_best_effort),
        }
    }

    fn text(&self, before: &Second, args: &Args) -> String {
        let span = (self.started - before.started).as_secs_f64();
        let per_s = |now: u64, before: u64| ((now - before) as f64 / span).round() as u64;
        let samples = per_s(self.samples, before.samples);
        let bytes = per_s(self.bytes, before.bytes);
        let missed = self.missed.wrapping_sub(before.missed);
        let lost = args.sequence.then(|| self.lost - before.lost);
        if output::is_json() {
            let mut line = json!({
                "samples_per_s": samples, "bytes_per_s": bytes, "missed": missed,
            });
            if let (Some(lost), Some(line)) = (lost, line.as_object_mut()) {
                line.insert("lost".into(), json!(lost));
            }
            return line.to_string();
        }
        let lost = lost.map_or(String::new(), |lost| format!("   lost {lost}"));
        let (samples, bytes) = (thousands(samples), thousands(bytes));
        format!("{samples:>11} samples/s {bytes:>14} bytes/s   missed {missed}{lost}")
    }
}

//! `sinew top`: several devices, live.
//!
//! | module | what it is for |
//! |---|---|
//! | `watch` | looks at each device, its memory, and networks of Zenoh, in threads |
//! | `model` | rates and percentiles between two looks |
//! | `screen` | the view on a terminal |
//! | `lines` | the view elsewhere: plain lines, and JSON |
//! | `figures` | figures as short words |

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use sinew::frame::Framing;
use sinew_io::Endpoint;

use crate::failure::Failure;
use crate::interrupt::at_ctrl_c;
use crate::output;
use crate::pubsub::{batches, key};
use crate::span;

mod figures;
mod lines;
mod model;
mod screen;
mod watch;

use model::{Model, News};
use watch::Network;

/// Watch devices live: calls, latencies, errors, bytes and drops, topics, and how full shared memory is.
///
/// Devices say it by themselves where they serve sinew.Device. On a terminal it is one screen, q or Ctrl-C ends it;
/// elsewhere it is plain lines. A device that is not there is waited for.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Devices, as every command takes them; of shm: and qemu: the memory is shown as well
    #[arg(value_name = "ENDPOINT", required_unless_present = "connect")]
    endpoints: Vec<Endpoint>,
    /// Show what is published in a network of Zenoh, whose router or peer is there
    #[arg(long, value_name = "ENDPOINT", value_parser = batches)]
    connect: Vec<Endpoint>,
    /// Of these key expressions
    #[arg(long, value_name = "KEY", default_value = "**", value_parser = key::parse)]
    key: Vec<String>,
    /// From one look to the next
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    every: Duration,
    /// End after that time
    #[arg(long = "for", value_name = "TIME", value_parser = span::any)]
    lasting: Option<Duration>,
}

const EXAMPLES: &str = "Examples:
  sinew top tcp:localhost:33000 serial:/dev/ttyUSB0?baud=921600
  sinew top shm:/run/camera.sock --connect tcp:localhost:7447 --key 'camera/**'
  sinew top tcp:localhost:33000 --for 10s --json | jq .devices[0].calls_per_s";

/// A look asks each device some questions: not without end.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(3600);
/// How soon a key is heard.
const HEARING: Duration = Duration::from_millis(50);

fn every(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if (SHORTEST..=LONGEST).contains(&span) => Ok(span),
        Ok(_) => Err("it is out of range: give 20ms to 1h".into()),
        Err(error) => Err(format!("{error}: give e.g. 500ms or 2s")),
    }
}

pub fn run(args: Args) -> Result<(), Failure> {
    for endpoint in &args.endpoints {
        if endpoint.framing == Framing::Zenoh {
            return Err(Failure::usage(
                format!("{endpoint} is no device that can be called, but a network of Zenoh"),
                format!("write --connect {endpoint}"),
            ));
        }
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = is_over.clone();
    at_ctrl_c(move || flag.store(true, Ordering::Release))?;
    let mut watch = Watch::start(&args, is_over)?;
    let is_screen = !output::is_json()
        && std::io::stdout().is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    match is_screen {
        true => on_screen(&mut watch),
        false => watch.lines(output::is_json()),
    }
}

/// What is watched, and who looks.
struct Watch {
    model: Model,
    networks: Vec<Network>,
    news: Receiver<News>,
    threads: Vec<JoinHandle<()>>,
    every: Duration,
    started: Instant,
    until: Option<Instant>,
    /// Somebody wants it to end.
    is_over: Arc<AtomicBool>,
}

impl Watch {
    fn start(args: &Args, is_over: Arc<AtomicBool>) -> Result<Watch, Failure> {
        let (tell, news) = channel();
        let mut threads = Vec::new();
        for (index, endpoint) in args.endpoints.iter().enumerate() {
            threads.extend(watch::device(index, endpoint, args.every, &tell));
        }
        let networks = args.connect.iter().map(|at| Network::open(at, &args.key));
        let networks = networks.collect::<Result<_, _>>()?;
        let names = |all: &[Endpoint]| all.iter().map(Endpoint::to_string).collect::<Vec<_>>();
        let started = Instant::now();
        Ok(Watch {
            model: Model::new(&names(&args.endpoints), &names(&args.connect)),
            networks,
            news,
            threads,
            every: args.every,
            started,
            until: args.lasting.and_then(|span| started.checked_add(span)),
            is_over,
        })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
            || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Takes the news of so long in; whether there was any.
    fn hear(&mut self, span: Duration) -> Result<bool, Failure> {
        let until = Instant::now() + span;
        let mut has_news = false;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.news.recv_timeout(left.min(HEARING)) {
                Ok(news) => {
                    self.model.take(news);
                    has_news = true;
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() || self.is_over() => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.threads.is_empty() => {
                    std::thread::sleep(left.min(HEARING));
                    if left.is_zero() || self.is_over() {
                        break;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match self.threads.iter().any(JoinHandle::is_finished) {
            true => Err(Failure::internal(
                "cannot watch any more",
                "a thread has ended",
            )),
            false => Ok(has_news),
        }
    }

    fn look_at_networks(&mut self) {
        for (index, network) in self.networks.iter().enumerate() {
            self.model.take(network.look(index));
        }
    }

    /// A block of lines, or a line of JSON, for each look.
    fn lines(&mut self, is_json: bool) -> Result<(), Failure> {
        let mut next = Instant::now();
        loop {
            next += self.every;
            let left = next.saturating_duration_since(Instant::now());
            let left = self.until.map_or(left, |until| {
                left.min(until.saturating_duration_since(Instant::now()))
            });
            self.hear(left)?;
            self.look_at_networks();
            let text = match is_json {
                true => lines::json(&self.model, self.started.elapsed().as_secs_f64()).to_string(),
                false => lines::text(&self.model),
            };
            if !output::line_of_many(&text)? || self.is_over() {
                return Ok(());
            }
        }
    }

    fn screen(&mut self, terminal: &mut DefaultTerminal) -> std::io::Result<Result<(), Failure>> {
        let look = screen::Look {
            has_colour: output::has_colour(),
            every: self.every,
        };
        let mut looked = Instant::now();
        self.look_at_networks();
        let mut is_new = true;
        while !self.is_over() {
            if std::mem::take(&mut is_new) {
                terminal.draw(|frame| screen::draw(frame, &self.model, look))?;
            }
            if event::poll(HEARING)? {
                match event::read()? {
                    Event::Key(key)
                        if key.kind == KeyEventKind::Press && ends(key.code, key.modifiers) =>
                    {
                        break;
                    }
                    Event::Resize(columns, rows) => {
                        // Also where it is as before: what a terminal leaves of the old screen is its own affair.
                        terminal.resize(Rect::new(0, 0, columns, rows))?;
                        is_new = true;
                    }
                    _ => {}
                }
            }
            match self.hear(Duration::ZERO) {
                Ok(has_news) => is_new |= has_news,
                Err(failure) => return Ok(Err(failure)),
            }
            if looked.elapsed() >= self.every && !self.networks.is_empty() {
                looked = Instant::now();
                self.look_at_networks();
                is_new = true;
            }
        }
        Ok(Ok(()))
    }
}

fn ends(code: KeyCode, modifiers: KeyModifiers) -> bool {
    match code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        KeyCode::Char('c' | 'C') => modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

/// The terminal is as it was, however this ends: what panics restores it first.
fn on_screen(watch: &mut Watch) -> Result<(), Failure> {
    let failed = |error| Failure::internal("cannot use the terminal", error);
    let notes = output::hold_notes();
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let result = watch.screen(&mut terminal);
    ratatui::restore();
    drop(notes);
    result.map_err(failed)?
}

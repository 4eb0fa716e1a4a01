//! Zenoh's own Rust stack (PyPI eclipse-zenoh) against Sinew: feature, direction, link.
//!
//! The cells are made by taking the product of all three, so that one that nobody wrote is empty
//! and fails. Each prints a line. Needs what `./setup test` installs.

mod boards;
mod cells;
mod driver;
mod edges;
mod lives;
mod node;
mod ours;
mod peer;
mod proxy;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cells::{Case, FEATURES, cell};
use node::{At, Failure, Kind, Maker, Node};
use ours::Sinew;
use peer::{Peer, Real};

/// Held by each test: one at a time, since all count on some of the machine's time.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the two nodes reach each other. The subject is what is tested, the other one is real.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Between {
    Router,
    SubjectOpens,
    SubjectListens,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link(Kind, Between);

const LINKS: [Link; 9] = {
    use Between::*;
    [
        Link(Kind::Tcp, Router),
        Link(Kind::Tcp, SubjectOpens),
        Link(Kind::Tcp, SubjectListens),
        Link(Kind::Udp, Router),
        Link(Kind::Udp, SubjectOpens),
        Link(Kind::Udp, SubjectListens),
        Link(Kind::Unix, Router),
        Link(Kind::Unix, SubjectOpens),
        Link(Kind::Unix, SubjectListens),
    ]
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    SubjectGives,
    RealGives,
}

const DIRECTIONS: [Direction; 2] = [Direction::SubjectGives, Direction::RealGives];

/// Two nodes that have a session with each other, or each with one router.
struct Pair {
    subject: Box<dyn Node>,
    real: Box<dyn Node>,
    /// Lives as long as the nodes.
    _router: Option<Peer>,
}

impl Pair {
    fn new(Link(kind, between): Link, subject: &dyn Maker) -> Result<Self, Failure> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("zenoh-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let any = At::any(kind, &path);
        let (subject, real, router) = match between {
            Between::Router => {
                let router = Peer::router(&any)?;
                let at = router.at().first().ok_or("the router does not listen")?;
                let (subject, real) = (subject.client(at)?, Real.client(at)?);
                (subject, real, Some(router))
            }
            Between::SubjectOpens => {
                let (real, at) = Real.listens(&any)?;
                (subject.opens(&at)?, real, None)
            }
            Between::SubjectListens => {
                let (subject, at) = subject.listens(&any)?;
                (subject, Real.opens(&at)?, None)
            }
        };
        Ok(Self {
            subject,
            real,
            _router: router,
        })
    }

    fn close(self) -> Result<(), Failure> {
        self.subject.close()?;
        self.real.close()
    }
}

/// Runs all cells, or those of features whose names begin with one of those in SINEW_CELLS, which
/// has commas between them.
fn matrix(subject: &dyn Maker, links: impl Iterator<Item = Link>) {
    let _turn = alone();
    let only = std::env::var("SINEW_CELLS").unwrap_or_default();
    let asked_for = |name: &str| only.split(',').any(|begin| name.starts_with(begin));
    let mut failed = Vec::new();
    for link in links {
        let mut pair = None;
        for direction in DIRECTIONS {
            for name in FEATURES.iter().filter(|name| asked_for(name)) {
                let started = Instant::now();
                let Link(kind, between) = link;
                let (kind, between) = (format!("{kind:?}"), format!("{between:?}"));
                let way = format!("{direction:?}");
                let cell = format!("{kind:4} {between:14} {way:12} {name:23}");
                let mut outcome = run(link, direction, name, subject, &mut pair);
                if let Err(Failed { drops: true, .. }) = outcome
                    && direction == Direction::RealGives
                {
                    pair = None;
                    outcome = run(link, direction, name, subject, &mut pair);
                }
                let verdict = match outcome {
                    Ok(seen) => format!("ok     {seen}"),
                    Err(Failed { error, .. }) => {
                        // The next cell begins anew.
                        let notes = pair.take().map(|pair| pair.subject.notes());
                        let verdict = format!("FAILED {error} ({})", notes.unwrap_or_default());
                        failed.push(format!("{cell} {verdict}"));
                        verdict
                    }
                };
                println!("{cell} {verdict} ({:?})", started.elapsed());
            }
        }
        if let Some(Err(error)) = pair.map(Pair::close) {
            failed.push(format!("{link:?} close FAILED {error}"));
        }
    }
    // Once more here, where many lines stand above.
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A cell that failed.
struct Failed {
    error: Failure,
    /// Its giver may drop what it sends. Zenoh 1.10.2 does so for good in a session without priorities
    /// that was congested once: it marks one priority as congested, and takes the mark from another.
    drops: bool,
}

fn run(
    link: Link,
    direction: Direction,
    name: &'static str,
    subject: &dyn Maker,
    pair: &mut Option<Pair>,
) -> Result<String, Failed> {
    let failed = |error: Failure| Failed {
        error,
        drops: false,
    };
    let cell = cell(name).ok_or_else(|| failed("EMPTY CELL".into()))?;
    let pair = match pair {
        Some(pair) => pair,
        none => none.insert(Pair::new(link, subject).map_err(failed)?),
    };
    let (giver, taker) = match direction {
        Direction::SubjectGives => (&mut pair.subject, &mut pair.real),
        Direction::RealGives => (&mut pair.real, &mut pair.subject),
    };
    let mut case = Case {
        giver: giver.as_mut(),
        taker: taker.as_mut(),
        name,
        lossy: link.0 == Kind::Udp,
        may_drop: false,
    };
    let outcome = cell(&mut case);
    let drops = case.may_drop;
    outcome.map_err(|error| Failed { error, drops })
}

/// Runs what takes longer, each in sessions of its own, with so many samples or as SINEW_SAMPLES says.
fn lives(subject: &dyn Maker, samples: u32) {
    let _turn = alone();
    let asked = std::env::var("SINEW_SAMPLES").ok();
    let samples = asked.and_then(|n| n.parse().ok()).unwrap_or(samples);
    let mut failed = Vec::new();
    for (name, life) in lives::LIVES {
        let verdict = match life(subject, samples) {
            Ok(seen) => format!("ok     {seen}"),
            Err(error) => {
                failed.push(format!("{name} FAILED {error}"));
                format!("FAILED {error}")
            }
        };
        println!("{name:43} {verdict}");
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn zenoh_outlives_restarts_and_loses_none_of_many_samples_with_itself() {
    lives(&Real, 100_000);
}

/// The matrix is right where Zenoh passes it with itself.
#[test]
fn zenoh_passes_every_cell_with_itself() {
    // Two of its processes take as long on each link; SINEW_LONG: on all.
    let long = std::env::var_os("SINEW_LONG").is_some();
    let links = LINKS.into_iter();
    matrix(&Real, links.filter(|link| long || link.0 == Kind::Tcp));
}

#[test]
fn sinew_passes_every_cell_with_zenoh() {
    matrix(&Sinew::default(), LINKS.into_iter());
}

#[test]
fn sinew_outlives_restarts_and_loses_none_of_many_samples_with_zenoh() {
    // The matrix is played without batches.
    let sinew = Sinew {
        batching: Duration::from_millis(1),
        ..Sinew::default()
    };
    lives(&sinew, 1_000_000);
}

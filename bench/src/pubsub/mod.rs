//! `make bench BENCH=pubsub`: samples from a publisher to a subscriber, against the Rust Zenoh and a
//! bare socket.
//!
//! Every party is a process of its own, with its roles, clocks and counts from `bench/party`; this
//! program starts them, gives orders, and collects what they answer. Figures are the receiver's. In each
//! case all contenders are open at once and take turns, round by round, so that the ratios hold on a
//! machine that changes its speed; figures are medians of the rounds, ratios medians of the ratios within a
//! round.

mod aims;
mod case;
mod child;
mod contender;
mod parties;
mod plot;
mod ports;
mod proxy;
mod report;
mod turn;

use std::time::Duration;

use case::{CASES, Case, Measure};
use contender::ALL;
use report::Measured;
use turn::Turn;

pub use parties::party;

use crate::Result;
use crate::csv::{self, Row};

/// The time of a round.
const ROUND: Duration = Duration::from_millis(400);

/// What opening a contender takes, and a round beside its own time.
const OPENING: Duration = Duration::from_millis(700);
const AROUND: Duration = Duration::from_millis(40);

/// How much is measured.
pub struct Effort<'a> {
    /// Only cases with this text in their names.
    pub only: &'a str,
    /// All of it, about.
    pub time: Duration,
}

impl Effort<'_> {
    /// Below ten minutes.
    pub const FULL: Effort<'static> = Effort {
        only: "",
        time: Duration::from_secs(360),
    };

    /// Reads `--only TEXT` and `--seconds N`.
    pub fn read<'a>(words: &[&'a str]) -> Result<Effort<'a>> {
        match words {
            [] => Ok(Effort::FULL),
            ["--only", only, rest @ ..] => Ok(Effort {
                only,
                ..Effort::read(rest)?
            }),
            ["--seconds", seconds, rest @ ..] => Ok(Effort {
                time: Duration::from_secs(seconds.parse()?),
                ..Effort::read(rest)?
            }),
            [word, ..] => Err(format!("{word}: not known").into()),
        }
    }

    fn cases(&self) -> impl Iterator<Item = &'static Case> {
        let only = String::from(self.only);
        CASES.iter().filter(move |case| case.name().contains(&only))
    }

    /// Rounds of each case.
    fn rounds(&self) -> usize {
        let (mut once, mut round) = (Duration::ZERO, Duration::ZERO);
        for case in self.cases() {
            for _ in ALL.iter().filter(|contender| contender.takes(case)) {
                once += OPENING;
                match case.is_once() {
                    true => once += case.time(),
                    false => round += case.time() + AROUND,
                }
            }
        }
        let left = self.time.saturating_sub(once).as_secs_f64();
        let rounds = left / round.as_secs_f64().max(0.001);
        (rounds as usize).clamp(1, 15)
    }
}

impl Case {
    /// The time of a round.
    fn time(&self) -> Duration {
        match self.measure {
            Measure::Sustained => Duration::from_secs(10),
            // Ten samples, at least.
            Measure::Latency(rate) => ROUND.max(Duration::from_secs(10) / rate),
            _ => ROUND,
        }
    }

    /// Whether there is one round only.
    fn is_once(&self) -> bool {
        matches!(self.measure, Measure::Sustained | Measure::Wire)
    }
}

/// Measures, prints a table, and writes `bench/results/pubsub.csv` and a plot if it was everything.
pub fn run(words: &[&str]) -> Result<()> {
    let effort = Effort::read(words)?;
    let rounds = effort.rounds();
    let (mut all, mut failed) = (Vec::new(), 0);
    report::print_head();
    for case in effort.cases() {
        let (measured, failures) = run_case(case, rounds);
        report::print_case(&measured);
        all.push(measured);
        failed += failures;
    }
    let rows: Vec<Row> = report::rows(&all);
    aims::print(&all);
    if words.is_empty() {
        csv::write("pubsub", &rows)?;
        plot::write(&all)?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} contenders failed, see above").into()),
    }
}

/// All contenders of a case, round by round, and how many failed.
fn run_case(case: &'static Case, rounds: usize) -> (Measured, usize) {
    let mut measured = Measured::new(case);
    let mut failures = 0;
    let mut turns: Vec<Option<Turn>> = Vec::new();
    let mut failed = |name: &str, error: &dyn std::fmt::Display| {
        eprintln!("{}: {name}: {error}", case.name());
        failures += 1;
    };
    for contender in ALL {
        let turn = contender.takes(case).then(|| Turn::open(contender, case));
        turns.push(match turn.transpose() {
            Ok(turn) => turn,
            Err(error) => {
                failed(contender.name, &error);
                None
            }
        });
    }
    let (warm, rounds) = if case.is_once() { (0, 1) } else { (1, rounds) };
    for number in 0..warm + rounds {
        let mut figures = Vec::new();
        for (turn, contender) in turns.iter_mut().zip(ALL) {
            let round = turn.as_mut().map(|turn| turn.round(case.time()));
            figures.push(match round.transpose() {
                Ok(round) => round,
                Err(error) => {
                    failed(contender.name, &error);
                    *turn = None;
                    None
                }
            });
        }
        if number >= warm {
            measured.rounds.push(figures);
        }
    }
    (measured, failures)
}

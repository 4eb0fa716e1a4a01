//! The first process: it starts the second, calls and consumes, and keeps the time.

use std::process::{Command, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::child::pin;
use super::contender::{Contender, Runner};
use super::contenders::ALL;
use super::control::Control;
use super::payload::Digest;
use super::report::{Measured, Round, rows};
use super::{CASES, Case, Effort, Kind, NEAR, Placement};
use crate::Result;
use crate::csv::Row;

/// Runs all cases with this text in their names, with all contenders.
pub fn run(effort: Effort, cases: &str) -> Result<Vec<Row>> {
    let second = Second::start()?;
    pin(0)?;
    second.order("pin 1")?;
    let mut probe = Pair::open(&second, "probe", 0, 0)?;
    probe.count = 100;
    let mut measured = CASES.each_ref().map(|_| Measured::new());
    let start = Instant::now();
    let mut turn = 0;
    while start.elapsed() < effort.time {
        for (index, measured) in measured.iter_mut().enumerate() {
            if !CASES[index].figures[0].contains(cases) {
                continue;
            }
            let prefix = format!("sinew-bench-{}-{turn}-{index}", std::process::id());
            run_case(&second, &mut probe, index, &prefix, effort, measured)?;
        }
        turn += 1;
    }
    second.end()?;
    Ok(rows(&measured))
}

/// One turn of a case: all contenders, round by round.
fn run_case(
    second: &Second,
    probe: &mut Pair,
    index: usize,
    prefix: &str,
    effort: Effort,
    measured: &mut Measured,
) -> Result<()> {
    let case = &CASES[index];
    second.order(&format!("pin {}", u8::from(case.two_cores)))?;
    let mut ends = Vec::new();
    for (number, contender) in ALL.iter().enumerate() {
        ends.push(if case.is_for(contender) {
            let name = format!("{prefix}-{number}");
            let mut pair = Pair::open(second, &name, number, index)?;
            pair.calibrate(second, effort.round)?;
            Some(pair)
        } else {
            None
        });
    }
    let mut place = placement(second, case, probe)?;
    for _ in 0..effort.rounds {
        let (mut figures, mut moved) = (Vec::new(), false);
        for end in &mut ends {
            let Some(end) = end else {
                figures.push(None);
                continue;
            };
            figures.push(Some(end.round(second)?));
            let before = place;
            place = placement(second, case, probe)?;
            moved |= place != before;
        }
        if !moved {
            measured.push(Round { place, figures });
        }
    }
    for end in ends.into_iter().flatten() {
        second.order(&format!("close {}", end.name))?;
    }
    Ok(())
}

/// Where the cores are now.
fn placement(second: &Second, case: &Case, probe: &mut Pair) -> Result<Placement> {
    if !case.two_cores || probe.round(second)? < NEAR {
        Ok(Placement::Near)
    } else {
        Ok(Placement::Far)
    }
}

/// A contender, open on both sides.
struct Pair {
    name: String,
    contender: &'static Contender,
    case: &'static Case,
    near: Box<dyn Runner>,
    /// Calls or messages in a round.
    count: u64,
}

impl Pair {
    fn open(second: &Second, name: &str, number: usize, index: usize) -> Result<Self> {
        let (contender, case) = (&ALL[number], &CASES[index]);
        let order = format!("open {name} {number} {index}");
        second.control.say(&order)?;
        let near = (contender.near)(&case.opening(name, &second.control))
            .map_err(|error| format!("{}, {}: {error}", contender.name, case.figures[0]))?;
        second.done()?;
        Ok(Pair {
            name: name.into(),
            contender,
            case,
            near,
            count: 8,
        })
    }

    /// Finds the count with which a round takes the time it should, about.
    fn calibrate(&mut self, second: &Second, round: Duration) -> Result<()> {
        loop {
            let took = self.time(second)?;
            let aim = round.as_nanos() as f64 / took.as_nanos().max(1) as f64;
            if aim < 1.5 {
                return Ok(());
            }
            self.count = (self.count as f64 * aim.min(8.0)) as u64;
        }
    }

    /// One round: ns for a call, or messages per us.
    fn round(&mut self, second: &Second) -> Result<f64> {
        let took = self.time(second)?.as_nanos() as f64;
        let count = self.count as f64;
        Ok(match self.case.kind {
            Kind::RoundTrip => took / count,
            Kind::OneWay { .. } => 1000.0 * (count - 1.0) / took,
        })
    }

    fn time(&mut self, second: &Second) -> Result<Duration> {
        let (name, count) = (&self.name, self.count);
        let (took, ours, theirs) = match self.case.kind {
            Kind::RoundTrip => {
                // The second process has to wake up and warm its caches first.
                let untimed = count / 8 + 8;
                let all = untimed + count;
                second.control.say(&format!("answer {name} {all}"))?;
                let (took, digest) = self.near.calls(untimed, count)?;
                let answers = Digest::of_answers(self.case.size, all);
                let requests = Digest::of_stream(self.case.size, all);
                (took, digest == answers, second.done()? == requests.0)
            }
            Kind::OneWay { batch } => {
                let order = format!("produce {name} {count} {batch}");
                second.control.say(&order)?;
                let (took, digest) = self.near.consume(count, batch as u64)?;
                second.done()?;
                let stream = Digest::of_stream(self.case.size, count);
                (took, digest == stream, true)
            }
        };
        if !(self.contender.checks_itself || ours && theirs) {
            let (name, figure) = (self.contender.name, self.case.figures[0]);
            return Err(format!("{name}, {figure}: payload is not what was sent").into());
        }
        Ok(took)
    }
}

/// The second process.
struct Second {
    control: Control,
    ending: Arc<AtomicBool>,
    watch: thread::JoinHandle<()>,
}

impl Second {
    fn start() -> Result<Self> {
        let (control, theirs) = Control::pair()?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("shm-child")
            .stdin(theirs)
            .spawn()?;
        let ending = Arc::new(AtomicBool::new(false));
        let expected = ending.clone();
        // Busy loops do not notice that the other side is gone.
        let watch = thread::spawn(move || {
            let status = child.wait();
            if !expected.load(Ordering::Acquire) {
                eprintln!("sinew-bench: the second process ended: {status:?}");
                exit(1);
            }
        });
        Ok(Second {
            control,
            ending,
            watch,
        })
    }

    /// Has it do something that needs nothing from us.
    fn order(&self, order: &str) -> Result<u64> {
        self.control.say(order)?;
        self.done()
    }

    /// The end of what it was told to do; the digest of what it received.
    fn done(&self) -> Result<u64> {
        let answer = self.control.hear()?;
        match answer.strip_prefix("done ") {
            Some(digest) => Ok(digest.parse()?),
            None => Err(format!("the second process: {answer}").into()),
        }
    }

    fn end(self) -> Result<()> {
        self.ending.store(true, Ordering::Release);
        self.control.say("end")?;
        self.watch.join().map_err(|_| "no end")?;
        Ok(())
    }
}

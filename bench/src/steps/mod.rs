//! The steps of a domain link, each by itself: how many instructions one call takes, at most,
//! whatever the peer wrote and however full the link is.
//!
//! Each case brings the link into the state that it is about, again for each round, and lets
//! callgrind count one call in it. Both ends are in one thread, without a lock and a doorbell.

use std::hint::black_box;

use crate::Result;
use crate::counts::callgrind;
use crate::csv::{self, Row, row};

mod level;
mod table;
mod usual;
mod world;
mod worst;

use table::{STEPS, Step};

/// Rounds that are counted.
const ROUNDS: u64 = 64;
/// Rounds before them, in which nothing is: the link settles.
const WARM_UP: u64 = 4;
/// Cases that must cost the same may differ by so many instructions: by the registers that the
/// compiler had left.
const SAME: f64 = 8.0;

/// Runs the rounds of a case, and has its calls counted.
struct Meter {
    rounds: u64,
    counts: bool,
}

impl Meter {
    fn new(rounds: u64) -> Meter {
        Meter {
            rounds,
            counts: false,
        }
    }

    /// Runs a round again and again.
    fn rounds(&mut self, mut round: impl FnMut(&Meter) -> Result<()>) -> Result<()> {
        for number in 0..self.all() {
            self.counts = number >= WARM_UP;
            round(self)?;
        }
        Ok(())
    }

    /// Rounds, those that are not counted included.
    fn all(&self) -> u64 {
        WARM_UP + self.rounds
    }

    /// The call of a round.
    fn count<R>(&self, call: impl FnOnce() -> R) -> R {
        match self.counts {
            true => counted_step(call),
            false => call(),
        }
    }
}

/// Callgrind collects in here.
#[inline(never)]
fn counted_step<R>(call: impl FnOnce() -> R) -> R {
    call()
}

/// What the counter itself takes.
const EMPTY: &str = "nothing";

/// What callgrind runs.
pub fn run(name: &str, rounds: u64) -> Result<()> {
    let mut meter = Meter::new(rounds);
    if name == EMPTY {
        return meter.rounds(|meter| {
            meter.count(|| black_box(()));
            Ok(())
        });
    }
    let step = STEPS.iter().find(|step| step.name == name);
    (step.ok_or_else(|| format!("no step {name}"))?.run)(&mut meter)
}

/// Counts and prints every step; with `gate`, fails where one is above its limit.
pub fn check(gate: bool) -> Result<()> {
    let (rows, above) = rows()?;
    csv::print(&rows);
    match gate && !above.is_empty() {
        true => Err(format!("above the limit: {}", above.join(", ")).into()),
        false => Ok(()),
    }
}

/// Every step, and which are above their limits.
fn rows() -> Result<(Vec<Row>, Vec<String>)> {
    let empty = instructions(EMPTY)?;
    let (mut rows, mut above) = (Vec::new(), Vec::new());
    let mut groups: Vec<(&str, f64, f64)> = Vec::new();
    for step in STEPS {
        let call = instructions(step.name)? - empty;
        let (units, unit) = step.per;
        let per_unit = call / f64::from(units);
        let Step {
            name,
            bounds,
            limit,
            group,
            ..
        } = *step;
        if per_unit > limit {
            above.push(format!("{name}: {per_unit:.1} > {limit}"));
        }
        if !group.is_empty() {
            match groups.iter_mut().find(|known| known.0 == group) {
                Some((_, least, most)) => (*least, *most) = (least.min(call), most.max(call)),
                None => groups.push((group, call, call)),
            }
        }
        let note = format!("{bounds}; limit {limit}");
        rows.push(row(name, "instructions", per_unit, unit, &note));
    }
    for (group, least, most) in groups {
        let difference = most - least;
        if difference > SAME {
            above.push(format!("{group}: {least:.1} to {most:.1}, not the same"));
        }
        let note = format!("between the cheapest and the dearest of these; limit {SAME}");
        rows.push(row(group, "difference", difference, "instructions", &note));
    }
    Ok((rows, above))
}

/// Instructions of one call, with those of the counter.
fn instructions(name: &str) -> Result<f64> {
    let options = ["--toggle-collect=*counted_step*"];
    let count = callgrind(&["step", name, &ROUNDS.to_string()], &options)?;
    Ok(count as f64 / ROUNDS as f64)
}

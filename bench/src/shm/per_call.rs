//! Each call on its own, in the form of MDCOM's table: mode, mean and standard deviation of its
//! time, its instructions, and its accesses to shared control words.
//!
//! Both ends are in one thread here, so lines do not travel: what is shown is the work of a call.
//! A call takes less time than the clock needs to be read, and than its steps. So the figures are of
//! runs of [`RUN`] calls between two readings, less the median of empty runs: their deviation is that
//! between runs, not between calls. Those of single calls are given too, as far as the clock shows
//! them.

use std::collections::BTreeMap;
use std::time::Instant;

use super::child::pin;
use super::contenders::{QueueCalls, RingCalls};
use crate::Result;
use crate::counts::callgrind;
use crate::csv::{Row, row};

/// Calls between two readings of the clock.
pub const RUN: usize = 64;

const SINGLES: usize = 200_000;
const RUNS: usize = 20_000;
const COUNTED: u64 = 1_000;

/// A sample that took longer was interrupted and is left out, ns.
const INTERRUPTED: f64 = 2_000.0;

/// Runs calls and measures them in some way.
pub trait Probe {
    /// Runs `calls`, which makes one or more calls of the kind with this index.
    fn run<R>(&mut self, index: usize, calls: impl FnOnce() -> R) -> R;
}

/// What calls belong to: both ends of a channel.
pub trait Calls: Sized {
    /// In the results.
    const NAME: &'static str;
    /// The kinds of calls, at most eight.
    const CALLS: &'static [&'static str];
    /// Where the last kind cannot be run alone: what it is the difference of.
    const DIFFERENCE: Option<(usize, usize)> = None;
    /// Loads and stores of control words that the peer reads or writes, per kind of call, in the
    /// path that is taken here.
    const ACCESSES: &'static [u32];

    /// Opens both ends.
    fn new() -> Result<Self>;

    /// Takes `n` messages, at most [`RUN`], through all kinds of calls: first all calls of the first
    /// kind, in one run of the probe, then those of the second, and so on.
    fn burst(&mut self, n: usize, probe: &mut impl Probe) -> Result<()>;
}

/// Takes the time.
struct Timer(Vec<Vec<f64>>);

impl Timer {
    fn new(kinds: usize) -> Self {
        Timer(vec![Vec::new(); kinds])
    }
}

impl Probe for Timer {
    #[inline(always)]
    fn run<R>(&mut self, index: usize, calls: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = calls();
        let time = start.elapsed();
        self.0[index].push(time.as_nanos() as f64);
        result
    }
}

/// Lets callgrind count: it collects inside of one of these functions, found by its name.
struct Counter;

macro_rules! counted {
    ($($name:ident)*) => {
        $(
            #[inline(never)]
            fn $name<R>(calls: impl FnOnce() -> R) -> R {
                calls()
            }
        )*
        impl Probe for Counter {
            #[inline(always)]
            fn run<R>(&mut self, index: usize, calls: impl FnOnce() -> R) -> R {
                let mut at = 0..;
                $(if at.next() == Some(index) {
                    return $name(calls);
                })*
                calls()
            }
        }
        const COUNTED_NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

counted!(counted_0 counted_1 counted_2 counted_3 counted_4 counted_5 counted_6 counted_7);

/// The counter's own instructions: a call and a return around what is counted.
struct Empty;

impl Calls for Empty {
    const NAME: &'static str = "empty call";
    const CALLS: &'static [&'static str] = &["empty"];
    const ACCESSES: &'static [u32] = &[0];

    fn new() -> Result<Self> {
        Ok(Empty)
    }

    fn burst(&mut self, _n: usize, probe: &mut impl Probe) -> Result<()> {
        probe.run(0, || ());
        Ok(())
    }
}

/// Everybody whose calls are measured.
pub fn rows() -> Result<Vec<Row>> {
    let mut rows = of::<RingCalls>()?;
    rows.extend(of::<QueueCalls>()?);
    Ok(rows)
}

/// What callgrind runs: `n` messages of whoever has this name.
pub fn count(name: &str, n: u64) -> Result<()> {
    fn bursts<C: Calls>(n: u64) -> Result<()> {
        let mut calls = C::new()?;
        (0..n).try_for_each(|_| calls.burst(1, &mut Counter))
    }
    match name {
        Empty::NAME => bursts::<Empty>(n),
        RingCalls::NAME => bursts::<RingCalls>(n),
        QueueCalls::NAME => bursts::<QueueCalls>(n),
        _ => Err(format!("no calls of {name}").into()),
    }
}

fn of<C: Calls>() -> Result<Vec<Row>> {
    pin(0)?;
    let empty = samples::<Empty>(SINGLES, 1)?;
    let overhead = median(&empty[0]);
    let clock = Statistics::of(&empty[0], overhead, 1.0);
    let singles = samples::<C>(SINGLES, 1)?;
    let runs = samples::<C>(RUNS, RUN)?;
    let around = instructions(Empty::NAME, 0)?;
    let of_runs = format!("each sample the mean of a run of {RUN} calls; {RUNS} runs");
    let of_singles = format!(
        "single calls less {overhead:.0} ns for the clock, whose steps are {:.0} ns and whose standard deviation is {:.1} ns; {SINGLES} calls",
        step(&empty[0]),
        clock.deviation
    );
    let mut rows = Vec::new();
    let mut counts = Vec::new();
    for (index, name) in C::CALLS.iter().enumerate() {
        let case = format!("{}: {name}", C::NAME);
        let mut add = |figure, value, unit, note: &str| {
            rows.push(row(&case, figure, value, unit, note));
        };
        let difference = C::DIFFERENCE.filter(|_| index + 1 == C::CALLS.len());
        let run = match difference {
            None => Statistics::of(&runs[index], overhead, RUN as f64),
            Some(of) => Statistics::of(&less(&runs, of), 0.0, RUN as f64),
        };
        let note = format!("{of_runs}, {} interrupted ones left out", run.left_out);
        add(FIGURES[0], run.mode, "ns", &note);
        add(FIGURES[1], run.mean, "ns", &note);
        add(FIGURES[2], run.deviation, "ns", &note);
        let single = match difference {
            None => Statistics::of(&singles[index], overhead, 1.0),
            Some(of) => Statistics::of(&less(&singles, of), 0.0, 1.0),
        };
        let left_out = single.left_out;
        let note = format!("{of_singles}, {left_out} interrupted ones left out");
        add(FIGURES[3], single.mode, "ns", &note);
        add(FIGURES[4], single.mean, "ns", &note);
        add(FIGURES[5], single.deviation, "ns", &note);
        let count = match difference {
            None => instructions(C::NAME, index)? - around,
            Some((more, less)) => counts[more] - counts[less],
        };
        counts.push(count);
        add(FIGURES[6], count, "per call", "callgrind");
        let note = "loads and stores of control words shared with the peer, counted in the code";
        add(FIGURES[7], C::ACCESSES[index].into(), "per call", note);
    }
    Ok(rows)
}

/// In the order of the rows.
const FIGURES: [&str; 8] = [
    "mode",
    "mean",
    "standard deviation",
    "single-call mode",
    "single-call mean",
    "single-call standard deviation",
    "instructions",
    "shared accesses",
];

/// Prints a line per call.
pub fn print(rows: &[Row]) {
    let titles = [
        "mode", "mean", "sd, ns", "single", "mean", "sd, ns", "instr.", "accesses",
    ];
    print!("{:<36}", "per call");
    titles.iter().for_each(|title| print!("{title:>10}"));
    for row in rows {
        if row.figure == FIGURES[0] {
            print!("\n{:<36}", row.case);
        }
        print!("{:>10.1}", row.value);
    }
    println!();
}

/// Times in ns, per kind of call.
fn samples<C: Calls>(samples: usize, run: usize) -> Result<Vec<Vec<f64>>> {
    let mut calls = C::new()?;
    let mut warm = Timer::new(C::CALLS.len());
    (0..1_000).try_for_each(|_| calls.burst(run, &mut warm))?;
    let mut timer = Timer::new(C::CALLS.len());
    (0..samples).try_for_each(|_| calls.burst(run, &mut timer))?;
    Ok(timer.0)
}

/// Instructions of one kind of call, with those of the counter.
fn instructions(name: &str, index: usize) -> Result<f64> {
    let collect = format!("--toggle-collect=*{}*", COUNTED_NAMES[index]);
    let counted = |rounds: u64| callgrind(&["shm-calls", name, &rounds.to_string()], &[&collect]);
    let more = counted(2 * COUNTED)?.saturating_sub(counted(COUNTED)?);
    Ok(more as f64 / COUNTED as f64)
}

/// The samples of one kind less those of another of the same run.
fn less(samples: &[Vec<f64>], (of, less): (usize, usize)) -> Vec<f64> {
    let pairs = samples[of].iter().zip(&samples[less]);
    pairs.map(|(of, less)| of - less).collect()
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The steps of the clock: the least difference of two samples.
fn step(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    steps.fold(f64::INFINITY, f64::min)
}

/// Of one call, from samples of several calls together, less an overhead.
struct Statistics {
    /// The tenth of a nanosecond that most samples fall into.
    mode: f64,
    mean: f64,
    deviation: f64,
    left_out: usize,
}

impl Statistics {
    fn of(samples: &[f64], overhead: f64, calls: f64) -> Self {
        let limit = median(samples) + INTERRUPTED;
        let kept = samples.iter().filter(|sample| **sample < limit);
        let kept: Vec<f64> = kept.map(|sample| (sample - overhead) / calls).collect();
        let n = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / n;
        let squares = kept
            .iter()
            .map(|sample| (sample - mean).powi(2))
            .sum::<f64>();
        let mut histogram = BTreeMap::new();
        for sample in &kept {
            *histogram.entry((sample * 10.0).round() as i64).or_insert(0) += 1;
        }
        let mode = histogram.iter().max_by_key(|(_, count)| **count);
        Statistics {
            mode: mode.map_or(f64::NAN, |(tenths, _)| *tenths as f64 / 10.0),
            mean,
            deviation: (squares / n).sqrt(),
            left_out: samples.len() - kept.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_take_the_overhead_off_and_leave_interrupted_samples_out() {
        let samples = [36.0, 40.0, 40.0, 40.0, 44.0, 50_000.0];
        let found = Statistics::of(&samples, 20.0, 2.0);
        assert_eq!((found.mode, found.mean, found.left_out), (10.0, 10.0, 1));
        assert!((found.deviation - 1.6_f64.sqrt()).abs() < 1e-9);
    }
}

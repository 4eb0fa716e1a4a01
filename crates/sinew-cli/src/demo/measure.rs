//! Runs the exercise many times and sorts what each took.
//!
//! This is the only place where the demo calls it, so every placement runs the same client.

use std::hint::black_box;
use std::time::Instant;

use indicatif::ProgressBar;
use sinew_demo::cache::{Client, Reach};
use sinew_demo::exercise;

/// How long calls took, in nanoseconds per call.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub calls: u64,
    /// Calls with those that were not timed.
    pub all_calls: u64,
    pub median_ns: f64,
    pub p99_ns: f64,
}

/// Calls of one exercise.
const CALLS: u64 = 2;
/// A sample is timed over at least this long, so that reading the clock does not weigh.
const SAMPLE_NS: u128 = 2_000;
/// So that a p99 means something, also where a sample holds many jobs.
const LEAST_SAMPLES: u64 = 1_000;

/// The job of every placement: the one exercise, until `calls` calls are done and checked.
pub fn exercises<R: Reach>(
    cache: &mut Client<R>,
    calls: u64,
    bar: &ProgressBar,
) -> Result<Times, String> {
    let mut value = 0i32;
    times(calls, bar, || {
        value = value.wrapping_add(1);
        match exercise(black_box(&mut *cache), black_box(value)) {
            Ok(answer) if answer == value => Ok(()),
            Ok(answer) => Err(format!("the cache remembered {answer} instead of {value}")),
            Err(error) => Err(error.to_string()),
        }
    })
}

/// Times a job of two calls, warm, until `calls` calls are done.
pub fn times(
    calls: u64,
    bar: &ProgressBar,
    mut job: impl FnMut() -> Result<(), String>,
) -> Result<Times, String> {
    let mut jobs = 0;
    let mut job = || {
        jobs += 1;
        job()
    };
    for _ in 0..calls / CALLS / 10 {
        job()?;
    }
    let batch = batch(&mut job)?;
    let samples = (calls / CALLS / batch).max(LEAST_SAMPLES.min(calls / CALLS));
    let mut spans = Vec::with_capacity(samples as usize);
    for _ in 0..samples {
        let start = Instant::now();
        for _ in 0..batch {
            job()?;
        }
        spans.push(start.elapsed().as_nanos() as f64 / (batch * CALLS) as f64);
        bar.inc(calls / samples);
    }
    spans.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (spans.len() as f64 * share) as usize;
        spans
            .get(index.min(spans.len() - 1))
            .copied()
            .unwrap_or(0.0)
    };
    Ok(Times {
        calls: samples * batch * CALLS,
        all_calls: jobs * CALLS,
        median_ns: at(0.5),
        p99_ns: at(0.99),
    })
}

/// How many jobs one sample holds: one, unless the job is very short.
fn batch(job: &mut impl FnMut() -> Result<(), String>) -> Result<u64, String> {
    let mut batch = 1;
    loop {
        let start = Instant::now();
        for _ in 0..batch {
            job()?;
        }
        if start.elapsed().as_nanos() >= SAMPLE_NS {
            return Ok(batch);
        }
        batch *= 2;
    }
}

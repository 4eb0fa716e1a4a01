//! What a subscriber counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::percentiles;
use crate::publish::{STAMPED, clock};

/// The time of one window.
const WINDOW: Duration = Duration::from_millis(20);

/// Counts of samples: one thread takes them, another one looks at the count at the end of every window.
///
/// `end` tells `rate`, the median of the windows, per second, without those in which the stream
/// began and ended; `mean`; `received`, `lost` and `late` (known already, or out of order), of all samples
/// so far; and percentiles of the time from `put` to here, if the samples tell when they were sent.
#[derive(Default)]
pub struct Meter {
    received: AtomicU64,
    lost: AtomicU64,
    late: AtomicU64,
    /// Begins and ends so far. Who watches ends with the next one.
    turns: AtomicU64,
    windows: Mutex<Vec<(Instant, u64)>>,
    times: Mutex<Vec<u32>>,
}

impl Meter {
    /// A meter, and what takes the samples of `size` bytes for it. `numbered`: they begin with their
    /// number, from 0. Otherwise those which are missing at the end are lost.
    pub fn new(
        size: usize,
        numbered: bool,
    ) -> (Arc<Self>, impl FnMut(&[u8]) + Send + Sync + 'static) {
        let meter = Arc::new(Meter::default());
        let (mut received, mut next) = (0_u64, 0);
        let counts = meter.clone();
        let take = move |payload: &[u8]| {
            received += 1;
            if payload.len() != size {
                counts.late.fetch_add(1, Relaxed);
            } else if numbered && let Some((number, rest)) = payload.split_first_chunk() {
                let number = u64::from_le_bytes(*number);
                if number < next {
                    counts.late.fetch_add(1, Relaxed);
                } else {
                    if number > next {
                        counts.lost.fetch_add(number - next, Relaxed);
                    }
                    next = number + 1;
                }
                if size == STAMPED
                    && let Some((sent, _)) = rest.split_first_chunk()
                {
                    let sent = u64::from_le_bytes(*sent);
                    // 0: as fast as it can, with no look at a clock.
                    if sent != 0 {
                        let took = clock().saturating_sub(sent);
                        lock(&counts.times).push(u32::try_from(took).unwrap_or(u32::MAX));
                    }
                }
            }
            counts.received.store(received, Relaxed);
        };
        (meter, take)
    }

    /// Begins anew; the samples so far.
    pub fn begin(self: &Arc<Self>) -> u64 {
        let turn = self.turns.fetch_add(1, Relaxed) + 1;
        lock(&self.windows).clear();
        lock(&self.times).clear();
        let meter = self.clone();
        thread::spawn(move || {
            while let mut windows = lock(&meter.windows)
                && meter.turns.load(Relaxed) == turn
            {
                windows.push((Instant::now(), meter.received.load(Relaxed)));
                drop(windows);
                thread::sleep(WINDOW);
            }
        });
        self.received.load(Relaxed)
    }

    /// Waits for `sent` samples, at most so long after the last one; what there was since
    /// [`Self::begin`], as JSON.
    pub fn end(&self, sent: u64, patience: Duration) -> String {
        let (mut last, mut seen) = (Instant::now(), 0);
        loop {
            let received = self.received.load(Relaxed);
            if received >= sent || last.elapsed() > patience {
                break;
            }
            if received != seen {
                (last, seen) = (Instant::now(), received);
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.turns.fetch_add(1, Relaxed);
        let received = self.received.load(Relaxed);
        let (rate, mean) = rates(&lock(&self.windows));
        // Those at the end are in no gap.
        let lost = self.lost.load(Relaxed).max(sent.saturating_sub(received));
        let late = self.late.load(Relaxed);
        let times = percentiles::told(&mut lock(&self.times));
        format!(
            "{{\"rate\":{rate:.1},\"mean\":{mean:.1},\"received\":{received},\"lost\":{lost},\"late\":{late},{times}}}"
        )
    }
}

/// Median and mean of the windows between the first and the last sample.
fn rates(windows: &[(Instant, u64)]) -> (f64, f64) {
    let rate = |from: &(Instant, u64), to: &(Instant, u64)| {
        (to.1 - from.1) as f64 / (to.0 - from.0).as_secs_f64()
    };
    let moved = |pair: &[(Instant, u64)]| matches!(pair, [from, to] if from.1 != to.1);
    let mut pairs = windows.windows(2);
    let (Some(first), Some(last)) = (pairs.position(moved), windows.windows(2).rposition(moved))
    else {
        return (0.0, 0.0);
    };
    // The first and the last window are not full.
    let Some(full @ [from, .., to]) = windows.get(first + 1..=last) else {
        return (0.0, 0.0);
    };
    let mut each: Vec<f64> = full
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => Some(rate(from, to)),
            _ => None,
        })
        .collect();
    each.sort_by(f64::total_cmp);
    (
        each.get(each.len() / 2).copied().unwrap_or(0.0),
        rate(from, to),
    )
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(meter: &str, name: &str) -> f64 {
        let (_, rest) = meter.split_once(&format!("\"{name}\":")).unwrap();
        let end = rest.find([',', '}']).unwrap();
        rest[..end].parse().unwrap()
    }

    #[test]
    fn gaps_and_what_comes_late_are_counted() {
        let (meter, mut take) = Meter::new(8, true);
        for n in [0_u64, 1, 4, 2, 5] {
            take(&n.to_le_bytes());
        }
        let told = meter.end(5, Duration::ZERO);
        assert_eq!(number(&told, "received"), 5.0);
        assert_eq!(number(&told, "lost"), 2.0);
        assert_eq!(number(&told, "late"), 1.0);
    }

    #[test]
    fn what_does_not_come_at_the_end_is_lost() {
        let (meter, mut take) = Meter::new(8, false);
        take(&[0; 8]);
        assert_eq!(number(&meter.end(3, Duration::ZERO), "lost"), 2.0);
    }

    #[test]
    fn who_watched_the_round_before_does_not_watch_the_next_one() {
        let (meter, _take) = Meter::new(8, false);
        for _ in 0..5 {
            meter.begin();
            meter.end(0, Duration::ZERO);
        }
        meter.begin();
        while lock(&meter.windows).len() < 4 {
            thread::yield_now();
        }
        let windows = lock(&meter.windows).clone();
        for pair in windows.windows(2) {
            assert!(pair[1].0 - pair[0].0 >= WINDOW);
        }
    }

    #[test]
    fn rates_are_those_of_full_windows() {
        let start = Instant::now();
        let at = |ms, count| (start + Duration::from_millis(ms), count);
        let windows = [
            at(0, 0),
            at(20, 0),
            at(40, 7),
            at(60, 1007),
            at(80, 1007),
            at(100, 2007),
            at(120, 2008),
            at(140, 2008),
        ];
        let (median, mean) = rates(&windows);
        assert_eq!(median.round(), 50_000.0);
        assert_eq!(mean.round(), 33_333.0);
        assert_eq!(rates(&[]), (0.0, 0.0));
        assert_eq!(rates(&windows[..2]), (0.0, 0.0));
    }
}

//! How samples are made, as fast as it goes or at a given rate.

use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::{Publisher, Result};

/// Bytes of a payload that can tell when it was sent.
pub const STAMPED: usize = 16;

/// Waits shorter than this are not slept.
const SHORT: Duration = Duration::from_micros(100);

/// ns of a clock that all processes of a machine share.
pub fn clock() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes samples: their number, and in those of [`STAMPED`] bytes the time; all else is the same in all.
pub struct Source<P> {
    publisher: P,
    size: usize,
    filler: Vec<u8>,
    /// All samples so far.
    pub sent: u64,
}

impl<P: Publisher> Source<P> {
    pub fn new(publisher: P, size: usize) -> Self {
        Source {
            publisher,
            size,
            filler: (0..size.saturating_sub(8)).map(|at| at as u8).collect(),
            sent: 0,
        }
    }

    fn put(&mut self, stamp: u64) -> Result<()> {
        let (number, filler) = (self.sent, &self.filler);
        self.publisher.put(self.size, |place| {
            let Some((start, rest)) = place.split_first_chunk_mut() else {
                return;
            };
            *start = number.to_le_bytes();
            if rest.len() == STAMPED - 8 {
                rest.copy_from_slice(&stamp.to_le_bytes());
            } else if rest.len() == filler.len() {
                rest.copy_from_slice(filler);
            }
        })?;
        self.sent += 1;
        Ok(())
    }

    /// As many as go in this time.
    pub fn publish(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        // A look at the clock costs as much as some samples.
        let looks = (4096 / self.size).clamp(1, 64);
        while Instant::now() < until {
            for _ in 0..looks {
                self.put(0)?;
            }
        }
        self.publisher.flush()
    }

    /// So many a second. Those that are due already leave one after the other.
    pub fn pace(&mut self, rate: f64, time: Duration) -> Result<()> {
        // No process has its sleep made longer to save power.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))?;
        let start = Instant::now();
        for n in 0.. {
            let due = Duration::from_secs_f64(f64::from(n) / rate);
            if due >= time {
                break;
            }
            wait_until(start + due);
            self.put(clock())?;
        }
        self.publisher.flush()
    }
}

fn wait_until(due: Instant) {
    loop {
        let wait = due.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return;
        } else if wait > SHORT {
            thread::sleep(wait);
        } else {
            // The other parties need this core as well.
            thread::yield_now();
        }
    }
}

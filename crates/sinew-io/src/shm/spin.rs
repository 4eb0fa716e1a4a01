//! Looking again and again for a bounded time, before a sleep.

use std::time::{Duration, Instant};

/// How long a thread looks where the endpoint does not say.
pub(crate) const SPIN: Duration = Duration::from_micros(50);
/// So long of it without a pause, which finds the answer of a fast peer soonest. After that whoever else needs
/// the processor has it between looks: it may be the peer, and a sleep costs both sides far more.
const ALONE: Duration = Duration::from_micros(1);
/// Where looking never found anything, it is tried for the limit by this share.
const LEAST: u32 = 16;

/// How long to look. Each time in vain halves it, each find restores it: a thread whose peer is
/// slower than a sleep stops burning its processor.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Spin {
    limit: Duration,
    now: Duration,
    alone: Duration,
}

/// How long to look without a pause: not at all where this process has one processor, because the peer
/// mostly needs it to go on.
fn alone() -> Duration {
    match std::thread::available_parallelism() {
        Ok(processors) if processors.get() > 1 => ALONE,
        _ => Duration::ZERO,
    }
}

impl Spin {
    pub(crate) fn new(limit: Duration) -> Spin {
        Spin {
            limit,
            now: limit,
            alone: alone(),
        }
    }

    /// Looks until `found` says so, at most for as long as is worth it, and for `timeout`.
    pub(crate) fn until(
        &mut self,
        timeout: Option<Duration>,
        mut found: impl FnMut() -> bool,
    ) -> bool {
        let now = timeout.map_or(self.now, |timeout| self.now.min(timeout));
        if now.is_zero() {
            return false;
        }
        let begin = Instant::now();
        loop {
            // The clock costs as much as some looks.
            for _ in 0..8 {
                if found() {
                    self.now = self.limit;
                    return true;
                }
                std::hint::spin_loop();
            }
            let looked = begin.elapsed();
            if looked >= now {
                self.now = (self.now / 2).max(self.limit / LEAST);
                return false;
            }
            if looked >= self.alone {
                std::thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_in_vain_gets_shorter_and_a_find_restores_it() {
        let limit = Duration::from_micros(32);
        let mut spin = Spin::new(limit);
        for shorter in [16, 8, 4, 2, 2] {
            assert!(!spin.until(None, || false));
            assert_eq!(spin.now, Duration::from_micros(shorter));
        }
        assert!(spin.until(None, || true));
        assert_eq!(spin.now, limit);
    }

    #[test]
    fn without_time_nobody_looks() {
        let looks = |limit, timeout| {
            let mut count = 0;
            Spin::new(limit).until(timeout, || {
                count += 1;
                false
            });
            count
        };
        assert_eq!(looks(Duration::ZERO, None), 0);
        assert_eq!(looks(SPIN, Some(Duration::ZERO)), 0);
        assert!(looks(SPIN, None) > 0);
    }
}

//! How long handlers took, of counts in powers of two.

use std::fmt;

use sinew_services::device::BUCKETS;

/// Counts of times: those of index `k` are below `2^k` µs, and the last has all others.
pub type Counts = [u64; BUCKETS];

/// A time that so many handlers kept to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bound {
    /// Less than so many microseconds.
    Below(u64),
    /// So many microseconds or more, and nobody knows how many.
    From(u64),
}

/// The share of handlers (0.5 is half of them) took less than what this says, by the index of the count that the last
/// of them is in. `None` where there was none.
pub fn percentile(counts: &Counts, share: f64) -> Option<Bound> {
    let all = counts
        .iter()
        .fold(0u64, |sum, &count| sum.saturating_add(count));
    if all == 0 {
        return None;
    }
    let wanted = ((all as f64 * share).ceil() as u64).clamp(1, all);
    let mut seen = 0u64;
    let index = counts.iter().position(|&count| {
        seen = seen.saturating_add(count);
        seen >= wanted
    });
    let index = index.unwrap_or(BUCKETS - 1);
    Some(match index {
        index if index == BUCKETS - 1 => Bound::From(1 << (index - 1)),
        index => Bound::Below(1 << index),
    })
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, micros) = match self {
            Bound::Below(micros) => ('<', *micros),
            Bound::From(micros) => ('≥', *micros),
        };
        let text = match micros {
            ..1_000 => format!("{sign}{micros} µs"),
            1_000..100_000 => format!("{sign}{:.1} ms", micros as f64 / 1e3),
            _ => format!("{sign}{} ms", micros / 1_000),
        };
        f.pad(&text)
    }
}

impl Bound {
    /// Microseconds, for programs: what is below it, or `None` where that is not known.
    pub fn micros(self) -> Option<u64> {
        match self {
            Bound::Below(micros) => Some(micros),
            Bound::From(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sinew_services::device::bucket;

    use super::*;

    fn counts(times: &[u64]) -> Counts {
        let mut counts = [0; BUCKETS];
        for &micros in times {
            counts[bucket(micros)] += 1;
        }
        counts
    }

    proptest! {
        /// The time of the same rank, of the times themselves, is below the bound, and not by more than half.
        #[test]
        fn bound_is_next_to_the_time_that_it_stands_for(
            mut times in prop::collection::vec(
                prop_oneof![0..4u64, 0..2_000u64, 0..2_000_000u64], 1..300),
            share in 0.0..=1.0f64,
        ) {
            let bound = percentile(&counts(&times), share).unwrap();
            times.sort_unstable();
            let rank = ((times.len() as f64 * share).ceil() as usize).max(1);
            let time = times[rank - 1];
            match bound {
                Bound::Below(micros) => prop_assert!(time < micros && micros / 2 <= time),
                Bound::From(micros) => prop_assert!(time >= micros),
            }
        }

        #[test]
        fn larger_share_has_no_smaller_bound(
            counts in prop::array::uniform20(any::<u64>()),
            (a, b) in (0.0..=1.0f64, 0.0..=1.0f64),
        ) {
            let (less, more) = (percentile(&counts, a.min(b)), percentile(&counts, a.max(b)));
            prop_assert!(less <= more);
            prop_assert_eq!(less.is_none(), counts.iter().all(|&count| count == 0));
        }
    }

    #[test]
    fn bounds_are_short_words() {
        let text = |index: usize| {
            let mut counts = [0; BUCKETS];
            counts[index] = 7;
            percentile(&counts, 0.5).unwrap().to_string()
        };
        assert_eq!(
            [0, 3, 9, 10, 14, 17, 18, 19].map(text),
            [
                "<1 µs",
                "<8 µs",
                "<512 µs",
                "<1.0 ms",
                "<16.4 ms",
                "<131 ms",
                "<262 ms",
                "≥262 ms"
            ]
        );
    }
}

//! Times of many calls in little memory, and how they are shown.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Three digits of each time are kept.
const DIGITS: u8 = 3;
/// An hour; what takes longer counts as that.
const LONGEST: u64 = 3_600_000_000_000;
/// Lines of the picture, and the length of its longest bar.
const LINES: u64 = 10;
const WIDTH: u64 = 40;

/// Times in nanoseconds.
pub struct Times(Histogram<u64>);

impl Times {
    pub fn new() -> Times {
        let times = Histogram::new_with_bounds(1, LONGEST, DIGITS);
        Times(times.expect("bounds and digits that it takes"))
    }

    pub fn add(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    fn figures(&self) -> [(&'static str, u64); 6] {
        let at = |share| self.0.value_at_quantile(share);
        [
            ("min", self.0.min()),
            ("median", at(0.5)),
            ("p90", at(0.9)),
            ("p99", at(0.99)),
            ("p99.9", at(0.999)),
            ("max", self.0.max()),
        ]
    }

    /// One line of figures.
    pub fn line(&self) -> String {
        let figures = self.figures();
        let words = figures.map(|(name, nanos)| format!("{name} {}", span(nanos)));
        words.join("  ")
    }

    /// How many took how long. The slowest hundredth is one line, so that it does not press all others
    /// together.
    pub fn picture(&self) -> String {
        let lowest = |nanos| self.0.lowest_equivalent(nanos);
        let first = lowest(self.0.min());
        let last = lowest(self.0.value_at_quantile(0.99));
        let step = (last - first) / LINES + 1;
        let lines = (last - first) / step + 1;
        let mut bins: Vec<(String, u64)> = (0..lines)
            .map(|line| (span(first + line * step), 0))
            .collect();
        for recorded in self.0.iter_recorded() {
            let line = (lowest(recorded.value_iterated_to()) - first) / step;
            let count = recorded.count_since_last_iteration();
            match bins.get_mut(line.min(lines) as usize) {
                Some(bin) => bin.1 += count,
                None => bins.push((format!("{} and more", span(first + lines * step)), count)),
            }
        }
        let longest = bins.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let name = bins.iter().map(|(name, _)| name.chars().count()).max();
        let name = name.unwrap_or(0);
        let mut text = String::new();
        for (from, count) in bins {
            let bar = "█".repeat((count * WIDTH).div_ceil(longest.max(1)) as usize);
            let pad = " ".repeat(name - from.chars().count());
            text += &format!("  {pad}{from}  {bar} {count}\n");
        }
        text
    }

    /// In nanoseconds; null where nothing was timed.
    pub fn json(&self) -> Value {
        if self.count() == 0 {
            return Value::Null;
        }
        let figures = self.figures();
        json!({
            "min_ns": figures[0].1,
            "median_ns": figures[1].1,
            "p90_ns": figures[2].1,
            "p99_ns": figures[3].1,
            "p99_9_ns": figures[4].1,
            "max_ns": figures[5].1,
        })
    }
}

/// With three digits and a unit: `41.3 µs`.
pub fn span(nanos: u64) -> String {
    let (value, unit) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => (nanos as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    match value {
        ..10.0 => format!("{value:.2} {unit}"),
        ..100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_three_digits() {
        let spans = [7, 4_180, 20_000, 555_000, 1_550_000, 2_000_000_000].map(span);
        assert_eq!(
            spans,
            ["7 ns", "4.18 µs", "20.0 µs", "555 µs", "1.55 ms", "2.00 s"]
        );
    }

    #[test]
    fn every_time_is_in_the_picture_once() {
        let mut times = Times::new();
        for nanos in (1..=1_000).map(|n| n * 1_000).chain([50_000_000]) {
            times.add(nanos);
        }
        let picture = times.picture();
        let counts = picture
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
        assert_eq!(counts.sum::<u64>(), 1_001, "{picture}");
        assert!(picture.lines().count() <= 12, "{picture}");
        assert!(
            picture.lines().last().unwrap().contains("and more"),
            "{picture}"
        );
    }

    #[test]
    fn one_time_is_one_bar() {
        let mut times = Times::new();
        times.add(5_000);
        assert_eq!(times.picture().lines().count(), 1);
    }
}

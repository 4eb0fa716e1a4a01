//! What the figures should be.

use super::contender::{LOW_LATENCY, SAME, SINEW, SOCKET, ZENOH};
use super::report::Measured;
use crate::csv::{Row, row};

/// One figure, by itself or over another one, and its bound.
struct Aim {
    of: &'static str,
    figure: &'static str,
    /// A contender and its figure.
    over: Option<(&'static str, &'static str)>,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Bound {
    Least(f64),
    Most(f64),
}

use Bound::{Least, Most};

const fn over(figure: &'static str, over: &'static str, bound: Bound) -> Aim {
    Aim {
        of: SINEW,
        figure,
        over: Some((over, figure)),
        bound,
    }
}

const fn alone(figure: &'static str, bound: Bound) -> Aim {
    Aim {
        of: SINEW,
        figure,
        over: None,
        bound,
    }
}

const fn over_tcp(figure: &'static str, tcp: &'static str, bound: Bound) -> Aim {
    Aim {
        of: SINEW,
        figure,
        over: Some((SINEW, tcp)),
        bound,
    }
}

/// All of them. Each of Zenoh's settings is held against, so that the fastest is.
#[rustfmt::skip]
const AIMS: &[Aim] = &[
    over("8 B via router, batched", ZENOH, Least(1.0)),
    over("8 B via router, batched", SAME, Least(1.0)),
    over("8 B via router, unbatched", ZENOH, Least(1.0)),
    over("8 B via router, unbatched", SAME, Least(1.0)),
    over("8 B via router, unbatched", LOW_LATENCY, Least(1.0)),
    over("8 B peer to peer, batched", ZENOH, Least(2.0)),
    over("8 B peer to peer, batched", SAME, Least(2.0)),
    over("8 B peer to peer, batched, 10 s", ZENOH, Least(2.0)),
    over("8 B peer to peer, batched, 10 s", SAME, Least(2.0)),
    alone("lost in 10 s", Most(0.0)),
    over("8 KiB peer to peer", SOCKET, Least(0.8)),
    over("64 KiB peer to peer", SOCKET, Least(0.8)),
    over("round trip 8 B peer to peer, two cores, p50", SOCKET, Most(1.15)),
    over("round trip 8 B peer to peer, one core, p50", SOCKET, Most(1.15)),
    over("round trip 8 B peer to peer, p50", SOCKET, Most(1.15)),
    alone("wire batched, per sample beside 8 B", Most(4.05)),
    alone("wire unbatched, per sample beside 8 B", Most(11.0)),
    over_tcp("8 B shared memory, batched", "8 B peer to peer, batched", Least(3.0)),
    over_tcp("8 B shared memory, unbatched", "8 B peer to peer, unbatched", Least(3.0)),
    over_tcp("8 KiB shared memory", "8 KiB peer to peer", Least(3.0)),
    over_tcp("64 KiB shared memory", "64 KiB peer to peer", Least(3.0)),
];

impl Aim {
    /// The figure or the ratio: within rounds where both are of one case, otherwise of their medians.
    fn value(&self, all: &[Measured]) -> Option<f64> {
        let median = |contender, figure| {
            let mut found = all.iter().filter_map(|one| one.median(contender, figure));
            Some(found.next()?.value)
        };
        match self.over {
            None => median(self.of, self.figure),
            Some((over, figure)) if figure == self.figure => {
                let mut found = all
                    .iter()
                    .filter_map(|one| one.ratio(self.of, over, figure));
                Some(found.next()?.value)
            }
            Some((over, figure)) => Some(median(self.of, self.figure)? / median(over, figure)?),
        }
    }

    fn name(&self) -> String {
        match self.over {
            None => self.of.into(),
            Some((over, figure)) if figure == self.figure => format!("{} over {over}", self.of),
            Some((over, figure)) => format!("{} over {over}, {figure}", self.of),
        }
    }

    /// The bound, and whether it is met.
    fn verdict(&self, value: f64) -> String {
        let (word, bound, met) = match self.bound {
            Least(bound) => ("at least", bound, value >= bound),
            Most(bound) => ("at most", bound, value <= bound),
        };
        format!("aim {word} {bound}: {}", if met { "met" } else { "MISSED" })
    }
}

fn values(all: &[Measured]) -> impl Iterator<Item = (&'static Aim, f64)> {
    AIMS.iter().filter_map(|aim| Some((aim, aim.value(all)?)))
}

/// A row for each aim of which there are figures.
pub fn rows(all: &[Measured]) -> Vec<Row> {
    let row =
        |(aim, value): (&Aim, f64)| row(&aim.name(), aim.figure, value, "aim", &aim.verdict(value));
    values(all).map(row).collect()
}

/// Prints them.
pub fn print(all: &[Measured]) {
    for (aim, value) in values(all) {
        println!(
            "{}, {}: {value:.3} ({})",
            aim.name(),
            aim.figure,
            aim.verdict(value)
        );
    }
}

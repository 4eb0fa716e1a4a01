//! Medians and ratios, as rows and as a table.

use super::case::{Case, Measure};
use super::contender::{ALL, SOCKET, ZENOH};
use super::turn::Round;
use crate::csv::{Row, row};

/// All rounds of a case; in each a round of every contender that takes part.
pub struct Measured {
    pub case: &'static Case,
    pub rounds: Vec<Vec<Option<Round>>>,
}

/// A median, and between what half of the values are.
pub struct Median {
    pub value: f64,
    pub half: (f64, f64),
    pub count: usize,
}

impl Median {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let quartile = |n: usize| values.get(values.len() * n / 4).copied();
        Some(Median {
            value: quartile(2)?,
            half: (quartile(1)?, quartile(3)?),
            count: values.len(),
        })
    }
}

/// The number of a contender.
fn number(name: &str) -> Option<usize> {
    ALL.iter().position(|contender| contender.name == name)
}

impl Measured {
    pub fn new(case: &'static Case) -> Self {
        Measured {
            case,
            rounds: Vec::new(),
        }
    }

    /// One figure of a contender.
    pub fn median(&self, contender: &str, figure: &str) -> Option<Median> {
        let (contender, figure) = (number(contender)?, self.figure(figure)?);
        let rounds = self.rounds.iter();
        Median::of(
            rounds
                .filter_map(|round| value(round, contender, figure))
                .collect(),
        )
    }

    /// A figure of one over that of another one, within each round.
    pub fn ratio(&self, one: &str, over: &str, figure: &str) -> Option<Median> {
        let (one, over, figure) = (number(one)?, number(over)?, self.figure(figure)?);
        let ratio = |round: &Vec<Option<Round>>| {
            Some(value(round, one, figure)? / value(round, over, figure)?)
        };
        Median::of(self.rounds.iter().filter_map(ratio).collect())
    }

    /// All that a contender lost, and what came late.
    fn missed(&self, contender: &str) -> Option<(f64, f64)> {
        let contender = number(contender)?;
        let rounds = self.rounds.iter();
        // They count all rounds together.
        let last = rounds
            .filter_map(|round| round.get(contender)?.as_ref())
            .next_back()?;
        Some((last.lost, last.late))
    }

    fn figure(&self, figure: &str) -> Option<usize> {
        self.case.figures.iter().position(|own| *own == figure)
    }
}

fn value(round: &[Option<Round>], contender: usize, figure: usize) -> Option<f64> {
    round.get(contender)?.as_ref()?.figures.get(figure).copied()
}

impl Case {
    /// Of a figure: what it is shown in, by what it is divided for that, and whether less is better.
    fn unit(&self, figure: &str) -> (&'static str, f64, bool) {
        match self.measure {
            Measure::Sustained if figure.starts_with("lost") => ("samples", 1.0, true),
            Measure::Rate | Measure::Sustained => ("thousand/s", 1e3, false),
            Measure::RoundTrip | Measure::Latency(_) => ("us", 1.0, true),
            Measure::Wire => ("bytes", 1.0, true),
        }
    }
}

/// All figures, then all ratios.
pub fn rows(all: &[Measured]) -> Vec<Row> {
    let mut rows = Vec::new();
    for contender in ALL {
        for (measured, figure) in figures(all) {
            let Some(median) = measured.median(contender.name, figure) else {
                continue;
            };
            let (unit, scale, _) = measured.case.unit(figure);
            let note = format!(
                "{}; {}{}",
                contender.note,
                spread(&median, scale),
                missed(measured, contender.name)
            );
            rows.push(row(
                contender.name,
                figure,
                median.value / scale,
                unit,
                &note,
            ));
        }
    }
    for base in [SOCKET, ZENOH] {
        for contender in ALL.iter().filter(|contender| contender.name != base) {
            for (measured, figure) in figures(all) {
                let Some(ratio) = measured.ratio(contender.name, base, figure) else {
                    continue;
                };
                let better = match measured.case.unit(figure).2 {
                    true => "less is better",
                    false => "more is better",
                };
                let note = format!("within a round; {better}; {}", spread(&ratio, 1.0));
                let name = format!("{} over {base}", contender.name);
                rows.push(row(&name, figure, ratio.value, "ratio", &note));
            }
        }
    }
    rows.extend(super::aims::rows(all));
    rows
}

fn figures(all: &[Measured]) -> impl Iterator<Item = (&Measured, &'static str)> {
    let figures = |measured| Measured::figures(measured).map(move |figure| (measured, figure));
    all.iter().flat_map(figures)
}

impl Measured {
    fn figures(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.case.figures.iter().copied()
    }
}

fn spread(median: &Median, scale: f64) -> String {
    let (low, high) = median.half;
    match median.count {
        1 => "one round".into(),
        count => format!(
            "{count} rounds, half of them {:.2} to {:.2}",
            low / scale,
            high / scale
        ),
    }
}

/// What of it was lost, in words.
fn missed(measured: &Measured, contender: &str) -> String {
    match measured.missed(contender) {
        _ if measured.case.measure == Measure::RoundTrip => String::new(),
        None => String::new(),
        Some((0.0, 0.0)) => "; none lost".into(),
        Some((lost, late)) => format!("; {lost} LOST, {late} LATE"),
    }
}

/// Prints the first line of the table.
pub fn print_head() {
    print!("{:<44}", "");
    ALL.iter().for_each(|one| print!("{:>20}", one.name));
    println!();
}

/// Prints the lines of a case: its figures, and ratios below.
pub fn print_case(measured: &Measured) {
    let line = |title: &str, value: &dyn Fn(&str) -> Option<f64>| {
        let values: Vec<Option<f64>> = ALL.iter().map(|one| value(one.name)).collect();
        if values.iter().all(|value| value.is_none()) {
            return;
        }
        print!("{title:<44}");
        for value in values {
            match value {
                Some(value) => print!("{value:>20.3}"),
                None => print!("{:>20}", "-"),
            }
        }
        println!();
    };
    for figure in measured.figures() {
        let (unit, scale, _) = measured.case.unit(figure);
        line(&format!("{figure}, {unit}"), &|name| {
            Some(measured.median(name, figure)?.value / scale)
        });
        if unit == "samples" {
            continue;
        }
        for base in [SOCKET, ZENOH] {
            line(&format!("    over {base}"), &|name| {
                Some(measured.ratio(name, base, figure)?.value)
            });
        }
    }
    for contender in ALL {
        if let Some((lost, late)) = measured.missed(contender.name)
            && (lost, late) != (0.0, 0.0)
        {
            println!("    {}: {lost} LOST, {late} LATE", contender.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::case::CASES;

    fn measured(figures: &[[f64; 2]]) -> Measured {
        let mut measured = Measured::new(&CASES[0]);
        let round = |figure: &f64| {
            Some(Round {
                figures: vec![*figure],
                lost: 0.0,
                late: 0.0,
            })
        };
        let rounds = figures.iter().map(|each| each.iter().map(round).collect());
        measured.rounds.extend(rounds);
        measured
    }

    #[test]
    fn ratios_are_those_within_a_round() {
        // The machine is slower each time; the ratio stays, but once.
        let measured = measured(&[[100.0, 50.0], [10.0, 5.0], [1.0, 0.5], [1.0, 9.0]]);
        let (first, second, figure) = (ALL[0].name, ALL[1].name, CASES[0].name());
        assert_eq!(measured.ratio(first, second, figure).unwrap().value, 2.0);
        assert_eq!(measured.median(second, figure).unwrap().value, 9.0);
        assert!(measured.median(ALL[2].name, figure).is_none());
    }
}

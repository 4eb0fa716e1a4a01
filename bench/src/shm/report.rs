//! Rows of medians and ratios.

use super::contenders::{ALL, ICEORYX, PAIRS, Pair, REFERENCE};
use super::{CASES, Case, Kind, Placement};
use crate::csv::{Row, row};

/// One round of a case.
pub struct Round {
    pub place: Placement,
    /// Of each contender; `None` where it takes no part.
    pub figures: Vec<Option<f64>>,
}

/// All rounds of a case.
pub type Measured = Vec<Round>;

/// A median of fewer rounds says nothing.
const ROUNDS: usize = 15;

/// A case where the cores are in one placement.
struct Part<'a> {
    case: &'a Case,
    figure: &'static str,
    rounds: Vec<&'a Round>,
}

fn parts(measured: &[Measured]) -> Vec<Part<'_>> {
    let places = [Placement::Near, Placement::Far];
    let parts = places.into_iter().flat_map(|place| {
        CASES.iter().zip(measured).map(move |(case, rounds)| Part {
            case,
            figure: case.figures[place as usize],
            rounds: rounds.iter().filter(|round| round.place == place).collect(),
        })
    });
    parts.filter(|part| part.rounds.len() >= ROUNDS).collect()
}

/// All figures, then all ratios.
pub fn rows(measured: &[Measured]) -> Vec<Row> {
    let parts = parts(measured);
    let mut rows = Vec::new();
    for (number, contender) in ALL.iter().enumerate() {
        for part in &parts {
            let (scale, unit) = match part.case.kind {
                Kind::RoundTrip => (1e-3, "us"),
                Kind::OneWay { .. } => (1.0, "million/s"),
            };
            let figures = part.rounds.iter().filter_map(|round| round.figures[number]);
            let figures = figures.map(|figure| figure * scale).collect();
            rows.extend(median(contender.name, part, figures, unit, contender.note));
        }
    }
    for base in [REFERENCE, ICEORYX] {
        let Some(divisor) = ALL.iter().position(|one| one.name == base) else {
            continue;
        };
        for (number, contender) in ALL.iter().enumerate() {
            if number == divisor {
                continue;
            }
            let name = over(contender.name, base);
            for part in &parts {
                let ratio = |round: &&Round| Some(round.figures[number]? / round.figures[divisor]?);
                let ratios = part.rounds.iter().filter_map(ratio).collect();
                let note = match part.case.kind {
                    Kind::RoundTrip => "within a round; less is better",
                    Kind::OneWay { .. } => "within a round; more is better",
                };
                rows.extend(median(&name, part, ratios, "ratio", note));
            }
        }
    }
    for Pair {
        one,
        over: base,
        aim,
        what,
    } in PAIRS
    {
        let index = |name: &str| ALL.iter().position(|contender| contender.name == name);
        let (Some(dividend), Some(divisor)) = (index(one), index(base)) else {
            continue;
        };
        let aim = aim.map_or("no aim".to_owned(), |aim| format!("aim {aim}"));
        let note = format!("within a round; less is better; {aim}; {what}");
        for part in &parts {
            let ratio = |round: &&Round| Some(round.figures[dividend]? / round.figures[divisor]?);
            let ratios = part.rounds.iter().filter_map(ratio).collect();
            rows.extend(median(&over(one, base), part, ratios, "ratio", &note));
        }
    }
    rows
}

fn over(name: &str, base: &str) -> String {
    format!("{name} over {base}")
}

fn median(
    name: &str,
    part: &Part<'_>,
    mut values: Vec<f64>,
    unit: &'static str,
    note: &str,
) -> Option<Row> {
    values.sort_by(f64::total_cmp);
    let quartile = |n: usize| values.get(values.len() * n / 4).copied();
    let (low, high) = (quartile(1)?, quartile(3)?);
    let note = format!(
        "{note}; {} rounds, half of them {low:.2} to {high:.2}",
        values.len()
    );
    Some(row(name, part.figure, quartile(2)?, unit, &note))
}

/// Prints a table: a line per case, a column per contender, ratios below.
pub fn print(rows: &[Row]) {
    print!("{:<36}", "");
    ALL.iter().for_each(|one| print!("{:>24}", one.name));
    println!();
    let find = |name: &str, figure: &str| {
        let mut rows = rows.iter();
        rows.find(|row| row.case == name && row.figure == figure)
    };
    let line = |title: &str, figure: &str, name: &dyn Fn(&str) -> String| {
        print!("{title:<36}");
        for one in ALL {
            match find(&name(one.name), figure) {
                Some(row) => print!("{:>24.3}", row.value),
                None => print!("{:>24}", "-"),
            }
        }
        println!();
    };
    let reference = rows.iter().filter(|row| row.case == REFERENCE);
    for (figure, unit) in reference.map(|row| (row.figure, row.unit)) {
        line(&format!("{figure}, {unit}"), figure, &str::to_owned);
        for base in [REFERENCE, ICEORYX] {
            line(&format!("    over {base}"), figure, &|name| {
                over(name, base)
            });
        }
    }
    for Pair {
        one, over: base, ..
    } in PAIRS
    {
        let name = over(one, base);
        for row in rows.iter().filter(|row| row.case == name) {
            let Row {
                figure,
                value,
                note,
                ..
            } = row;
            println!("{name}, {figure}: {value:.3} ({note})");
        }
    }
}

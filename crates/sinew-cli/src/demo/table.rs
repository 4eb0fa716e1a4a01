//! The table of the demo, for people and for machines.

use std::fmt::Write;

use serde_json::json;

use crate::output::thousands;

/// What one placement came to. Times are per call.
#[derive(Clone, Debug)]
pub struct Row {
    pub placement: &'static str,
    pub link: &'static str,
    pub calls: u64,
    pub median_ns: f64,
    pub p99_ns: f64,
    /// Both directions, framing included, counted on the link.
    pub bytes_per_call: f64,
    pub ratio_to_control: f64,
}

/// The rows as a JSON array; the names of its fields are fixed.
pub fn json(rows: &[Row]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let numbers = [
                ("calls", row.calls as f64),
                ("median_ns", round(row.median_ns, 1)),
                ("p99_ns", round(row.p99_ns, 1)),
                ("bytes_per_call", round(row.bytes_per_call, 2)),
                ("ratio_to_control", round(row.ratio_to_control, 5)),
            ];
            let numbers = numbers.map(|(name, value)| format!("{name:?}: {value}"));
            format!(
                "  {{\"placement\": {}, \"link\": {}, {}}}",
                json!(row.placement),
                json!(row.link),
                numbers.join(", ")
            )
        })
        .collect();
    format!("[\n{}\n]", rows.join(",\n"))
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

const HEADS: [&str; 7] = [
    "placement",
    "link",
    "calls",
    "median",
    "p99",
    "bytes",
    "ratio",
];

/// The rows as a table. With `colour`, quick placements are green and the heads are bold.
pub fn text(rows: &[Row], colour: bool) -> String {
    let cells: Vec<[String; 7]> = rows.iter().map(cells).collect();
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|at| {
            let longest = cells.iter().map(|row| row[at].chars().count()).max();
            longest.unwrap_or(0).max(HEADS[at].chars().count())
        })
        .collect();
    let line = |left: char, cross: char, right: char| {
        let bars: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{left}{}{right}\n", bars.join(&cross.to_string()))
    };
    let mut out = line('╭', '┬', '╮');
    let heads = HEADS.map(String::from);
    push(&mut out, &heads, &widths, |_, text| {
        paint(text, "1", colour)
    });
    out += &line('├', '┼', '┤');
    for (row, cells) in rows.iter().zip(&cells) {
        let shade = match row.ratio_to_control {
            ratio if ratio <= 1.5 => "32",
            ratio if ratio <= 10.0 => "36",
            _ => "33",
        };
        push(&mut out, cells, &widths, |at, text| match at {
            3 | 6 => paint(text, shade, colour),
            _ => text.to_string(),
        });
    }
    out += &line('╰', '┴', '╯');
    out
}

/// What the columns mean.
pub fn legend(control_ns: f64) -> String {
    format!(
        "Times are per call, all on one core, where most of it is waking the other side.\n\
         Bytes are those on the link, in both directions. The ratio is to the control, a\n\
         plain struct between two threads: {} per call. The direct call is that\n\
         fast because the compiler inlines it: nothing is left to measure. Where peers\n\
         publish and subscribe, a call is a sample of 4 bytes and its echo.",
        time(control_ns)
    )
}

fn cells(row: &Row) -> [String; 7] {
    [
        row.placement.to_string(),
        row.link.to_string(),
        count(row.calls),
        time(row.median_ns),
        time(row.p99_ns),
        match row.bytes_per_call {
            0.0 => "none".into(),
            bytes => format!("{bytes:.1}"),
        },
        match row.ratio_to_control {
            ratio if ratio < 0.01 => "<0.01".into(),
            ratio if ratio < 99.995 => format!("{ratio:.2}"),
            ratio => format!("{ratio:.0}"),
        },
    ]
}

/// The first two columns are text and stand left; numbers stand right.
fn push(
    out: &mut String,
    cells: &[String; 7],
    widths: &[usize],
    paint: impl Fn(usize, &str) -> String,
) {
    for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let padded = if at < 2 {
            format!("{cell:<width$}")
        } else {
            format!("{cell:>width$}")
        };
        let _ = write!(out, "│ {} ", paint(at, &padded));
    }
    out.push_str("│\n");
}

fn paint(text: &str, style: &str, colour: bool) -> String {
    if colour {
        format!("\x1b[{style}m{text}\x1b[0m")
    } else {
        text.to_string()
    }
}

/// Three digits that count, and the unit.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns => (ns / 1e6, "ms"),
    };
    match value {
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// Seven characters at most.
fn count(number: u64) -> String {
    match number {
        0..1_000_000 => thousands(number),
        1_000_000..99_950_000 => format!("{:.1} M", number as f64 / 1e6),
        _ => format!("{:.0} M", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use sinew_io::endpoint::Carrier;
    use sinew_io::qemu::MACHINES;

    use super::super::processes::link_name;
    use super::super::{PLACEMENTS, ROUTED};
    use super::*;

    fn row(placement: &'static str, median_ns: f64, ratio_to_control: f64) -> Row {
        Row {
            placement,
            link: "none",
            calls: 20_000,
            median_ns,
            p99_ns: 2.0 * median_ns,
            bytes_per_call: 46.5,
            ratio_to_control,
        }
    }

    #[test]
    fn columns_line_up_whatever_their_content() {
        let text = text(
            &[
                row("same thread", 3.2, 0.0012),
                row("x", 1_234_567.0, 1234.0),
            ],
            false,
        );
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        assert!(
            text.contains("1.23 ms") && text.contains("20,000"),
            "{text}"
        );
    }

    #[test]
    fn the_widest_rows_and_the_legend_fit_a_terminal_of_79_columns() {
        let names = PLACEMENTS.iter().map(|it| (it.name, it.link));
        let boards = MACHINES.iter().flat_map(|machine| {
            [Carrier::Uart, Carrier::Shm].map(|carrier| (machine.core, link_name(carrier)))
        });
        let mut rows: Vec<Row> = names
            .chain([ROUTED])
            .chain(boards)
            .map(|(name, link)| Row {
                link,
                calls: 123_456_789,
                ..row(name, 999e6, 12_345.0)
            })
            .collect();
        rows.push(Row {
            calls: 999_999,
            bytes_per_call: 0.0,
            ..row("same thread", 0.3, 0.0001)
        });
        let text = text(&rows, false) + &legend(999e6);
        assert!(text.contains("<0.01") && text.contains("123 M"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 79, "{line}");
        }
    }

    #[test]
    fn json_has_the_fixed_fields_and_no_others() {
        let rows: serde_json::Value = serde_json::from_str(&json(&[row("x", 1.0, 1.0)])).unwrap();
        let mut names: Vec<_> = rows[0].as_object().unwrap().keys().cloned().collect();
        names.sort();
        let fixed = [
            "bytes_per_call",
            "calls",
            "link",
            "median_ns",
            "p99_ns",
            "placement",
        ];
        assert_eq!(names[..6], fixed);
        assert_eq!(names[6..], ["ratio_to_control"]);
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let rows = [row("x", 1.0, 1.0)];
        let plain = text(&rows, false);
        let mut stripped = String::new();
        for piece in text(&rows, true).split('\x1b') {
            stripped += piece
                .strip_prefix('[')
                .map_or(piece, |it| it.split_once('m').unwrap().1);
        }
        assert_eq!(stripped, plain);
    }
}

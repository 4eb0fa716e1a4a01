//! Results: one row a figure, in `bench/results/NAME.csv`.

use std::fmt::Write;
use std::path::Path;

use crate::Result;

/// One figure.
pub struct Row {
    pub case: String,
    pub figure: &'static str,
    pub value: f64,
    pub unit: &'static str,
    /// What it is held against, or how it was made.
    pub note: String,
}

/// A row.
pub fn row(case: &str, figure: &'static str, value: f64, unit: &'static str, note: &str) -> Row {
    Row {
        case: case.into(),
        figure,
        value,
        unit,
        note: note.into(),
    }
}

/// Median of the samples, with the least and the most in the note.
pub fn spread(
    case: &str,
    figure: &'static str,
    mut samples: Vec<f64>,
    unit: &'static str,
    note: &str,
) -> Row {
    samples.sort_by(f64::total_cmp);
    let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
    let (least, most) = (at(0), at(samples.len().saturating_sub(1)));
    let note = format!("{note}; {least:.2} to {most:.2}");
    row(case, figure, at(samples.len() / 2), unit, &note)
}

/// Prints the rows as a table.
pub fn print(rows: &[Row]) {
    for row in rows {
        println!(
            "{:<28} {:<17} {:>9} {:<21} {}",
            row.case,
            row.figure,
            number(row.value),
            row.unit,
            row.note
        );
    }
}

/// Writes the rows to `bench/results/NAME.csv`.
pub fn write(name: &str, rows: &[Row]) -> Result<()> {
    let mut text = String::from("case,figure,value,unit,note\n");
    for row in rows {
        let (case, figure, unit, note) = (&row.case, row.figure, row.unit, &row.note);
        let value = number(row.value);
        // Quoted only where it must be.
        let quote = if figure.contains(',') { "\"" } else { "" };
        writeln!(
            text,
            "\"{case}\",{quote}{figure}{quote},{value},{unit},\"{note}\""
        )?;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("{name}.csv")), text)?;
    Ok(())
}

/// Decimals where they matter, none where they do not.
fn number(value: f64) -> String {
    if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() < 0.1 && value != 0.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}

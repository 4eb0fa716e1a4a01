//! Latency against rate, as a picture: `docs/src/pubsub-latency.svg`.

use std::fmt::Write;
use std::path::Path;

use super::case::Measure;
use super::contender::ALL;
use super::report::Measured;
use crate::Result;

/// Width and height of one of the two panels, and the space around it.
const PANEL: (f64, f64) = (360.0, 300.0);
const LEFT: f64 = 62.0;
const TOP: f64 = 36.0;
const BELOW: f64 = 46.0;
/// Height of a line of the legend.
const LINE: f64 = 18.0;

/// By contender, so that one keeps its colour from run to run.
const COLOURS: [&str; 6] = [
    "#777777", "#d95f02", "#e6ab02", "#7570b3", "#1b9e77", "#e7298a",
];

/// One curve: points of rate and µs.
struct Curve {
    contender: usize,
    batched: bool,
    p99: bool,
    points: Vec<(f64, f64)>,
}

/// Writes the picture, if there are latencies.
pub fn write(all: &[Measured]) -> Result<()> {
    let curves = curves(all);
    if curves.is_empty() {
        return Ok(());
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/pubsub-latency.svg");
    Ok(std::fs::write(file, picture(&curves)?)?)
}

fn curves(all: &[Measured]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (number, contender) in ALL.iter().enumerate() {
        for (batched, p99) in [(false, false), (false, true), (true, false), (true, true)] {
            let points = all.iter().filter_map(|measured| {
                let Measure::Latency(rate) = measured.case.measure else {
                    return None;
                };
                let figure = measured.case.figures.get(usize::from(p99))?;
                let latency = measured.median(contender.name, figure)?.value;
                (measured.case.batched == batched).then_some((f64::from(rate), latency))
            });
            let points: Vec<_> = points.collect();
            if !points.is_empty() {
                curves.push(Curve {
                    contender: number,
                    batched,
                    p99,
                    points,
                });
            }
        }
    }
    curves
}

/// A logarithmic axis.
struct Axis {
    /// Powers of ten at its ends.
    ends: (f64, f64),
    /// Where they are.
    places: (f64, f64),
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for power in values.filter(|value| *value > 0.0).map(f64::log10) {
            (low, high) = (low.min(power), high.max(power));
        }
        let ends = (low.floor(), high.ceil().max(low.floor() + 1.0));
        Axis { ends, places }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.log10() - self.ends.0) / (self.ends.1 - self.ends.0);
        self.places.0 + part * (self.places.1 - self.places.0)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let (low, high) = (self.ends.0 as i32, self.ends.1 as i32);
        (low..=high).map(|power| 10_f64.powi(power))
    }
}

fn picture(curves: &[Curve]) -> Result<String> {
    let mut shown: Vec<usize> = curves.iter().map(|curve| curve.contender).collect();
    shown.dedup();
    let width = 2.0 * (LEFT + PANEL.0) + 32.0;
    let height = TOP + PANEL.1 + BELOW + LINE * (shown.len() as f64 + 1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let all = || curves.iter().flat_map(|curve| curve.points.iter());
    for (number, batched) in [false, true].into_iter().enumerate() {
        let left = LEFT + number as f64 * (LEFT + PANEL.0);
        let x = Axis::over(all().map(|point| point.0), (left, left + PANEL.0));
        let y = Axis::over(all().map(|point| point.1), (TOP + PANEL.1, TOP));
        let title = if batched {
            "batched"
        } else {
            "each sample at once"
        };
        frame(&mut svg, title, &x, &y)?;
        for curve in curves.iter().filter(|curve| curve.batched == batched) {
            draw(&mut svg, curve, &x, &y)?;
        }
    }
    let top = TOP + PANEL.1 + BELOW;
    for (line, contender) in shown.iter().enumerate() {
        let (y, colour) = (top + LINE * line as f64, colour(*contender));
        let name = ALL.get(*contender).map_or("", |one| one.name);
        writeln!(
            svg,
            "<path d=\"M{LEFT},{y}h30\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"{}\">{name}</text>",
            LEFT + 38.0,
            y + 4.0
        )?;
    }
    let y = top + LINE * shown.len() as f64 + 4.0;
    writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{y}\">solid: median; dashed: 99 of 100 are below</text>\n</svg>"
    )?;
    Ok(svg)
}

fn frame(svg: &mut String, title: &str, x: &Axis, y: &Axis) -> Result<()> {
    let ((left, right), (bottom, top)) = (x.places, y.places);
    let middle = (left + right) / 2.0;
    writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{title}</text>",
        top - 12.0
    )?;
    writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">samples a second, 16 B</text>",
        bottom + 34.0
    )?;
    writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">us</text>",
        left - 8.0,
        top - 12.0
    )?;
    for tick in x.ticks() {
        let at = x.at(tick);
        writeln!(
            svg,
            "<path d=\"M{at},{bottom}V{top}\" stroke=\"#ddd\"/>\
             <text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
            bottom + 16.0
        )?;
    }
    for tick in y.ticks() {
        let at = y.at(tick);
        writeln!(
            svg,
            "<path d=\"M{left},{at}H{right}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{tick}</text>",
            left - 8.0,
            at + 4.0
        )?;
    }
    Ok(())
}

fn draw(svg: &mut String, curve: &Curve, x: &Axis, y: &Axis) -> Result<()> {
    let points = curve.points.iter();
    let points: Vec<String> = points
        .map(|(rate, latency)| format!("{:.1},{:.1}", x.at(*rate), y.at(*latency)))
        .collect();
    let dashes = if curve.p99 {
        " stroke-dasharray=\"5 4\""
    } else {
        ""
    };
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dashes}/>",
        points.join(" "),
        colour(curve.contender)
    )?;
    Ok(())
}

fn colour(contender: usize) -> &'static str {
    COLOURS[contender % COLOURS.len()]
}

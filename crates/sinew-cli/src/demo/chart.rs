//! The table of the demo as a chart: SVG without scripts, in the colours of whoever looks at it.
//!
//! Times are on a logarithmic scale, because a direct call and one over a line are a million apart. The chart has a
//! ground of its own, so that it can be read wherever it is put, and where the page is dark and the reader's settings
//! are not.

use std::fmt::Write;

use super::table::{Row, time};

/// All of these are in the units of the drawing, which are pixels at its natural size.
const WIDTH: f64 = 800.0;
/// Where the placements stand, the links, and the bars begin and the scale ends.
const PLACEMENTS: f64 = 24.0;
const LINKS: f64 = 144.0;
const LEFT: f64 = 268.0;
const RIGHT: f64 = 690.0;
/// Between the last row of a placement and the next one.
const GAP: f64 = 8.0;
const TOP: f64 = 84.0;
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
const BOTTOM: f64 = 60.0;
/// What is faster is shown as that fast: a scale of powers has no zero.
const LEAST_NS: f64 = 0.1;
/// The shortest bar, in powers of ten.
const SHORTEST: f64 = 0.3;
/// Colours, which the placements take in turn.
const HUES: usize = 6;

const STYLE: &str = "
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 18px; font-weight: 600 }
  .placement { font-weight: 600 }
  .value { font-variant-numeric: tabular-nums }
  .faint { font-size: 12px; fill: #59636e }
  .ground { fill: #ffffff; stroke: #d1d9e0 }
  .grid { stroke: #e4e8ec }
  .p99 { stroke: #59636e; stroke-width: 1.5 }
  .hue0 { fill: #0969da } .hue1 { fill: #1a7f64 } .hue2 { fill: #bc4c00 }
  .hue3 { fill: #8250df } .hue4 { fill: #bf3989 } .hue5 { fill: #57606a }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .faint { fill: #9198a1 }
    .ground { fill: #0d1117; stroke: #3d444d }
    .grid { stroke: #262c36 }
    .p99 { stroke: #9198a1 }
    .hue0 { fill: #4493f8 } .hue1 { fill: #3fb998 } .hue2 { fill: #f0883e }
    .hue3 { fill: #ab7df8 } .hue4 { fill: #f778ba } .hue5 { fill: #9198a1 }
  }
";

/// The rows, which are not empty, as a document of its own.
pub fn svg(rows: &[Row]) -> String {
    let scale = Scale::of(rows);
    let mut bars = String::new();
    let mut y = TOP;
    let mut hue = 0;
    for (at, row) in rows.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| rows.get(at));
        let is_first = before.is_none_or(|before| before.placement != row.placement);
        if is_first && before.is_some() {
            y += GAP;
            hue = (hue + 1) % HUES;
        }
        push_row(&mut bars, row, is_first, y, hue, &scale);
        y += ROW;
    }
    let height = y + BOTTOM;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">How long a call takes, by placement</title>\n\
         <desc id=\"desc\">Median times: {}.</desc>\n\
         <style>{STYLE}</style>\n",
        escaped(&spoken(rows))
    );
    let _ = writeln!(
        out,
        "<rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>",
        WIDTH - 1.0,
        height - 1.0
    );
    text(
        &mut out,
        "title",
        PLACEMENTS,
        38.0,
        "One service, one client, every placement",
    );
    let what = "median time of a call, all on one core; the scale is logarithmic; the compiler inlines the direct call";
    text(&mut out, "faint", PLACEMENTS, 60.0, what);
    push_grid(&mut out, &scale, y);
    out += &bars;
    let key = "The line ends at the 99th percentile. Where peers publish, a call is a sample and its echo.";
    text(&mut out, "faint", PLACEMENTS, height - 18.0, key);
    out + "</svg>\n"
}

/// Powers of ten from left to right.
struct Scale {
    first: i32,
    last: i32,
}

impl Scale {
    fn of(rows: &[Row]) -> Scale {
        let decade = |ns: f64| ns.max(LEAST_NS).log10();
        let least = rows.iter().map(|row| decade(row.median_ns));
        let most = rows.iter().map(|row| decade(row.p99_ns.max(row.median_ns)));
        // The quickest has a bar as well.
        let first = (least.fold(f64::INFINITY, f64::min) - SHORTEST).floor() as i32;
        let last = most.fold(f64::NEG_INFINITY, f64::max).ceil() as i32;
        Scale {
            first,
            last: last.max(first + 1),
        }
    }

    fn x(&self, ns: f64) -> f64 {
        self.at(ns.max(LEAST_NS).log10())
    }

    /// Where a power of ten is.
    fn at(&self, decade: f64) -> f64 {
        let share = (decade - f64::from(self.first)) / f64::from(self.last - self.first);
        LEFT + share * (RIGHT - LEFT)
    }
}

fn push_grid(out: &mut String, scale: &Scale, bottom: f64) {
    for decade in scale.first..=scale.last {
        let x = scale.at(f64::from(decade));
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/>",
            TOP - 4.0
        );
        let label = decade_text(decade);
        let _ = writeln!(
            out,
            "<text class=\"faint\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            bottom + 16.0
        );
    }
}

fn push_row(out: &mut String, row: &Row, is_first: bool, y: f64, hue: usize, scale: &Scale) {
    let middle = y + ROW / 2.0;
    let baseline = middle + 4.5;
    if is_first {
        text(out, "placement", PLACEMENTS, baseline, row.placement);
    }
    text(out, "link", LINKS, baseline, row.link);
    let end = scale.x(row.median_ns);
    let _ = writeln!(
        out,
        "<rect class=\"bar hue{hue}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\">\
         <title>{}</title></rect>",
        middle - BAR / 2.0,
        end - LEFT,
        escaped(&said(row))
    );
    let tail = scale.x(row.p99_ns).max(end);
    let _ = writeln!(
        out,
        "<path class=\"p99\" d=\"M{end:.1} {middle:.1}H{tail:.1}M{tail:.1} {:.1}V{:.1}\"/>",
        middle - 4.0,
        middle + 4.0
    );
    text(out, "value", tail + 8.0, baseline, &time(row.median_ns));
}

fn text(out: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
    );
}

fn said(row: &Row) -> String {
    format!("{}, {}: {}", row.placement, row.link, time(row.median_ns))
}

fn spoken(rows: &[Row]) -> String {
    rows.iter().map(said).collect::<Vec<_>>().join("; ")
}

/// A power of ten nanoseconds.
fn decade_text(decade: i32) -> String {
    let (unit, of) = match decade {
        ..3 => ("ns", 0),
        3..6 => ("µs", 3),
        6..9 => ("ms", 6),
        _ => ("s", 9),
    };
    format!("{} {unit}", 10f64.powi(decade - of))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use roxmltree::{Document, Node};

    use super::*;

    fn row(placement: &'static str, link: &'static str, median_ns: f64) -> Row {
        Row {
            placement,
            link,
            calls: 20_000,
            median_ns,
            p99_ns: 3.0 * median_ns,
            bytes_per_call: 46.5,
            ratio_to_control: 1.0,
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            row("same thread", "direct", 0.3),
            row("two processes", "shared memory", 4_321.0),
            row("two processes", "pty + HDLC <&>", 56_789.0),
            row("Cortex-M3", "UART", 9_876_543.0),
        ]
    }

    fn of_class<'a>(document: &'a Document<'_>, class: &str) -> Vec<Node<'a, 'a>> {
        let is_one = |node: &Node<'_, '_>| {
            let classes = node.attribute("class").unwrap_or_default();
            classes.split(' ').any(|it| it == class)
        };
        document.descendants().filter(is_one).collect()
    }

    fn number(node: &Node<'_, '_>, name: &str) -> f64 {
        node.attribute(name).unwrap().parse().unwrap()
    }

    #[test]
    fn every_row_has_a_bar_and_labels_and_a_slower_one_a_longer_bar() {
        let rows = rows();
        let svg = svg(&rows);
        let document = Document::parse(&svg).unwrap();
        let bars = of_class(&document, "bar");
        let links = of_class(&document, "link");
        let values = of_class(&document, "value");
        assert_eq!([bars.len(), links.len(), values.len()], [rows.len(); 3]);
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(links[at].text(), Some(row.link));
            assert_eq!(values[at].text(), Some(time(row.median_ns).as_str()));
            let said = bars[at]
                .descendants()
                .find(|it| it.has_tag_name(("http://www.w3.org/2000/svg", "title")));
            assert!(said.unwrap().text().unwrap().starts_with(row.placement));
        }
        let widths: Vec<f64> = bars.iter().map(|bar| number(bar, "width")).collect();
        assert!(widths[0] > 0.0 && widths.is_sorted(), "{widths:?}");
        let placements = of_class(&document, "placement");
        let placements: Vec<_> = placements.iter().map(|it| it.text().unwrap()).collect();
        assert_eq!(placements, ["same thread", "two processes", "Cortex-M3"]);
    }

    #[test]
    fn nothing_stands_outside_whatever_the_times_are() {
        for rows in [
            rows(),
            vec![row("x", "y", 0.0)],
            vec![row("x", "y", 5e8), row("z", "y", 0.29)],
        ] {
            let svg = svg(&rows);
            let document = Document::parse(&svg).unwrap();
            for value in of_class(&document, "value") {
                // Eight characters at most, as wide as digits are.
                assert!(number(&value, "x") + 8.0 * 8.0 <= WIDTH, "{svg}");
            }
            let is_scale = |node: &Node<'_, '_>| node.attribute("text-anchor") == Some("middle");
            let scale = document.descendants().filter(is_scale);
            let scale: Vec<f64> = scale.map(|it| number(&it, "x")).collect();
            // As wide as "100 µs" is.
            assert!(
                scale.windows(2).all(|two| two[0] + 38.0 <= two[1]),
                "{scale:?}"
            );
            for bar in of_class(&document, "bar") {
                assert!(number(&bar, "width") >= 0.0);
                assert!(number(&bar, "x") + number(&bar, "width") <= RIGHT + 0.1);
            }
        }
    }

    #[test]
    fn who_cannot_see_it_hears_it_and_nothing_in_it_runs() {
        let svg = svg(&rows());
        let document = Document::parse(&svg).unwrap();
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        let names: Vec<_> = root.children().filter(Node::is_element).take(2).collect();
        assert_eq!(names[0].tag_name().name(), "title");
        assert_eq!(names[1].tag_name().name(), "desc");
        assert!(
            names[1]
                .text()
                .unwrap()
                .contains("two processes, shared memory: 4.32 µs")
        );
        let is_script = |node: Node<'_, '_>| node.tag_name().name() == "script";
        assert!(!document.descendants().any(is_script));
        assert!(svg.contains("prefers-color-scheme: dark"));
    }
}

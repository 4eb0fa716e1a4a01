//! Records as lines of text, or of JSON, and what became of those that are missing.

use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use serde_json::{Value, json};
use sinew_io::Endpoint;
use sinew_services::record::Said;
use sinew_services::{Record, Severity};

use super::reader::What;
use super::texts::{self, Text, Texts};
use crate::output::{self, plain};

/// Which times stand before a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Times {
    Uptime,
    Clock,
    Both,
    None,
}

/// Which records are wanted: what a device does not look at, because it makes no texts.
pub struct Filter {
    pub least: Severity,
    pub module: String,
    pub grep: String,
}

/// Makes lines.
pub struct Show {
    /// Of each device, where there are several.
    names: Vec<String>,
    endpoints: Vec<String>,
    times: Times,
    as_json: bool,
    has_colour: bool,
}

impl Show {
    pub fn new(endpoints: &[Endpoint], times: Times, as_json: bool) -> Show {
        let endpoints: Vec<String> = endpoints.iter().map(|at| at.address.to_string()).collect();
        let width = endpoints.iter().map(|name| name.chars().count()).max();
        let name = |name: &String| match width {
            Some(width) if endpoints.len() > 1 => format!("{name:width$} "),
            _ => String::new(),
        };
        Show {
            names: endpoints.iter().map(name).collect(),
            endpoints,
            times,
            as_json,
            has_colour: output::has_colour(),
        }
    }

    /// The lines of what happened at a device; none where it is not wanted.
    pub fn lines(
        &self,
        at: usize,
        what: What,
        texts: Option<&mut Texts>,
        filter: &Filter,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        match what {
            What::Record(record, came) => {
                let said = said(&record, texts);
                if record.dropped > 0 {
                    lines.push(self.event(at, &dropped(record.dropped)));
                }
                if filter.wants(&said) {
                    lines.push(self.record(at, &record, said, came));
                }
            }
            other => lines.push(self.event(at, &event(other))),
        }
        lines
    }

    fn record(&self, at: usize, record: &Record, said: Text, came: SystemTime) -> String {
        // It waited for so long, and its way here counts for nothing.
        let written = came.checked_sub(Duration::from_micros(record.age));
        // A device may say any age.
        let written = written.unwrap_or(came).max(SystemTime::UNIX_EPOCH);
        let clock = humantime::format_rfc3339_millis(written).to_string();
        if self.as_json {
            let mut value = json!({
                "endpoint": self.endpoint(at),
                "severity": name(said.severity),
                "module": said.module,
                "text": said.text,
                "uptime_us": record.micros,
                "time": clock,
                "number": record.number,
            });
            if let (Some(problem), Some(value)) = (said.problem, value.as_object_mut()) {
                value.insert("text".into(), Value::Null);
                value.insert("deferred".into(), said.text.into());
                value.insert("problem".into(), problem.into());
            }
            return value.to_string();
        }
        let micros = record.micros;
        let uptime = format!("{:>5}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let times = match self.times {
            Times::Uptime => format!("{uptime}  "),
            Times::Clock => format!("{clock}  "),
            Times::Both => format!("{clock} {uptime}  "),
            Times::None => String::new(),
        };
        let colour = match said.severity {
            Severity::Error => RED,
            Severity::Warn => YELLOW,
            Severity::Info => GREEN,
            Severity::Debug => BLUE,
            _ => DIM,
        };
        let severity = format!("{:5}", name(said.severity).to_uppercase());
        let module = match said.module.is_empty() {
            true => String::new(),
            false => self.paint(DIM, &format!("{}: ", plain(&said.module))),
        };
        let text = match said.problem {
            Some(problem) => format!("<{problem}> {}", said.text),
            None => plain(said.text.trim_end()),
        };
        format!(
            "{}{}{} {module}{text}",
            self.name(at),
            self.paint(DIM, &times),
            self.paint(colour, &severity),
        )
    }

    /// A line between records.
    fn event(&self, at: usize, (word, count, text): &(&str, Option<u32>, String)) -> String {
        if self.as_json {
            let mut value = json!({ "endpoint": self.endpoint(at), "event": word });
            if let (Some(count), Some(value)) = (count, value.as_object_mut()) {
                value.insert("count".into(), (*count).into());
            }
            return value.to_string();
        }
        format!(
            "{}{}",
            self.name(at),
            self.paint(DIM, &format!("-- {}", plain(text)))
        )
    }

    fn endpoint(&self, at: usize) -> &str {
        self.endpoints.get(at).map_or("", String::as_str)
    }

    fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        match self.has_colour && !text.is_empty() {
            true => format!("{colour}{text}{PLAIN}"),
            false => text.into(),
        }
    }
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[33m";
const GREEN: &str = "\x1b[32m";
const BLUE: &str = "\x1b[34m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The word, the count and the text of what is no record.
fn event(what: What) -> (&'static str, Option<u32>, String) {
    match what {
        What::Lost(count) => (
            "lost",
            Some(count),
            format!("{} lost on the way", records(count)),
        ),
        What::Restarted => ("restarted", None, "the device has started again".into()),
        What::Silent(why) => ("silent", None, format!("no answer: {why}")),
        What::Absent(why) => (
            "absent",
            None,
            format!("not there yet ({why}); trying again"),
        ),
        What::Gone(why) => ("gone", None, format!("gone ({why}); trying again")),
        What::Back => ("back", None, "there now".into()),
        What::Unreadable | What::Record(..) => (
            "unreadable",
            None,
            "a record that cannot be read: is sinew.Log of another release there?".into(),
        ),
    }
}

fn dropped(count: u32) -> (&'static str, Option<u32>, String) {
    let text = format!("{} dropped: nobody read, or too slowly", records(count));
    ("dropped", Some(count), text)
}

fn records(count: u32) -> String {
    output::counted(count.into(), "record", "records")
}

/// What a record says.
fn said(record: &Record, texts: Option<&mut Texts>) -> Text {
    let text_of = |text: String, problem| Text {
        severity: record.severity,
        module: record.module.to_string(),
        text,
        problem,
    };
    match &record.said {
        Some(Said::Text(text)) => text_of(text.to_string(), None),
        None => text_of(String::new(), None),
        Some(Said::Deferred(frame)) => match texts::text(texts, frame) {
            Ok(text) => text,
            Err(problem) => text_of(output::hex(frame), Some(problem)),
        },
    }
}

impl Filter {
    fn wants(&self, said: &Text) -> bool {
        // What has no text is shown: who knows what it says.
        said.problem.is_some()
            || said.severity.0 >= self.least.0
                && said.module.starts_with(&self.module)
                && said.text.contains(&self.grep)
    }
}

/// A severity as it is written; other numbers than those of the .proto are those of a later one.
fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Trace => "trace",
        Severity::Debug => "debug",
        Severity::Info => "info",
        Severity::Warn => "warn",
        Severity::Error => "error",
        _ => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(as_json: bool, has_colour: bool) -> Show {
        let endpoints = ["tcp:a:1".parse().unwrap()];
        let mut show = Show::new(&endpoints, Times::Uptime, as_json);
        show.has_colour = has_colour;
        show
    }

    fn record(text: &str) -> What {
        let record = Record {
            severity: Severity::Warn,
            micros: 12_000_345,
            module: "motor".try_into().unwrap(),
            said: Some(Said::Text(text.try_into().unwrap())),
            dropped: 2,
            number: 7,
            age: 1_500_000,
        };
        let came = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        What::Record(Box::new(record), came)
    }

    const ALL: Filter = Filter {
        least: Severity::Any,
        module: String::new(),
        grep: String::new(),
    };

    #[test]
    fn record_is_a_line_with_what_is_missing_before_it() {
        let lines = show(false, false).lines(0, record("81 degrees\n"), None, &ALL);
        assert_eq!(
            lines,
            [
                "-- 2 records dropped: nobody read, or too slowly",
                "   12.000345  WARN  motor: 81 degrees",
            ]
        );
    }

    #[test]
    fn record_that_says_any_age_is_shown() {
        for age in [0, 60_000_000, 60_000_001, u64::MAX] {
            let What::Record(mut old, came) = record("old") else {
                panic!("a record");
            };
            old.age = age;
            let lines = show(true, false).lines(0, What::Record(old, came), None, &ALL);
            let line: Value = serde_json::from_str(&lines[1]).unwrap();
            assert!(
                line["time"]
                    .as_str()
                    .is_some_and(|it| it.starts_with("1970-"))
            );
        }
    }

    #[test]
    fn record_as_json_has_all_of_it() {
        let lines = show(true, true).lines(0, record("a\u{1b}[2J"), None, &ALL);
        let [dropped, line] = [0, 1].map(|at| serde_json::from_str::<Value>(&lines[at]).unwrap());
        assert_eq!(
            dropped,
            json!({ "endpoint": "tcp:a:1", "event": "dropped", "count": 2 })
        );
        assert_eq!(
            line,
            json!({
                "endpoint": "tcp:a:1", "severity": "warn", "module": "motor", "text": "a\u{1b}[2J",
                "uptime_us": 12_000_345, "time": "1970-01-01T00:00:58.500Z", "number": 7,
            })
        );
    }

    #[test]
    fn device_tells_the_terminal_nothing() {
        let line = &show(false, false).lines(0, record("a\u{1b}[2J\r\u{9b}0m\tb"), None, &ALL)[1];
        assert!(line.ends_with(r"motor: a\u{1b}[2J\r\u{9b}0m\tb"), "{line}");
    }

    #[test]
    fn colours_go_by_severity() {
        let line = &show(false, true).lines(0, record("hot"), None, &ALL)[1];
        assert!(line.contains("\u{1b}[33mWARN \u{1b}[0m"), "{line}");
    }

    #[test]
    fn what_is_not_wanted_is_not_shown_but_what_is_missing_is() {
        let filters = [
            (Severity::Error, "", ""),
            (Severity::Any, "pump", ""),
            (Severity::Any, "", "cold"),
        ];
        for (least, module, grep) in filters {
            let filter = Filter {
                least,
                module: module.into(),
                grep: grep.into(),
            };
            let lines = show(false, false).lines(0, record("hot"), None, &filter);
            assert_eq!(lines.len(), 1);
            assert!(lines[0].starts_with("-- 2 records dropped"));
        }
    }
}

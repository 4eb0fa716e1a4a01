//! Bounds beside the .proto: `demo.options` for `demo.proto`, in the manner of nanopb.
//!
//! One rule per line: a pattern of full names, in which `*` stands for anything and `?` for one
//! character, then settings. Where several rules match, the last one counts. `#` and `//` start a
//! comment.
//!
//! ```text
//! *              default_max_size:32 default_max_count:8
//! demo.Log.text  max_size:64
//! demo.Kinds.EchoAll raw:128
//! ```
//!
//! | setting | of | meaning |
//! |---|---|---|
//! | `max_size` | string, bytes | the most bytes (no terminating NUL is counted) |
//! | `max_count` | repeated, map | the most elements; a map has room for the next power of two |
//! | `default_max_size`, `default_max_count` | the same | where no other rule says anything |
//! | `raw` | method | its messages are up to so many plain bytes |
//!
//! Keys and values of a map are named `demo.Log.labels.key` and `.value`; a `max_size` of the map
//! itself is good for both.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::report::Mistake;

/// What a setting is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    Size,
    Count,
    DefaultSize,
    DefaultCount,
    Raw,
}

const SETTINGS: &[(&str, Setting)] = &[
    ("max_size", Setting::Size),
    ("max_count", Setting::Count),
    ("default_max_size", Setting::DefaultSize),
    ("default_max_count", Setting::DefaultCount),
    ("raw", Setting::Raw),
];

/// The rules of one file.
#[derive(Debug, Default)]
pub(crate) struct Options {
    path: PathBuf,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    line: usize,
    column: usize,
    text: String,
    pattern: String,
    settings: Vec<(Setting, u32)>,
    used: Cell<bool>,
}

impl Options {
    /// Reads a file; mistakes of single lines go to `mistakes`.
    pub fn read(path: &Path, mistakes: &mut Vec<Mistake>) -> std::io::Result<Self> {
        let text = crate::sources::read(path)?;
        Ok(Options::parse(path, &text, mistakes))
    }

    fn parse(path: &Path, text: &str, mistakes: &mut Vec<Mistake>) -> Self {
        let mut options = Options {
            path: path.to_owned(),
            rules: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let end = [line.find('#'), line.find("//")]
                .into_iter()
                .flatten()
                .min();
            let content = line.get(..end.unwrap_or(line.len())).unwrap_or(line);
            let mut words = content.split_whitespace();
            let Some(pattern) = words.next() else {
                continue;
            };
            let mut rule = Rule {
                line: index + 1,
                column: line.chars().take_while(|c| c.is_whitespace()).count() + 1,
                text: line.to_owned(),
                pattern: pattern.to_owned(),
                settings: Vec::new(),
                used: Cell::new(false),
            };
            for word in words {
                match setting(word) {
                    Ok(setting) => rule.settings.push(setting),
                    Err((message, remedy)) => {
                        let column = line
                            .find(word)
                            .map(|at| line.get(..at).unwrap_or_default().chars().count() + 1);
                        mistakes.push(Mistake {
                            column: column.unwrap_or(1),
                            width: word.chars().count(),
                            remedy,
                            ..options.mistake(&rule, message)
                        });
                        // What it was meant for is unknown, so do not complain of it twice.
                        rule.used.set(true);
                    }
                }
            }
            options.rules.push(rule);
        }
        options
    }

    fn mistake(&self, rule: &Rule, message: String) -> Mistake {
        Mistake {
            file: self.path.display().to_string(),
            line: rule.line,
            column: rule.column,
            width: rule.pattern.chars().count(),
            source_line: rule.text.clone(),
            message,
            remedy: String::new(),
        }
    }

    /// The value of a setting for an element: of the last rule that matches.
    pub fn get(&self, element: &str, wanted: Setting) -> Option<u32> {
        let mut value = None;
        for rule in &self.rules {
            if matches(&rule.pattern, element) {
                let of = |(setting, value): &(Setting, u32)| (*setting == wanted).then_some(*value);
                if let Some(found) = rule.settings.iter().rev().find_map(of) {
                    rule.used.set(true);
                    value = Some(found);
                }
            }
        }
        value
    }

    /// Marks patterns with a wildcard that match an element for which no setting is asked.
    pub fn see(&self, element: &str) {
        for rule in &self.rules {
            if rule.pattern.contains(['*', '?']) && matches(&rule.pattern, element) {
                rule.used.set(true);
            }
        }
    }

    /// Rules that nothing matched, or that say nothing which matters there.
    pub fn unused(&self) -> impl Iterator<Item = Mistake> {
        self.rules
            .iter()
            .filter(|rule| !rule.used.get())
            .map(|rule| {
                let message = format!("`{}` applies to nothing", rule.pattern);
                self.mistake(rule, message).remedy(
                    "compare it with the full names of fields and methods (package.Message.field, \
                 package.Service.Method) and with what their types can have",
                )
            })
    }
}

fn setting(word: &str) -> Result<(Setting, u32), (String, String)> {
    let known: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
    let known = format!("settings are {}", known.join(", "));
    let Some((name, value)) = word.split_once(':') else {
        return Err((
            format!("`{word}` is no setting"),
            format!("write name:number; {known}"),
        ));
    };
    let Some((_, setting)) = SETTINGS.iter().find(|(known, _)| *known == name) else {
        return Err((format!("unknown setting `{name}`"), known));
    };
    match value.parse() {
        Ok(number) if number > 0 => Ok((*setting, number)),
        _ => Err((
            format!("`{value}` is no bound"),
            "write a whole number above 0".into(),
        )),
    }
}

/// Whether a pattern with `*` and `?` matches the whole name.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Row by row: which ends of `name` the pattern so far can reach.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for p in pattern {
        let mut next = vec![false; name.len() + 1];
        next[0] = p == '*' && reached[0];
        for (i, c) in name.iter().enumerate() {
            next[i + 1] = match p {
                '*' => next[i] || reached[i + 1],
                '?' => reached[i],
                p => reached[i] && p == *c,
            };
        }
        reached = next;
    }
    reached[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "demo.Log.text", true),
            ("demo.*", "demo.Log.text", true),
            ("demo.*.text", "demo.Log.text", true),
            ("demo.Log.tex?", "demo.Log.text", true),
            ("demo.Log", "demo.Log.text", false),
            ("demo.Log.text", "demo_Log.text", false),
            ("*.x*y", "a.xzyy", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_last_rule_counts() {
        let mut mistakes = Vec::new();
        let text = "a.* max_size:4 # rough\n\n a.B.c max_size:8 max_count:2 // exact";
        let options = Options::parse(Path::new("a.options"), text, &mut mistakes);
        assert_eq!(mistakes, []);
        assert_eq!(options.get("a.B.c", Setting::Size), Some(8));
        assert_eq!(options.get("a.B.d", Setting::Size), Some(4));
        assert_eq!(options.get("a.B.c", Setting::Count), Some(2));
        assert_eq!(options.unused().count(), 0);
    }
}

//! Lines on standard output, notes on standard error, and how numbers look there.
//!
//! With `--json` each line of both is one JSON value: a result, `{"note": ...}`, or `{"error": ...}`.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};
use serde_json::json;

use crate::failure::Failure;
use crate::progress::aside;

/// `--json`, which every command has.
static JSON: AtomicBool = AtomicBool::new(false);

/// Says whether the output is for programs.
pub fn set_json(is_json: bool) {
    JSON.store(is_json, Ordering::Relaxed);
}

/// Whether the output is for programs.
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes a line at once. Whoever read the output and went has seen enough.
pub fn line(text: &str) -> Result<(), Failure> {
    line_of_many(text).map(|_| ())
}

/// Writes a line at once. `false`: nobody reads the output any more.
pub fn line_of_many(text: &str) -> Result<bool, Failure> {
    write_line(&mut std::io::stdout(), text)
}

/// The same, where standard output is held already.
pub fn write_line(out: &mut dyn Write, text: &str) -> Result<bool, Failure> {
    let text = harmless(text);
    match aside(|| writeln!(out, "{text}").and_then(|()| out.flush())) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Internal {
            what: "cannot write to standard output".into(),
            cause: error.to_string(),
            help: "make room where it goes to, or send it elsewhere".into(),
        }),
        Ok(()) => Ok(true),
    }
}

/// Writes a line to standard error. Where that is closed or full, nobody is to be told.
pub fn note(text: &str) {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *held {
        Some(notes) if notes.len() < MOST_HELD => notes.push(text.into()),
        Some(_) => {}
        None if is_json() => complain(&json!({ "note": text }).to_string()),
        None => complain(text),
    }
}

/// Notes that wait, while there is a screen that they would spoil.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);
const MOST_HELD: usize = 100;

/// Holds notes back until it is dropped.
pub struct Held(());

/// From now on notes wait.
pub fn hold_notes() -> Held {
    *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    Held(())
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        for text in held.unwrap_or_default() {
            note(&text);
        }
    }
}

/// Writes an error to standard error.
pub fn complain(text: &str) {
    let text = harmless(text);
    aside(|| {
        let _ = writeln!(std::io::stderr(), "{text}");
    });
}

/// Whether standard output shows colours: where it is a terminal, or `CLICOLOR_FORCE` says so, and
/// never with `NO_COLOR`.
pub fn has_colour() -> bool {
    AutoStream::choice(&std::io::stdout()) != ColorChoice::Never
}

/// The same of standard error.
pub fn has_colour_of_errors() -> bool {
    AutoStream::choice(&std::io::stderr()) != ColorChoice::Never
}

/// With what no line of this tool has of its own, and terminals act upon, as JSON escapes it: control characters
/// beyond those of ASCII, and what turns the direction of a line. JSON stays the same value.
fn harmless(text: &str) -> Cow<'_, str> {
    let acts = |letter: char| matches!(letter, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for letter in text.chars() {
        match acts(letter) {
            true => out += &format!("\\u{:04x}", u32::from(letter)),
            false => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// A text of somebody else's on one line, in which what a terminal would act upon, or what would hide or change the order
/// of what stands beside it, is escaped as in Rust. Joiners stay: some languages write words with them.
pub fn plain(text: &str) -> String {
    let acts = |letter: char| {
        let is_format = matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
        letter.is_control() || is_format
    };
    let mut out = String::new();
    for letter in text.chars() {
        match acts(letter) {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
    out
}

/// So many things, as people say it.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        more => format!("{} {many}", thousands(more)),
    }
}

/// Two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// With a comma before each three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_somebody_else_is_one_line_without_what_acts_or_hides() {
        assert_eq!(
            plain("a\u{1b}[2J\r\u{9b}0m\tb\n"),
            r"a\u{1b}[2J\r\u{9b}0m\tb\n"
        );
        assert_eq!(
            plain("\u{202e}evil\u{200b}\u{2066}\u{feff}"),
            r"\u{202e}evil\u{200b}\u{2066}\u{feff}"
        );
        for text in ["demo/für alle", "می\u{200c}خواهم", "👩\u{200d}🔧", "\\"] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn what_steers_a_terminal_is_written_as_json_escapes_it() {
        let value = json!({ "text": "a\u{9b}31m\u{7f}\u{202e}\u{2066}é\n" });
        let written = harmless(&value.to_string()).into_owned();
        assert_eq!(written, r#"{"text":"a\u009b31m\u007f\u202e\u2066é\n"}"#);
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read, value);
    }
}

//! Lines on standard output, notes on standard error, and how numbers look there.

use std::io::{ErrorKind, IsTerminal, Write};

use crate::failure::Failure;

/// Writes a line at once. Whoever read the output and went has seen enough.
pub fn line(text: &str) -> Result<(), Failure> {
    line_of_many(text).map(|_| ())
}

/// Writes a line at once. `false`: nobody reads the output any more.
pub fn line_of_many(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::internal("cannot write to standard output", error)),
        Ok(()) => Ok(true),
    }
}

/// Writes a line to standard error. Where that is closed or full, nobody is to be told.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Whether standard output shows colours.
pub fn has_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
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

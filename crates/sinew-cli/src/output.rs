//! Lines on standard output, and notes on standard error.

use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Writes a line at once. Whoever read the output and went has seen enough.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::internal("cannot write to standard output", error)),
        Ok(()) => Ok(()),
    }
}

/// Writes a line to standard error. Where that is closed or full, nobody is to be told.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

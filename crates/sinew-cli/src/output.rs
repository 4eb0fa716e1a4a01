//! Lines on standard output.

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

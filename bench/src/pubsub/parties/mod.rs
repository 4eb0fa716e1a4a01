//! Contenders that live in this program.
//!
//! Each is a file with an implementation of [`sinew_bench_party::Party`], a line in [`party`], and an
//! entry in [`ALL`](super::contender::ALL).

mod sinew;
mod socket;

use std::process::ExitCode;

use sinew_bench_party::run;

/// Runs the party of this name with the rest of the command line.
pub fn party(name: &str, words: &[&str]) -> ExitCode {
    let words = words.iter().map(|word| String::from(*word));
    match name {
        "sinew" => run::<sinew::Sinew>(words),
        "socket" => run::<socket::Socket>(words),
        _ => {
            eprintln!("no party of this name: {name}");
            ExitCode::FAILURE
        }
    }
}

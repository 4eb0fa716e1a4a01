//! What a terminal shows that a pipe does not: colours, and how far something has come.

mod support;

use std::net::TcpListener;
use std::process::Stdio;

use support::{Serve, Terminal, output, sinew};

fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp:{}", listener.local_addr().unwrap());
    (listener, at)
}

/// What is shown of a command that has colours, where it may.
fn shown(args: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = sinew(args);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    command.envs(variables.iter().copied());
    Terminal::start(&mut command).end().0
}

const COLOUR: &str = "\x1b[";

#[test]
fn errors_have_colours_in_a_terminal_unless_they_are_not_wanted() {
    let wrong = ["call", "unix:/no/such.sock", "demo.Kinds/Double"];
    assert!(shown(&wrong, &[]).contains(COLOUR));
    assert!(!shown(&wrong, &[("NO_COLOR", "1")]).contains(COLOUR));
    assert!(!shown(&wrong, &[("TERM", "dumb")]).contains(COLOUR));
    let mut piped = sinew(&wrong);
    piped.env_remove("NO_COLOR");
    assert!(!output(&mut piped).stderr.contains(&0x1b));
    let forced = output(piped.env("CLICOLOR_FORCE", "1"));
    assert!(forced.stderr.contains(&0x1b));
}

#[test]
fn call_that_takes_longer_than_a_second_shows_what_is_waited_for_and_takes_it_away() {
    let (_listener, at) = silent();
    let slow = ["call", &at, "demo.Kinds/Double", "--timeout", "1500ms"];
    let seen = shown(&slow, &[]);
    assert!(seen.contains("calling demo.Kinds/Double"), "{seen:?}");
    // The line is cleared before the error stands there.
    let (_, behind) = seen.rsplit_once("calling demo.Kinds/Double").unwrap();
    assert!(behind.contains("\x1b[2K"), "{seen:?}");
    let quick = ["call", &at, "demo.Kinds/Double", "--timeout", "100ms"];
    assert!(!shown(&quick, &[]).contains("calling"));
}

#[test]
fn schema_that_does_not_come_shows_that_it_is_waited_for() {
    let (_listener, at) = silent();
    let seen = shown(&["list", &at], &[]);
    assert!(seen.contains("asking"), "{seen:?}");
}

#[test]
fn bench_shows_how_far_it_has_come() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let args = ["bench", &server.endpoint, "--for", "1500ms"];
    let seen = shown(&args, &[]);
    assert!(seen.contains("measuring") && seen.contains('%'), "{seen:?}");
    let mut piped = sinew(&args);
    assert!(output(&mut piped).stderr.is_empty());
    server.stop();
}

#[test]
fn pictures_of_progress_do_not_come_into_the_output() {
    let (_listener, at) = silent();
    let mut command = sinew(&["get", "a", "--connect", &at, "--json"]);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let mut terminal = Terminal::start_with(&mut command, Stdio::piped());
    assert!(terminal.piped().is_empty());
    let (seen, code) = terminal.end();
    assert!(seen.contains("connecting to tcp:"), "{seen:?}");
    assert_eq!(code, Some(69));
}

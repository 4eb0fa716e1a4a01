//! The tutorial's program in every placement: the same service and client, and the same answer.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

/// What the README says that every placement prints.
const ANSWER: &str = "40 %, because of sunset\n";

fn tutorial() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tutorial"))
}

fn output(arguments: &[&str]) -> String {
    let output = tutorial()
        .args(arguments)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A server in a process of its own; it ends with the test.
struct Serving {
    child: Child,
    /// Where it says that it serves.
    endpoint: String,
}

impl Serving {
    fn start(endpoint: &str) -> Serving {
        let mut child = tutorial()
            .args(["serve", endpoint])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output"))
            .read_line(&mut line)
            .expect("a line");
        let endpoint = line
            .trim_end()
            .strip_prefix("serving home.Lamp on ")
            .unwrap_or_else(|| panic!("not ready: {line:?}"))
            .to_owned();
        Serving { child, endpoint }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_readme_says_what_is_printed() {
    let readme = include_str!("../../../README.md");
    assert_eq!(readme.matches(ANSWER).count(), 3);
}

#[test]
fn an_error_says_its_cause_and_remedy() {
    for (arguments, words) in [
        (["call", "unix:/no/such.sock"], "no server listens there"),
        (["call", "tcp"], "is no endpoint: write tcp:HOST:PORT"),
    ] {
        let output = tutorial().args(arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn service_and_client_in_one_thread() {
    assert_eq!(output(&["here"]), ANSWER);
}

#[test]
fn service_in_another_thread() {
    assert_eq!(output(&["thread"]), ANSWER);
}

#[test]
fn service_in_another_process_over_tcp() {
    let server = Serving::start("tcp:127.0.0.1:0");
    assert_eq!(output(&["call", &server.endpoint]), ANSWER);
}

#[test]
fn service_in_another_process_over_udp() {
    let server = Serving::start("udp:127.0.0.1:0");
    assert_eq!(output(&["call", &server.endpoint]), ANSWER);
}

#[test]
fn service_in_another_process_over_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("sinew-tutorial-{}.sock", std::process::id()));
    let server = Serving::start(&format!("unix:{}", path.display()));
    assert_eq!(output(&["call", &server.endpoint]), ANSWER);
    drop(server);
    let _ = std::fs::remove_file(path);
}

#[test]
fn service_behind_a_serial_line() {
    let (near, near_path) = terminal();
    let (far, far_path) = terminal();
    join(&near, &far);
    join(&far, &near);
    let server = Serving::start(&format!("serial:{}", far_path.display()));
    let endpoint = format!("serial:{}?baud=921600", near_path.display());
    assert_eq!(output(&["call", &endpoint]), ANSWER);
    drop(server);
}

/// A pseudo-terminal in the place of a UART: its controlling side, and the path of the other one.
fn terminal() -> (File, PathBuf) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&near).expect("its other side");
    unlockpt(&near).expect("its other side");
    let path = ptsname(&near, Vec::new()).expect("its path");
    (near.into(), path.into_string().expect("UTF-8").into())
}

/// The wire from one pseudo-terminal to the other, as long as both have a user.
fn join(from: &File, to: &File) {
    let mut from = from.try_clone().expect("a descriptor");
    let mut to = to.try_clone().expect("a descriptor");
    thread::spawn(move || std::io::copy(&mut from, &mut to));
}

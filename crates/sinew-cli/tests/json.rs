//! `--json` of every command: what it writes is JSON, its errors are, and nothing steers a terminal.

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use support::{Serve, interrupt, output, sinew, socket, spawn_call, start};

/// One run of a command; the arguments that are added decide for whom it writes.
type Run = fn(more: &[&str]) -> Output;

/// Every command, by its name in the help.
const COMMANDS: [(&str, Run); 21] = [
    ("serve", |more| {
        until_told(&["serve", "tcp:127.0.0.1:0"], more)
    }),
    ("call", |more| {
        once(&["call", &serves(), "Kinds/Count", r#"{"n": 2}"#], more)
    }),
    ("list", |more| once(&["list", &serves()], more)),
    ("describe", |more| {
        once(&["describe", &serves(), "Kinds"], more)
    }),
    ("info", |more| once(&["info", &serves()], more)),
    ("top", |more| {
        once(
            &["top", &serves(), "--for", "100ms", "--every", "50ms"],
            more,
        )
    }),
    ("ping", |more| {
        once(&["ping", &serves(), "-c", "2", "-i", "1ms"], more)
    }),
    ("bench", |more| {
        once(&["bench", &serves(), "--for", "20ms"], more)
    }),
    ("log", |more| once(&["log", &serves(), "--once"], more)),
    ("relay", |more| {
        until_told(&["relay", "tcp:127.0.0.1:0", "unix:/no/such.sock"], more)
    }),
    ("capture", capture),
    ("record", record),
    ("replay", replay),
    ("pub", |more| {
        both(&["sub", "a"], &[], &["pub", "a", "1", "--peer"], more)
    }),
    ("sub", |more| {
        both(&["sub", "a"], more, &["pub", "a", "1", "--peer"], &[])
    }),
    ("get", |more| {
        both(&["reply", "a", "1"], &[], &["get", "a"], more)
    }),
    ("reply", |more| {
        both(&["reply", "a", "1"], more, &["get", "a"], &[])
    }),
    ("gen", generate),
    ("demo", |more| once(&["demo", "--calls", "20"], more)),
    ("shm status", status),
    ("completions", |more| once(&["completions", "bash"], more)),
];

/// Serves the demo.
fn serves() -> String {
    format!(
        "exec:{} serve stdio: 2>/dev/null",
        env!("CARGO_BIN_EXE_sinew")
    )
}

/// The command in a terminal with colours, but for its streams.
fn tool(args: &[&str], more: &[&str]) -> Command {
    let mut command = sinew(args);
    command
        .args(more)
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color");
    command
}

fn once(args: &[&str], more: &[&str]) -> Output {
    output(&mut tool(args, more))
}

fn begun(args: &[&str], more: &[&str]) -> Child {
    start(
        tool(args, more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    )
}

/// One that goes on: interrupted once it is ready.
fn until_told(args: &[&str], more: &[&str]) -> Output {
    let mut child = begun(args, more);
    let mut ready = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    interrupt(&child);
    out.read_to_string(&mut ready).unwrap();
    let mut output = child.wait_with_output().unwrap();
    output.stdout = ready.into_bytes();
    output
}

/// Two that meet: the one that was given more arguments is looked at.
fn both(waits: &[&str], waits_more: &[&str], comes: &[&str], comes_more: &[&str]) -> Output {
    let listen = ["--count", "1", "--listen", "tcp:127.0.0.1:0"];
    let mut waiting = begun(&[waits, &listen].concat(), waits_more);
    let mut notes = BufReader::new(waiting.stderr.take().unwrap());
    let mut said = String::new();
    notes.read_line(&mut said).unwrap();
    let (_, at) = said.split_once("listening on ").expect("where it is");
    let at = at.trim_end().trim_end_matches("\"}");
    let came = once(&[comes, &["--connect", at]].concat(), comes_more);
    let mut waited = waiting.wait_with_output().unwrap();
    notes.read_to_string(&mut said).unwrap();
    waited.stderr = said.into_bytes();
    assert!(waited.status.success(), "{waited:?}");
    if comes_more.is_empty() { waited } else { came }
}

/// A file of a test, which is not there yet.
fn made(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path.to_str().unwrap().into()
}

fn capture(more: &[&str]) -> Output {
    let file = made("json.pcapng");
    let args = ["capture", &serves(), "-o", &file];
    // What it runs writes to the same output.
    let run = ["--", "true", "{}"];
    once(&[&args, more, &run].concat(), &[])
}

fn record(more: &[&str]) -> Output {
    recorded(&made("json.mcap"), more)
}

fn recorded(file: &str, more: &[&str]) -> Output {
    let stream = ["--stream", "demo.Kinds/Count={\"n\": 2}", "--no-log"];
    once(
        &[&["record", &serves(), "-o", file], &stream[..]].concat(),
        more,
    )
}

fn replay(more: &[&str]) -> Output {
    let file = made("json-replay.mcap");
    recorded(&file, &[]);
    let args = ["replay", &file, &serves(), "--fast", "--only", "demo.Kinds"];
    once(&args, more)
}

fn generate(more: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-gen");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("t.proto"),
        "syntax = \"proto3\"; package t; message M {}",
    )
    .unwrap();
    let args = ["gen", "t.proto", "--out", "made"];
    output(tool(&args, more).current_dir(folder))
}

fn status(more: &[&str]) -> Output {
    let at = format!("shm:{}", socket("json-status"));
    let server = Serve::start(&at);
    // Somebody is there, so that there is a link to be seen.
    let mut client = spawn_call(&at, &["Kinds/EchoAll", "--timeout", "1h"]);
    let mut input = client.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"{}\n").unwrap();
    let mut out = client.stdout.take().unwrap();
    out.read_exact(&mut [0; 8]).unwrap();
    let shown = once(&["shm", "status", &at], more);
    drop(input);
    client.wait().unwrap();
    server.stop();
    shown
}

/// The names in the list of commands that a help shows.
fn listed(args: &[&str]) -> Vec<String> {
    let help = output(&mut sinew(&[args, &["--help"]].concat()));
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(String::from)
        .collect()
}

#[test]
fn every_command_is_tried_here() {
    let mut all = Vec::new();
    for name in listed(&[]) {
        match listed(&[&name]).as_slice() {
            [] => all.push(name),
            inside => all.extend(inside.iter().map(|it| format!("{name} {it}"))),
        }
    }
    let tried = COMMANDS.map(|(name, _)| name);
    assert_eq!(all, tried);
}

/// The values in a text, all of which must be.
fn values(text: &[u8]) -> Vec<Value> {
    let read = serde_json::Deserializer::from_slice(text).into_iter();
    let values: Result<Vec<Value>, _> = read.collect();
    values.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

/// What the book says of a command's JSON.
fn section(name: &str) -> &'static str {
    let page = include_str!("../../../docs/src/tool-json.md");
    let head = format!("\n## {name}\n");
    let (_, section) = page.split_once(&head).unwrap_or_else(|| panic!("no{head}"));
    section.split("\n## ").next().unwrap()
}

/// All names in a value.
fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) => {
            let inside = object.values().flat_map(keys);
            object.keys().cloned().chain(inside).collect()
        }
        Value::Array(array) => array.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_command_writes_json_for_programs() {
    for (name, run) in COMMANDS {
        let output = run(&["--json"]);
        assert!(output.status.success(), "{name}: {output:?}");
        let found = values(&output.stdout);
        assert!(!found.is_empty(), "{name}");
        let own = section(name);
        // It may be as another's.
        let others = own
            .split("](#")
            .skip(1)
            .filter_map(|it| it.split(')').next());
        let page: String = others.map(section).chain([own]).collect();
        // What the messages of a call have is their own.
        for key in found.iter().flat_map(keys).filter(|_| name != "call") {
            assert!(page.contains(&format!("`{key}`")), "{name}: {key}");
        }
        for note in values(&output.stderr) {
            assert!(note["note"].is_string(), "{name}: {note}");
        }
    }
}

#[test]
fn no_command_steers_a_terminal_that_is_none() {
    for (name, run) in COMMANDS {
        for more in [&[][..], &["--json"]] {
            let output = run(more);
            let texts = [output.stdout, output.stderr];
            for text in texts {
                let is_seen = text.contains(&0x1b) || text.contains(&b'\r');
                assert!(!is_seen, "{name}: {}", String::from_utf8_lossy(&text));
            }
        }
    }
}

#[test]
fn every_command_says_its_errors_in_json() {
    for (name, _) in COMMANDS {
        let words: Vec<&str> = name.split(' ').collect();
        for args in [[&words[..], &["--no-such-option", "--json"]].concat(), {
            // In front of the command as well.
            [&["--json"], &words[..], &["--no-such-option"]].concat()
        }] {
            let output = once(&args, &[]);
            assert_eq!(output.status.code(), Some(64), "{name}");
            assert!(output.stdout.is_empty(), "{name}");
            let [said] = &values(&output.stderr)[..] else {
                panic!("{name}: {output:?}");
            };
            let error = &said["error"];
            assert_eq!(error["exit"], 64, "{said}");
            assert_eq!(error["code"], "sinew::usage", "{said}");
            assert!(error["what"].as_str().unwrap().contains("--no-such-option"));
            let help = error["help"].as_str().unwrap();
            assert!(help.contains(&format!("sinew {name} --help")), "{said}");
        }
    }
}

#[test]
fn error_of_a_call_has_its_parts() {
    let args = ["call", "unix:/no/such.sock", "demo.Kinds/Double", "--json"];
    let said = &values(&once(&args, &[]).stderr)[0];
    let error = said["error"].as_object().unwrap();
    let names: Vec<&str> = error.keys().map(String::as_str).collect();
    assert_eq!(names, ["cause", "code", "exit", "help", "what"]);
    assert_eq!(error["what"], "cannot reach unix:/no/such.sock");
    assert_eq!(error["cause"], "no server listens there");
    assert_eq!(error["code"], "sinew::no_connection");
    assert_eq!(error["exit"], 69);
}

#[test]
fn stale_files_are_told_before_the_error() {
    generate(&[]);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-gen");
    let args = ["gen", "t.proto", "--out", "never-made", "--check", "--json"];
    let stale = output(tool(&args, &[]).current_dir(folder));
    let value = &values(&stale.stdout)[0]["stale"][0];
    assert_eq!(value["file"], "never-made/t.rs");
    assert_eq!(values(&stale.stderr)[0]["error"]["exit"], 1);
}

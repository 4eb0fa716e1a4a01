//! What shells complete: the engine as each of them asks it, and each of them in a terminal.

mod support;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};
use sinew::rpc::Schema;
use sinew_services::reflection::{self, Schemas};
use support::{Serve, Terminal, answer, output, pty, sinew};

/// Where bash breaks words unless it is told otherwise.
const BREAKS: &str = " \t\n\"'@><=;|&(:";

/// A cache folder of its own, empty.
fn cache(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn bash(cache: &Path, line: &str) -> Command {
    let mut command = sinew(&[]);
    command
        .env("SINEW_COMPLETE", "bash")
        .env("SINEW_LINE", line)
        .env("SINEW_BREAKS", BREAKS)
        .env("XDG_CACHE_HOME", cache);
    command
}

/// What zsh or fish asks for by words.
fn words(shell: &str, cache: &Path, words: &[&str]) -> Command {
    let mut command = sinew(&["--", "sinew"]);
    command
        .args(words)
        .env("SINEW_COMPLETE", shell)
        .env("XDG_CACHE_HOME", cache);
    command
}

/// The candidates. Nothing else may come, and nothing may fail.
fn offered(command: &mut Command) -> Vec<String> {
    let output = output(command);
    assert!(output.stderr.is_empty(), "{}", support::complaint(&output));
    answer(&output).lines().map(String::from).collect()
}

fn three(cache: &Path, line: &str) -> [Vec<String>; 3] {
    let parts: Vec<&str> = line.split(' ').skip(1).collect();
    [
        offered(&mut bash(cache, line)),
        offered(&mut words("zsh", cache, &parts)),
        offered(&mut words("fish", cache, &parts)),
    ]
}

/// The same of a server that is there. A shell does not wait for one that a busy machine holds up: it asks
/// again.
fn three_of_server(cache: &Path, line: &str) -> [Vec<String>; 3] {
    let mut asked = (0..100).map(|_| three(cache, line));
    let answered = asked.find(|found| found.iter().all(|lines| !lines.is_empty()));
    answered.expect("an answer of the server")
}

/// Has a server asked, without haste: what it says is known from then on.
fn asked(cache: &Path, at: &str) {
    let listed = output(sinew(&["list", at]).env("XDG_CACHE_HOME", cache));
    answer(&listed);
}

/// Every line without its description.
fn values(lines: &[String]) -> Vec<&str> {
    let first = |line: &'_ String| line.find('\t').unwrap_or(line.len());
    lines.iter().map(|line| &line[..first(line)]).collect()
}

#[test]
fn commands_options_and_kinds_of_endpoints_are_known_to_every_shell() {
    let cache = cache("complete-words");
    for found in three(&cache, "sinew cal") {
        assert_eq!(values(&found), ["call"]);
    }
    for command in ["call", "list", "describe"] {
        for found in three(&cache, &format!("sinew {command} --ti")) {
            assert_eq!(values(&found), ["--timeout"], "{command}");
        }
    }
    for found in three(&cache, "sinew record --e") {
        assert_eq!(values(&found), ["--elf"]);
    }
    for found in three(&cache, "sinew call s") {
        assert_eq!(values(&found), ["shm:", "serial:", "stdio:"]);
    }
    for found in three(&cache, "sinew relay tcp:127.0.0.1:1 u") {
        assert_eq!(values(&found), ["udp:", "unix:"]);
    }
    for line in [
        "sinew pub a --connect t",
        "sinew record stdio: t",
        "sinew top udp:a:1 t",
        "sinew capture stdio: --at t",
    ] {
        for found in three(&cache, line) {
            assert_eq!(values(&found), ["tcp:"], "{line}");
        }
    }
    for found in three(&cache, "sinew call stdio: --frame ") {
        assert_eq!(values(&found), ["hdlc", "len", "cobs", "zenoh"]);
    }
}

#[test]
fn what_a_server_has_is_completed_while_it_is_there_and_from_then_on() {
    let cache = cache("complete-server");
    let server = Serve::start("tcp:127.0.0.1:0");
    let at = server.endpoint.clone();
    for found in three_of_server(&cache, &format!("sinew call {at} demo.Kinds/")) {
        let kinds = ["Count", "Double", "EchoAll", "Sum"].map(|it| format!("demo.Kinds/{it}"));
        assert_eq!(values(&found), kinds);
    }
    for found in three_of_server(&cache, &format!("sinew describe {at} demo.N")) {
        assert_eq!(values(&found), ["demo.Num"]);
    }
    for found in three_of_server(&cache, &format!("sinew call {at} Kinds/D")) {
        assert_eq!(values(&found), ["Kinds/Double"]);
    }
    server.stop();
    let line = format!("sinew call {at} demo.Kinds/Double ");
    // Bash takes words as they are to stand there, the others quote by themselves.
    let [bash, zsh, fish] = three(&cache, &line);
    assert_eq!(values(&bash), [r#"'{"n":0}'"#]);
    assert_eq!([values(&zsh), values(&fish)], [[r#"{"n":0}"#]; 2]);
    let known = &three(&cache, "sinew call tcp:")[2];
    assert_eq!(values(known), [at.as_str()]);
}

#[test]
fn nobody_there_offers_nothing_and_says_nothing() {
    let cache = cache("complete-nobody");
    for found in three(&cache, "sinew call unix:/no/such.sock ") {
        assert!(
            values(&found).iter().all(|it| it.starts_with('-')),
            "{found:?}"
        );
    }
    assert_eq!(
        offered(&mut bash(&cache, "sinew call nonsense demo.")),
        [""; 0]
    );
    assert_eq!(offered(&mut bash(&cache, "sinew call 'unix:/no")), [""; 0]);
    let mut strange = words("tcsh", &cache, &["call", ""]);
    assert_eq!(offered(&mut strange), [""; 0]);
}

#[test]
fn server_that_is_silent_does_not_hold_up_the_shell() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp:{}", listener.local_addr().unwrap());
    let line = format!("sinew call {at} demo.");
    assert_eq!(
        offered(&mut bash(&cache("complete-silent"), &line)),
        [""; 0]
    );
}

#[test]
fn nothing_is_started_or_opened_for_a_completion() {
    let cache = cache("complete-start");
    let trace = cache.join("started");
    let line = format!("sinew call 'exec:touch {}' demo.", trace.display());
    assert_eq!(offered(&mut bash(&cache, &line)), [""; 0]);
    let emulator = cache.join("qemu-system-arm");
    fs::write(&emulator, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
    fs::set_permissions(
        &emulator,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let own = env!("CARGO_BIN_EXE_sinew");
    let line = format!("sinew call qemu:{own}?machine=mps2-an385 demo.");
    let mut asked = bash(&cache, &line);
    assert_eq!(offered(asked.env("PATH", &cache)), [""; 0]);
    assert!(!trace.exists());
    // Opening a line would show: bytes come, and its speed is set.
    let (master, line) = pty();
    let line = format!("sinew call serial:{line} demo.");
    assert_eq!(offered(&mut bash(&cache, &line)), [""; 0]);
    let nothing = rustix::fs::fcntl_setfl(&master, rustix::fs::OFlags::NONBLOCK);
    nothing.unwrap();
    let read = rustix::io::read(&master, &mut [0; 16]);
    assert!(!matches!(read, Ok(1..)), "{read:?}");
}

#[test]
fn paths_of_each_kind_of_endpoint_are_completed_and_quoted() {
    let cache = cache("complete-paths");
    let folder = cache.display().to_string();
    fs::write(cache.join("notes.txt"), "text").unwrap();
    fs::write(cache.join("an image"), b"\x7fELF and more").unwrap();
    fs::create_dir(cache.join("deep")).unwrap();
    let socket = cache.join("a.sock");
    let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let [bash, zsh, _] = three(&cache, &format!("sinew call qemu:{folder}/"));
    assert_eq!(
        bash,
        [format!(r"{folder}/an\ image"), format!("{folder}/deep/")]
    );
    assert_eq!(values(&zsh)[0], format!("qemu:{folder}/an image"));
    let [bash, ..] = three(&cache, &format!("sinew call unix:{folder}/"));
    assert_eq!(
        bash,
        [format!("{folder}/a.sock"), format!("{folder}/deep/")]
    );
}

/// A schema with this name of a service, and a field of this name.
fn schema(service: &str, json_name: &str) -> Schema {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let of_field = [
        field(1, b"f"),
        vec![3 << 3, 1, 4 << 3, 1, 5 << 3, 13],
        field(10, json_name.as_bytes()),
    ];
    let message = [field(1, b"M"), field(2, &of_field.concat())].concat();
    let method = [field(1, b"Do"), field(2, b".t.M"), field(3, b".t.M")].concat();
    let service = [field(1, service.as_bytes()), field(2, &method)].concat();
    let file = [
        field(1, b"t.proto"),
        field(2, b"t"),
        field(4, &message),
        field(6, &service),
        field(12, b"proto3"),
    ];
    let set = field(1, &file.concat());
    let hash = Sha256::digest(&set);
    Schema {
        hash: u64::from_be_bytes(hash[..8].try_into().unwrap()),
        set: Vec::leak(set),
    }
}

fn served(schema: Schema) -> (sinew_io::serve::Listening, String) {
    let schemas = Vec::leak(vec![schema]);
    let server = sinew_io::Server::new(reflection::Serve(Schemas(schemas)));
    let listening = server.listen(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let at = listening.endpoint().to_string();
    (listening, at)
}

#[test]
fn names_that_a_shell_or_a_terminal_would_obey_are_not_offered() {
    let cache = cache("complete-hostile");
    for name in [
        "$(touch x)",
        "a b",
        "`x`",
        "a'b",
        "a\"b",
        "a\x1b[2J",
        "a\nb",
        "a;b",
        "",
    ] {
        let (_listening, at) = served(schema(name, "f"));
        for found in three(&cache, &format!("sinew call {at} t")) {
            assert_eq!(found, [""; 0], "{name:?}");
        }
        let listed = output(&mut sinew(&["list", &at]));
        assert_eq!(listed.status.code(), Some(15), "{name:?}");
        assert!(!listed.stderr.contains(&0x1b), "{name:?}");
    }
    // What may be called otherwise in JSON is quoted.
    let (_listening, at) = served(schema("S", "$(touch x)'\""));
    asked(&cache, &at);
    let [bash, zsh, _] = three(&cache, &format!("sinew call {at} t.S/Do "));
    assert_eq!(bash, [r#"'{"$(touch x)'\''\"":0}'"#]);
    assert_eq!(zsh, [r#"{"$(touch x)'\"":0}"#]);
}

#[test]
fn every_script_is_written_and_bash_takes_its_own() {
    for shell in ["bash", "zsh", "fish"] {
        let script = output(&mut sinew(&["completions", shell]));
        assert!(answer(&script).contains(&format!("SINEW_COMPLETE={shell}")));
    }
    let script = output(&mut sinew(&["completions", "bash"]));
    let mut bash = Command::new("bash");
    let mut bash = bash.arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    let mut input = bash.stdin.take().unwrap();
    input.write_all(&script.stdout).unwrap();
    drop(input);
    assert!(bash.wait().unwrap().success());
}

/// A shell whose user has nothing in its files.
fn shell(name: &str, cache: &Path) -> Command {
    let tool = Path::new(env!("CARGO_BIN_EXE_sinew")).parent().unwrap();
    let path = format!("{}:{}", tool.display(), std::env::var("PATH").unwrap());
    // The terminal is to be its own.
    let mut command = Command::new("setsid");
    command.args(["-c", name]);
    match name {
        "bash" => command.args(["--norc", "--noprofile", "-i"]),
        "zsh" => command.args(["-f", "-i", "-o", "no_prompt_sp"]),
        _ => command.args([
            "--no-config",
            "-i",
            "-C",
            "function fish_prompt; echo 'ready> '; end",
        ]),
    };
    command
        .env("PATH", path)
        .env("PS1", "ready> ")
        .env("TERM", "dumb")
        .env("HOME", cache)
        .env("XDG_CACHE_HOME", cache)
        .env("XDG_CONFIG_HOME", cache)
        .env("XDG_DATA_HOME", cache)
        .env_remove("INPUTRC")
        .current_dir(cache);
    command
}

/// What a shell shows once its user has pressed these keys, and what had come before.
fn typed(name: &str, cache: &Path, keys: &str) -> String {
    let load = match name {
        "bash" => "eval \"$(sinew completions bash)\"",
        "zsh" => "autoload -Uz compinit; compinit -u -D; eval \"$(sinew completions zsh)\"",
        _ => "sinew completions fish | source",
    };
    let mut terminal = Terminal::start(&mut shell(name, cache));
    terminal.read_until("ready> ");
    terminal.write(&format!("{load}; echo is'-'there\r"));
    terminal.read_until("is-there\r\n");
    terminal.read_until("ready> ");
    terminal.write(&format!("{keys}; echo is'-'over\r"));
    let shown = terminal.read_until("is-over\r\n");
    terminal.write("exit\r");
    terminal.end();
    shown
}

#[test]
fn keys_in_every_shell_make_a_call_with_its_request() {
    let server = Serve::start("tcp:127.0.0.1:0");
    let at = &server.endpoint;
    for name in ["bash", "zsh", "fish"] {
        let cache = cache(&format!("complete-{name}"));
        asked(&cache, at);
        let shown = typed(name, &cache, &format!("sinew cal\t{at} demo.Kinds/Dou\t\t"));
        assert!(shown.contains("\n{\"n\":0}\r\n"), "{name}: {shown}");
    }
    server.stop();
}

#[test]
fn keys_in_no_shell_run_what_a_server_says() {
    for name in ["bash", "zsh", "fish"] {
        let cache = cache(&format!("complete-hostile-{name}"));
        let (_listening, at) = served(schema("S", "$(touch x)'`touch y`"));
        asked(&cache, &at);
        let keys = format!("sinew call {at} t.S/\t\t");
        let shown = typed(name, &cache, &keys);
        // The request came whole to the call, which the server refuses: it does not have the method.
        assert!(shown.contains("NOT_FOUND"), "{name}: {shown}");
        let (_listening, at) = served(schema("$(touch x)", "f"));
        typed(name, &cache, &format!("sinew call {at} t\t\t\t"));
        for made in ["x", "y"] {
            assert!(!cache.join(made).exists(), "{name}");
        }
    }
}

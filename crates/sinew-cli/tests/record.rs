//! `sinew record` and `sinew replay`.

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use sinew::rpc::packet::{self, Packet, PacketType, Route};
use sinew::rpc::{Status, id};
use sinew_io::Endpoint;
use sinew_io::apart;
use sinew_io::endpoint::Use;
use sinew_services::RecordsRequest;
use sinew_services::record::Said;
use support::image::deferred;
use support::{Serve, Terminal, answer, call, complaint, interrupt, sinew, socket};

/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);
/// What a complete file ends with.
const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// A file that no other test uses, and that is not there.
fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{name}-{}.mcap", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// A running `sinew record`.
struct Record {
    child: Child,
    /// Where calls come in.
    at: String,
    path: PathBuf,
}

impl Record {
    /// Records what passes between clients at `at` and the endpoint.
    fn between(at: &str, endpoint: &str, path: &Path) -> Record {
        Record::start(&[endpoint, "--no-log", "--at", at], path)
    }

    fn start(args: &[&str], path: &Path) -> Record {
        let out = path.to_str().unwrap();
        let mut command = sinew(&["record", "-o", out]);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = support::start(&mut command);
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let ready = line.trim().strip_prefix("recording ");
        let Some(ready) = ready.and_then(|line| line.strip_suffix(&format!(" in {out}"))) else {
            let mut why = String::new();
            child.stderr.unwrap().read_to_string(&mut why).unwrap();
            panic!("it does not record: {line}{why}");
        };
        let at = ready.split(" to ").next().unwrap().to_owned();
        Record {
            child,
            at,
            path: path.to_owned(),
        }
    }

    /// Calls a method through it.
    fn call(&self, args: &[&str], input: &str) -> Output {
        call(&self.at, args, input)
    }

    /// Ctrl-C: what it reports.
    fn stop(self) -> String {
        interrupt(&self.child);
        self.report()
    }

    /// What it reports once it has ended.
    fn report(mut self) -> String {
        let mut report = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut report).unwrap();
        assert!(self.child.wait().unwrap().success(), "{report}");
        assert!(fs::read(&self.path).unwrap().ends_with(MAGIC), "{report}");
        report
    }

    /// Waits until the file says this: its chunks are not compressed.
    fn has_written(&self, what: &str) {
        let until = Instant::now() + SOON;
        let is_there = |file: &[u8]| file.windows(what.len()).any(|part| part == what.as_bytes());
        while !is_there(&fs::read(&self.path).unwrap()) {
            assert!(Instant::now() < until, "{what} does not come into the file");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn replay(path: &Path, endpoint: &str, args: &[&str]) -> Output {
    let mut command = sinew(&["replay", path.to_str().unwrap(), endpoint]);
    support::output(command.args(args))
}

/// The last line of `--json`.
fn total(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let last = text
        .lines()
        .last()
        .unwrap_or_else(|| panic!("{}", complaint(output)));
    serde_json::from_str(last).unwrap()
}

/// One call of each kind, one that the method refuses, and two that are on their way at once.
fn call_every_kind(record: &Record) {
    let items = "{\"n\": 1}\n{\"n\": 2}\n";
    let output = record.call(&["demo.Kinds/Double", r#"{"n": 21}"#], "");
    assert_eq!(answer(&output).trim(), r#"{"n":42}"#);
    let output = record.call(&["demo.Kinds/Count", r#"{"n": 300}"#], "");
    assert_eq!(answer(&output).lines().count(), 300);
    assert_eq!(
        answer(&record.call(&["demo.Kinds/Sum"], items)).trim(),
        r#"{"n":3}"#
    );
    assert_eq!(
        answer(&record.call(&["demo.Kinds/EchoAll"], items))
            .lines()
            .count(),
        2
    );
    let output = record.call(&["demo.Kinds/Double", r#"{"n": 4000000000}"#], "");
    assert_eq!(output.status.code(), Some(11));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let output = record.call(&["demo.Kinds/Count", r#"{"n": 1000}"#], "");
                assert_eq!(answer(&output).lines().count(), 1000);
            });
        }
    });
}

/// Records every kind of call on its way to `serve`, and replays them there.
fn every_kind_comes_back(name: &str, serve: &str, at: &str) {
    let serve = Serve::start(serve);
    let path = file(name);
    let record = Record::between(at, &serve.endpoint, &path);
    call_every_kind(&record);
    let report = record.stop();
    // 1+1 Double, 1+300 Count, 2+1 Sum, 2+2 EchoAll, 1 refused Double, 2 * (1+1000) Count.
    assert!(report.contains("7 calls, 2,313 messages, "), "{report}");
    for pace in [&["--fast"][..], &["--speed", "3"]] {
        let output = replay(&path, &serve.endpoint, pace);
        let text = answer(&output);
        let row = |method: &str, same: u32| {
            let fields = [method.to_owned(), same.to_string(), "0".to_owned()];
            let found = text
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>());
            assert!(found.into_iter().any(|row| row == fields), "{text}");
        };
        row("demo.Kinds/Double", 2);
        row("demo.Kinds/Count", 3);
        row("demo.Kinds/Sum", 1);
        row("demo.Kinds/EchoAll", 1);
    }
}

#[test]
fn calls_of_every_kind_over_tcp_are_recorded_and_replayed() {
    every_kind_comes_back("tcp", "tcp:127.0.0.1:0", "tcp:127.0.0.1:0");
}

#[test]
fn calls_of_every_kind_over_a_unix_socket_are_recorded_and_replayed() {
    let [serve, at] =
        ["record-unix", "record-unix-at"].map(|name| format!("unix:{}", socket(name)));
    every_kind_comes_back("unix", &serve, &at);
}

#[test]
fn calls_of_every_kind_over_shared_memory_are_recorded_and_replayed() {
    let [serve, at] = ["record-shm", "record-shm-at"].map(|name| format!("shm:{}", socket(name)));
    every_kind_comes_back("shm", &serve, &at);
}

#[test]
fn stream_of_both_sides_without_a_message_comes_back() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("no-messages");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    assert_eq!(answer(&record.call(&["demo.Kinds/EchoAll"], "")), "");
    let report = record.stop();
    // Beside those of EchoAll there are the messages of the tool's questions.
    let output = replay(&path, &serve.endpoint, &["--fast", "--json"]);
    assert!(output.status.success(), "{report}{}", complaint(&output));
    let methods = &total(&output)["methods"];
    assert_eq!(
        methods,
        &serde_json::json!([{ "method": "demo.Kinds/EchoAll", "same": 1, "different": 0 }])
    );
}

#[test]
fn questions_of_the_tool_are_made_again_by_their_names_alone() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("questions");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    for command in ["list", "info"] {
        answer(&support::output(&mut sinew(&[command, &record.at])));
    }
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 21}"#], ""));
    record.stop();
    let output = replay(&path, &serve.endpoint, &["--fast", "--json"]);
    let shown = total(&output);
    assert_eq!((&shown["calls"], &shown["same"]), (&1.into(), &1.into()));
    let left_out = shown["left_out"].as_u64().unwrap();
    assert!(left_out > 1, "{shown}");
    let output = replay(&path, &serve.endpoint, &["--fast"]);
    let text = answer(&output);
    let said = format!("left out: {left_out} calls of the tool itself");
    assert!(text.contains(&said), "{text}");
    let only = ["--fast", "--json", "--only", "sinew.Reflection"];
    let named = total(&replay(&path, &serve.endpoint, &only));
    assert!(named["calls"].as_u64() > Some(0), "{named}");
    assert_eq!(named["left_out"], 0);
}

#[test]
fn calls_to_a_server_with_one_link_are_recorded() {
    let serve = format!("exec:{} serve stdio:", env!("CARGO_BIN_EXE_sinew"));
    let path = file("exec");
    let record = Record::between("tcp:127.0.0.1:0", &serve, &path);
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 21}"#], ""));
    record.stop();
    answer(&replay(&path, &serve, &[]));
}

#[test]
fn answer_that_differs_is_shown_by_its_field_and_can_be_ignored() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("differs");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    for _ in 0..2 {
        answer(&record.call(&["demo.Cache/GetValue"], ""));
    }
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 21}"#], ""));
    record.stop();
    answer(&call(
        &serve.endpoint,
        &["demo.Cache/SetValue", r#"{"value": 9}"#],
        "",
    ));

    let output = replay(&path, &serve.endpoint, &["--fast"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        text.starts_with("demo.Cache/GetValue, call 1 {}: response, value\n  - 0\n  + 9\n"),
        "{text}"
    );
    assert!(
        complaint(&output).contains("answered 2 of 3 calls otherwise than recorded"),
        "{}",
        complaint(&output)
    );
    let output = replay(&path, &serve.endpoint, &["--fast", "--json"]);
    assert_eq!(total(&output)["different"], 2);
    let first: Value =
        serde_json::from_slice(output.stdout.split(|&b| b == b'\n').next().unwrap()).unwrap();
    assert_eq!(
        (&first["field"], &first["came"]),
        (&"value".into(), &"9".into())
    );

    for same in [
        &["--ignore", "demo.GetValueResponse.value"][..],
        &["--only", "demo.Kinds"],
        &["--only", "Kinds/Double"],
    ] {
        answer(&replay(&path, &serve.endpoint, same));
    }
    for (wrong, remedy) in [
        (
            ["--ignore", "demo.GetValueResponse.valu"],
            "did you mean demo.GetValueResponse.value?",
        ),
        (["--only", "Kinds/Doubl"], "did you mean demo.Kinds/Double?"),
        (["--speed", "0"], "--fast does not wait at all"),
    ] {
        let output = replay(&path, &serve.endpoint, &wrong);
        assert_eq!(output.status.code(), Some(64));
        assert!(
            complaint(&output).contains(remedy),
            "{}",
            complaint(&output)
        );
    }
}

/// A server whose one method, a stream, has these items and ends with this status; `None`: it does not end.
fn fake(method: &'static str, items: Vec<Vec<u8>>, status: Option<Status>) -> String {
    let endpoint = Endpoint::parse("tcp:127.0.0.1:0", Use::Calls).unwrap();
    let mut listener = apart::listen(&endpoint).unwrap();
    let at = listener.endpoint().to_string();
    thread::spawn(move || {
        while let Some(mut link) = listener.accept_within(None) {
            let items = items.clone();
            thread::spawn(move || {
                loop {
                    let request = match link.rx.peek() {
                        Err(_) => return,
                        Ok(None) => {
                            link.rx.wait(None);
                            continue;
                        }
                        Ok(Some(packet)) => {
                            let packet = Packet::decode(packet).unwrap();
                            let is_request = packet.packet_type == PacketType::REQUEST;
                            let is_ours = packet.route.method == id(method) && is_request;
                            is_ours.then_some(packet.route)
                        }
                    };
                    link.rx.release();
                    let Some(route) = request else { continue };
                    let mut send = |packet_type, payload: &[u8], status| {
                        send(&mut link, packet_type, &route, payload, status);
                    };
                    for item in &items {
                        send(PacketType::SERVER_STREAM, item, Status::OK);
                    }
                    if let Some(status) = status {
                        send(PacketType::RESPONSE, &[], status);
                    }
                }
            });
        }
    });
    at
}

/// One of `demo.Kinds/Count` with these numbers.
fn counts(items: &[u8], status: Status) -> String {
    let items = items.iter().map(|&item| match item {
        0 => Vec::new(),
        item => vec![8, item],
    });
    fake("Count", items.collect(), Some(status))
}

fn send(
    link: &mut apart::Apart,
    packet_type: PacketType,
    route: &Route,
    payload: &[u8],
    status: Status,
) {
    let place = link.tx.place(256).unwrap();
    let len = packet::encode(place, packet_type, route, payload, status).unwrap();
    link.tx.commit(len).unwrap();
    link.tx.flush();
}

#[test]
fn stream_with_other_items_or_another_end_is_different() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("items");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    answer(&record.call(&["demo.Kinds/Count", r#"{"n": 3}"#], ""));
    record.stop();
    for (items, status, found) in [
        (&[0, 1, 2][..], Status::OK, None),
        (&[0, 1, 5], Status::OK, Some("item 3, n\n  - 2\n  + 5\n")),
        (&[0, 1], Status::OK, Some("item 3\n  - {\"n\":2}\n  + OK\n")),
        (
            &[0, 1, 2, 3],
            Status::OK,
            Some("item 4\n  - OK\n  + {\"n\":3}\n"),
        ),
        (
            &[0, 1, 2],
            Status::ABORTED,
            Some("status\n  - OK\n  + ABORTED\n"),
        ),
    ] {
        let output = replay(&path, &counts(items, status), &[]);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        match found {
            None => assert!(output.status.success(), "{text}{}", complaint(&output)),
            Some(found) => {
                assert_eq!(
                    output.status.code(),
                    Some(1),
                    "{text}{}",
                    complaint(&output)
                );
                assert!(text.contains(found), "{text}");
            }
        }
    }
}

#[test]
fn server_that_does_not_answer_is_told_from_one_that_is_silent() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("silent");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    answer(&record.call(&["demo.Kinds/Count", r#"{"n": 1}"#], ""));
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 1}"#], ""));
    record.stop();
    // It answers Count alone.
    let at = counts(&[0], Status::OK);
    let output = replay(&path, &at, &["--timeout", "200ms"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("{\"n\":1}: response\n  - {\"n\":2}\n  + (nothing)\n"),
        "{text}"
    );
    let output = replay(
        &path,
        &at,
        &["--timeout", "200ms", "--only", "Kinds/Double"],
    );
    assert_eq!(output.status.code(), Some(4));
    assert!(
        complaint(&output).contains("no answer from tcp:"),
        "{}",
        complaint(&output)
    );
}

#[test]
fn far_call_is_waited_for_with_a_word_or_not_at_all() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("far");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    for n in ["1", "2"] {
        let request = format!(r#"{{"n": {n}}}"#);
        answer(&record.call(&["demo.Kinds/Double", &request], ""));
    }
    record.stop();
    let args = ["replay", path.to_str().unwrap(), &serve.endpoint];
    // What was milliseconds takes minutes.
    let mut command = sinew(&args);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let mut terminal = Terminal::start(command.args(["--speed", "0.00001"]));
    terminal.read_until("50 % waits ");
    let shown = terminal.read_until("--fast does not");
    let what = " for the time of call 2, demo.Kinds/Double; ";
    assert!(shown.contains(what), "{shown:?}");
    terminal.interrupt();
    assert_eq!(terminal.end().1, Some(1));
    let output = replay(&path, &serve.endpoint, &["--fast", "--json"]);
    assert_eq!(total(&output)["same"], 2);
}

#[test]
fn silent_server_is_waited_for_with_a_word() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("waits");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 1}"#], ""));
    record.stop();
    let silent = fake("Double", Vec::new(), None);
    let args = ["replay", path.to_str().unwrap(), &silent, "--timeout", "1h"];
    let mut command = sinew(&args);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let mut terminal = Terminal::start(&mut command);
    terminal.read_until("0 % waits up to ");
    terminal.read_until(" for the server in call 1, demo.Kinds/Double");
    terminal.interrupt();
    assert_eq!(terminal.end().1, Some(1));
}

#[test]
fn cancelled_stream_is_replayed_up_to_its_cancel() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("cancelled");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    let mut child = support::spawn_call(&record.at, &["demo.Kinds/Count", r#"{"n": 4000000000}"#]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    interrupt(&child);
    child.wait().unwrap();
    record.stop();
    let output = replay(&path, &serve.endpoint, &["--json"]);
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!(total(&output)["same"], 1);
}

#[test]
fn recorder_that_is_killed_leaves_a_file_that_is_replayed() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("killed");
    let mut record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 21}"#], ""));
    record.has_written("demo.Kinds/Double/response");
    record.child.kill().unwrap();
    record.child.wait().unwrap();
    assert!(!fs::read(&path).unwrap().ends_with(MAGIC));
    let output = replay(&path, &serve.endpoint, &["--json"]);
    assert_eq!(total(&output)["same"], 1);
    assert!(complaint(&output).contains("has no end, because its recorder was ended"));
}

#[test]
fn recording_ends_by_itself_after_its_time() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("time");
    let args = [
        &*serve.endpoint,
        "--no-log",
        "--at",
        "tcp:127.0.0.1:0",
        "--for",
        "100ms",
    ];
    let report = Record::start(&args, &path).report();
    assert!(report.contains("0 calls, 0 messages, 0 bytes"), "{report}");
}

#[test]
fn streams_are_recorded_without_a_client() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("streams");
    let stream = r#"demo.Kinds/Count={"n": 5}"#;
    // The stream ends, and there is nothing else.
    let report = Record::start(&[&serve.endpoint, "--no-log", "--stream", stream], &path).report();
    assert!(report.contains("ended demo.Kinds/Count: OK"), "{report}");
    assert!(report.contains("1 call, 6 messages, "), "{report}");
    let output = replay(&path, &serve.endpoint, &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(complaint(&output).contains("name what is to be made by --only"));
    for name in ["demo.Kinds", "Count"] {
        answer(&replay(&path, &serve.endpoint, &["--only", name]));
    }
}

#[test]
fn stream_of_a_server_that_comes_back_goes_on() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let endpoint = serve.endpoint.clone();
    let path = file("back");
    let stream = r#"demo.Kinds/Count={"n": 4000000000}"#;
    let mut record = Record::start(&[&endpoint, "--no-log", "--stream", stream], &path);
    record.has_written("demo.Kinds/Count/response");
    let notes = BufReader::new(record.child.stderr.take().unwrap());
    serve.kill();
    let serve = Serve::start(&endpoint);
    let mut notes = notes.lines().map(Result::unwrap);
    assert!(notes.any(|note| note.ends_with("is back")));
    interrupt(&record.child);
    let report = notes.last().unwrap();
    assert!(report.contains(": 2 calls, "), "{report}");
    assert!(record.child.wait().unwrap().success());
    drop(serve);
}

#[test]
fn samples_of_zenoh_are_recorded_by_their_keys() {
    let mut command = sinew(&[
        "pub",
        "demo/lamp",
        r#"{"on": true}"#,
        "--encoding",
        "application/json",
        "--listen",
        "tcp:127.0.0.1:0",
        "--every",
        "10ms",
        "--count",
        "100000",
    ]);
    let mut publisher = support::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    let mut notes = BufReader::new(publisher.stderr.take().unwrap());
    notes.read_line(&mut line).unwrap();
    let at = line.trim().strip_prefix("listening on ").unwrap();
    let at = match at.contains('?') {
        true => format!("{at}&frame=zenoh"),
        false => format!("{at}?frame=zenoh"),
    };
    let path = file("zenoh");
    let record = Record::start(&[&at, "--key", "demo/**"], &path);
    record.has_written("demo/lamp");
    let report = record.stop();
    publisher.kill().unwrap();
    publisher.wait().unwrap();
    assert!(report.contains("0 calls, "), "{report}");
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.windows(12).any(|part| part == br#"{"on": true}"#));
}

#[test]
fn what_cannot_be_recorded_is_said_with_its_remedy() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let endpoint = &*serve.endpoint;
    let there = file("there");
    fs::write(&there, "something").unwrap();
    let there = there.to_str().unwrap();
    let free = file("free");
    let free = free.to_str().unwrap();
    let nobody = format!("tcp:{}", support::free_place());
    let at = ["--at", "tcp:127.0.0.1:0"];
    for (args, code, remedy) in [
        // What is there stays as it is.
        (&[endpoint, at[0], endpoint, "-o", there][..], 69, "in use"),
        (
            &[endpoint, at[0], at[1], "-o", "/dev/full"],
            8,
            "No space left on device (os error 28)",
        ),
        (
            &[endpoint, at[0], at[1], "-o", "/no/such/folder/f.mcap"],
            64,
            "check the path and its permissions",
        ),
        (
            &[endpoint, endpoint, at[0], at[1], "-o", free],
            64,
            "a recorder for each endpoint",
        ),
        (
            &[endpoint, at[0], at[1], "-o", there],
            64,
            "only a file of the same kind is",
        ),
        (
            &[endpoint, "-o", free, "--key", "**"],
            64,
            "no endpoint here has frame=zenoh",
        ),
        (&[endpoint, "--no-log", "-o", free], 64, "--at says where"),
        (
            &[endpoint, "--stream", "demo.Kinds/Double", "-o", free],
            64,
            "call it through the recorder",
        ),
        (
            &[endpoint, "--stream", "demo.Kinds/Coun", "-o", free],
            64,
            "did you mean demo.Kinds/Count?",
        ),
        (
            &[endpoint, "--stream", "demo.Kinds/Count={", "-o", free],
            64,
            "the request is no demo.Num",
        ),
        (&[&nobody, at[0], at[1], "-o", free], 69, "start"),
        (
            &["tcp:127.0.0.1:1?frame=zenoh", at[0], at[1], "-o", free],
            64,
            "leave --at out",
        ),
    ] {
        let output = support::output(sinew(&["record"]).args(args));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            complaint(&output)
        );
        assert!(
            complaint(&output).contains(remedy),
            "{args:?}: {}",
            complaint(&output)
        );
    }
    assert_eq!(fs::read(there).unwrap(), b"something");
}

#[test]
fn recording_takes_the_place_of_an_earlier_or_empty_one_and_goes_into_devices() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let stream = r#"demo.Kinds/Count={"n": 5}"#;
    let args = [&*serve.endpoint, "--no-log", "--stream", stream];
    let path = file("earlier");
    fs::write(&path, "").unwrap();
    let reports = [(); 2].map(|()| Record::start(&args, &path).report());
    for report in reports {
        assert!(report.contains("1 call, 6 messages, "), "{report}");
    }
    let mut command = sinew(&["record", "-o", "/dev/null"]);
    let output = support::output(command.args(args));
    assert!(output.status.success(), "{}", complaint(&output));
}

/// A FIFO that is open at both ends here, so that nobody who opens it waits.
fn fifo(name: &str) -> (PathBuf, File) {
    let path = file(name);
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let held = OpenOptions::new().read(true).write(true).open(&path);
    (path, held.unwrap())
}

#[test]
fn reader_of_a_fifo_has_the_whole_recording() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let (path, held) = fifo("fifo");
    let mut reader = python(&[], &path);
    let reader = support::start(reader.stdout(Stdio::piped()).stderr(Stdio::piped()));
    // More than a FIFO takes without its reader: the recorder ends when that one is there.
    let stream = r#"demo.Kinds/Count={"n": 5000}"#;
    let mut command = sinew(&["record", &serve.endpoint, "--no-log", "--stream", stream]);
    let output = support::output(command.arg("-o").arg(&path));
    assert!(output.status.success(), "{}", complaint(&output));
    drop(held);
    let all = decoded(&reader.wait_with_output().unwrap());
    assert_eq!(count(&all, "demo.Kinds/Count/request"), 1);
    assert_eq!(count(&all, "demo.Kinds/Count/response"), 5000);
    assert_eq!(count(&all, "sinew/calls"), 2);
}

#[test]
fn recording_ends_where_the_reader_of_its_fifo_does() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let (path, held) = fifo("unread");
    let stream = r#"demo.Kinds/Count={"n": 4000000000}"#;
    let mut command = sinew(&["record", &serve.endpoint, "--no-log", "--stream", stream]);
    command.arg("-o").arg(&path).stdout(Stdio::piped());
    let mut record = support::start(command.stderr(Stdio::piped()));
    let mut ready = String::new();
    let stdout = record.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut ready).unwrap();
    drop(held);
    let output = record.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(8), "{}", complaint(&output));
    assert!(
        complaint(&output).contains("its reader has ended help: the reader has what passed before"),
        "{}",
        complaint(&output)
    );
}

#[test]
fn recorder_whose_log_another_reader_takes_says_so_with_the_remedy() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("taken");
    let record = Record::start(&[&serve.endpoint], &path);
    record.has_written("sinew.Log/Records/response");
    let mut reader = support::start(sinew(&["log", &serve.endpoint]).stdout(Stdio::null()));
    let report = record.report();
    reader.kill().unwrap();
    reader.wait().unwrap();
    assert!(
        report.contains("ABORTED: another reader has taken the log over"),
        "{report}"
    );
    assert!(report.contains("--no-log"), "{report}");
}

#[test]
fn what_is_no_recording_is_said_with_its_remedy() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("no");
    for (bytes, remedy) in [
        (&b""[..], "is no MCAP file"),
        (b"sinew", "is no MCAP file"),
        (b"\x89MCAP0\r\n", "is no MCAP file"),
    ] {
        fs::write(&path, bytes).unwrap();
        let output = replay(&path, &serve.endpoint, &[]);
        assert_eq!(output.status.code(), Some(64));
        assert!(
            complaint(&output).contains(remedy),
            "{}",
            complaint(&output)
        );
    }
    fs::remove_file(&path).unwrap();
    let output = replay(&path, &serve.endpoint, &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(
        complaint(&output).contains("give the path of a file"),
        "{}",
        complaint(&output)
    );
    // Nothing was recorded.
    let args = [
        &*serve.endpoint,
        "--no-log",
        "--at",
        "tcp:127.0.0.1:0",
        "--for",
        "50ms",
    ];
    Record::start(&args, &path).report();
    let output = replay(&path, &serve.endpoint, &[]);
    assert!(
        complaint(&output).contains("there are no calls in"),
        "{}",
        complaint(&output)
    );
}

/// Python's readers of MCAP.
fn python(args: &[&str], path: &Path) -> std::process::Command {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let python = root.join("build/venv/bin/python");
    assert!(
        python.exists(),
        "missing capability: Python's readers of MCAP (./setup test installs them)"
    );
    let mut command = std::process::Command::new(python);
    command
        .arg(root.join("tests/interop/recording.py"))
        .args(args)
        .arg(path);
    command
}

/// What Python's readers of MCAP make of a file: topic, sequence and message of each line.
fn read_by_python(args: &[&str], path: &Path) -> Vec<(String, u32, Value)> {
    decoded(&support::output(&mut python(args, path)))
}

fn decoded(output: &Output) -> Vec<(String, u32, Value)> {
    let line = |line: &str| {
        let mut parts = line.splitn(4, ' ');
        let topic = parts.next().unwrap().to_owned();
        let sequence = parts.next().unwrap().parse().unwrap();
        assert!(parts.next().unwrap().parse::<u64>().unwrap() > 0);
        let message = serde_json::from_str(parts.next().unwrap()).unwrap();
        (topic, sequence, message)
    };
    answer(output).lines().map(line).collect()
}

/// As the tool writes a number below a million.
fn thousands(number: usize) -> String {
    format!("{},{:03}", number / 1000, number % 1000)
}

/// How many of these there are.
fn count(all: &[(String, u32, Value)], topic: &str) -> usize {
    all.iter().filter(|(of, ..)| of == topic).count()
}

#[test]
fn python_decodes_every_message_of_a_recording() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("python");
    let record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    call_every_kind(&record);
    let report = record.stop();
    let all = read_by_python(&[], &path);
    let entries = format!("; {} entries in all", thousands(all.len()));
    assert!(report.contains(&entries), "{report}");
    for (topic, messages) in [
        ("demo.Kinds/Double/request", 2),
        ("demo.Kinds/Double/response", 1),
        ("demo.Kinds/Count/request", 3),
        ("demo.Kinds/Count/response", 2300),
        ("demo.Kinds/Sum/request", 2),
        ("demo.Kinds/Sum/response", 1),
        ("demo.Kinds/EchoAll/request", 2),
        ("demo.Kinds/EchoAll/response", 2),
        // 7 calls that are opened and answered, 2 streams of clients that are complete.
        ("sinew/calls", 16),
    ] {
        assert_eq!(count(&all, topic), messages, "{topic}");
    }
    let event = |step: &str| serde_json::json!({ "call": 1, "step": step, "method": "demo.Kinds/Double", "link": 1 });
    let expected = [
        ("sinew/calls", event("OPENED")),
        ("demo.Kinds/Double/request", serde_json::json!({ "n": 21 })),
        ("demo.Kinds/Double/response", serde_json::json!({ "n": 42 })),
        ("sinew/calls", event("ANSWERED")),
    ];
    for ((topic, sequence, message), expected) in all.iter().zip(expected) {
        assert_eq!((&**topic, *sequence, message), (expected.0, 1, &expected.1));
    }
    let refused = all
        .iter()
        .find(|(.., message)| message["status"] == "OUT_OF_RANGE");
    assert_eq!(refused.unwrap().2["step"], "ANSWERED");
}

#[test]
fn python_reads_what_a_recorder_that_was_killed_has_left() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("python-killed");
    let mut record = Record::between("tcp:127.0.0.1:0", &serve.endpoint, &path);
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 21}"#], ""));
    record.has_written("demo.Kinds/Double/response");
    record.child.kill().unwrap();
    record.child.wait().unwrap();
    let all = read_by_python(&["--cut"], &path);
    assert_eq!(all.len(), 4);
}

#[test]
fn log_of_a_device_is_recorded_as_it_is_and_as_foxgloves_log() {
    let mut record = vec![8, 4, 16, 1, 26, 5];
    record.extend(b"motor");
    record.extend([34, 10]);
    record.extend(b"81 degrees");
    let device = fake("Records", vec![record], None);
    let path = file("log");
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/sinew/log.proto");
    let record = Record::start(&[&device, "--proto", proto], &path);
    record.has_written("foxglove.Log");
    let report = record.stop();
    assert!(report.contains("1 call, 2 messages, "), "{report}");
    let all = read_by_python(&[], &path);
    let of = |topic: &str| &all.iter().find(|(of, ..)| of == topic).unwrap().2;
    let said = of("sinew.Log/Records/response");
    assert_eq!(
        (&said["severity"], &said["text"]),
        (&"WARN".into(), &"81 degrees".into())
    );
    let log = of("log");
    assert_eq!(
        (&log["level"], &log["message"]),
        (&"WARNING".into(), &"81 degrees".into())
    );
    assert_eq!(log["name"], "motor");
    assert!(log["timestamp"].is_string());
    // The end of the recording ends the stream, too.
    assert_eq!(all.last().unwrap().2["step"], "GIVEN_UP");
}

#[test]
fn several_devices_are_told_apart_by_their_topics() {
    let devices = [7, 9].map(|n| counts(&[n], Status::OK));
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/demo/demo.proto");
    let path = file("several");
    let args = [
        &*devices[0],
        &devices[1],
        "--proto",
        proto,
        "--stream",
        "demo.Kinds/Count",
    ];
    Record::start(&args, &path).report();
    let all = read_by_python(&[], &path);
    for (device, n) in devices.iter().zip([7, 9]) {
        let topic = format!("{device}/demo.Kinds/Count/response");
        let found = all.iter().find(|(of, ..)| *of == topic);
        assert_eq!(
            found.unwrap_or_else(|| panic!("{topic}: {all:?}")).2["n"],
            n
        );
    }
}

#[test]
fn recording_ends_where_nothing_more_can_be_written_and_keeps_what_is() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("limited");
    // As a full disk: of 64 blocks of 512 bytes or 1 KiB.
    let script = r#"trap '' XFSZ; ulimit -f 64; exec "$@""#;
    let stream = r#"demo.Kinds/Count={"n": 4000000000}"#;
    let mut command = std::process::Command::new("sh");
    command
        .args([
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_sinew"),
            "record",
            &serve.endpoint,
        ])
        .args(["--stream", stream, "-o", path.to_str().unwrap()])
        .env("NO_COLOR", "1")
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let output = support::output(&mut command);
    assert_eq!(output.status.code(), Some(8), "{}", complaint(&output));
    assert!(
        complaint(&output).contains("File too large"),
        "{}",
        complaint(&output)
    );
    assert!(complaint(&output).contains("what passed before is in it"));
    // The head at the least: a chunk may be larger than the limit.
    assert!(fs::read(&path).unwrap().starts_with(MAGIC));
}

#[test]
fn log_of_a_server_is_recorded_beside_the_calls_of_others() {
    let serve = Serve::start("tcp:127.0.0.1:0");
    let path = file("beside");
    let record = Record::start(&[&serve.endpoint, "--at", "tcp:127.0.0.1:0"], &path);
    answer(&record.call(&["demo.Kinds/Double", r#"{"n": 21}"#], ""));
    record.has_written("sinew.Log/Records/response");
    record.stop();
    let all = read_by_python(&[], &path);
    assert_eq!(count(&all, "demo.Kinds/Double/response"), 1);
    let records = count(&all, "sinew.Log/Records/response");
    assert!(records > 0 && count(&all, "log") == records, "{all:?}");
    let first = all.iter().find(|(topic, ..)| topic == "log");
    assert_eq!(first.unwrap().2["name"], "sinew::serve");
    // The log is not made again: it was the recorder's.
    let output = replay(&path, &serve.endpoint, &["--json"]);
    assert_eq!(total(&output)["calls"], 1);
}

#[test]
fn log_that_a_device_does_not_list_is_recorded_by_its_name() {
    let device = fake("Records", vec![vec![8, 3, 34, 1, b'a']], Some(Status::OK));
    let path = file("unlisted");
    let args = [&*device, "--proto", PROTO, "--stream", "sinew.Log/Records"];
    Record::start(&args, &path).report();
    let all = read_by_python(&[], &path);
    let log = all.iter().find(|(topic, ..)| topic == "log").unwrap();
    assert_eq!(
        (&log.2["level"], &log.2["message"]),
        (&"INFO".into(), &"a".into())
    );
}

/// What the log in a recording says: level, module and text of each record.
fn log_in(path: &Path) -> Vec<[String; 3]> {
    let all = read_by_python(&[], path).into_iter();
    let log = all.filter(|(topic, ..)| topic == "log");
    let word = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    log.map(|(_, _, record)| ["level", "name", "message"].map(|key| word(&record, key)))
        .collect()
}

const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto/demo/demo.proto");
const STARTED: [&str; 3] = ["INFO", "deferred::main", "started, with 256 bytes a packet"];

#[test]
fn log_of_an_image_is_recorded_with_the_texts_of_its_file() {
    let at = format!("qemu:{}", deferred().display());
    let path = file("emulated");
    let args = [&*at, "--proto", PROTO, "--stream", "sinew.Log/Records"];
    let record = Record::start(&args, &path);
    record.has_written(STARTED[2]);
    record.stop();
    assert_eq!(log_in(&path)[0], STARTED);
}

#[test]
fn log_of_a_device_is_recorded_with_the_texts_of_its_elf_file() {
    let image = deferred();
    let at = format!("qemu:{}", image.display()).parse().unwrap();
    let mut client = sinew_io::connect(&at).unwrap();
    client.set_timeout(SOON);
    let mut records = sinew_services::log::Client(&client)
        .records(&RecordsRequest::default())
        .unwrap();
    let Some(Said::Deferred(started)) = records.next().unwrap().unwrap().said else {
        panic!("a text of the device");
    };
    // `deferred` of a record.
    let said = |frame: &[u8]| [&[0x2a, frame.len() as u8], frame].concat();
    let items = vec![said(&started), said(&[0xff; 3]), said(&started)];
    let device = fake("Records", items, Some(Status::OK));
    let args = [&*device, "--proto", PROTO, "--stream", "sinew.Log/Records"];
    let path = file("deferred");
    Record::start(
        &[&args[..], &["--elf", image.to_str().unwrap()]].concat(),
        &path,
    )
    .report();
    let log = log_in(&path);
    assert_eq!((&log[0], &log[2]), (&STARTED.map(String::from), &log[0]));
    let [_, module, text] = &log[1];
    assert_eq!(module, "");
    assert!(
        text.contains("of another build") && text.ends_with("> ffffff"),
        "{text}"
    );
    // Without it, what there is, and where the rest is.
    Record::start(&args, &path).report();
    let text = &log_in(&path)[1][2];
    assert_eq!(text, "<the text is in the image: give --elf IMAGE> ffffff");
}

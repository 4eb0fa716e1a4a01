//! `sinew pub`, `sub`, `get` and `reply` between processes, and with nodes of this one.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStderr, ChildStdout, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;
use sinew::pubsub::codec::{Body, Encoding};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Ask, Question};
use sinew_io::Endpoint;
use sinew_io::apart::{self, Listener};
use sinew_io::endpoint::Use;
use sinew_io::pubsub::{self, Node, Options, Replies};
use support::{answer, complaint, free_place, interrupt, sinew, socket};

/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);

/// A running tool. Its notes are read as they come.
struct Tool {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Tool {
    fn start(args: &[&str]) -> Tool {
        let mut command = sinew(args);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Tool {
            out: BufReader::new(child.stdout.take().unwrap()),
            err: BufReader::new(child.stderr.take().unwrap()),
            child,
        }
    }

    /// One that listens, and where.
    fn listening(args: &[&str]) -> (Tool, String) {
        let mut tool = Tool::start(args);
        let note = tool.note();
        let (_, at) = note.split_once("listening on ").expect("where it is");
        // With --json the note is an object.
        let at = at.trim_end_matches("\"}").to_string();
        (tool, at)
    }

    fn note(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    /// Waits for its end: its code, and the rest of what it wrote.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.err.read_to_string(&mut err).unwrap();
        // The line breaks of the report are made spaces.
        let err = err.split_whitespace().collect::<Vec<_>>().join(" ");
        (self.child.wait().unwrap().code(), out, err)
    }

    /// Ctrl-C.
    fn stop(self) -> (Option<i32>, String, String) {
        interrupt(&self.child);
        self.end()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(args: &[&str]) -> Output {
    sinew(args).output().unwrap()
}

/// A place to listen at on each kind of link.
fn places(name: &str) -> [String; 4] {
    [
        "tcp:127.0.0.1:0".into(),
        "udp:127.0.0.1:0".into(),
        format!("unix:{}", socket(name)),
        format!("shm:{}", socket(&format!("{name}-shm"))),
    ]
}

/// A place of this process, where the tool can connect again and again.
fn listen() -> (Listener, String) {
    let at = format!("tcp:{}", free_place());
    let listener = apart::listen(&Endpoint::parse(&at, Use::Batches).unwrap()).unwrap();
    (listener, at)
}

/// A node that the tool has connected to, and what is declared on it before there is a session.
fn accept<T>(listener: &mut Listener, declare: impl FnOnce(&Node) -> T) -> (Node, T) {
    let link = listener.accept_within(Some(SOON));
    let (node, driver) = pubsub::driven_accept(link.expect("the tool connects"), Options::peer());
    let declared = declare(&node);
    node.keep_up(driver);
    (node, declared)
}

#[test]
fn samples_reach_another_process_on_every_link_with_all_that_belongs_to_them() {
    for place in places("every") {
        let (sub, at) = Tool::listening(&[
            "sub", "demo/**", "--listen", &place, "--json", "--count", "3",
        ]);
        let published = run(&[
            "pub",
            "demo/lamp",
            "on",
            "--connect",
            &at,
            "--count",
            "3",
            "--encoding",
            "text/plain;utf8",
            "--attachment",
            "why",
            "--priority",
            "data-high",
            "--express",
        ]);
        let said = answer(&published);
        assert!(said.starts_with("3 samples: "), "{place}: {said}");
        let (code, out, err) = sub.end();
        assert_eq!(code, Some(0), "{place}: {err}");
        assert!(err.starts_with("{\"note\":\"client "), "{place}: {err}");
        assert!(err.contains(" connected\"}"), "{place}: {err}");
        assert!(err.contains("3 samples, 6 bytes"), "{place}: {err}");
        let lines: Vec<Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 3, "{place}");
        for line in lines {
            let wanted = serde_json::json!({
                "key": "demo/lamp", "kind": "put", "payload": "on", "encoding": "text/plain;utf8",
                "attachment": "why", "priority": "data-high", "reliable": true, "express": true,
            });
            assert_eq!(line, wanted, "{place}");
        }
    }
}

#[test]
fn a_publisher_can_wait_for_subscribers_as_well() {
    for (place, role) in places("waits").iter().zip(["--peer", "-v"].iter().cycle()) {
        let (publisher, at) = Tool::listening(&[
            "pub",
            "demo/lamp",
            "on",
            "--listen",
            place,
            "--wait-subscriber=60s",
            "--best-effort",
        ]);
        let sub = run(&["sub", "demo/*", "--connect", &at, "--count", "1", role]);
        let said = answer(&sub);
        assert!(said.starts_with("demo/lamp: on\n"), "{place}: {said}");
        let details = "  2 bytes, zenoh/bytes, data, best effort\n";
        assert_eq!(said.ends_with(details), *role == "-v", "{place}: {said}");
        let (code, out, err) = publisher.end();
        assert_eq!(
            (code, &*out),
            (Some(0), "1 sample: 1 heard\n"),
            "{place}: {err}"
        );
    }
}

#[test]
fn a_client_can_ask_a_peer_who_subscribes() {
    let (_sub, at) = Tool::listening(&["sub", "demo/*", "--listen", "tcp:127.0.0.1:0"]);
    let waits = ["--wait-subscriber=60s", "--connect", &at];
    let published = run(&[&["pub", "demo/lamp", "on"], &waits[..]].concat());
    assert_eq!(answer(&published), "1 sample: 1 heard\n");
}

/// Carries bytes between one peer and `at`; of the packets from there those behind the handshake come
/// later by this, or never.
fn late(at: &str, by: Option<Duration>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    let there = at.strip_prefix("tcp:").unwrap().to_string();
    thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut far = TcpStream::connect(there).unwrap();
        let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
        let mut packet = Vec::new();
        for number in 0.. {
            let mut len = [0; 2];
            if far.read_exact(&mut len).is_err() {
                break;
            }
            packet.resize(u16::from_le_bytes(len).into(), 0);
            far.read_exact(&mut packet).unwrap();
            match by {
                None if number >= 2 => continue,
                Some(by) if number == 2 => sleep(by),
                _ => {}
            }
            near.write_all(&len).unwrap();
            near.write_all(&packet).unwrap();
        }
        let _ = near.shutdown(Shutdown::Both);
    });
    format!("tcp:{here}")
}

#[test]
fn a_peer_publishes_when_the_other_one_has_said_who_subscribes() {
    for (key, by, became, code) in [
        ("demo/lamp", Some(500), "1 sample: 1 heard\n", 0),
        ("demo/other", Some(500), "1 sample: 1 unheard\n", 5),
        ("demo/lamp", None, "1 sample: 1 sent\n", 0),
    ] {
        let (_sub, at) = Tool::listening(&["sub", "demo/lamp", "--listen", "tcp:127.0.0.1:0"]);
        let at = late(&at, by.map(Duration::from_millis));
        let output = run(&["pub", key, "on", "--connect", &at, "--peer"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), became, "{key}");
        assert_eq!(output.status.code(), Some(code), "{}", complaint(&output));
    }
}

#[test]
fn who_connects_can_wait_for_the_other_side() {
    for place in places("early") {
        let place = place.replace("127.0.0.1:0", &free_place());
        let mut publisher =
            Tool::start(&["pub", "a", "-5", "--peer", "--connect", &place, "--wait"]);
        let note = publisher.note();
        let waits = format!("waiting for {place}");
        assert!(note.starts_with(&waits) && note.contains(": no"), "{note}");
        let (sub, _) = Tool::listening(&["sub", "a", "--listen", &place, "--count", "1"]);
        let (code, out, err) = publisher.end();
        assert_eq!((code, &*out), (Some(0), "1 sample: 1 heard\n"), "{err}");
        assert!(
            err.contains(": peer ") && err.ends_with(" is there"),
            "{err}"
        );
        let (_, out, _) = sub.end();
        assert_eq!(out, "a: -5\n", "{place}");
    }
}

#[test]
fn who_waits_for_the_other_side_gives_up_in_time_and_at_ctrl_c() {
    let at = &format!("unix:{}", socket("never"));
    for command in [
        &["sub", "a"][..],
        &["pub", "a", "1"],
        &["get", "a"],
        &["reply", "a", "1"],
    ] {
        let output = run(&[command, &["--connect", at, "--wait=300ms"]].concat());
        let text = complaint(&output);
        assert!(
            text.contains(&format!("waiting for {at}: no server")),
            "{text}"
        );
        assert!(text.contains("cannot reach"), "{text}");
        assert_eq!(output.status.code(), Some(69), "{text}");
        if command[0] == "get" {
            continue;
        }
        let mut tool = Tool::start(&[command, &["--connect", at, "--wait"]].concat());
        assert!(tool.note().starts_with("waiting for"));
        let (code, _, err) = tool.stop();
        let interrupted = if command[0] == "pub" { 1 } else { 0 };
        assert_eq!(code, Some(interrupted), "{err}");
    }
}

#[test]
fn a_queryable_answers_another_process_on_every_link_with_all_that_belongs_to_it() {
    for place in places("replies") {
        let (replies, at) = Tool::listening(&[
            "reply",
            "demo/lamp",
            "-1",
            "on",
            "--listen",
            &place,
            "--encoding",
            "text/plain",
            "--attachment",
            "why",
            "--json",
            "--count",
            "2",
        ]);
        let asked = run(&[
            "get",
            "demo/*?a=1;b",
            "--payload",
            "{}",
            "--encoding",
            "application/json",
            "--attachment",
            "me",
            "--consolidation",
            "none",
            "-v",
            "--connect",
            &at,
        ]);
        let details = "text/plain, attachment why, data, reliable";
        assert_eq!(
            answer(&asked),
            format!("demo/lamp: -1\n  2 bytes, {details}\ndemo/lamp: on\n  2 bytes, {details}\n"),
            "{place}"
        );
        let asked = run(&["get", "demo/lamp", "--peer", "--connect", &at]);
        assert_eq!(answer(&asked), "demo/lamp: on\n", "{place}");
        let (code, out, err) = replies.end();
        assert_eq!(code, Some(0), "{place}: {err}");
        assert!(err.contains("2 questions"), "{place}: {err}");
        let lines: Vec<Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines,
            [
                serde_json::json!({
                    "key": "demo/*", "parameters": "a=1;b", "payload": "{}",
                    "encoding": "application/json", "attachment": "me",
                }),
                serde_json::json!({"key": "demo/lamp", "parameters": ""}),
            ],
            "{place}"
        );
    }
}

#[test]
fn a_queryable_with_wildcards_answers_about_the_key_that_was_asked_for() {
    let (mut replies, at) = Tool::listening(&[
        "reply",
        "demo/*",
        "1",
        "2",
        "--listen",
        "tcp:127.0.0.1:0",
        "-v",
    ]);
    let get = |key: &str, args: &[&str]| run(&[&["get", key, "--connect", &at], args].concat());
    assert_eq!(
        answer(&get("demo/a?x", &["--payload", "-7"])),
        "demo/a: 2\n"
    );
    assert_eq!(
        [replies.line(), replies.line()],
        ["demo/a?x: -7", "  2 bytes, zenoh/bytes"]
    );
    let output = get("demo/**", &[]);
    let text = complaint(&output);
    let said = text.matches("error: ask for one key, without wildcards");
    assert_eq!(said.count(), 1, "{text}");
    assert_eq!(output.status.code(), Some(2));
    // It does not claim to know all.
    assert_eq!(
        get("demo/a", &["--target", "all-complete"]).status.code(),
        Some(5)
    );
    let mut note = replies.note();
    assert!(
        note.starts_with("client ") && note.ends_with(" connected"),
        "{note}"
    );
    while !note.ends_with(" disconnected: the peer closed it") {
        note = replies.note();
    }
    let (code, _, err) = replies.stop();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("2 questions"), "{err}");
}

#[test]
fn a_queryable_can_say_that_it_knows_all_or_that_there_is_no_answer() {
    let args = [
        "--complete",
        "--error",
        "--listen",
        "tcp:127.0.0.1:0",
        "--count",
        "1",
    ];
    let (replies, at) = Tool::listening(&[&["reply", "demo/*", "not today"], &args[..]].concat());
    let output = run(&[
        "get",
        "demo/a",
        "--target",
        "all-complete",
        "--connect",
        &at,
    ]);
    let text = complaint(&output);
    assert!(text.contains("error: not today"), "{text}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(replies.end().0, Some(0));
}

#[test]
fn values_come_from_arguments_files_and_standard_input_and_deletions_are_told() {
    let (mut sub, at) = Tool::listening(&["sub", "**", "--listen", "tcp:127.0.0.1:0"]);
    let path = format!("{}/value.bin", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, b"\x00\xff\x1b").unwrap();
    answer(&run(&["pub", "a", "text", "--connect", &at]));
    assert_eq!(sub.line(), "a: text");
    answer(&run(&["pub", "b", "--file", &path, "--connect", &at]));
    assert_eq!(sub.line(), "b: 0x00ff1b");
    answer(&run(&["pub", "c", "--delete", "--connect", &at]));
    assert_eq!(sub.line(), "c: (deleted)");
    let mut command = sinew(&["pub", "d", "--file", "-", "--connect", &at]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all("größer".as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(sub.line(), "d: größer");
    let (code, _, err) = sub.stop();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("4 samples, 15 bytes"), "{err}");
}

#[test]
fn a_sample_that_several_keys_take_is_shown_once() {
    let (sub, at) = Tool::listening(&[
        "sub",
        "demo/**",
        "demo/lamp",
        "other",
        "--listen",
        "tcp:127.0.0.1:0",
        "--count",
        "3",
    ]);
    for key in ["demo/lamp", "other", "demo/x"] {
        answer(&run(&["pub", key, "1", "--connect", &at]));
    }
    let (_, out, _) = sub.end();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["demo/lamp: 1", "demo/x: 1", "other: 1"]);
}

#[test]
fn a_slow_subscriber_loses_nothing_also_after_the_publisher_has_ended() {
    for place in ["tcp:127.0.0.1:0", &format!("shm:{}", socket("slow"))] {
        let (mut sub, at) = Tool::listening(&["sub", "demo/load", "--listen", place, "--sequence"]);
        let publisher = Tool::start(&[
            "pub",
            "demo/load",
            "--size",
            "1000",
            "--count",
            "20000",
            "--connect",
            &at,
        ]);
        // More than all buffers hold; the publisher has to wait.
        sleep(Duration::from_secs(1));
        for _ in 0..20_000 {
            assert!(sub.line().starts_with("demo/load: 0x"));
        }
        let (code, out, err) = publisher.end();
        assert_eq!(code, Some(0), "{err}");
        assert!(out.starts_with("20,000 samples: "), "{out}");
        let (code, out, err) = sub.stop();
        assert_eq!((code, &*out), (Some(0), ""), "{err}");
        assert!(
            err.contains("20,000 samples, 20,000,000 bytes, lost 0"),
            "{err}"
        );
    }
}

/// Carries datagrams between one peer and `at`; of the long ones to `at`, every tenth is lost.
fn lossy(at: &str) -> String {
    let port = at.rsplit(':').next().unwrap();
    let (near, far) = (
        UdpSocket::bind("127.0.0.1:0"),
        UdpSocket::bind("127.0.0.1:0"),
    );
    let (near, far) = (near.unwrap(), far.unwrap());
    let here = near.local_addr().unwrap();
    far.connect(format!("127.0.0.1:{port}")).unwrap();
    let (back, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let (send, first) = channel();
    thread::spawn(move || {
        let mut place = [0; 2048];
        let (mut long, mut peer) = (0, None);
        while let Ok((len, from)) = near.recv_from(&mut place) {
            if peer.replace(from).is_none() {
                send.send(from).unwrap();
            }
            long += u32::from(len > 200);
            if len <= 200 || long % 10 != 5 {
                let _ = to.send(&place[..len]);
            }
        }
    });
    thread::spawn(move || {
        let mut place = [0; 2048];
        let peer = first.recv().unwrap();
        while let Ok(len) = far.recv(&mut place) {
            let _ = back.send_to(&place[..len], peer);
        }
    });
    format!("udp:{here}")
}

#[test]
fn what_a_link_loses_is_counted_by_the_session_and_by_the_numbers() {
    let (sub, at) = Tool::listening(&[
        "sub",
        "demo/load",
        "--listen",
        "udp:127.0.0.1:0",
        "--sequence",
        "--count",
        "180",
    ]);
    let published = run(&[
        "pub",
        "demo/load",
        "--size",
        "300",
        "--count",
        "200",
        "--rate",
        "200",
        "--connect",
        &lossy(&at),
    ]);
    assert!(answer(&published).starts_with("200 samples: "));
    let (code, out, err) = sub.end();
    assert_eq!(out.lines().count(), 180);
    assert!(
        err.contains("missed_reliable 20, gaps 20, lost 20"),
        "{err}"
    );
    assert!(
        err.contains("20 samples are missing by their numbers"),
        "{err}"
    );
    assert_eq!(code, Some(15), "{err}");
}

#[test]
fn rates_are_written_each_second() {
    for as_json in [true, false] {
        let mut args = vec!["sub", "demo/load", "--listen", "tcp:127.0.0.1:0", "--rate"];
        args.push("--sequence");
        args.extend(as_json.then_some("--json"));
        let (mut sub, at) = Tool::listening(&args);
        let publisher = Tool::start(&[
            "pub",
            "demo/load",
            "--size",
            "8",
            "--rate",
            "500",
            "--connect",
            &at,
        ]);
        // None have come before the publisher has.
        let mut comes = false;
        while !comes {
            let line = sub.line();
            if as_json {
                let rate: Value = serde_json::from_str(&line).unwrap();
                assert_eq!((&rate["missed"], &rate["lost"]), (&0.into(), &0.into()));
                comes = rate["samples_per_s"].as_u64() > Some(0);
                assert_eq!(rate["bytes_per_s"].as_u64() > Some(0), comes, "{line}");
            } else {
                assert!(line.ends_with("missed 0   lost 0"), "{line}");
                assert!(line.contains(" samples/s "), "{line}");
                comes = !line.trim_start().starts_with("0 ");
            }
        }
        let (code, _, err) = sub.stop();
        assert_eq!(code, Some(0), "{err}");
        let (code, out, err) = publisher.stop();
        // Nobody has asked for a number of them.
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains(" samples: "), "{out}");
    }
}

#[test]
fn a_subscriber_comes_back_when_the_other_side_does() {
    let (mut listener, at) = listen();
    let mut sub = Tool::start(&["sub", "demo/lamp", "--connect", &at, "--peer"]);
    for round in ["one", "two"] {
        let lamp = |node: &Node| node.publisher("demo/lamp").unwrap();
        let (node, lamp) = accept(&mut listener, lamp);
        let note = sub.note();
        match round {
            "one" => assert!(
                note.starts_with("subscribed to demo/lamp at tcp:"),
                "{note}"
            ),
            _ => assert!(note.contains("is there again"), "{note}"),
        }
        while lamp.is_heard() != Some(true) {
            sleep(Duration::from_millis(5));
        }
        lamp.put(round.as_bytes()).unwrap();
        assert_eq!(sub.line(), format!("demo/lamp: {round}"));
        let place = listener.endpoint().clone();
        drop((listener, lamp, node));
        let note = sub.note();
        assert!(
            note.contains("is lost: the peer closed it; trying again"),
            "{note}"
        );
        listener = apart::listen(&place).unwrap();
    }
}

#[test]
fn a_publisher_goes_on_when_the_other_side_comes_back() {
    let (mut listener, at) = listen();
    let publisher = Tool::start(&[
        "pub",
        "demo/n",
        "--size",
        "8",
        "--every",
        "20ms",
        "--count",
        "100",
        "--connect",
        &at,
    ]);
    let (send, came) = channel();
    let subscriber = |node: &Node| {
        let send = send.clone();
        let take = move |sample: &sinew::pubsub::session::Sample<'_>| {
            let number = sample.body.payload.try_into().map(u64::from_le_bytes);
            let _ = send.send(number.unwrap());
        };
        node.subscriber("demo/n", take).unwrap()
    };
    let first = accept(&mut listener, subscriber);
    assert_eq!(came.recv(), Ok(0));
    drop(first);
    let _second = accept(&mut listener, subscriber);
    let (code, out, err) = publisher.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("100 samples: "), "{out}");
    assert!(
        err.contains("is lost") && err.contains("is there again"),
        "{err}"
    );
    let numbers: Vec<u64> = came.try_iter().collect();
    assert!(
        numbers.is_sorted() && numbers.last() == Some(&99),
        "{numbers:?}"
    );
}

#[test]
fn what_a_full_link_drops_is_said() {
    let (mut listener, at) = listen();
    let publisher = Tool::start(&[
        "pub",
        "demo/n",
        "--size",
        "60000",
        "--count",
        "400",
        "--congestion",
        "drop",
        "--connect",
        &at,
    ]);
    let mut is_first = true;
    let take = move |_: &sinew::pubsub::session::Sample<'_>| {
        if std::mem::take(&mut is_first) {
            sleep(Duration::from_secs(3));
        }
    };
    let subscriber = |node: &Node| node.subscriber("demo/n", take).unwrap();
    let _node = accept(&mut listener, subscriber);
    let (code, out, err) = publisher.end();
    assert!(
        out.starts_with("400 samples: ") && out.contains(" dropped"),
        "{out}"
    );
    assert!(err.contains("were dropped: the link was full"), "{err}");
    assert!(err.contains("--congestion block"), "{err}");
    assert_eq!(code, Some(8));
}

#[test]
fn ctrl_c_before_the_end_is_no_success() {
    let (mut listener, at) = listen();
    let publisher = Tool::start(&[
        "pub",
        "a",
        "1",
        "--every",
        "1h",
        "--count",
        "2",
        "--connect",
        &at,
    ]);
    let (send, came) = channel();
    let take = move |_: &sinew::pubsub::session::Sample<'_>| {
        let _ = send.send(());
    };
    let subscriber = |node: &Node| node.subscriber("a", take).unwrap();
    let _node = accept(&mut listener, subscriber);
    came.recv_timeout(SOON).unwrap();
    let (code, out, err) = publisher.stop();
    // Heard, where the tool knew so early who subscribes.
    assert!(out.starts_with("1 sample: 1 "), "{out}");
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("interrupted after 1 of 2 samples"), "{err}");
}

/// Nodes of this process that answer queries, one after the other.
fn queryable() -> String {
    let (mut listener, at) = listen();
    thread::spawn(move || {
        loop {
            let (node, _queryable) = accept(&mut listener, answers);
            while node.status().failures == 0 {
                sleep(Duration::from_millis(5));
            }
        }
    });
    at
}

fn answers(node: &Node) -> pubsub::Queryable {
    let held = std::sync::Mutex::new(Vec::new());
    let queryable = node.queryable("demo/**", true, move |question, responder| {
        let query = &question.query;
        match query.parameters {
            "none" => {}
            "error" => {
                let words = b"not today";
                responder.error(Encoding::TEXT_PLAIN, words).unwrap();
            }
            "never" => held.lock().unwrap().push(responder),
            parameters => {
                let (encoding, payload) = query.body.unwrap_or_default();
                let said = format!(
                    "{} {parameters} {encoding} {} {}",
                    question.key,
                    String::from_utf8_lossy(payload),
                    String::from_utf8_lossy(query.attachment.unwrap_or_default()),
                );
                let body = Body {
                    encoding: Encoding::TEXT_PLAIN,
                    ..Body::put(said.as_bytes())
                };
                responder.reply_on("demo/b", &body).unwrap();
                responder.reply_on("demo/a", &Body::put(b"2")).unwrap();
                responder.reply_on("demo/a", &Body::put(b"3")).unwrap();
            }
        }
    });
    queryable.unwrap()
}

/// Asks such a node.
fn ask(at: &str, args: &[&str]) -> Output {
    run(&[&["get", "--connect", at], args].concat())
}

#[test]
fn questions_are_answered_with_all_that_belongs_to_them() {
    let at = queryable();
    let get = |args: &[&str]| ask(&at, args);
    let asked = get(&[
        "demo/*?x=1",
        "--payload",
        "{}",
        "--encoding",
        "application/json",
        "--attachment",
        "me",
    ]);
    assert_eq!(
        answer(&asked),
        "demo/a: 3\ndemo/b: demo/* x=1 application/json {} me\n"
    );
    let all = get(&["demo/*", "--consolidation", "none", "--target", "all"]);
    let lines: Vec<&str> = answer(&all).lines().collect();
    assert_eq!(lines[1..], ["demo/a: 2", "demo/a: 3"]);
    let json = get(&["demo/*", "--json", "--target", "all-complete"]);
    let line: Value = serde_json::from_str(answer(&json).lines().next().unwrap()).unwrap();
    assert_eq!(
        (&line["key"], &line["payload"]),
        (&"demo/a".into(), &"3".into())
    );
}

#[test]
fn questions_without_an_answer_say_why() {
    let at = queryable();
    let get = |args: &[&str]| ask(&at, args);
    for (args, code, texts) in [
        (
            &["demo/a?none"][..],
            5,
            [
                "nobody answered for demo/a",
                "has nothing to say, or has ended",
            ],
        ),
        (
            &["other"],
            5,
            ["nobody answered for other", "compare the keys"],
        ),
        (
            &["demo/a?error"],
            2,
            ["error: not today", "only errors came for demo/a"],
        ),
        (
            &["demo/a?never", "--timeout", "300ms"],
            4,
            ["no reply to demo/a within 300ms", "--timeout 1min"],
        ),
    ] {
        let output = get(args);
        let text = complaint(&output);
        assert!(texts.iter().all(|it| text.contains(it)), "{args:?}: {text}");
        assert_eq!(output.status.code(), Some(code), "{text}");
    }
    let output = get(&["demo/a?error", "--json"]);
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        line,
        serde_json::json!({"error": "not today", "encoding": "text/plain"})
    );
}

#[test]
fn a_session_that_is_lost_ends_a_question() {
    let (mut listener, at) = listen();
    let tool = Tool::start(&["get", "demo/a", "--connect", &at]);
    let (send, asked) = channel();
    let queryable = |node: &Node| {
        let take = move |_: &Question<'_>, responder| {
            let _ = send.send(responder);
        };
        node.queryable("demo/a", true, take).unwrap()
    };
    let node = accept(&mut listener, queryable);
    let _responder = asked.recv_timeout(SOON).unwrap();
    drop((listener, node));
    let (code, _, err) = tool.end();
    assert!(err.contains("was lost: the peer closed it"), "{err}");
    assert_eq!(code, Some(69));
}

/// A TCP peer that sends these bytes and reads whatever comes.
fn peer_that_says(bytes: &'static [u8], hangs_up: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 1024]);
        socket.write_all(bytes).unwrap();
        if !hangs_up {
            let _ = socket.read_to_end(&mut Vec::new());
        }
    });
    format!("tcp:127.0.0.1:{port}")
}

#[test]
fn who_is_no_router_is_told_from_nobody() {
    let free = free_place();
    let nobody = "start a Zenoh router there";
    for (at, cause, help) in [
        (format!("tcp:{free}"), "no server listens there", nobody),
        (format!("udp:{free}"), "nobody listens on that port", nobody),
        (
            format!("unix:{}", socket("nobody")),
            "no server listens there",
            "start the other side first, with --listen",
        ),
        (
            format!("shm:{}", socket("nobody")),
            "no server listens there",
            "--wait waits for it",
        ),
        (
            "serial:/dev/no-such-line".into(),
            "there is no such device",
            "check the cable and the path",
        ),
        (
            "unix:/etc/passwd".into(),
            "it is a file, not a socket",
            "check the path",
        ),
        (
            "tcp:no-such-host.invalid:1".into(),
            "the host name has no address",
            "check its spelling",
        ),
        (
            peer_that_says(b"\x14\x00HTTP/1.1 400 Bad Req", false),
            "what came back is no message of Zenoh",
            "another protocol is spoken there",
        ),
        (
            peer_that_says(b"", true),
            "hung up before there was a session",
            "--peer",
        ),
        (
            peer_that_says(b"", false),
            "takes the connection, but nothing came back",
            "option frame=NAME",
        ),
    ] {
        for command in [&["sub", "a"][..], &["pub", "a", "1"], &["get", "a"]] {
            let output = run(&[command, &["--connect", &at]].concat());
            let text = complaint(&output);
            assert_eq!(output.status.code(), Some(69), "{at}: {text}");
            if at.starts_with("tcp:127") && command[0] != "sub" {
                // The peer above was there once.
                continue;
            }
            assert!(text.contains("cannot reach"), "{at}: {text}");
            assert!(text.contains(cause) && text.contains(help), "{at}: {text}");
        }
    }
}

#[test]
fn a_place_in_use_cannot_be_listened_at() {
    let (_sub, at) = Tool::listening(&["sub", "a", "--listen", "tcp:127.0.0.1:0"]);
    let output = run(&["sub", "a", "--listen", &at]);
    let text = complaint(&output);
    assert!(text.contains("already in use"), "{text}");
    assert_eq!(output.status.code(), Some(69));
}

#[test]
fn what_is_too_large_and_what_nobody_takes_is_said() {
    let (_sub, at) = Tool::listening(&["sub", "a", "--listen", "tcp:127.0.0.1:0"]);
    let output = run(&["pub", "a", "--size", "70000000", "--connect", &at]);
    let text = complaint(&output);
    assert!(
        text.contains("a value of 70,000,000 bytes is too large"),
        "{text}"
    );
    assert!(text.contains("at most 64 MiB here"), "{text}");
    assert_eq!(output.status.code(), Some(11));
    let output = run(&["pub", "b", "1", "--wait-subscriber=200ms", "--connect", &at]);
    let text = complaint(&output);
    assert!(text.contains("nobody subscribed within 200ms"), "{text}");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn who_opens_no_session_is_let_go_and_others_get_one() {
    let (mut tool, at) = Tool::listening(&["sub", "demo/**", "--listen", "tcp:127.0.0.1:0"]);
    let mut silent = TcpStream::connect(at.strip_prefix("tcp:").unwrap()).unwrap();
    // Half of a handshake is none.
    let mut greeted = silent.try_clone().unwrap();
    greeted.write_all(b"\x04\x00\x01\x09\x01\x07").unwrap();
    let mut answered = Vec::new();
    silent.read_to_end(&mut answered).unwrap();
    let other = run(&["pub", "demo/k", "on", "--peer", "--connect", &at]);
    assert!(other.status.success(), "{other:?}");
    // It has arrived, but need not be written yet.
    assert_eq!(tool.line(), "demo/k: on");
    let (code, out, err) = tool.stop();
    assert_eq!((code, &*out), (Some(0), ""), "{err}");
    let note = "somebody connected, and opened no session in time";
    assert!(err.contains(note), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn sessions_that_have_gone_leave_no_threads_behind() {
    let (tool, at) = Tool::listening(&["sub", "demo/**", "--listen", "tcp:127.0.0.1:0"]);
    let maps = format!("/proc/{}/maps", tool.child.id());
    let count = || std::fs::read_to_string(&maps).unwrap().lines().count();
    let before = count();
    const COMERS: usize = 100;
    for _ in 0..COMERS {
        let mut comer = TcpStream::connect(at.strip_prefix("tcp:").unwrap()).unwrap();
        comer.write_all(b"no Zenoh").unwrap();
        comer.shutdown(Shutdown::Write).unwrap();
        let _ = comer.read_to_end(&mut Vec::new());
    }
    // Each would leave the stack of one, and its guard.
    let grown = count().saturating_sub(before);
    assert!(grown < COMERS, "{grown} pieces of memory");
    tool.stop();
}

#[test]
fn the_second_ctrl_c_ends_what_waits_for_one_who_takes_nothing() {
    let (mut listener, at) = listen();
    let large = socket("large");
    std::fs::write(&large, vec![0; 32 << 20]).unwrap();
    let reply = [
        "reply",
        "demo/x",
        "--file",
        &large,
        "--connect",
        &at,
        "--peer",
    ];
    let mut tool = Tool::start(&reply);
    let link = listener.accept_within(Some(SOON));
    let link = link.expect("the tool connects");
    let (node, mut driver) = pubsub::driven_accept(link, Options::peer());
    // Until the answer is on its way, and from then on nothing is taken.
    let ask = Ask::new(KeyExpr::new("demo/x").unwrap());
    // A query that comes before the queryable is declared has no answer, so there is another each second.
    let mut asked: Option<(Instant, Replies)> = None;
    while node.status().traffic.bytes_in < 100_000 {
        driver.turn(Some(Duration::from_millis(10)));
        asked = asked
            .filter(|(since, _)| {
                node.status().opened > 0 && since.elapsed() < Duration::from_secs(1)
            })
            .or_else(|| Some((Instant::now(), node.ask(&ask).ok()?)));
    }
    // Two that come before the first is seen are one to the system.
    while tool.child.try_wait().unwrap().is_none() {
        interrupt(&tool.child);
        sleep(Duration::from_millis(300));
    }
    let (code, _, err) = tool.end();
    assert_eq!(code, Some(130), "{err}");
}

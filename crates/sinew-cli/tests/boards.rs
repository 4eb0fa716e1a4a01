//! What a board tells of itself over its UART and over shared memory: everything that a server on this machine does.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::image::{Board, serving};
use support::{Serve, answer, interrupt, output, sinew, socket, start};

/// Boards that tell everything: over the UART, and over shared memory.
fn boards() -> [String; 2] {
    ["tell_all", "tell_all_shared"].map(serving)
}

/// The tool, which has read no schema before.
fn fresh(args: &[&str], folder: &str) -> Command {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = sinew(args);
    command.env("XDG_CACHE_HOME", folder);
    command
}

fn run(args: &[&str]) -> Output {
    output(&mut sinew(args))
}

/// A file of a test.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().unwrap().to_owned()
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// The last line, which is the whole.
fn whole(output: &Output) -> Value {
    json(answer(output).lines().last().unwrap())
}

#[test]
fn board_lists_all_that_it_serves_and_nothing_else() {
    let told = ["sinew.Device", "sinew.Log", "sinew.Reflection"];
    let demo = ["demo.Cache", "demo.Kinds", "pw.rpc.Benchmark"];
    let some = ["tell_reflection", "tell_reflection_shared"].map(|image| (serving(image), 1));
    let all = boards().map(|at| (at, 3));
    for (at, count) in all.into_iter().chain(some) {
        let mut list = fresh(&["list", &at, "--json"], "listed");
        let listed = whole(&output(&mut list));
        let services = listed["services"].as_array().unwrap().iter();
        let names: Vec<_> = services.map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, [&demo[..], &told[3 - count..]].concat(), "{at}");
    }
}

#[test]
fn schema_of_a_board_has_its_comments_where_the_image_keeps_them() {
    let comment = "// One method of each kind.\nservice Kinds {\n";
    let described = run(&["describe", &serving("tell_comments"), "demo.Kinds"]);
    assert!(answer(&described).contains(comment), "{described:?}");
    for at in boards() {
        let described = run(&["describe", &at, "demo.Kinds"]);
        let text = answer(&described);
        assert!(text.contains("\n\nservice Kinds {\n"), "{at}: {text}");
        assert!(!text.contains("//"), "{at}: {text}");
    }
}

#[test]
fn what_a_board_tells_is_all_that_a_call_needs() {
    for at in boards() {
        let called = run(&["call", &at, "Reflection/Describe"]);
        assert!(answer(&called).starts_with("{\"schemas\":3,"), "{called:?}");
        let called = run(&["call", &at, "Kinds/Double", r#"{"n": 21}"#]);
        assert_eq!(answer(&called), "{\"n\":42}\n", "{at}");
    }
}

#[test]
fn calls_of_a_board_are_timed() {
    for at in boards() {
        let pinged = whole(&run(&["ping", &at, "-c", "3", "-i", "1ms", "--json"]));
        assert_eq!(pinged["answered"], 3, "{at}: {pinged}");
        assert_eq!(pinged["echoed"], true, "{at}: {pinged}");
        for flying in ["1", "4"] {
            let timed = whole(&run(&[
                "bench", &at, "-n", flying, "--for", "200ms", "--json",
            ]));
            assert_eq!(timed["lost"], 0, "{at}: {timed}");
            assert!(timed["calls"].as_u64().unwrap() > 10, "{at}: {timed}");
        }
    }
}

#[test]
fn schema_is_read_from_a_device_with_packets_of_any_size() {
    let serves = format!("exec:{} serve stdio:", env!("CARGO_BIN_EXE_sinew"));
    let listed = run(&["list", &serves]);
    for mtu in [64, 100, 128, 512] {
        let name = format!("small-{mtu}");
        let small = Serve::start(&format!("unix:{}?mtu={mtu}", socket(&name)));
        let at = small.endpoint.split('?').next().unwrap();
        let read = output(&mut fresh(&["list", at], &name));
        assert_eq!(answer(&read), answer(&listed), "{mtu}");
    }
}

#[test]
fn board_says_who_it_is_and_what_it_has_counted() {
    for at in boards() {
        let info = whole(&run(&["info", &at, "--json"]));
        assert_eq!(info["name"], "mps2-an385", "{at}: {info}");
        let counters = &info["counters"];
        assert_eq!(counters["server"]["malformed"], 0, "{at}: {info}");
        assert_eq!(counters["log"]["dropped"], 0, "{at}: {info}");
        let packets = counters["link 0"]["packets_in"].as_u64();
        assert!(packets.unwrap() > 1, "{at}: {info}");
    }
    let [over_uart, over_memory] = boards().map(|at| whole(&run(&["info", &at, "--json"])));
    assert_eq!(over_uart["counters"]["link 0"]["bad_crc"], 0);
    assert_eq!(over_memory["counters"]["link 0"]["violations"], 0);
}

#[test]
fn boards_are_watched_side_by_side() {
    let [over_uart, over_memory] = boards();
    let watched = run(&[
        "top",
        &over_uart,
        &over_memory,
        "--json",
        "--every",
        "100ms",
        "--for",
        "1s",
    ]);
    let devices = whole(&watched)["devices"].take();
    let devices = devices.as_array().unwrap();
    for (device, at) in devices.iter().zip([&over_uart, &over_memory]) {
        assert_eq!(device["endpoint"], **at);
        assert_eq!(device["name"], "mps2-an385", "{device}");
        assert_eq!(device["drops"], 0, "{device}");
    }
    // Only one of them shares memory.
    let channels = [0, 1].map(|at| devices[at]["channels"].as_array().unwrap());
    assert!(channels[0].is_empty(), "{:?}", channels[0]);
    assert_eq!(channels[1][0]["name"], "rpc", "{:?}", channels[1]);
}

#[test]
fn calls_of_a_board_are_captured() {
    for (at, name) in boards().iter().zip(["uart", "memory"]) {
        let file = file(&format!("captured-{name}.pcapng"));
        let tool = env!("CARGO_BIN_EXE_sinew");
        let capture = ["capture", at, "-o", &file, "--json", "--", tool];
        let call = ["call", "{}", "demo.Kinds/Double", r#"{"n": 21}"#];
        let captured = run(&[&capture[..], &call].concat());
        let lines: Vec<_> = answer(&captured).lines().collect();
        assert_eq!(lines[0], r#"{"n":42}"#);
        let captured = json(lines[1]);
        assert!(captured["captured"].as_u64() >= Some(2), "{captured}");
        assert_eq!(captured["dropped"], 0, "{captured}");
    }
}

#[test]
fn log_of_a_board_is_recorded_and_its_calls_are_made_again_on_another() {
    let [over_uart, over_memory] = boards();
    let log = file("log.mcap");
    let record = ["record", &over_memory, "-o", &log, "--json"];
    let recorded = whole(&run(&[&record[..], &["--for", "2s"]].concat()));
    assert!(recorded["messages"].as_u64() > Some(2), "{recorded}");

    let calls = file("calls.mcap");
    let between = format!("unix:{}", socket("between"));
    let record = ["record", &over_uart, "-o", &calls];
    let mut command = sinew(&[&record[..], &["--at", &between]].concat());
    let mut recorder = start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut said = BufReader::new(recorder.stdout.take().unwrap()).lines();
    let ready = said.next().unwrap().unwrap();
    assert!(ready.starts_with("recording"), "{ready}");
    for n in 0..3 {
        let request = format!(r#"{{"n": {n}}}"#);
        let called = run(&["call", &between, "demo.Kinds/Double", &request]);
        assert!(called.status.success(), "{called:?}");
    }
    interrupt(&recorder);
    said.for_each(drop);
    assert!(recorder.wait().unwrap().success());
    for at in boards() {
        let replayed = run(&["replay", &calls, &at]);
        let text = answer(&replayed);
        assert!(
            text.contains("demo.Kinds/Double          3          0"),
            "{text}"
        );
    }
}

#[test]
fn log_of_a_board_has_what_its_loop_and_its_handlers_say() {
    for at in boards() {
        let mut command = sinew(&["log", &at, "--json"]);
        let mut log = start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let lines = BufReader::new(log.stdout.take().unwrap()).lines();
        let mut records = lines.map(|line| json(&line.unwrap()));
        let started = records.next().unwrap();
        assert_eq!(started["severity"], "info", "{at}: {started}");
        assert_eq!(started["text"], "started", "{at}: {started}");
        // Of the handler of SysTick, which the loop knows nothing of.
        for period in 1..=3 {
            let record = records.next().unwrap();
            assert_eq!(record["module"], "systick", "{at}: {record}");
            assert_eq!(record["text"], format!("period {period}"), "{at}: {record}");
        }
        interrupt(&log);
        drop(records);
        log.wait().unwrap();
    }
}

#[test]
fn what_is_done_with_a_board_is_in_its_log_and_in_its_counts() {
    let board = Board::start("tell_all", "done");
    let at = board.endpoint();
    for _ in 0..3 {
        let called = run(&["call", &at, "demo.Kinds/Double", r#"{"n": 21}"#]);
        assert_eq!(answer(&called), "{\"n\":42}\n");
    }
    let log = run(&["log", &at, "--once", "--json", "--module", "calls"]);
    let double = ["demo.Kinds", "Double"].map(sinew::rpc::id);
    let double = double.map(|id| format!("{id:08x}")).join(" ");
    let texts: Vec<_> = answer(&log).lines().map(json).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts.iter().all(|it| it["text"] == double), "{texts:?}");
    let info = whole(&run(&["info", &at, "--json"]));
    let methods = info["methods"].as_array().unwrap();
    let called = methods.iter().find(|it| it["name"] == "demo.Kinds/Double");
    assert_eq!(called.unwrap()["calls"], 3, "{info}");
}

#[test]
fn log_goes_on_where_a_board_has_started_again() {
    let mut board = Some(Board::start("tell_all", "again"));
    let at = board.as_ref().unwrap().endpoint();
    let mut command = sinew(&["log", &at, "--json", "--module", "board"]);
    let mut log = start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let lines = BufReader::new(log.stdout.take().unwrap()).lines();
    // What else is said is that the board is gone, and back.
    let records = lines.map(|line| json(&line.unwrap()));
    let mut records = records.filter(|line| line["event"].is_null());
    for _ in 0..3 {
        let record = records.next().unwrap();
        assert_eq!(record["text"], "started", "{record}");
        assert_eq!(record["number"], 1, "{record}");
        drop(board.take());
        board = Some(Board::start("tell_all", "again"));
    }
    interrupt(&log);
    drop(records);
    log.wait().unwrap();
}

//! The main job, with few calls: what it says, not how fast it is.

mod support;

use support::sinew;

#[test]
fn every_placement_is_called_and_its_bytes_are_counted() {
    let chart = concat!(env!("CARGO_TARGET_TMPDIR"), "/placements.svg");
    let output = sinew(&["demo", "--json", "--calls", "200", "--svg", chart])
        .output()
        .unwrap();
    let rows: serde_json::Value = serde_json::from_str(support::answer(&output)).unwrap();
    let rows = rows.as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|row| row["link"].as_str().unwrap())
        .collect();
    let all = [
        "direct",
        "queue",
        "shared memory",
        "shared memory",
        "unix",
        "pty + HDLC",
        "TCP",
        "UDP",
        "shared memory",
        "TCP",
    ];
    assert_eq!(names, all);
    let chart = std::fs::read_to_string(chart).unwrap();
    let chart = roxmltree::Document::parse(&chart).unwrap();
    let labels = chart
        .descendants()
        .filter(|it| it.attribute("class") == Some("link"));
    assert_eq!(labels.map(|it| it.text().unwrap()).collect::<Vec<_>>(), all);
    for row in rows {
        let fields: Vec<_> = row.as_object().unwrap().keys().collect();
        assert_eq!(fields.len(), 7, "{row}");
        assert!(row["calls"].as_f64() >= Some(200.0), "{row}");
        assert!(row["median_ns"].as_f64() > Some(0.0), "{row}");
        assert!(row["p99_ns"].as_f64() >= row["median_ns"].as_f64(), "{row}");
        assert!(row["ratio_to_control"].as_f64() > Some(0.0), "{row}");
    }
    let bytes: Vec<f64> = rows
        .iter()
        .map(|row| row["bytes_per_call"].as_f64().unwrap())
        .collect();
    let [
        direct,
        queue,
        threads,
        processes,
        unix,
        pty,
        tcp,
        udp,
        peers,
        peers_tcp,
    ] = bytes[..]
    else {
        panic!("{bytes:?}")
    };
    assert_eq!(direct, 0.0);
    // A packet of a small message has 13 to 22 bytes, and each call has two.
    for packets in [queue, threads, processes, udp] {
        assert!((26.0..44.0).contains(&packets), "{packets}");
    }
    // HDLC adds 8 bytes to each, and a few escapes.
    for framed in [unix, pty, tcp] {
        assert!(
            (queue + 14.0..queue + 24.0).contains(&framed),
            "{framed} over {queue}"
        );
    }
    // A sample of 4 bytes has 8 to 11 more alone, and each call has two.
    assert!((24.0..31.0).contains(&peers), "{peers}");
    assert!(
        (peers + 3.0..peers + 5.0).contains(&peers_tcp),
        "{peers_tcp}"
    );
}

#[test]
fn the_table_has_a_line_for_each_placement_and_no_colour_in_a_pipe() {
    let output = sinew(&["demo", "--calls", "20"]).output().unwrap();
    let text = support::answer(&output);
    // Four lines of frame and heads, ten placements, five lines of legend.
    assert_eq!(text.lines().count(), 19, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 79, "{line}");
    }
    assert!(!text.contains('\x1b'), "{text}");
    assert!(output.stderr.is_empty(), "{}", support::complaint(&output));
}

#[test]
fn a_router_that_does_not_start_is_said() {
    let demo = [
        "demo",
        "--calls",
        "20",
        "--router",
        "sh -c 'echo no such router >&2'",
    ];
    let output = sinew(&demo).output().unwrap();
    let text = support::complaint(&output);
    assert!(text.contains("\"Zenoh router, TCP\" cannot run"), "{text}");
    assert!(text.contains("no such router"), "{text}");
    assert_eq!(output.status.code(), Some(70));
}

#[test]
fn a_placement_that_cannot_run_fails_with_its_name() {
    let mut demo = sinew(&["demo", "--calls", "20"]);
    let output = demo.env("TMPDIR", "/no/such/folder").output().unwrap();
    let text = support::complaint(&output);
    assert!(
        text.contains("\"two processes, shared memory\" cannot run"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(70));
    assert!(output.stdout.is_empty());
}

#[test]
fn chart_that_cannot_be_written_is_said_before_anything_is_measured() {
    let output = sinew(&["demo", "--svg", "/nowhere/x.svg", "--calls", "100000000"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(support::complaint(&output).contains("cannot write /nowhere/x.svg"));
}

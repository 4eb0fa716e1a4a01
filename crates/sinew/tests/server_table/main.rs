//! The table of the wire reference, section Server, row by row, and the pipeline before it.

#[path = "../support/mod.rs"]
mod support;

mod case;
mod cases;

use case::Case;
use cases::*;
use sinew::rpc::packet::OPEN_CALL_ID;
use sinew::rpc::{Channels, Status, id};
use support::kinds::*;
use support::wire::*;
use support::{Bench, moved};

/// The rows of the specification, in its order. Every one needs a case.
const ROWS: [&str; 23] = [
    "decode fails",
    "zero id",
    "wrong parity",
    "unknown channel",
    "any but CLIENT_ERROR, unknown method",
    "CLIENT_ERROR, unknown method or no such call",
    "REQUEST, ok",
    "REQUEST, same key exists",
    "REQUEST, undecodable",
    "REQUEST, client stream ignores the payload",
    "REQUEST, open call id",
    "CLIENT_STREAM, no such call",
    "CLIENT_STREAM, method has no client stream",
    "CLIENT_STREAM, after completion",
    "CLIENT_STREAM, undecodable",
    "CLIENT_REQUEST_COMPLETION, no such call",
    "CLIENT_REQUEST_COMPLETION, call exists",
    "CLIENT_ERROR, call exists",
    "unknown even type, known method",
    "response does not fit",
    "open id adoption",
    "full receiver",
    "ids echoed verbatim",
];

/// Runs one case; what came of it, in the columns of the case.
fn run(case: &Case) -> [String; 4] {
    let mut bench = Bench::new();
    bench.kinds.defer = case.defer;
    for packet in &case.before {
        bench.send(packet);
    }
    bench.kinds.log.clear();
    let mut via = bench.via;
    if case.row == "unknown channel" {
        via.channels = Channels::Only(1);
    }
    let before = *bench.server.stats();
    let reply = bench.bytes_via(&case.packet, via);
    let counted = moved(&before, bench.server.stats());
    let handlers = bench.kinds.log.join(" ");
    let open = match case.open {
        Some((method, call_id, _)) => bench.is_open(method, call_id).to_string(),
        None => String::new(),
    };
    if let Some(reply) = &reply {
        assert!(!reply.packet_type.is_for_server(), "{}: {reply}", case.row);
    }
    [show(&reply), counted, handlers, open]
}

#[test]
fn server_table_holds_row_by_row() {
    let cases: Vec<Case> = [pipeline(), unknown(), requests(), follow_ups(), answers()]
        .into_iter()
        .flatten()
        .collect();
    let mut wrong = Vec::new();
    println!("row | reply | counted | handlers | still open");
    for case in &cases {
        assert!(ROWS.contains(&case.row), "no such row: {}", case.row);
        let open = case
            .open
            .map_or(String::new(), |(_, _, open)| open.to_string());
        let expected = [case.reply, case.counted, case.handlers, &open].map(String::from);
        let found = run(case);
        println!("{} | {}", case.row, found.join(" | "));
        if found != expected {
            wrong.push(format!("{}: {found:?}\n  expected {expected:?}", case.row));
        }
    }
    for row in ROWS {
        let count = cases.iter().filter(|case| case.row == row).count();
        assert!(count > 0, "row without a case: {row}");
    }
    assert_eq!(cases.len(), 77, "the number of cases");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn errors_from_the_client_are_never_answered() {
    let mut bench = Bench::new();
    for method in [DOUBLE, COUNT, SUM, ECHO_ALL, id("Nobody")] {
        for call_id in [0, 1, 2, OPEN_CALL_ID] {
            for code in 0..20 {
                bench.send(&request(method, call_id, 0));
                let error = cancel(method, call_id).status(Status::from_code(code));
                assert_eq!(bench.send(&error), None, "{error:?}");
                assert_eq!(bench.send(&error), None, "again: {error:?}");
            }
        }
    }
    assert_eq!(bench.port.len(), 0);
}

#[test]
fn a_handler_told_of_the_end_can_send_nothing_any_more() {
    let mut bench = Bench::new();
    bench.kinds.stubborn = true;
    bench.send(&request(ECHO_ALL, 3, 0));
    assert_eq!(bench.send(&item(ECHO_ALL, 3, b"\x0d")), None);
    bench.send(&request(ECHO_ALL, 3, 0));
    assert_eq!(bench.send(&cancel(ECHO_ALL, 3)), None);
    bench.send(&request(ECHO_ALL, 3, 0));
    assert_eq!(bench.send(&request(ECHO_ALL, 3, 0)), None);
    assert_eq!(bench.port.len(), 0);
}

#[test]
fn every_counter_is_reached_by_name() {
    let bench = Bench::new();
    let names: Vec<_> = bench.server.stats().iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 15);
    assert!(bench.server.stats().iter().all(|(_, count)| count == 0));
}

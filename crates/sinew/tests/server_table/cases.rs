//! The cases, grouped as the table is.

use sinew::rpc::packet::{OPEN_CALL_ID, PacketType};
use sinew::rpc::{Status, id};

use crate::case::{Case, case};
use crate::support::kinds::*;
use crate::support::wire::*;

fn num(n: u32) -> Vec<u8> {
    Num(n).to_vec()
}

fn with(change: impl FnOnce(&mut P), mut packet: P) -> P {
    change(&mut packet);
    packet
}

pub fn pipeline() -> Vec<Case> {
    let ok = request(DOUBLE, 1, 21);
    let cut = &ok.bytes()[..ok.bytes().len() - 1];
    vec![
        case("decode fails", ok.clone(), "-", "malformed").bytes(cut),
        case("decode fails", ok.clone(), "-", "malformed").bytes(b"\xff\xff\xff"),
        // channel_id as fixed32
        case("decode fails", ok.clone(), "-", "malformed").bytes(b"\x15\x01\x00\x00\x00"),
        case("zero id", ok.clone(), "-", "zero_id").bytes(b""),
        case(
            "zero id",
            with(|p| p.channel = 0, ok.clone()),
            "-",
            "zero_id",
        ),
        case(
            "zero id",
            with(|p| p.service = 0, ok.clone()),
            "-",
            "zero_id",
        ),
        case(
            "zero id",
            with(|p| p.method = 0, ok.clone()),
            "-",
            "zero_id",
        ),
        case(
            "wrong parity",
            with(|p| p.packet_type = 1, ok.clone()),
            "-",
            "wrong_direction",
        ),
        case(
            "wrong parity",
            with(|p| p.packet_type = 5, ok.clone()),
            "-",
            "wrong_direction",
        ),
        case(
            "wrong parity",
            with(|p| p.packet_type = 7, ok.clone()),
            "-",
            "wrong_direction",
        ),
        case(
            "wrong parity",
            with(|p| p.packet_type = 9, ok.clone()),
            "-",
            "wrong_direction",
        ),
        // The bench's link serves channels 1 and up to 99 (see `run`).
        case(
            "unknown channel",
            with(|p| p.channel = 100, ok),
            "-",
            "unknown_channel",
        ),
    ]
}

pub fn unknown() -> Vec<Case> {
    const ANY: &str = "any but CLIENT_ERROR, unknown method";
    const ERROR: &str = "CLIENT_ERROR, unknown method or no such call";
    let nobody = id("Nobody");
    let not_found = "SERVER_ERROR NOT_FOUND #9";
    let typed = |n, p: P| with(|p| p.packet_type = n, p);
    vec![
        case(ANY, request(nobody, 9, 1), not_found, "unknown_method"),
        case(
            ANY,
            with(|p| p.service = 5, request(DOUBLE, 9, 1)),
            not_found,
            "unknown_method",
        ),
        case(ANY, item(nobody, 9, &[]), not_found, "unknown_method"),
        case(ANY, end(nobody, 9), not_found, "unknown_method"),
        case(
            ANY,
            typed(6, request(nobody, 9, 1)),
            not_found,
            "unknown_method",
        ),
        case(
            ANY,
            typed(10, request(nobody, 9, 1)),
            not_found,
            "unknown_method",
        ),
        case(ERROR, cancel(nobody, 9), "-", "unknown_method"),
        case(ERROR, cancel(SUM, 9), "-", "no_such_call"),
        case(
            "unknown even type, known method",
            typed(6, request(SUM, 9, 1)),
            "-",
            "unknown_type",
        ),
        case(
            "unknown even type, known method",
            typed(10, request(SUM, 9, 1)),
            "-",
            "unknown_type",
        )
        .after(&[request(SUM, 9, 0)])
        .open(SUM, 9),
    ]
}

pub fn requests() -> Vec<Case> {
    const OK: &str = "REQUEST, ok";
    const SAME: &str = "REQUEST, same key exists";
    const BAD: &str = "REQUEST, undecodable";
    const IGNORED: &str = "REQUEST, client stream ignores the payload";
    const OPEN: &str = "REQUEST, open call id";
    let bad = |method| P::new(PacketType::REQUEST, method, 3, b"\x0d");
    vec![
        case(OK, request(DOUBLE, 3, 21), "RESPONSE OK #3 n=42", "")
            .handlers("Double:21")
            .closed(DOUBLE, 3),
        case(OK, request(DOUBLE, 3, 21), "-", "")
            .deferred()
            .handlers("Double:21")
            .open(DOUBLE, 3),
        case(OK, request(COUNT, 3, 4), "-", "")
            .handlers("Count:4")
            .open(COUNT, 3),
        case(OK, request(SUM, 3, 0), "-", "")
            .handlers("Sum:Open")
            .open(SUM, 3),
        case(OK, request(ECHO_ALL, 3, 0), "-", "")
            .handlers("EchoAll:Open")
            .open(ECHO_ALL, 3),
        case(OK, item(SUM, 3, &num(7)), "-", "")
            .after(&[request(SUM, 3, 0)])
            .handlers("Sum:7")
            .open(SUM, 3),
        case(
            OK,
            item(ECHO_ALL, 3, &num(7)),
            "SERVER_STREAM OK #3 n=7",
            "",
        )
        .after(&[request(ECHO_ALL, 3, 0)])
        .handlers("EchoAll:7")
        .open(ECHO_ALL, 3),
        case(SAME, request(SUM, 3, 0), "-", "replaced")
            .after(&[request(SUM, 3, 0), item(SUM, 3, &num(7))])
            .handlers("Sum:Closed(CANCELLED) Sum:Open")
            .open(SUM, 3),
        case(SAME, request(DOUBLE, 3, 5), "-", "replaced")
            .after(&[request(DOUBLE, 3, 4)])
            .deferred()
            .handlers("Double:5")
            .open(DOUBLE, 3),
        // Another call of the same method is left alone.
        case(SAME, request(SUM, 3, 0), "-", "")
            .after(&[request(SUM, 4, 0)])
            .handlers("Sum:Open")
            .open(SUM, 4),
        case(BAD, bad(DOUBLE), "SERVER_ERROR DATA_LOSS #3", "undecodable").closed(DOUBLE, 3),
        case(BAD, bad(COUNT), "SERVER_ERROR DATA_LOSS #3", "undecodable").closed(COUNT, 3),
        case(IGNORED, bad(SUM), "-", "")
            .handlers("Sum:Open")
            .open(SUM, 3),
        case(IGNORED, bad(ECHO_ALL), "-", "")
            .handlers("EchoAll:Open")
            .open(ECHO_ALL, 3),
        // An immediate answer ends no call of another method.
        case(OPEN, request(DOUBLE, 0, 5), "RESPONSE OK #0 n=10", "")
            .after(&[request(SUM, 9, 0)])
            .handlers("Double:5")
            .open(SUM, 9),
        case(OPEN, request(DOUBLE, 0, 5), "-", "replaced")
            .after(&[request(DOUBLE, 9, 1)])
            .deferred()
            .handlers("Double:5")
            .open(DOUBLE, 0),
        case(OPEN, request(COUNT, 0, 5), "-", "replaced")
            .after(&[request(COUNT, 9, 1)])
            .handlers("Count:5")
            .open(COUNT, 0),
        case(OPEN, request(SUM, OPEN_CALL_ID, 0), "-", "replaced")
            .after(&[request(SUM, 9, 0)])
            .handlers("Sum:Closed(CANCELLED) Sum:Open")
            .open(SUM, OPEN_CALL_ID),
        // The new call answers with its own id, not with that of the one that it replaced.
        case(
            OPEN,
            item(ECHO_ALL, 0, &num(6)),
            "SERVER_STREAM OK #0 n=6",
            "",
        )
        .after(&[request(ECHO_ALL, 9, 0), request(ECHO_ALL, 0, 0)])
        .handlers("EchoAll:6")
        .open(ECHO_ALL, 0),
    ]
}

pub fn follow_ups() -> Vec<Case> {
    const NO_CALL: &str = "CLIENT_STREAM, no such call";
    const NO_STREAM: &str = "CLIENT_STREAM, method has no client stream";
    const COMPLETE: &str = "CLIENT_STREAM, after completion";
    const BAD: &str = "CLIENT_STREAM, undecodable";
    const LATE: &str = "CLIENT_REQUEST_COMPLETION, no such call";
    const END: &str = "CLIENT_REQUEST_COMPLETION, call exists";
    const CANCEL: &str = "CLIENT_ERROR, call exists";
    let precondition = "SERVER_ERROR FAILED_PRECONDITION #3";
    let bad = |method| item(method, 3, b"\x0d");
    vec![
        case(NO_CALL, item(SUM, 3, &num(1)), precondition, "no_such_call").closed(SUM, 3),
        case(
            NO_CALL,
            item(DOUBLE, 3, &num(1)),
            precondition,
            "no_such_call",
        )
        .closed(DOUBLE, 3),
        case(NO_CALL, item(SUM, 3, &num(1)), precondition, "no_such_call")
            .after(&[request(SUM, 4, 0), request(ECHO_ALL, 3, 0)])
            .open(SUM, 4),
        case(
            NO_STREAM,
            item(COUNT, 3, &num(1)),
            "SERVER_ERROR INVALID_ARGUMENT #3",
            "unexpected_item",
        )
        .after(&[request(COUNT, 3, 1)])
        .open(COUNT, 3),
        case(
            NO_STREAM,
            item(DOUBLE, 3, &num(1)),
            "SERVER_ERROR INVALID_ARGUMENT #3",
            "unexpected_item",
        )
        .after(&[request(DOUBLE, 3, 1)])
        .deferred()
        .open(DOUBLE, 3),
        case(
            COMPLETE,
            item(SUM, 3, &num(1)),
            precondition,
            "unexpected_item",
        )
        .after(&[request(SUM, 3, 1), end(SUM, 3)])
        .deferred()
        .open(SUM, 3),
        case(BAD, bad(SUM), "-", "undecodable")
            .after(&[request(SUM, 3, 1)])
            .handlers("Sum:Closed(DATA_LOSS)")
            .closed(SUM, 3),
        case(BAD, item(SUM, 3, &num(1)), precondition, "no_such_call")
            .after(&[request(SUM, 3, 1), bad(SUM)]),
        case(LATE, end(SUM, 3), precondition, "no_such_call").closed(SUM, 3),
        case(LATE, end(DOUBLE, 3), precondition, "no_such_call"),
        case(END, end(SUM, 3), "RESPONSE OK #3 n=12", "")
            .after(&[
                request(SUM, 3, 0),
                item(SUM, 3, &num(5)),
                item(SUM, 3, &num(7)),
            ])
            .handlers("Sum:End")
            .closed(SUM, 3),
        case(END, end(ECHO_ALL, 3), "RESPONSE OK #3", "")
            .after(&[request(ECHO_ALL, 3, 0)])
            .handlers("EchoAll:End")
            .closed(ECHO_ALL, 3),
        case(END, end(COUNT, 3), "-", "")
            .after(&[request(COUNT, 3, 0)])
            .open(COUNT, 3),
        case(END, end(DOUBLE, 3), "-", "")
            .after(&[request(DOUBLE, 3, 0)])
            .deferred()
            .open(DOUBLE, 3),
        // The second one is ignored.
        case(END, end(SUM, 3), "-", "")
            .after(&[request(SUM, 3, 0), end(SUM, 3)])
            .deferred()
            .open(SUM, 3),
        case(CANCEL, cancel(SUM, 3), "-", "cancelled")
            .after(&[request(SUM, 3, 0)])
            .handlers("Sum:Closed(CANCELLED)")
            .closed(SUM, 3),
        case(
            CANCEL,
            cancel(ECHO_ALL, 3).status(Status::OK),
            "-",
            "cancelled",
        )
        .after(&[request(ECHO_ALL, 3, 0)])
        .handlers("EchoAll:Closed(OK)")
        .closed(ECHO_ALL, 3),
        case(
            CANCEL,
            cancel(COUNT, 3).status(Status::from_code(99)),
            "-",
            "cancelled",
        )
        .after(&[request(COUNT, 3, 0)])
        .closed(COUNT, 3),
        case(CANCEL, cancel(DOUBLE, 3), "-", "cancelled")
            .after(&[request(DOUBLE, 3, 0)])
            .deferred()
            .closed(DOUBLE, 3),
        // An open id ends the newest call of the method, and no other.
        case(CANCEL, cancel(SUM, 0), "-", "cancelled")
            .after(&[request(SUM, 3, 0), request(SUM, 4, 0)])
            .handlers("Sum:Closed(CANCELLED)")
            .open(SUM, 3),
        case(CANCEL, cancel(SUM, OPEN_CALL_ID), "-", "cancelled")
            .after(&[request(SUM, 3, 0), request(SUM, 4, 0)])
            .handlers("Sum:Closed(CANCELLED)")
            .closed(SUM, 4),
    ]
}

pub fn answers() -> Vec<Case> {
    const FIT: &str = "response does not fit";
    const ADOPT: &str = "open id adoption";
    const FULL: &str = "full receiver";
    const ECHO: &str = "ids echoed verbatim";
    let four = [1, 2, 3, 4].map(|call| request(SUM, call, 0));
    vec![
        case(
            FIT,
            request(BIG, 3, 200),
            "SERVER_ERROR INTERNAL #3",
            "oversize",
        )
        .closed(BIG, 3),
        case(
            FIT,
            request(BIG_ECHO, 3, 0),
            "RESPONSE INTERNAL #3",
            "oversize",
        )
        .closed(BIG_ECHO, 3),
        case(
            ADOPT,
            item(ECHO_ALL, 5, &num(6)),
            "SERVER_STREAM OK #5 n=6",
            "",
        )
        .after(&[request(ECHO_ALL, OPEN_CALL_ID, 0)])
        .handlers("EchoAll:6")
        .open(ECHO_ALL, 5),
        case(
            ADOPT,
            item(ECHO_ALL, 6, &num(6)),
            "SERVER_ERROR FAILED_PRECONDITION #6",
            "no_such_call",
        )
        .after(&[request(ECHO_ALL, 0, 0), item(ECHO_ALL, 5, &num(6))])
        .open(ECHO_ALL, 5),
        // A packet with an open id reaches a call that has one, and is answered with the call's.
        case(
            ADOPT,
            item(ECHO_ALL, 0, &num(6)),
            "SERVER_STREAM OK #5 n=6",
            "",
        )
        .after(&[request(ECHO_ALL, 5, 0)])
        .handlers("EchoAll:6")
        .open(ECHO_ALL, 5),
        case(ADOPT, end(SUM, OPEN_CALL_ID), "RESPONSE OK #5 n=6", "")
            .after(&[request(SUM, 5, 0), item(SUM, 0, &num(6))])
            .handlers("Sum:End")
            .closed(SUM, 5),
        // An error echoes what it is an answer to.
        case(
            ADOPT,
            item(COUNT, 0, &num(6)),
            "SERVER_ERROR INVALID_ARGUMENT #0",
            "unexpected_item",
        )
        .after(&[request(COUNT, 5, 0)])
        .open(COUNT, 5),
        // A full table: by the engine, by the engine for a deferring handler, by a handler.
        case(
            FULL,
            request(SUM, 9, 0),
            "SERVER_ERROR RESOURCE_EXHAUSTED #9",
            "exhausted",
        )
        .after(&four)
        .closed(SUM, 9),
        case(
            FULL,
            request(COUNT, 9, 1),
            "RESPONSE RESOURCE_EXHAUSTED #9",
            "exhausted",
        )
        .after(&four)
        .handlers("Count:1")
        .closed(COUNT, 9),
        case(
            FULL,
            request(DOUBLE, 9, QUEUE_FULL),
            "RESPONSE RESOURCE_EXHAUSTED #9",
            "exhausted",
        )
        .handlers("Double:88")
        .closed(DOUBLE, 9),
        // An immediate answer needs no slot.
        case(FULL, request(DOUBLE, 9, 1), "RESPONSE OK #9 n=2", "")
            .after(&four)
            .handlers("Double:1"),
        case(ECHO, request(DOUBLE, 0, 1), "RESPONSE OK #0 n=2", "").handlers("Double:1"),
        case(
            ECHO,
            request(DOUBLE, 1 << 14, 1),
            "RESPONSE OK #16384 n=2",
            "",
        )
        .handlers("Double:1"),
        case(
            ECHO,
            request(DOUBLE, u32::MAX - 1, 1),
            "RESPONSE OK #4294967294 n=2",
            "",
        )
        .handlers("Double:1"),
        case(
            ECHO,
            request(DOUBLE, OPEN_CALL_ID, 1),
            "RESPONSE OK #4294967295 n=2",
            "",
        )
        .handlers("Double:1"),
    ]
}

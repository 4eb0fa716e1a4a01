//! The table of the wire reference, section Client, row by row.

mod support;

use sinew::rpc::packet::{OPEN_CALL_ID, PacketType};
use sinew::rpc::{Client, MethodId, Status, id};
use sinew::time::Instant;
use support::client::*;
use support::difference;
use support::kinds::*;
use support::wire::*;

/// The rows of the specification. Every one needs a case.
const ROWS: [&str; 18] = [
    "decode fails",
    "zero id",
    "wrong parity",
    "unknown channel",
    "SERVER_STREAM, no such call",
    "RESPONSE, no such call",
    "SERVER_ERROR, no such call",
    "unknown service or method",
    "SERVER_STREAM, call exists",
    "SERVER_STREAM, method without server stream",
    "RESPONSE, call exists",
    "RESPONSE, undecodable payload",
    "RESPONSE, payload on a server stream",
    "SERVER_ERROR, call exists",
    "status above 16",
    "SERVER_ERROR with OK",
    "open call id",
    "unknown odd type",
];

/// One case. The calls before get the ids 1, 2, 3.
struct Case {
    row: &'static str,
    before: Vec<MethodId>,
    packet: Vec<u8>,
    /// As [`Seen`] shows it; `-` for nothing.
    reply: &'static str,
    /// What the application is told; `-` for nothing.
    event: &'static str,
    counted: &'static str,
    /// The ids of the calls that are open afterwards.
    open: &'static [u32],
}

fn case(row: &'static str, before: &[MethodId], packet: P) -> Case {
    Case {
        row,
        before: before.to_vec(),
        packet: packet.bytes(),
        reply: "-",
        event: "-",
        counted: "",
        open: &[],
    }
}

impl Case {
    fn reply(mut self, reply: &'static str) -> Case {
        self.reply = reply;
        self
    }

    fn event(mut self, event: &'static str) -> Case {
        self.event = event;
        self
    }

    fn counted(mut self, counted: &'static str) -> Case {
        self.counted = counted;
        self
    }

    fn open(mut self, open: &'static [u32]) -> Case {
        self.open = open;
        self
    }

    fn bytes(mut self, packet: &[u8]) -> Case {
        self.packet = packet.to_vec();
        self
    }
}

fn strangers() -> Vec<Case> {
    let ok = response(DOUBLE, 1, 42);
    let cut = &ok.bytes()[..ok.bytes().len() - 1];
    let nobody = id("Nobody");
    let typed = |n, p: P| with(|p| p.packet_type = n, p);
    let no_call = "CLIENT_ERROR FAILED_PRECONDITION #9";
    vec![
        case(ROWS[0], &[UNARY], ok.clone())
            .bytes(cut)
            .counted("malformed")
            .open(&[1]),
        case(ROWS[1], &[UNARY], ok.clone())
            .bytes(&[])
            .counted("zero_id")
            .open(&[1]),
        case(ROWS[1], &[UNARY], with(|p| p.channel = 0, ok.clone()))
            .counted("zero_id")
            .open(&[1]),
        case(ROWS[1], &[UNARY], with(|p| p.service = 0, ok.clone()))
            .counted("zero_id")
            .open(&[1]),
        case(ROWS[1], &[UNARY], with(|p| p.method = 0, ok.clone()))
            .counted("zero_id")
            .open(&[1]),
        case(ROWS[2], &[UNARY], typed(0, ok.clone()))
            .counted("wrong_direction")
            .open(&[1]),
        case(ROWS[2], &[UNARY], typed(4, ok.clone()))
            .counted("wrong_direction")
            .open(&[1]),
        case(ROWS[3], &[UNARY], with(|p| p.channel = 2, ok))
            .counted("unknown_channel")
            .open(&[1]),
        case(ROWS[4], &[SERVER_STREAM], stream(COUNT, 9, 1))
            .reply(no_call)
            .counted("no_such_call")
            .open(&[1]),
        case(ROWS[4], &[], stream(DOUBLE, 9, 1))
            .reply(no_call)
            .counted("no_such_call"),
        case(ROWS[5], &[UNARY], response(DOUBLE, 9, 1))
            .counted("no_such_call")
            .open(&[1]),
        case(ROWS[6], &[UNARY], error(DOUBLE, 9, Status::NOT_FOUND))
            .counted("no_such_call")
            .open(&[1]),
        case(ROWS[7], &[UNARY], response(nobody, 1, 1))
            .counted("no_such_call")
            .open(&[1]),
        case(ROWS[7], &[UNARY], error(nobody, 1, Status::NOT_FOUND))
            .counted("no_such_call")
            .open(&[1]),
        case(ROWS[7], &[SERVER_STREAM], stream(nobody, 9, 1))
            .reply(no_call)
            .counted("no_such_call")
            .open(&[1]),
        case(
            ROWS[7],
            &[UNARY],
            with(|p| p.service = 5, response(DOUBLE, 1, 1)),
        )
        .counted("no_such_call")
        .open(&[1]),
        case(ROWS[17], &[UNARY], typed(3, response(DOUBLE, 1, 1)))
            .counted("unknown_type")
            .open(&[1]),
        case(ROWS[17], &[UNARY], typed(9, response(DOUBLE, 1, 1)))
            .counted("unknown_type")
            .open(&[1]),
        case(ROWS[17], &[], typed(9, response(DOUBLE, 1, 1))).counted("no_such_call"),
    ]
}

fn answers() -> Vec<Case> {
    let strange = Status::from_code(77);
    vec![
        case(ROWS[8], &[SERVER_STREAM], stream(COUNT, 1, 5))
            .event("#1 item 5")
            .open(&[1]),
        case(ROWS[8], &[BIDI, BIDI], stream(ECHO_ALL, 1, 5))
            .event("#1 item 5")
            .open(&[1, 2]),
        case(ROWS[9], &[UNARY], stream(DOUBLE, 1, 5))
            .reply("CLIENT_ERROR INVALID_ARGUMENT #1")
            .event("#1 failed INVALID_ARGUMENT")
            .counted("unexpected_item"),
        case(ROWS[9], &[CLIENT_STREAM], stream(SUM, 1, 5))
            .reply("CLIENT_ERROR INVALID_ARGUMENT #1")
            .event("#1 failed INVALID_ARGUMENT")
            .counted("unexpected_item"),
        case(ROWS[10], &[UNARY], response(DOUBLE, 1, 5)).event("#1 completed OK 5"),
        case(ROWS[10], &[UNARY, UNARY], response(DOUBLE, 2, 5))
            .event("#2 completed OK 5")
            .open(&[1]),
        case(ROWS[10], &[CLIENT_STREAM], response(SUM, 1, 5)).event("#1 completed OK 5"),
        case(ROWS[10], &[SERVER_STREAM], response(COUNT, 1, 0)).event("#1 completed OK"),
        case(
            ROWS[10],
            &[BIDI],
            response(ECHO_ALL, 1, 0).status(Status::ABORTED),
        )
        .event("#1 completed ABORTED"),
        // Decoding is the typed layer's: the engine hands the bytes over and sends nothing.
        case(
            ROWS[11],
            &[UNARY],
            P::new(PacketType::RESPONSE, DOUBLE, 1, b"\x0d"),
        )
        .event("#1 completed OK 1 bytes"),
        case(ROWS[12], &[SERVER_STREAM], response(COUNT, 1, 5)).event("#1 completed OK"),
        case(ROWS[12], &[BIDI], response(ECHO_ALL, 1, 5)).event("#1 completed OK"),
        case(ROWS[13], &[UNARY], error(DOUBLE, 1, Status::NOT_FOUND)).event("#1 failed NOT_FOUND"),
        case(
            ROWS[13],
            &[BIDI, BIDI],
            error(ECHO_ALL, 1, Status::INTERNAL),
        )
        .event("#1 failed INTERNAL")
        .open(&[2]),
        case(ROWS[14], &[UNARY], response(DOUBLE, 1, 5).status(strange))
            .event("#1 completed status 77 5"),
        case(ROWS[14], &[UNARY], error(DOUBLE, 1, strange)).event("#1 failed status 77"),
        case(ROWS[15], &[UNARY], error(DOUBLE, 1, Status::OK)).event("#1 failed OK"),
        case(
            ROWS[16],
            &[UNARY, UNARY, SERVER_STREAM],
            response(DOUBLE, 0, 5),
        )
        .event("#2 completed OK 5")
        .open(&[1, 3]),
        case(
            ROWS[16],
            &[UNARY, UNARY, SERVER_STREAM],
            response(DOUBLE, OPEN_CALL_ID, 5),
        )
        .event("#2 completed OK 5")
        .open(&[1, 3]),
        case(
            ROWS[16],
            &[SERVER_STREAM, UNARY],
            stream(COUNT, OPEN_CALL_ID, 5),
        )
        .event("#1 item 5")
        .open(&[1, 2]),
        case(ROWS[16], &[UNARY], stream(COUNT, OPEN_CALL_ID, 5))
            .reply("CLIENT_ERROR FAILED_PRECONDITION #4294967295")
            .counted("no_such_call")
            .open(&[1]),
    ]
}

#[test]
fn client_table_holds_row_by_row() {
    let cases: Vec<Case> = [strangers(), answers()].into_iter().flatten().collect();
    let mut wrong = Vec::new();
    println!("row | reply | event | counted | still open");
    for case in &cases {
        let mut client = Client::<4>::new(1, 0);
        let calls: Vec<_> = case
            .before
            .iter()
            .map(|&method| client.open(method, SECOND, Instant::START).unwrap())
            .collect();
        let before = *client.stats();
        let (reply, event) = give(&mut client, &case.packet);
        if let Some(reply) = &reply {
            assert_eq!(reply.packet_type, PacketType::CLIENT_ERROR, "{}", case.row);
        }
        let open: Vec<u32> = calls
            .iter()
            .filter(|call| client.is_open(call))
            .map(|call| call.call_id())
            .collect();
        let counted = difference(before.iter(), client.stats().iter());
        let found = [show(&reply), event, counted, format!("{open:?}")];
        let expected = [
            case.reply.into(),
            case.event.into(),
            case.counted.into(),
            format!("{:?}", case.open),
        ];
        println!("{} | {}", case.row, found.join(" | "));
        if found != expected {
            wrong.push(format!("{}: {found:?}\n  expected {expected:?}", case.row));
        }
    }
    for row in ROWS {
        let count = cases.iter().filter(|case| case.row == row).count();
        assert!(count > 0, "row without a case: {row}");
    }
    assert_eq!(cases.len(), 40, "the number of cases");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

//! The client table of specs/pw_rpc.md, section 3 (the C++ column), row by row.

mod support;

use core::time::Duration;

use sinew::rpc::packet::{OPEN_CALL_ID, PacketType};
use sinew::rpc::{Client, Event, MethodId, MethodKind, Received, Status, id};
use sinew::time::Instant;
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

const UNARY: MethodId = method(DOUBLE, MethodKind::Unary);
const SERVER_STREAM: MethodId = method(COUNT, MethodKind::ServerStream);
const CLIENT_STREAM: MethodId = method(SUM, MethodKind::ClientStream);
const BIDI: MethodId = method(ECHO_ALL, MethodKind::Bidi);

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

fn with(change: impl FnOnce(&mut P), mut packet: P) -> P {
    change(&mut packet);
    packet
}

fn response(method: u32, call_id: u32, n: u32) -> P {
    P::new(PacketType::RESPONSE, method, call_id, &Num(n).to_vec())
}

fn stream(method: u32, call_id: u32, n: u32) -> P {
    P::new(PacketType::SERVER_STREAM, method, call_id, &Num(n).to_vec())
}

fn error(method: u32, call_id: u32, status: Status) -> P {
    P::new(PacketType::SERVER_ERROR, method, call_id, &[]).status(status)
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

fn event_name(event: &Event<'_>) -> String {
    let bytes = |payload: &[u8]| match payload {
        [] => String::new(),
        payload => match <Num as sinew::rpc::Decode>::decode(payload) {
            Some(num) => format!(" {}", num.0),
            None => format!(" {} bytes", payload.len()),
        },
    };
    let call = event.call.call_id();
    match event.received {
        Received::Item(payload) => format!("#{call} item{}", bytes(payload)),
        Received::Completed(status, payload) => {
            format!("#{call} completed {status}{}", bytes(payload))
        }
        Received::Failed(status) => format!("#{call} failed {status}"),
    }
}

/// Gives one packet to a client: the reply and the event.
fn give(client: &mut Client<4>, packet: &[u8]) -> (Option<Seen>, String) {
    let mut place = [0xAA; 64];
    let (len, event) = client.handle(packet, &mut place, Instant::START);
    let reply = (len > 0).then(|| Seen::of(&place[..len]));
    (reply, event.map_or("-".into(), |event| event_name(&event)))
}

const SECOND: Duration = Duration::from_secs(1);

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

/// A client, one call of this method, and a place.
fn one_call(method: MethodId) -> (Client<4>, sinew::rpc::ClientCall, [u8; 64]) {
    let mut client = Client::new(1, 0);
    let call = client.open(method, SECOND, Instant::START).unwrap();
    (client, call, [0; 64])
}

#[test]
fn abandoning_completes_an_incomplete_client_stream_and_else_says_nothing() {
    for (method, says) in [
        (UNARY, "-"),
        (SERVER_STREAM, "-"),
        (CLIENT_STREAM, "CLIENT_REQUEST_COMPLETION OK #1"),
        (BIDI, "CLIENT_REQUEST_COMPLETION OK #1"),
    ] {
        let (mut client, call, mut place) = one_call(method);
        let len = client.abandon(&call, &mut place);
        assert_eq!(show(&(len > 0).then(|| Seen::of(&place[..len]))), says);
        assert!(!client.is_open(&call));
        assert_eq!(client.abandon(&call, &mut place), 0, "a second time");

        let (mut client, call, mut place) = one_call(method);
        assert!(client.complete(&call, &mut place) > 0);
        assert_eq!(client.abandon(&call, &mut place), 0, "complete already");
        assert!(!client.is_open(&call));
    }
}

#[test]
fn cancelling_says_so_once_and_what_comes_later_belongs_to_no_call() {
    let (mut client, call, mut place) = one_call(SERVER_STREAM);
    let len = client.cancel(&call, Status::CANCELLED, &mut place);
    assert_eq!(
        Seen::of(&place[..len]).to_string(),
        "CLIENT_ERROR CANCELLED #1"
    );
    assert_eq!(client.cancel(&call, Status::CANCELLED, &mut place), 0);
    assert_eq!(client.complete(&call, &mut place), 0);
    let (reply, event) = give(&mut client, &stream(COUNT, 1, 5).bytes());
    assert_eq!(show(&reply), "CLIENT_ERROR FAILED_PRECONDITION #1");
    assert_eq!(event, "-");
    assert_eq!(client.stats().no_such_call, 1);
}

#[test]
fn a_call_ended_for_a_full_receiver_is_counted() {
    let (mut client, call, mut place) = one_call(SERVER_STREAM);
    let len = client.cancel(&call, Status::RESOURCE_EXHAUSTED, &mut place);
    assert_eq!(
        Seen::of(&place[..len]).to_string(),
        "CLIENT_ERROR RESOURCE_EXHAUSTED #1"
    );
    assert_eq!(client.stats().exhausted, 1);
}

#[test]
fn completing_twice_says_so_once() {
    let (mut client, call, mut place) = one_call(CLIENT_STREAM);
    assert_eq!(client.complete(&call, &mut [0; 3]), 0, "no room");
    let len = client.complete(&call, &mut place);
    assert_eq!(
        Seen::of(&place[..len]).to_string(),
        "CLIENT_REQUEST_COMPLETION OK #1"
    );
    assert_eq!(client.complete(&call, &mut place), 0);
    assert!(client.is_open(&call));
}

#[test]
fn a_deadline_ends_the_call_and_tells_the_server() {
    let mut client = Client::<4>::new(1, 0);
    let mut place = [0; 64];
    assert_eq!(client.deadline(), Instant::FAR);
    let late = client.open(UNARY, SECOND * 2, Instant::START).unwrap();
    let soon = client.open(UNARY, SECOND, Instant::START).unwrap();
    assert_eq!(client.deadline(), support::at(1000));
    assert_eq!(client.expire(&mut place, support::at(999)), None);
    let (call, len) = client.expire(&mut place, support::at(1000)).unwrap();
    assert_eq!(call, soon);
    assert_eq!(
        Seen::of(&place[..len]).to_string(),
        "CLIENT_ERROR DEADLINE_EXCEEDED #2"
    );
    assert_eq!(client.expire(&mut place, support::at(1999)), None);
    assert_eq!(client.deadline(), support::at(2000));
    assert_eq!(
        client.expire(&mut place, support::at(9000)).unwrap().0,
        late
    );
    assert_eq!(client.expire(&mut place, support::at(9000)), None);
    assert_eq!(client.stats().expired, 2);
    assert_eq!(client.deadline(), Instant::FAR);
}

#[test]
fn items_move_the_deadline_of_a_server_stream_and_nothing_else_does() {
    for (method, number) in [(SERVER_STREAM, COUNT), (BIDI, ECHO_ALL)] {
        let (mut client, _, mut place) = one_call(method);
        client.handle(&stream(number, 1, 5).bytes(), &mut place, support::at(900));
        assert_eq!(client.deadline(), support::at(1900));
    }
    let (mut client, call, mut place) = one_call(CLIENT_STREAM);
    client.complete(&call, &mut place);
    let odd = with(|p| p.packet_type = 9, response(SUM, 1, 1));
    client.handle(&odd.bytes(), &mut place, support::at(900));
    assert_eq!(client.deadline(), support::at(1000));
}

#[test]
fn call_ids_start_at_the_seed_and_stay_between_1_and_2_to_the_14() {
    let mut first = Vec::new();
    for seed in [0, 1, 16382, 16383, 16384, 0x1234_5678, u32::MAX] {
        let mut client = Client::<2>::new(1, seed);
        let mut seen = std::collections::HashSet::new();
        for n in 0..16383 {
            let call = client.open(UNARY, SECOND, Instant::START).unwrap();
            assert!((1..1 << 14).contains(&call.call_id()));
            assert!(seen.insert(call.call_id()), "{n} of seed {seed}");
            if n == 0 {
                first.push(call.call_id());
            }
            client.cancel(&call, Status::CANCELLED, &mut []);
        }
        let again = client.open(UNARY, SECOND, Instant::START).unwrap();
        assert_eq!(Some(&again.call_id()), first.last(), "all have been used");
    }
    assert_eq!(first[0], 1);
    assert_eq!(first[1], 2);
    assert_eq!(first[2], 16383);
    assert_eq!(first[3], 1);
    assert_ne!(first[5], first[6]);
}

#[test]
fn ids_of_open_calls_are_skipped_also_after_a_wrap() {
    let mut client = Client::<4>::new(1, 16381);
    let held = client.open(UNARY, SECOND, Instant::START).unwrap();
    let next = client.open(SERVER_STREAM, SECOND, Instant::START).unwrap();
    assert_eq!((held.call_id(), next.call_id()), (16382, 16383));
    for _ in 1..16382 {
        let call = client.open(UNARY, SECOND, Instant::START).unwrap();
        client.cancel(&call, Status::CANCELLED, &mut []);
    }
    let call = client.open(UNARY, SECOND, Instant::START).unwrap();
    assert_eq!(call.call_id(), 1, "16382 and 16383 are still open");
}

#[test]
fn a_full_client_says_so_and_uses_up_no_id() {
    let mut client = Client::<4>::new(1, 0);
    for _ in 0..4 {
        client.open(UNARY, SECOND, Instant::START).unwrap();
    }
    for _ in 0..10 {
        assert!(client.open(UNARY, SECOND, Instant::START).is_err());
        assert!(client.listen(UNARY, SECOND, Instant::START).is_err());
    }
    give(&mut client, &response(DOUBLE, 2, 5).bytes());
    let call = client.open(UNARY, SECOND, Instant::START).unwrap();
    assert_eq!(call.call_id(), 5);
}

#[test]
fn a_stale_handle_does_nothing_to_the_next_call_in_its_place() {
    let (mut client, old, mut place) = one_call(CLIENT_STREAM);
    give(&mut client, &response(SUM, 1, 5).bytes());
    let new = client.open(CLIENT_STREAM, SECOND, Instant::START).unwrap();
    assert_eq!(old.index(), new.index());
    assert_eq!(client.cancel(&old, Status::CANCELLED, &mut place), 0);
    assert_eq!(client.complete(&old, &mut place), 0);
    assert_eq!(client.abandon(&old, &mut place), 0);
    assert!(client.is_open(&new) && !client.is_open(&old));
}

#[test]
fn a_listener_takes_over_the_id_of_the_first_packet() {
    let mut client = Client::<4>::new(1, 0);
    let listener = client
        .listen(SERVER_STREAM, SECOND, Instant::START)
        .unwrap();
    let (_, event) = give(&mut client, &stream(COUNT, OPEN_CALL_ID, 1).bytes());
    assert_eq!(event, "#4294967295 item 1");
    // 0 is an open id as well, not one to take over.
    let (_, event) = give(&mut client, &stream(COUNT, 0, 2).bytes());
    assert_eq!(event, "#4294967295 item 2");
    let (_, event) = give(&mut client, &stream(COUNT, 777, 3).bytes());
    assert_eq!(event, "#777 item 3");
    let (reply, event) = give(&mut client, &stream(COUNT, 778, 4).bytes());
    assert_eq!(show(&reply), "CLIENT_ERROR FAILED_PRECONDITION #778");
    assert_eq!(event, "-");
    // The handle from before still names the call, and says the id that it has now.
    let mut place = [0; 64];
    let len = client.cancel(&listener, Status::CANCELLED, &mut place);
    assert_eq!(
        Seen::of(&place[..len]).to_string(),
        "CLIENT_ERROR CANCELLED #777"
    );
}

#[test]
fn a_listener_takes_no_packet_from_a_requested_call() {
    let mut client = Client::<4>::new(1, 0);
    let requested = client.open(SERVER_STREAM, SECOND, Instant::START).unwrap();
    let listener = client
        .listen(SERVER_STREAM, SECOND, Instant::START)
        .unwrap();
    let (_, event) = give(&mut client, &stream(COUNT, 1, 3).bytes());
    assert_eq!(event, "#1 item 3");
    let (_, event) = give(&mut client, &response(COUNT, OPEN_CALL_ID, 0).bytes());
    assert_eq!(event, "#4294967295 completed OK");
    assert!(client.is_open(&requested) && !client.is_open(&listener));
}

#[test]
fn of_several_listeners_the_newest_is_served() {
    let mut client = Client::<4>::new(1, 0);
    // The places are used in the order 1, 0, so that the newest is not the last place.
    let gone = client.open(UNARY, SECOND, Instant::START).unwrap();
    let older = client
        .listen(SERVER_STREAM, SECOND, Instant::START)
        .unwrap();
    client.cancel(&gone, Status::CANCELLED, &mut []);
    let newer = client
        .listen(SERVER_STREAM, SECOND, Instant::START)
        .unwrap();
    assert!(newer.index() < older.index());
    for call_id in [OPEN_CALL_ID, 0, 55] {
        let mut place = [0; 64];
        let packet = stream(COUNT, call_id, 3).bytes();
        let (_, event) = client.handle(&packet, &mut place, Instant::START);
        assert_eq!(event.unwrap().call.index(), newer.index(), "id {call_id}");
    }
    let mut place = [0; 64];
    let packet = stream(COUNT, 56, 3).bytes();
    let (_, event) = client.handle(&packet, &mut place, Instant::START);
    assert_eq!(event.unwrap().call.index(), older.index());
}

#[test]
fn a_listener_that_expires_ends_no_call_at_the_server() {
    let mut client = Client::<4>::new(1, 0);
    let listener = client
        .listen(SERVER_STREAM, SECOND, Instant::START)
        .unwrap();
    let mut place = [0; 64];
    let expired = client.expire(&mut place, support::at(1000));
    assert_eq!(expired, Some((listener, 0)));
    assert!(!client.is_open(&listener));
}

#[test]
fn a_link_that_is_gone_ends_every_call() {
    let mut client = Client::<4>::new(1, 0);
    let calls = [UNARY, SERVER_STREAM, CLIENT_STREAM, BIDI]
        .map(|method| client.open(method, SECOND, Instant::START).unwrap());
    client.link_down();
    assert!(calls.iter().all(|call| !client.is_open(call)));
    assert_eq!(client.deadline(), Instant::FAR);
    let (_, event) = give(&mut client, &response(DOUBLE, 1, 5).bytes());
    assert_eq!(event, "-");
}

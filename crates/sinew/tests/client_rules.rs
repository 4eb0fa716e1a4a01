//! What a client does with its own calls: ids, deadlines, cancel, complete, abandon, listen.

mod support;

use sinew::rpc::packet::OPEN_CALL_ID;
use sinew::rpc::{Client, MethodId, Status};
use sinew::time::Instant;
use support::client::*;
use support::kinds::*;
use support::wire::*;

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

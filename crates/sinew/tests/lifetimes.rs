//! How long calls live: deadlines, adoption, reboot, links that come and go.

mod support;

use core::time::Duration;

use sinew::link::Port;
use sinew::rpc::packet::OPEN_CALL_ID;
use sinew::rpc::{AnswerError, Channels, Method, MethodId, MethodKind, Server, Status, Via};
use sinew::time::Instant;
use support::kinds::*;
use support::later::*;
use support::port::TestPort;
use support::wire::*;
use support::{Bench, MTU, at};

#[test]
fn a_call_without_a_sign_of_life_expires() {
    let mut bench = deferring();
    bench.server.set_lifetime(Duration::from_secs(1));
    assert_eq!(bench.server.deadline(), Instant::FAR);
    let mut answer = responder(&mut bench, 3);
    bench.now = at(400);
    bench.send(&request(SUM, 4, 0));
    drop(bench.kinds.responders.pop()); // `Sum` keeps its own call
    assert_eq!(bench.server.deadline(), at(1000));
    bench.now = at(999);
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!(say(bench.port.pop()), "RESPONSE ABORTED #4");
    bench.now = at(1000);
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!(say(bench.port.pop()), "SERVER_ERROR DEADLINE_EXCEEDED #3");
    assert_eq!(answer.answer(&Num(1)), Err(AnswerError::Cancelled));
    assert_eq!(bench.server.stats().expired, 1);
    assert_eq!(bench.server.deadline(), Instant::FAR);
}

#[test]
fn an_expired_call_of_the_engine_alone_is_told_in_the_place() {
    let mut bench = Bench::new();
    bench.server.set_lifetime(Duration::from_secs(1));
    bench.send(&request(SUM, 4, 0));
    bench.send(&request(SUM, 5, 0));
    bench.kinds.log.clear();
    bench.now = at(1000);
    for call in [4, 5] {
        let told = bench.poll().unwrap();
        assert_eq!(say(told), format!("SERVER_ERROR DEADLINE_EXCEEDED #{call}"));
    }
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!(bench.kinds.log, ["Sum:Closed(DEADLINE_EXCEEDED)"; 2]);
}

#[test]
fn packets_of_either_side_move_the_deadline() {
    let mut bench = deferring();
    bench.server.set_lifetime(Duration::from_secs(1));
    let mut stream = writer(&mut bench, 3);
    for n in 1..20u64 {
        bench.now = at(n * 900);
        if n % 2 == 0 {
            stream.send(&Num(1)).unwrap();
            bench.port.pop();
        } else {
            bench.send(&item(COUNT, 3, &[])); // refused, yet a sign of life
        }
        assert_eq!(bench.poll(), Ok(None));
        assert_eq!(bench.server.deadline(), at(n * 900 + 1000));
    }
}

#[test]
fn a_busy_stream_lives_however_many_items_pass_between_two_looks() {
    let mut bench = deferring();
    bench.server.set_lifetime(Duration::from_secs(1));
    let mut stream = writer(&mut bench, 3);
    for items in [1, 63, 64, 65, 128, 256, 1 << 14, 1 << 16] {
        for n in 0..items {
            stream.send(&Num(n)).unwrap();
            bench.port.pop();
        }
        bench.now = bench.server.deadline();
        assert_eq!(bench.poll(), Ok(None), "{items} items");
        assert!(stream.is_open(), "{items} items");
    }
    bench.now = bench.server.deadline();
    bench.poll().unwrap();
    assert_eq!(say(bench.port.pop()), "SERVER_ERROR DEADLINE_EXCEEDED #3");
}

#[test]
fn a_reused_slot_gives_no_life_to_its_next_call() {
    let mut bench = deferring();
    bench.server.set_lifetime(Duration::from_secs(1));
    for call in 0..20u64 {
        bench.now = at(call * 5000);
        let mut silent = responder(&mut bench, call as u32 + 1);
        bench.now = at(call * 5000 + 1000);
        bench.poll().unwrap();
        assert!(say(bench.port.pop()).starts_with("SERVER_ERROR DEADLINE_EXCEEDED"));
        assert_eq!(silent.answer(&Num(1)), Err(AnswerError::Cancelled));
    }
}

#[test]
fn items_and_the_end_reach_a_handler_whose_call_is_taken() {
    let mut bench = deferring();
    bench.send(&request(SUM, 3, 0));
    bench.send(&item(SUM, 3, &Num(4).to_vec()));
    bench.send(&item(SUM, 3, &Num(5).to_vec()));
    bench.send(&end(SUM, 3));
    assert_eq!(bench.kinds.log, ["Sum:Open", "Sum:4", "Sum:5", "Sum:End"]);
    let mut answer = bench.kinds.responders.pop().unwrap();
    answer.answer(&Num(9)).unwrap();
    assert_eq!(say(bench.port.pop()), "RESPONSE OK #3 n=9");
}

#[test]
fn a_writer_carries_the_id_that_its_call_adopted() {
    let mut bench = deferring();
    bench.send(&request(ECHO_ALL, OPEN_CALL_ID, 0));
    let mut writer = bench.kinds.writers.pop().unwrap();
    writer.send(&Num(1)).unwrap();
    let echo = bench.send(&item(ECHO_ALL, 5, &Num(2).to_vec()));
    assert_eq!(say(echo), "SERVER_STREAM OK #5 n=2");
    writer.send(&Num(3)).unwrap();
    assert_eq!(say(bench.port.pop()), "SERVER_STREAM OK #4294967295 n=1");
    assert_eq!(say(bench.port.pop()), "SERVER_STREAM OK #5 n=3");
}

struct Count;

impl Method for Count {
    type Request = Num;
    type Response = Num;
    const ID: MethodId = method(COUNT, MethodKind::ServerStream);
    const NAME: &'static str = "demo.Kinds/Count";
}

#[test]
fn a_rebooted_server_continues_a_stream_unrequested() {
    let mut bench = Bench::new();
    let mut client = sinew::rpc::Client::<2>::new(1, 0);
    let timeout = Duration::from_secs(5);
    let call = client.open(Count::ID, timeout, Instant::START).unwrap();
    // The server knows nothing of the call of its earlier life.
    let mut stream = bench
        .server
        .open_unrequested::<Count>(&bench.via, 1, bench.now)
        .unwrap();
    stream.send(&Num(7)).unwrap();
    stream.finish(Status::OK).unwrap();
    let mut place = [0; MTU];
    for what in ["Item", "Completed"] {
        let packet = bench.port.take().unwrap();
        let (len, event) = client.handle(&packet, &mut place, Instant::START);
        assert_eq!(len, 0);
        let event = event.unwrap();
        assert_eq!(event.call, call);
        assert!(format!("{:?}", event.received).starts_with(what));
    }
    // Cancelling by the open id reaches the writer that carries it, not a requested call.
    let requested = writer(&mut bench, 9);
    let unrequested = bench
        .server
        .open_unrequested::<Count>(&bench.via, 1, bench.now)
        .unwrap();
    bench.send(&cancel(COUNT, OPEN_CALL_ID));
    assert!(requested.is_open() && !unrequested.is_open());
}

/// A link of its own for the same server.
fn link(number: u16) -> (&'static TestPort, Via) {
    let port = TestPort::leak(MTU, 8);
    let via = Via {
        link: number,
        channels: Channels::Any,
        port: Some(port as &'static dyn Port),
        bulk: None,
    };
    (port, via)
}

#[test]
fn two_links_may_use_the_same_call_ids() {
    let mut bench = deferring();
    let (port, via) = link(1);
    let mut here = responder(&mut bench, 3);
    assert_eq!(bench.bytes_via(&request(DOUBLE, 3, 1).bytes(), via), None);
    let mut there = bench.kinds.responders.pop().unwrap();
    assert_eq!(bench.server.stats().replaced, 0);
    there.answer(&Num(2)).unwrap();
    here.answer(&Num(1)).unwrap();
    assert_eq!(say(bench.port.pop()), "RESPONSE OK #3 n=1");
    assert_eq!(say(port.pop()), "RESPONSE OK #3 n=2");
    // A cancel, even by an open id, stays on its link.
    let here = writer(&mut bench, 4);
    bench.bytes_via(&cancel(COUNT, 4).bytes(), via);
    bench.bytes_via(&cancel(COUNT, 0).bytes(), via);
    assert!(here.is_open());
}

#[test]
fn a_poll_sees_only_to_its_own_link() {
    let mut bench = deferring();
    let (port, via) = link(1);
    bench.bytes_via(&request(DOUBLE, 3, 1).bytes(), via);
    drop(bench.kinds.responders.pop().unwrap());
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!((port.len(), bench.server.stats().dropped), (0, 0));
    bench.via = via;
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!(say(port.pop()), "RESPONSE ABORTED #3");
}

#[test]
fn a_link_that_is_gone_ends_its_calls_and_is_quiet_when_its_responders_are() {
    let mut bench = deferring();
    let (_, other) = link(1);
    bench.bytes_via(&request(DOUBLE, 3, 1).bytes(), other);
    let elsewhere = bench.kinds.responders.pop().unwrap();
    assert!(bench.server.is_quiet(0) && !bench.server.is_quiet(1));
    let mut answer = responder(&mut bench, 3);
    bench.kinds.defer = false;
    bench.send(&request(SUM, 4, 0));
    bench.kinds.log.clear();
    assert!(!bench.server.is_quiet(0));
    let Bench {
        server,
        kinds,
        via,
        now,
        ..
    } = &mut bench;
    server.link_down(via, kinds, *now);
    assert_eq!(bench.kinds.log, ["Sum:Closed(UNAVAILABLE)"]);
    assert!(
        !bench.server.is_quiet(0),
        "a responder still points at the port"
    );
    assert_eq!(answer.answer(&Num(1)), Err(AnswerError::Cancelled));
    assert!(elsewhere.is_open(), "the other link goes on");
    drop(answer);
    assert!(bench.server.is_quiet(0));
    assert_eq!(bench.port.len(), 0);
    assert!(!bench.is_open(DOUBLE, 3) && !bench.is_open(SUM, 4));
}

#[test]
fn refusals_for_want_of_room_are_counted_once_whoever_makes_them() {
    let mut bench = deferring();
    let _held: Vec<_> = (1..=4).map(|call| responder(&mut bench, call)).collect();
    // The engine, for a stream that needs a slot; the engine, for a handler that defers.
    bench.send(&request(SUM, 9, 0));
    assert_eq!(bench.server.stats().exhausted, 1);
    bench.send(&request(DOUBLE, 9, 1));
    assert_eq!(bench.server.stats().exhausted, 2);
    // A handler whose own queue is full.
    bench.send(&request(DOUBLE, 9, QUEUE_FULL));
    assert_eq!(bench.server.stats().exhausted, 3);
}

#[test]
fn a_second_server_over_the_same_slots_is_no_friend_of_old_responders() {
    let slots = support::slots::<1>();
    let mut bench = deferring();
    let mut place = [0; MTU];
    let mut serve = |server: &mut Server<1>, bench: &mut Bench| {
        let packet = request(DOUBLE, 3, 1).bytes();
        server.handle(&packet, &bench.via, &mut place, &mut bench.kinds, bench.now);
        bench.kinds.responders.pop().unwrap()
    };
    let mut first = Server::new(slots);
    let mut old = serve(&mut first, &mut bench);
    let mut second = Server::new(slots);
    let mut new = serve(&mut second, &mut bench);
    assert_eq!(old.answer(&Num(1)), Err(AnswerError::Cancelled));
    new.answer(&Num(2)).unwrap();
    assert_eq!(say(bench.port.pop()), "RESPONSE OK #3 n=2");
    assert_eq!(bench.port.len(), 0);
}

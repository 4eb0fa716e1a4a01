//! Calls that outlive their receive step: responders, writers, deadlines, links.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

use sinew::link::SendError;
use sinew::rpc::{AnswerError, Responder, Status, Writer};
use support::kinds::*;
use support::later::*;
use support::port::TestPort;
use support::wire::*;
use support::{Bench, MTU};

#[test]
fn responders_and_writers_are_small_and_travel() {
    fn travels<T: Send + 'static>() {}
    travels::<Responder<Num>>();
    travels::<Writer<Num>>();
    assert!(size_of::<Responder<Num>>() <= 6 * size_of::<usize>());
    assert!(size_of::<Writer<Num>>() <= 6 * size_of::<usize>());
}

#[test]
fn answers_from_other_threads_reach_their_calls_in_any_order() {
    let mut bench = deferring();
    for round in 0..50 {
        let threads: Vec<_> = (1..=4)
            .map(|call| {
                let mut responder = responder(&mut bench, round * 4 + call);
                let answer = Num(round * 100 + call);
                std::thread::spawn(move || responder.answer(&answer).unwrap())
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut answers: Vec<_> = std::iter::from_fn(|| bench.port.pop()).collect();
        answers.sort_by_key(|answer| answer.route.call_id);
        for (call, answer) in (1..=4).zip(answers) {
            assert_eq!(answer.route.call_id, round * 4 + call);
            assert_eq!(answer.num(), round * 100 + call);
        }
    }
    assert_eq!(bench.port.rings(), 0, "an answered call needs no engine");
}

#[test]
fn an_answer_is_given_once() {
    let mut bench = deferring();
    let mut responder = responder(&mut bench, 3);
    assert!(responder.is_open());
    responder.answer(&Num(42)).unwrap();
    assert!(!responder.is_open());
    assert_eq!(responder.answer(&Num(43)), Err(AnswerError::Cancelled));
    assert_eq!(
        responder.fail(Status::INTERNAL),
        Err(AnswerError::Cancelled)
    );
    drop(responder);
    assert_eq!(say(bench.port.pop()), "RESPONSE OK #3 n=42");
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!(bench.port.len(), 0);
    assert!(!bench.is_open(DOUBLE, 3));
}

#[test]
fn calls_in_flight_are_answered_out_of_order() {
    let mut bench = deferring();
    let mut calls: Vec<_> = (1..=4).map(|call| responder(&mut bench, call)).collect();
    for index in [2, 0, 3, 1] {
        calls[index].answer(&Num(index as u32 + 10)).unwrap();
    }
    for call in [3, 1, 4, 2] {
        let answer = bench.port.pop().unwrap();
        assert_eq!((answer.route.call_id, answer.num()), (call, call + 9));
    }
}

struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_full_port_says_so_and_loses_nothing() {
    let mut bench = Bench::with_port(TestPort::leak(MTU, 2));
    let mut writer = writer(&mut bench, 3);
    let wakes = Arc::new(Wakes(AtomicU32::new(0)));
    let waker = Waker::from(wakes.clone());
    let mut received = Vec::new();
    for n in 0..20 {
        while writer.send(&Num(n)) == Err(AnswerError::Full) {
            let before = wakes.0.load(Ordering::SeqCst);
            writer.arm(&waker);
            assert_eq!(wakes.0.load(Ordering::SeqCst), before);
            received.push(bench.port.pop().unwrap().num());
            assert_eq!(wakes.0.load(Ordering::SeqCst), before + 1);
        }
    }
    assert_eq!(writer.finish(Status::OK), Err(AnswerError::Full));
    assert!(writer.is_open(), "a full port ends nothing");
    received.extend(std::iter::from_fn(|| bench.port.pop()).map(|seen| seen.num()));
    writer.finish(Status::OK).unwrap();
    assert_eq!(received, (0..20).collect::<Vec<_>>());
    assert_eq!(say(bench.port.pop()), "RESPONSE OK #3");
}

#[test]
fn a_cancel_is_seen_by_the_next_send() {
    let mut bench = deferring();
    let mut stream = writer(&mut bench, 3);
    let mut answer = responder(&mut bench, 4);
    stream.send(&Num(1)).unwrap();
    bench.send(&cancel(COUNT, 3));
    bench.send(&cancel(DOUBLE, 4));
    assert!(!stream.is_open() && !answer.is_open());
    assert_eq!(stream.send(&Num(2)), Err(AnswerError::Cancelled));
    assert_eq!(stream.finish(Status::OK), Err(AnswerError::Cancelled));
    assert_eq!(answer.answer(&Num(2)), Err(AnswerError::Cancelled));
    drop((stream, answer));
    assert_eq!(say(bench.port.pop()), "SERVER_STREAM OK #3 n=1");
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!(bench.port.len(), 0, "nothing is sent for a cancelled call");
    assert_eq!(bench.server.stats().cancelled, 2);
    assert_eq!(bench.server.stats().dropped, 0);
}

#[test]
fn a_dropped_responder_rings_and_is_answered_for() {
    let mut bench = deferring();
    for method in [DOUBLE, SUM] {
        bench.send(&request(method, 3, 0));
        let rings = bench.port.rings();
        drop(bench.kinds.responders.pop().unwrap());
        assert_eq!(bench.port.rings(), rings + 1);
        assert_eq!(bench.poll(), Ok(None), "it leaves through the port");
        assert_eq!(say(bench.port.pop()), "RESPONSE ABORTED #3");
        assert!(!bench.is_open(method, 3));
    }
    assert_eq!(bench.server.stats().dropped, 2);
}

#[test]
fn a_dropped_writer_ends_its_stream_with_ok_behind_its_items() {
    let mut bench = deferring();
    for method in [COUNT, ECHO_ALL] {
        bench.send(&request(method, 3, 0));
        let mut writer = bench.kinds.writers.pop().unwrap();
        writer.send(&Num(1)).unwrap();
        writer.send(&Num(2)).unwrap();
        drop(writer);
        assert_eq!(bench.poll(), Ok(None));
        let packets: Vec<_> = std::iter::from_fn(|| bench.port.pop())
            .map(|p| p.to_string())
            .collect();
        assert_eq!(
            packets,
            [
                "SERVER_STREAM OK #3 n=1",
                "SERVER_STREAM OK #3 n=2",
                "RESPONSE OK #3"
            ]
        );
    }
}

#[test]
fn a_dropped_responder_waits_for_room_and_holds_up_no_other_port() {
    let bulk = TestPort::leak(MTU, 1);
    let mut bench = deferring();
    bench.via.bulk = Some(bulk);
    let mut stream = writer(&mut bench, 3);
    stream.send(&Num(1)).unwrap();
    drop(stream);
    drop(responder(&mut bench, 4));
    assert_eq!(bench.poll(), Err(SendError::Full));
    assert_eq!(say(bench.port.pop()), "RESPONSE ABORTED #4");
    assert_eq!(bench.poll(), Err(SendError::Full));
    assert_eq!(say(bulk.pop()), "SERVER_STREAM OK #3 n=1");
    assert_eq!(bench.poll(), Ok(None));
    assert_eq!(say(bulk.pop()), "RESPONSE OK #3");
    assert_eq!(bench.port.len(), 0);
    assert_eq!(bench.server.stats().dropped, 2);
}

#[test]
fn a_call_ends_also_where_not_even_its_end_fits() {
    let mut bench = Bench::with_port(TestPort::leak(10, 2));
    bench.kinds.defer = true;
    drop(responder(&mut bench, 3));
    assert_eq!(bench.poll(), Ok(None));
    assert!(!bench.is_open(DOUBLE, 3));
    assert_eq!(bench.port.len(), 0);
}

#[test]
fn a_slot_is_not_given_away_while_its_responder_lives() {
    let mut bench = deferring();
    let held: Vec<_> = (1..=4).map(|call| responder(&mut bench, call)).collect();
    for call in 1..=4 {
        bench.send(&cancel(DOUBLE, call));
    }
    let refused = "RESPONSE RESOURCE_EXHAUSTED #9";
    assert_eq!(say(bench.send(&request(DOUBLE, 9, 1))), refused);
    assert_eq!(bench.server.stats().exhausted, 1);
    drop(held);
    let mut answer = responder(&mut bench, 9);
    answer.answer(&Num(1)).unwrap();
    assert_eq!(say(bench.port.pop()), "RESPONSE OK #9 n=1");
}

#[test]
fn an_old_responder_says_nothing_for_the_call_that_replaced_its_own() {
    let mut bench = deferring();
    let mut old = responder(&mut bench, 3);
    let mut new = responder(&mut bench, 3);
    assert_eq!(bench.server.stats().replaced, 1);
    assert_eq!(old.answer(&Num(1)), Err(AnswerError::Cancelled));
    drop(old);
    assert_eq!(bench.poll(), Ok(None));
    assert!(new.is_open());
    new.answer(&Num(2)).unwrap();
    assert_eq!(say(bench.port.pop()), "RESPONSE OK #3 n=2");
    assert_eq!(bench.port.len(), 0);
}

#[test]
fn a_slot_serves_more_calls_than_it_has_generations() {
    let port = TestPort::leak(MTU, 4);
    let mut bench = Bench::with_port(port);
    bench.kinds.defer = true;
    for call in 1..=2000 {
        let mut answer = responder(&mut bench, call);
        match call % 4 {
            0 => answer.answer(&Num(call)).unwrap(),
            1 => answer.fail(Status::UNAVAILABLE).unwrap(),
            2 => drop(bench.send(&cancel(DOUBLE, call))),
            _ => {}
        }
        drop(answer);
        assert_eq!(bench.poll(), Ok(None));
        let seen = say(port.pop());
        match call % 4 {
            0 => assert_eq!(seen, format!("RESPONSE OK #{call} n={call}")),
            1 => assert_eq!(seen, format!("RESPONSE UNAVAILABLE #{call}")),
            2 => assert_eq!(seen, "-"),
            _ => assert_eq!(seen, format!("RESPONSE ABORTED #{call}")),
        }
        assert!(!bench.is_open(DOUBLE, call));
    }
}

#[test]
fn an_untaken_call_is_not_ended_by_what_an_earlier_responder_left() {
    let mut bench = deferring();
    drop(responder(&mut bench, 1));
    bench.poll().unwrap();
    bench.port.pop();
    bench.kinds.defer = false;
    for call in 2..600 {
        bench.send(&request(SUM, call, 0));
        assert_eq!(bench.poll(), Ok(None));
        assert!(bench.is_open(SUM, call));
        bench.send(&item(SUM, call, &Num(call).to_vec()));
        let answer = bench.send(&end(SUM, call));
        assert_eq!(say(answer), format!("RESPONSE OK #{call} n={call}"));
    }
}

#[test]
fn an_oversize_answer_ends_its_call_with_internal() {
    let mut bench = Bench::with_port(TestPort::leak(20, 8));
    bench.kinds.defer = true;
    let mut answer = responder(&mut bench, 3);
    assert_eq!(answer.answer(&Num(u32::MAX)), Err(AnswerError::TooLarge));
    assert!(!answer.is_open());
    assert_eq!(say(bench.port.pop()), "SERVER_ERROR INTERNAL #3");
    // An item is refused and its stream goes on.
    let mut stream = writer(&mut bench, 4);
    assert_eq!(stream.send(&Num(u32::MAX)), Err(AnswerError::TooLarge));
    stream.send(&Num(5)).unwrap();
    assert_eq!(say(bench.port.pop()), "SERVER_STREAM OK #4 n=5");
    assert_eq!(bench.port.len(), 0);
}

#[test]
fn a_port_that_is_closed_says_so() {
    let mut bench = deferring();
    let mut stream = writer(&mut bench, 3);
    bench.port.close();
    assert_eq!(stream.send(&Num(1)), Err(AnswerError::Closed));
    assert_eq!(stream.finish(Status::OK), Err(AnswerError::Closed));
}

#[test]
fn nothing_can_be_deferred_on_a_link_without_a_port() {
    let mut bench = deferring();
    bench.via.port = None;
    let answer = bench.send(&request(DOUBLE, 3, 1));
    assert_eq!(say(answer), "RESPONSE UNIMPLEMENTED #3");
    assert!(bench.kinds.responders.is_empty());
}

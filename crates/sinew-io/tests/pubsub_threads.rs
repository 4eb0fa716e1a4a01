//! Nodes with threads of their own.

#[path = "support/nodes.rs"]
mod nodes;
mod support;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nodes::*;
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Ask, Ended, Put, PutError, State};
use sinew_io::pubsub::{self, Node, Options, Overflow, ReplyError};
use sinew_io::{apart, threads};

/// Two peers with a session over a link of this kind.
fn peers(kind: &str) -> (Node, Node) {
    let (one, other) = if kind == "threads" {
        let (near, far) = threads::link();
        let one = pubsub::over(near.apart(), Options::peer());
        (one, pubsub::accept(far.apart(), Options::peer()))
    } else {
        let mut listener = listener(kind);
        let one = pubsub::open(listener.endpoint(), Options::peer());
        let apart = listener.accept_within(Some(SOON)).expect("it comes");
        (one, pubsub::accept(apart, Options::peer()))
    };
    one.wait_open(SOON).unwrap();
    other.wait_open(SOON).unwrap();
    (one, other)
}

#[test]
fn threads_publish_at_once_and_nothing_is_lost_or_torn() {
    const THREADS: u8 = 8;
    const EACH: u32 = 12;
    for kind in ["tcp", "shm", "threads"] {
        let (one, other) = peers(kind);
        let samples = other.samples("demo/*", 4, Overflow::Wait).unwrap();
        thread::scope(|scope| {
            for number in 0..THREADS {
                // All on one key and mostly of one length, so that only their bytes tell them apart.
                let publisher = one.publisher_with("demo/k", WAITS).unwrap();
                scope.spawn(move || {
                    until(|| publisher.is_heard() == Some(true));
                    for n in 0..EACH {
                        let len = if number % 4 == 3 { 100 } else { LARGE };
                        assert_eq!(publisher.put(&payload(number, n, len)), Ok(Put::Heard));
                    }
                });
            }
            let mut next = [0; THREADS as usize];
            for _ in 0..u32::from(THREADS) * EACH {
                let sample = samples.next_within(Some(SOON)).expect("it arrives");
                let (publisher, number) = read(&sample.payload);
                assert_eq!(next[usize::from(publisher)], number);
                next[usize::from(publisher)] += 1;
            }
            assert_eq!(next, [EACH; THREADS as usize]);
        });
    }
}

#[test]
fn a_full_queue_holds_up_a_fast_publisher_on_every_link() {
    const COUNT: u32 = 20_000;
    for kind in ["tcp", "unix", "shm", "threads"] {
        let (one, other) = peers(kind);
        let samples = other.samples("demo/k", 8, Overflow::Wait).unwrap();
        let publisher = one.publisher_with("demo/k", WAITS).unwrap();
        until(|| publisher.is_heard() == Some(true));
        let publishing = thread::spawn(move || {
            for n in 0..COUNT {
                assert_eq!(publisher.put(&n.to_le_bytes()), Ok(Put::Heard));
            }
            publisher
        });
        for n in 0..COUNT {
            let sample = samples.next_within(Some(SOON)).expect("it arrives");
            assert_eq!(sample.payload, n.to_le_bytes());
        }
        publishing.join().unwrap();
        assert_eq!(samples.dropped(), 0);
    }
}

#[test]
fn a_node_can_be_dropped_by_its_own_handler() {
    let (one, other) = peers("tcp");
    let publisher = one.publisher("demo/k").unwrap();
    let last = Arc::new(Mutex::new(None));
    let (tell, told) = channel();
    let taken = last.clone();
    let subscriber = other.subscriber("demo/k", move |_| {
        let node: Option<(Node, pubsub::Subscriber)> = taken.lock().unwrap().take();
        drop(node);
        let _ = tell.send(());
    });
    *last.lock().unwrap() = Some((other, subscriber.unwrap()));
    until(|| publisher.is_heard() == Some(true));
    publisher.put(b"end").unwrap();
    told.recv_timeout(SOON).unwrap();
    until(|| one.state() != State::Open);
}

/// Publishes until the peer takes nothing more.
fn fill(node: &Node, key: &str) {
    let publisher = node.publisher(key).unwrap();
    until(|| publisher.is_heard() == Some(true));
    until(|| publisher.put(&[0; 60_000]) == Ok(Put::Dropped));
}

#[test]
fn a_put_in_a_handler_does_not_wait_for_a_full_link() {
    let (one, other) = peers("tcp");
    let stuck = one.samples("demo/stuck", 1, Overflow::Wait).unwrap();
    let publisher = other.publisher_with("demo/back", WAITS).unwrap();
    let _back = one.subscriber("demo/back", |_| ()).unwrap();
    until(|| publisher.is_heard() == Some(true));
    let (tell, told) = channel();
    let _echo = other.subscriber("demo/k", move |_| {
        let _ = tell.send(publisher.put(b"back"));
    });
    let asking = one.publisher("demo/k").unwrap();
    until(|| asking.is_heard() == Some(true));
    let echoed = || {
        asking.put(b"now").unwrap();
        told.recv_timeout(SOON).unwrap()
    };
    // Where the peer was late, or its system has made more room, there was a place.
    until(|| {
        fill(&other, "demo/stuck");
        echoed() == Err(PutError::Full)
    });
    // When there is room again, so it says.
    until(|| {
        while stuck.next_within(Some(Duration::ZERO)).is_some() {}
        echoed() == Ok(Put::Heard)
    });
}

#[test]
fn what_a_handler_has_sent_in_part_is_given_up_where_the_link_stays_full() {
    let (one, other) = peers("tcp");
    let back = one.samples("demo/back", 1, Overflow::Wait).unwrap();
    let publisher = other.publisher_with("demo/back", WAITS).unwrap();
    until(|| publisher.is_heard() == Some(true));
    let (tell, told) = channel();
    let _echo = other.subscriber("demo/k", move |sample| {
        let mut sent = 0;
        while publisher.put(&payload(sample.body.payload[0], sent, LARGE)) == Ok(Put::Heard) {
            sent += 1;
        }
        let _ = tell.send(sent);
    });
    let asking = one.publisher("demo/k").unwrap();
    until(|| asking.is_heard() == Some(true));
    for round in 0..2 {
        asking.put(&[round]).unwrap();
        // More than one went before the link was full.
        let sent = told.recv_timeout(SOON).unwrap();
        assert!(sent > 0);
        for n in 0..sent {
            let sample = back.next_within(Some(SOON)).expect("it arrives");
            assert_eq!(read(&sample.payload), (round, n));
        }
        assert_eq!(back.next_within(Some(Duration::from_millis(100))), None);
    }
}

#[test]
fn a_node_ends_although_its_peer_takes_nothing() {
    let (one, other) = peers("tcp");
    let _stuck = one.samples("demo/stuck", 1, Overflow::Wait).unwrap();
    fill(&other, "demo/stuck");
    // Nobody serves it, so that the other node has to answer itself, and finds no place.
    let _replies = one
        .ask(&Ask::new(KeyExpr::new("demo/none").unwrap()))
        .unwrap();
    thread::sleep(Duration::from_millis(100));
    let ending = thread::spawn(move || drop(other));
    until(|| ending.is_finished());
}

#[test]
fn a_responder_of_a_session_before_is_refused_and_its_query_ends() {
    let mut listener = listener("tcp");
    let at = listener.endpoint().clone();
    let one = pubsub::open(&at, Options::peer());
    let accept = |listener: &mut apart::Listener| {
        pubsub::accept(
            listener.accept_within(Some(SOON)).expect("it comes"),
            Options::peer(),
        )
    };
    let other = accept(&mut listener);
    let (keep, kept) = channel();
    let _queryable = one.queryable("demo/q", true, move |_, responder| {
        let _ = keep.send(responder);
    });
    one.wait_open(SOON).unwrap();
    other.wait_open(SOON).unwrap();
    let question = Ask::new(KeyExpr::new("demo/q").unwrap());
    // It is there once it was asked.
    let mut answer = None;
    let mut replies = None;
    until(|| {
        replies = Some(other.ask(&question).unwrap());
        answer = kept.recv_timeout(Duration::from_millis(50)).ok();
        answer.is_some()
    });
    let (responder, mut replies) = (answer.unwrap(), replies.unwrap());
    drop(other);
    assert_eq!(replies.next().map(drop), None);
    assert_eq!(replies.ended(), Some(Ended::Lost));

    let other = accept(&mut listener);
    other.wait_open(SOON).unwrap();
    until(|| one.status().opened == 2);
    let refused = Err(ReplyError::Put(PutError::NoSuch));
    assert_eq!(responder.reply(b"late"), refused);
    drop(responder);
    // Nor does it end a query of this session.
    let mut replies = None;
    let mut answer = None;
    until(|| {
        replies = Some(other.ask(&question).unwrap());
        answer = kept.recv_timeout(Duration::from_millis(50)).ok();
        answer.is_some()
    });
    answer.unwrap().reply(b"new").unwrap();
    assert_eq!(replies.unwrap().count(), 1);
}

#[test]
fn queries_end_when_the_session_is_lost() {
    let mut listener = listener("unix");
    let (silent, mut driver) = pubsub::driven(listener.endpoint(), Options::peer());
    let (keep, kept) = channel();
    let _queryable = silent.queryable("demo/q", true, move |_, responder| {
        let _ = keep.send(responder);
    });
    let (stop, stopped) = channel::<()>();
    let driving = thread::spawn(move || {
        while driver.turn(Some(Duration::from_millis(5))) && stopped.try_recv().is_err() {}
    });
    let apart = listener.accept_within(Some(SOON)).expect("it comes");
    let node = pubsub::accept(apart, Options::peer());
    node.wait_open(SOON).unwrap();
    let question = Ask::new(KeyExpr::new("demo/q").unwrap());
    let (mut responder, mut replies) = (None, None);
    until(|| {
        replies = Some(node.ask(&question).unwrap());
        responder = kept.recv_timeout(Duration::from_millis(50)).ok();
        responder.is_some()
    });
    let mut replies = replies.unwrap();
    let samples = node.samples("demo/k", 1, Overflow::Wait).unwrap();
    // The link goes with it, and nobody has said that this was all.
    stop.send(()).unwrap();
    driving.join().unwrap();
    assert_eq!(replies.next().map(drop), None);
    assert_eq!(replies.ended(), Some(Ended::Lost));
    assert_eq!(samples.next_within(None), None);
    assert_eq!(silent.state(), State::Closed);
}

#[test]
fn samples_that_are_asked_for_around_the_end_of_a_node_end() {
    for wait in [0, 1, 20, 100] {
        let (one, other) = peers("unix");
        // The one that was accepted has no other link.
        let ended = thread::spawn(move || drop(one));
        thread::sleep(Duration::from_millis(wait));
        let samples = other.samples("demo/k", 1, Overflow::Wait).unwrap();
        ended.join().unwrap();
        assert_eq!(samples.next_within(None), None);
    }
}

#[test]
fn a_handler_that_panics_ends_the_node_and_hangs_nobody() {
    let (one, other) = peers("unix");
    let _handler = other.subscriber("demo/k", |_| panic!("as it should"));
    let samples = other.samples("demo/other", 1, Overflow::Wait).unwrap();
    let publisher = one.publisher("demo/k").unwrap();
    until(|| publisher.is_heard() == Some(true));
    publisher.put(b"end").unwrap();
    assert_eq!(samples.next_within(None), None);
    until(|| one.state() != State::Open);
}

#[test]
fn a_put_allocates_nothing() {
    for kind in ["tcp", "shm", "threads"] {
        let (one, other) = peers(kind);
        let _subscriber = other.subscriber("demo/k", |_| ()).unwrap();
        let publisher = one.publisher_with("demo/k", WAITS).unwrap();
        until(|| publisher.is_heard() == Some(true));
        let put = |count: u32| {
            for n in 0..count {
                assert_eq!(publisher.put(&n.to_le_bytes()), Ok(Put::Heard));
            }
        };
        // Until every buffer is there.
        put(20_000);
        let counted = allocation_counter::measure(|| put(1000)).count_total;
        // Where the link is full, it tells the one who waits.
        assert_eq!(counted, 0, "over {kind}");
    }
}

//! Two sessions of ours with each other: what is published, asked and answered arrives.

#[path = "support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;

use std::time::Duration;

use node::{Told, join, node as new_node, peers, settle, zid};
use sinew::pubsub::codec::{Body, Encoding, Kind, Target};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{
    Ask, Closed, Config, Ended, Event, PublisherOptions, Put, PutError, State, Step,
};
use sinew::time::Instant;

const NOW: Instant = Instant::START;

#[test]
fn sample_arrives_at_every_subscriber_it_is_for() {
    let (mut one, mut other) = peers(1024, 16);
    let lamp = one
        .session
        .publisher("demo/lamp".to_owned(), PublisherOptions::DEFAULT)
        .unwrap();
    let exact = other.session.subscriber("demo/lamp".to_owned()).unwrap();
    let wild = other.session.subscriber("demo/**".to_owned()).unwrap();
    other.session.subscriber("demo/fan".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    assert_eq!(
        one.session.put(&mut one.tx, lamp, b"on", NOW),
        Ok(Put::Heard)
    );
    let off = Body::del();
    assert_eq!(
        one.session.publish(&mut one.tx, lamp, &off, NOW),
        Ok(Put::Heard)
    );
    settle(&mut one, &mut other, NOW);
    let sample =
        |of, kind, payload: &[u8]| Told::Sample(of, "demo/lamp".into(), kind, payload.into());
    assert_eq!(
        other.take(),
        [
            sample(exact, Kind::Put, b"on"),
            sample(wild, Kind::Put, b"on"),
            sample(exact, Kind::Del, b""),
            sample(wild, Kind::Del, b""),
        ]
    );
}

#[test]
fn nobody_there_is_told_and_nothing_is_sent() {
    let (mut one, mut other) = peers(1024, 16);
    let lamp = one
        .session
        .publisher("demo/lamp".to_owned(), PublisherOptions::DEFAULT)
        .unwrap();
    settle(&mut one, &mut other, NOW);
    assert_eq!(one.session.is_heard(lamp), Some(false));
    assert_eq!(
        one.session.put(&mut one.tx, lamp, b"on", NOW),
        Ok(Put::Unheard)
    );
    assert!(other.rx.borrow().packets.is_empty());
    let sub = other.session.subscriber("demo/*".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    assert_eq!(one.take(), [Told::Heard]);
    assert_eq!(
        one.session.put(&mut one.tx, lamp, b"on", NOW),
        Ok(Put::Heard)
    );
    settle(&mut one, &mut other, NOW);
    other.session.withdraw_subscriber(sub);
    settle(&mut one, &mut other, NOW);
    assert_eq!(
        one.session.put(&mut one.tx, lamp, b"on", NOW),
        Ok(Put::Unheard)
    );
}

#[test]
fn query_has_any_number_of_replies_and_one_end() {
    let (mut one, mut other) = peers(1024, 16);
    let lamp = other
        .session
        .queryable("demo/lamp".to_owned(), true)
        .unwrap();
    let all = other
        .session
        .queryable("demo/**".to_owned(), false)
        .unwrap();
    settle(&mut one, &mut other, NOW);
    let mut ask = Ask::new(KeyExpr::new("demo/lamp").unwrap());
    ask.query.parameters = "a=1";
    let query = one.session.ask(&mut one.tx, &ask, NOW).unwrap();
    settle(&mut one, &mut other, NOW);
    let told = other.take();
    let [
        Told::Query(first, to_lamp, key, parameters),
        Told::Query(second, to_all, ..),
    ] = &told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!(
        (*first, *second, key.as_str(), parameters.as_str()),
        (lamp, all, "demo/lamp", "a=1")
    );
    let (node, tx) = (&mut other.session, &mut other.tx);
    node.reply(tx, *to_lamp, None, &Body::put(b"on"), NOW)
        .unwrap();
    node.finish(tx, *to_lamp, NOW).unwrap();
    let key = KeyExpr::new("demo/fan").unwrap();
    assert_eq!(
        node.reply(tx, *to_all, None, &Body::put(b"?"), NOW),
        Err(PutError::KeyNeeded)
    );
    node.reply(tx, *to_all, Some(key), &Body::put(b"off"), NOW)
        .unwrap();
    node.reply_error(tx, *to_all, Encoding::default(), b"no more", NOW)
        .unwrap();
    node.finish(tx, *to_all, NOW).unwrap();
    assert_eq!(node.finish(tx, *to_all, NOW), Err(PutError::NoSuch));
    settle(&mut one, &mut other, NOW);
    assert_eq!(
        one.take(),
        [
            Told::Reply(query, "demo/lamp".into(), b"on".into()),
            Told::Reply(query, "demo/fan".into(), b"off".into()),
            Told::Failed(query, b"no more".into()),
            Told::Ended(query, Ended::Complete),
        ]
    );
}

#[test]
fn query_that_nobody_serves_ends_at_once_and_one_without_answer_in_time() {
    let (mut one, mut other) = peers(1024, 16);
    let mut ask = Ask::new(KeyExpr::new("demo/lamp").unwrap());
    ask.timeout = Duration::from_secs(1);
    let query = one.session.ask(&mut one.tx, &ask, NOW).unwrap();
    settle(&mut one, &mut other, NOW);
    assert_eq!(one.take(), [Told::Ended(query, Ended::Complete)]);
    other
        .session
        .queryable("demo/lamp".to_owned(), true)
        .unwrap();
    settle(&mut one, &mut other, NOW);
    let query = one.session.ask(&mut one.tx, &ask, NOW).unwrap();
    settle(&mut one, &mut other, NOW);
    assert_eq!(one.take(), []);
    let later = NOW.after(Duration::from_secs(1));
    assert_eq!(one.session.deadline(), later);
    one.turn(later);
    assert_eq!(one.take(), [Told::Ended(query, Ended::TimedOut)]);
}

#[test]
fn sample_larger_than_a_batch_arrives_on_links_of_any_mtu() {
    for mtu in [64, 100, 255, 1024, 4096] {
        let (mut one, mut other) = peers(mtu, 1000);
        let lamp = one
            .session
            .publisher("demo/lamp".to_owned(), PublisherOptions::DEFAULT)
            .unwrap();
        let sub = other.session.subscriber("demo/lamp".to_owned()).unwrap();
        settle(&mut one, &mut other, NOW);
        for len in [0, 1, 40, 50, 60, 70, 128, 500, 3000, 8000] {
            let payload: Vec<u8> = (0..len).map(|at| at as u8).collect();
            assert_eq!(
                one.session.put(&mut one.tx, lamp, &payload, NOW),
                Ok(Put::Heard),
                "{mtu} {len}"
            );
            settle(&mut one, &mut other, NOW);
            let sample = Told::Sample(sub, "demo/lamp".into(), Kind::Put, payload);
            assert_eq!(other.take(), [sample], "{mtu} {len}");
        }
    }
}

#[test]
fn sample_goes_on_where_a_full_link_cut_it() {
    let (mut one, mut other) = peers(128, 4);
    let options = PublisherOptions {
        qos: sinew::pubsub::codec::Qos::DEFAULT.with_blocking(true),
        ..PublisherOptions::DEFAULT
    };
    let lamp = one
        .session
        .publisher("demo/lamp".to_owned(), options)
        .unwrap();
    let sub = other.session.subscriber("demo/lamp".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    let payload: Vec<u8> = (0..3000).map(|at| at as u8).collect();
    let mut cuts = 0;
    while one.session.put(&mut one.tx, lamp, &payload, NOW) == Err(PutError::Cut) {
        assert_eq!(
            one.session.put(&mut one.tx, lamp, b"between", NOW),
            Err(PutError::Full)
        );
        other.turn(NOW);
        cuts += 1;
    }
    assert!(cuts > 3);
    settle(&mut one, &mut other, NOW);
    let sample = Told::Sample(sub, "demo/lamp".into(), Kind::Put, payload.clone());
    assert_eq!(other.take(), [sample]);
    // One that is given up does not arrive, and the next one does.
    assert_eq!(
        one.session.put(&mut one.tx, lamp, &payload, NOW),
        Err(PutError::Cut)
    );
    other.turn(NOW);
    one.session.abandon();
    one.session.put(&mut one.tx, lamp, b"next", NOW).unwrap();
    settle(&mut one, &mut other, NOW);
    let sample = Told::Sample(sub, "demo/lamp".into(), Kind::Put, b"next".into());
    assert_eq!(other.take(), [sample]);
    assert_eq!(other.session.stats().fragments_lost, 1);
}

#[test]
fn everything_is_declared_again_after_a_restart() {
    let (mut one, mut other) = peers(256, 16);
    let lamp = one
        .session
        .publisher("demo/lamp".to_owned(), PublisherOptions::DEFAULT)
        .unwrap();
    let sub = other.session.subscriber("demo/**".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    for _ in 0..3 {
        one.session.link_lost().unwrap();
        other.session.link_lost().unwrap();
        assert_eq!(
            one.session.put(&mut one.tx, lamp, b"?", NOW),
            Err(PutError::NotOpen)
        );
        join(&mut one, &mut other, NOW);
        settle(&mut one, &mut other, NOW);
        assert_eq!(
            one.session.put(&mut one.tx, lamp, b"on", NOW),
            Ok(Put::Heard)
        );
        settle(&mut one, &mut other, NOW);
        let sample = Told::Sample(sub, "demo/lamp".into(), Kind::Put, b"on".into());
        assert_eq!(other.take().pop(), Some(sample));
    }
}

#[test]
fn lease_ends_a_session_with_a_peer_that_is_gone_and_signs_of_life_keep_it() {
    let (mut one, mut other) = peers(256, 16);
    let mut now = NOW;
    for _ in 0..20 {
        now = one.session.deadline().min(other.session.deadline());
        settle(&mut one, &mut other, now);
    }
    assert_eq!(one.session.state(), State::Open);
    assert!(now > NOW.after(Duration::from_secs(20)));
    let gone = now.after(Duration::from_secs(11));
    one.turn(gone);
    assert_eq!(one.take(), [Told::Closed(Closed::Expired)]);
}

#[test]
fn batch_waits_no_longer_than_allowed() {
    let mut config = Config::peer(zid("one"));
    config.batching = Duration::from_millis(2);
    let mut one = new_node(config, 256, 16);
    let mut other = new_node(Config::peer(zid("other")), 256, 16);
    join(&mut one, &mut other, NOW);
    let lamp = one
        .session
        .publisher("demo/lamp".to_owned(), PublisherOptions::DEFAULT)
        .unwrap();
    other.session.subscriber("demo/lamp".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    other.take();
    for _ in 0..5 {
        one.session.put(&mut one.tx, lamp, b"on", NOW).unwrap();
    }
    assert!(other.rx.borrow().packets.is_empty());
    let due = NOW.after(Duration::from_millis(2));
    assert_eq!(one.session.deadline(), due);
    one.turn(due);
    assert_eq!(other.rx.borrow().packets.len(), 1);
    other.turn(due);
    assert_eq!(other.take().len(), 5);
}

#[test]
fn only_who_knows_all_is_asked_where_only_he_is_wanted() {
    let (mut one, mut other) = peers(1024, 16);
    other
        .session
        .queryable("demo/lamp".to_owned(), false)
        .unwrap();
    let all = other.session.queryable("demo/**".to_owned(), true).unwrap();
    settle(&mut one, &mut other, NOW);
    let ask = Ask {
        target: Target::AllComplete,
        ..Ask::new(KeyExpr::new("demo/lamp").unwrap())
    };
    one.session.ask(&mut one.tx, &ask, NOW).unwrap();
    settle(&mut one, &mut other, NOW);
    let told = other.take();
    assert!(
        matches!(&told[..], [Told::Query(of, ..)] if *of == all),
        "{told:?}"
    );
}

#[test]
fn who_asks_before_he_has_heard_of_a_queryable_understands_its_answer() {
    let (mut one, mut other) = peers(1024, 16);
    settle(&mut one, &mut other, NOW);
    let ask = Ask::new(KeyExpr::new("demo/lamp").unwrap());
    one.session.ask(&mut one.tx, &ask, NOW).unwrap();
    other
        .session
        .queryable("demo/lamp".to_owned(), true)
        .unwrap();
    // The question is taken in, and what is owed has not left.
    let question = other.rx.borrow_mut().packets.pop_front().unwrap();
    let step = other.session.receive(&question, &mut other.tx, NOW);
    let frame = matches!(step, Step::More);
    assert!(frame, "{step:?}");
    let step = other.session.receive(&question, &mut other.tx, NOW);
    let Step::Event(Event::Query { request, .. }) = step else {
        panic!("{step:?}");
    };
    let (node, tx) = (&mut other.session, &mut other.tx);
    node.reply(tx, request, None, &Body::put(b"on"), NOW)
        .unwrap();
    node.finish(tx, request, NOW).unwrap();
    while !matches!(node.receive(&question, tx, NOW), Step::Done) {}
    settle(&mut one, &mut other, NOW);
    let told = one.take();
    assert!(
        matches!(&told[..], [Told::Reply(_, key, payload), Told::Ended(_, Ended::Complete)]
            if key == "demo/lamp" && payload == b"on"),
        "{told:?}"
    );
}

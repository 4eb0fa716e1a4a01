//! What a session does where a peer does other than the usual: each rule by hand.

#[path = "support/hand.rs"]
#[allow(dead_code)]
mod hand;
#[path = "support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;

use std::time::Duration;

use hand::{Hand, NOW, Offer, PEER, ROUTER, bytes, init, open};
use node::{All, Told, join, node as new_node, settle, zid};
use sinew::pubsub::codec::transport::{Close, Fragment, KeepAlive, Open};
use sinew::pubsub::codec::{
    Body, Declaration, Declare, Decode, EntityKind, Interest, Kind, Priority, Push, Qos, Query,
    Reader, Request, ResponseFinal, WireExpr,
};
use sinew::pubsub::session::{
    Closed, Config, Event, Fixed, PublisherOptions, Put, PutError, State, Step,
};
use sinew::time::Instant;

fn config() -> Config {
    let mut config = Config::peer(zid("node"));
    config.seed = 7;
    config
}

fn asked() -> Hand<All> {
    Hand::asked(config(), Fixed::new(), 1024, ROUTER)
}

fn asking() -> Hand<All> {
    Hand::asking(config(), Fixed::new(), 1024, PEER)
}

fn put(key: &'static str, payload: &'static [u8]) -> Push<'static> {
    Push::put(WireExpr::text(key), payload)
}

fn sample(of: sinew::pubsub::session::SubscriberId, key: &str, payload: &[u8]) -> Told {
    Told::Sample(of, key.into(), Kind::Put, payload.into())
}

fn request(id: u32, key: &'static str) -> Request<'static> {
    Request {
        id,
        key: WireExpr::text(key),
        qos: Qos::REQUEST,
        query: Query::default(),
        ..Request::default()
    }
}

fn subscribed(id: u32, key: WireExpr<'static>) -> Declare<'static> {
    Declare {
        interest: None,
        qos: Qos::DEFAULT,
        declaration: Declaration::Entity {
            kind: EntityKind::Subscriber,
            id,
            key,
            info: 0,
        },
    }
}

fn all_said() -> Declare<'static> {
    Declare {
        interest: Some(0),
        qos: Qos::DEFAULT,
        declaration: Declaration::Final,
    }
}

#[test]
fn what_is_no_message_ends_the_session_once_and_the_packet_with_it() {
    let mut hand = asking();
    let packet = hand.framed(true, |w| w.bytes(&[0x1d, 0xff, 0xff, 0xff]));
    hand.give(&packet);
    assert_eq!(hand.node.take(), [Told::Closed(Closed::Malformed)]);
    assert_eq!(hand.node.session.stats().malformed, 1);
    assert_eq!(hand.sent(), [[0x23, 2]], "CLOSE, invalid");
    hand.ask();
}

#[test]
fn session_that_is_closed_in_the_middle_of_a_packet_ends_once() {
    let mut hand = Hand::asking(config(), Fixed::<0, 1, 0, 0, 8>::new(), 1024, PEER);
    hand.node.session.subscriber("a").unwrap();
    let packet = hand.framed(true, |w| (0..3).for_each(|_| put("a", b"on").encode(w)));
    let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
    let mut samples = 0;
    for _ in 0..20 {
        match session.receive(&packet, tx, NOW) {
            Step::Done => break,
            Step::Event(Event::Sample { .. }) => {
                samples += 1;
                session.close(tx, NOW);
            }
            Step::Event(event) => panic!("{event:?}"),
            Step::More | Step::Full => {}
        }
    }
    assert_eq!(samples, 1);
    assert_eq!(session.state(), State::Closed);
    assert_eq!(session.stats().malformed, 0);
}

#[test]
fn query_that_is_answered_at_once_by_each_has_one_end() {
    let mut hand = asking();
    for key in ["a", "*", "**"] {
        hand.node.session.queryable(key.to_owned(), true).unwrap();
    }
    hand.turn();
    hand.sent();
    let packet = hand.framed(true, |w| request(9, "a").encode(w));
    let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
    let mut asked = Vec::new();
    loop {
        let request = match session.receive(&packet, tx, NOW) {
            Step::Done => break,
            Step::Event(Event::Query { request, .. }) => request,
            Step::Event(event) => panic!("{event:?}"),
            Step::More | Step::Full => continue,
        };
        asked.push(request);
        session
            .reply(tx, request, None, &Body::put(b"on"), NOW)
            .ok();
        session.finish(tx, request, NOW).unwrap();
    }
    assert_eq!(asked.len(), 3);
    let end = bytes(|w| {
        ResponseFinal {
            id: 9,
            qos: Qos::REQUEST,
        }
        .encode(w)
    });
    let said = hand.said();
    let ends = said.iter().filter(|said| **said == end).count();
    assert_eq!((said.len(), ends), (2, 1), "{said:02x?}");
    assert_eq!(said.last(), Some(&end));
}

#[test]
fn query_ends_also_where_the_next_who_answers_is_withdrawn_meanwhile() {
    for first_finishes in [true, false] {
        let mut hand = asking();
        hand.node.session.queryable("a".to_owned(), true).unwrap();
        let second = hand.node.session.queryable("*".to_owned(), true).unwrap();
        hand.turn();
        hand.sent();
        let packet = hand.framed(true, |w| request(9, "a").encode(w));
        let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
        let mut asked = None;
        loop {
            match session.receive(&packet, tx, NOW) {
                Step::Done => break,
                Step::Event(Event::Query { request, .. }) => {
                    assert!(asked.replace(request).is_none());
                    session.withdraw_queryable(second);
                    if first_finishes {
                        session.finish(tx, request, NOW).unwrap();
                    }
                }
                Step::Event(event) => panic!("{event:?}"),
                Step::More | Step::Full => {}
            }
        }
        if !first_finishes {
            session.finish(tx, asked.unwrap(), NOW).unwrap();
        }
        hand.turn();
        let end = bytes(|w| {
            ResponseFinal {
                id: 9,
                qos: Qos::REQUEST,
            }
            .encode(w)
        });
        let said = hand.said().concat();
        let ends = said.windows(end.len()).filter(|at| *at == end).count();
        assert_eq!(ends, 1, "{said:02x?}");
    }
}

#[test]
fn answer_to_a_query_of_an_earlier_session_is_refused() {
    let mut hand = asking();
    hand.node.session.queryable("a".to_owned(), true).unwrap();
    hand.turn();
    let ask = |hand: &mut Hand<All>| {
        hand.frame(|w| request(1, "a").encode(w));
        match hand.node.take().pop() {
            Some(Told::Query(_, request, ..)) => request,
            told => panic!("{told:?}"),
        }
    };
    let old = ask(&mut hand);
    hand.give(&bytes(|w| {
        Close {
            session: true,
            reason: 0,
        }
        .encode(w)
    }));
    hand.ask();
    let new = ask(&mut hand);
    let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
    let late = session.reply(tx, old, None, &Body::put(b"late"), NOW);
    assert_eq!(late, Err(PutError::NoSuch));
    assert_eq!(session.finish(tx, old, NOW), Err(PutError::NoSuch));
    assert_eq!(session.finish(tx, new, NOW), Ok(()));
}

#[test]
fn repeated_open_is_answered_with_the_numbers_of_the_session() {
    let mut hand = Hand::new(config(), All::new(), 1024, PEER);
    hand.node.session.accept();
    hand.give(&init(&PEER, false, &[]));
    let cookie = hand.cookie();
    let (ask, mut answers) = (open(&PEER, false, &cookie), Vec::new());
    for _ in 0..3 {
        hand.give(&ask);
        answers.push(hand.sent()[0].clone());
    }
    assert_eq!(hand.node.take(), [Told::Opened]);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    let ack = Open::decode(answers[0][0], &mut Reader::new(&answers[0][1..])).unwrap();
    hand.node
        .session
        .publisher("a".to_owned(), PublisherOptions::DEFAULT)
        .unwrap();
    hand.turn();
    let frame = bytes(|w| {
        w.byte(0x25);
        w.vle32((ack.initial_sn + 1) & 0xfff_ffff);
    });
    assert!(hand.sent()[0].starts_with(&frame));
}

#[test]
fn init_that_was_repeated_on_the_way_does_not_end_the_session() {
    let mut hand = asking();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    hand.give(&init(&PEER, false, &[]));
    hand.frame(|w| put("a", b"on").encode(w));
    assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
}

#[test]
fn peer_that_has_forgotten_the_session_gets_a_new_one_without_asking_twice() {
    let mut hand = asking();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    hand.turn();
    for offer in [
        Offer { sn: 5, ..PEER },
        Offer {
            sn: 6,
            batch_size: 100,
            ..PEER
        },
        Offer {
            sn: 6,
            resolution: 0,
            ..PEER
        },
    ] {
        hand.frame(|w| put("a", b"on").encode(w));
        assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
        hand.sent();
        hand.give(&init(&offer, false, &[]));
        let cookie = hand.cookie();
        hand.give(&open(&offer, false, &cookie));
        assert_eq!(
            hand.node.take(),
            [Told::Closed(Closed::Restarted), Told::Opened]
        );
        (hand.offer, hand.sn) = (offer, [offer.sn; 2]);
    }
    // With the numbers of before, too: it has had frames from there.
    let offer = hand.offer;
    hand.frame(|w| put("a", b"on").encode(w));
    hand.sent();
    hand.give(&init(&offer, false, &[]));
    let cookie = hand.cookie();
    hand.give(&open(&offer, false, &cookie));
    let told = hand.node.take();
    assert_eq!(told[1..], [Told::Closed(Closed::Restarted), Told::Opened]);
}

#[test]
fn other_version_is_refused_as_invalid() {
    let mut hand = Hand::new(config(), All::new(), 1024, PEER);
    hand.node.session.accept();
    let mut packet = init(&PEER, false, &[]);
    packet[1] = 8;
    hand.give(&packet);
    assert_eq!(hand.sent(), [[0x23, 2]]);
    assert_eq!(hand.node.take(), [Told::Closed(Closed::Refused)]);
    hand.ask();
}

#[test]
fn subscriber_that_cannot_be_kept_opens_the_write_filter() {
    let long: &'static str = Box::leak(("long/".repeat(30) + "*").into_boxed_str());
    let unknown = WireExpr {
        scope: 77,
        of_sender: true,
        suffix: "",
    };
    for key in [WireExpr::text(long), unknown] {
        let mut hand = asking();
        let session = &mut hand.node.session;
        let lamp = session.publisher("lamp".to_owned(), PublisherOptions::DEFAULT);
        let lamp = lamp.unwrap();
        hand.frame(|w| all_said().encode(w));
        let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
        assert_eq!(session.put(tx, lamp, b"on", NOW), Ok(Put::Unheard));
        hand.frame(|w| subscribed(1, key).encode(w));
        assert_eq!(hand.node.take().last(), Some(&Told::Heard));
        let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
        assert_eq!(session.put(tx, lamp, b"on", NOW), Ok(Put::Sent), "{key:?}");
    }
}

#[test]
fn interest_is_answered_also_where_the_link_takes_one_packet_at_a_time() {
    let mut hand = Hand::asking(config(), All::new(), 64, PEER);
    for at in 0..4 {
        let key = format!("a/rather/long/{at}/*");
        hand.node.session.subscriber(key.clone()).unwrap();
        hand.node.session.queryable(key, false).unwrap();
    }
    hand.turn();
    hand.sent();
    hand.node.tx.room = 1;
    let interest = Interest {
        id: 5,
        current: true,
        options: Interest::SUBSCRIBERS | Interest::QUERYABLES,
        ..Interest::default()
    };
    hand.frame(|w| interest.encode(w));
    let end = Declare {
        interest: Some(5),
        qos: Qos::DEFAULT,
        declaration: Declaration::Final,
    };
    let end = bytes(|w| end.encode(w));
    let mut said = Vec::new();
    for _ in 0..30 {
        said.extend(hand.said());
        hand.turn();
    }
    let all = said.concat();
    assert!(all.ends_with(&end), "{all:02x?}");
    let answers = all.windows(2).filter(|at| at == &&end[..2]).count();
    assert_eq!(answers, 9, "{all:02x?}");
}

#[test]
fn fragments_without_marks_are_not_taken_for_a_message_of_which_the_first_was_lost() {
    let offer = Offer { patch: 0, ..PEER };
    let mut hand = Hand::asking(config(), All::new(), 1024, offer);
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    let message = bytes(|w| put("a", b"0123456789").encode(w));
    let (front, back) = message.split_at(6);
    let whole = |hand: &mut Hand<All>| {
        hand.fragment(front, false, true);
        hand.fragment(back, false, false);
    };
    whole(&mut hand);
    assert_eq!(hand.node.take(), [sample(sub, "a", b"0123456789")]);
    // The first is lost, as the very first thing on its channel and later.
    for lost in 1..3 {
        hand.sn[1] += 1;
        hand.fragment(back, false, true);
        hand.fragment(back, false, false);
        assert_eq!(hand.node.take(), []);
        let stats = *hand.node.session.stats();
        let missed = stats.missed_reliable + stats.left_out;
        assert_eq!((stats.fragments_lost, missed), (lost, lost));
        whole(&mut hand);
        assert_eq!(hand.node.take(), [sample(sub, "a", b"0123456789")]);
    }
    assert_eq!(hand.node.session.state(), State::Open);
}

#[test]
fn each_message_of_which_a_fragment_is_missing_is_counted_once() {
    let mut hand = asking();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    let message = bytes(|w| put("a", b"0123456789").encode(w));
    let pieces = [
        &message[..5],
        &message[5..8],
        &message[8..11],
        &message[11..],
    ];
    for missing in 0..4 {
        for (at, piece) in pieces.iter().enumerate() {
            match at == missing {
                true => hand.sn[1] += 1,
                false => hand.fragment(piece, at == 0, at < 3),
            }
        }
        // What shows that the last one is missing is what comes next.
        hand.frame(|w| put("a", b"next").encode(w));
        assert_eq!(hand.node.take(), [sample(sub, "a", b"next")], "{missing}");
        let lost = missing as u32 + 1;
        let stats = hand.node.session.stats();
        let missed = stats.missed_reliable + stats.left_out;
        assert_eq!((stats.fragments_lost, missed), (lost, lost));
    }
    // Also where the next message is in fragments.
    hand.fragment(pieces[0], true, true);
    hand.sn[1] += 3;
    for (at, piece) in pieces.iter().enumerate() {
        hand.fragment(piece, at == 0, at < 3);
    }
    assert_eq!(hand.node.take(), [sample(sub, "a", b"0123456789")]);
    assert_eq!(hand.node.session.stats().fragments_lost, 5);
}

#[test]
fn fragments_beyond_the_memory_for_them_are_counted_and_the_next_message_arrives() {
    let mut hand = asking();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    for at in 0..100 {
        hand.fragment(&[1; 1000], at == 0, true);
    }
    hand.fragment(&[1], false, false);
    assert_eq!(hand.node.session.stats().too_large, 1);
    assert_eq!(hand.node.session.stats().fragments_lost, 0);
    let message = bytes(|w| put("a", b"on").encode(w));
    hand.fragment(&message, true, false);
    assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
}

#[test]
fn message_is_counted_once_however_many_steps_it_takes() {
    let mut hand = asking();
    for key in ["a", "*", "**"] {
        hand.node.session.subscriber(key.to_owned()).unwrap();
    }
    hand.turn();
    hand.frame(|w| put("a", b"on").encode(w));
    assert_eq!(hand.node.take().len(), 3);
    assert_eq!(hand.node.session.stats().messages, 1);
    // The end of a query that nobody serves waits for a place, where as many are remembered as there is
    // room for.
    hand.node.tx.room = 0;
    for id in 10..14 {
        hand.frame(|w| request(id, "b").encode(w));
    }
    assert_eq!(hand.node.session.stats().messages, 5);
    let packet = hand.framed(true, |w| request(1, "b").encode(w));
    for _ in 0..3 {
        hand.give(&packet);
        hand.node.rx.borrow_mut().packets.clear();
    }
    hand.node.tx.room = 9;
    hand.turn();
    assert_eq!(hand.node.session.stats().messages, 6);
}

#[test]
fn what_arrives_behind_queries_that_nobody_serves_is_taken_in_while_the_link_is_full() {
    let mut hand = asking();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    hand.turn();
    hand.sent();
    hand.node.tx.room = 0;
    for id in 0..4 {
        hand.frame(|w| request(id, "b").encode(w));
    }
    hand.frame(|w| put("a", b"on").encode(w));
    assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
    hand.node.tx.room = 9;
    hand.turn();
    let ends: Vec<u8> = hand.said().concat();
    let expected = (0..4).map(|id| {
        let qos = request(id, "b").qos;
        bytes(|w| ResponseFinal { id, qos }.encode(w))
    });
    assert_eq!(ends, expected.collect::<Vec<_>>().concat());
}

#[test]
fn what_follows_a_message_that_was_given_up_arrives_at_a_peer_without_marks() {
    let old = Offer { patch: 0, ..PEER };
    let mut giver = Hand::asking(config(), All::new(), 64, old);
    let options = PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(true),
        ..PublisherOptions::DEFAULT
    };
    let lamp = giver
        .node
        .session
        .publisher("a".to_owned(), options)
        .unwrap();
    giver.turn();
    let mut sent = giver.sent();
    let number = Reader::new(&sent[0][1..]).vle32();
    giver.node.tx.room = 3;
    let (session, tx) = (&mut giver.node.session, &mut giver.node.tx);
    assert_eq!(session.put(tx, lamp, &[1; 500], NOW), Err(PutError::Cut));
    tx.room = 1000;
    session.abandon();
    assert!(session.put(tx, lamp, &[2; 500], NOW).is_ok());
    giver.turn();
    sent.append(&mut giver.sent());
    let offer = Offer { sn: number, ..old };
    let mut taker = Hand::asking(config(), All::new(), 1024, offer);
    let sub = taker.node.session.subscriber("a".to_owned()).unwrap();
    for packet in sent {
        taker.give(&packet);
    }
    assert_eq!(taker.node.take(), [sample(sub, "a", &[2; 500])]);
    assert_eq!(taker.node.session.stats().fragments_lost, 1);
}

#[test]
fn numbers_wrap_at_every_resolution() {
    for (resolution, bits) in [(0x08, 7), (0x09, 14), (0x0a, 28), (0x0b, 28)] {
        let mask = (1u32 << bits) - 1;
        for start in [0, mask / 2, mask - 1, mask] {
            let offer = Offer {
                resolution,
                sn: start,
                ..PEER
            };
            let mut hand = Hand::asking(config(), All::new(), 1024, offer);
            let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
            let lamp = hand
                .node
                .session
                .publisher("a".to_owned(), PublisherOptions::DEFAULT);
            let lamp = lamp.unwrap();
            hand.turn();
            let mut last = None;
            for _ in 0..300 {
                hand.sn[1] &= mask;
                hand.frame(|w| put("a", b"on").encode(w));
                assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
                let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
                session.put(tx, lamp, b"on", NOW).unwrap();
                let sent = hand.sent().pop().unwrap();
                let sn = Reader::new(&sent[1..]).vle32();
                assert!(sn <= mask);
                if let Some(last) = last {
                    assert_eq!((last + 1u32) & mask, sn);
                }
                last = Some(sn);
            }
            let stats = hand.node.session.stats();
            assert_eq!((stats.gaps, stats.old), (0, 0));
            // A number that cannot be.
            hand.give(&bytes(|w| {
                w.byte(0x25);
                w.vle(u64::from(mask) + 1);
            }));
            assert_eq!(hand.node.take(), [Told::Closed(Closed::Malformed)]);
        }
    }
}

#[test]
fn what_is_older_is_ignored_and_what_is_missing_is_counted() {
    let mut hand = asking();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    hand.sn = [200; 2];
    hand.frame(|w| put("a", b"on").encode(w));
    assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
    for sn in [150, 199, 200, 100] {
        hand.sn = [sn; 2];
        hand.frame(|w| put("a", b"old").encode(w));
        assert_eq!(hand.node.take(), []);
    }
    let stats = hand.node.session.stats();
    assert_eq!((stats.missed_reliable, stats.gaps, stats.old), (100, 1, 4));
}

#[test]
fn close_in_any_phase_is_taken_and_a_new_link_works() {
    let close = bytes(|w| {
        Close {
            session: true,
            reason: 4,
        }
        .encode(w)
    });
    let small = Offer {
        batch_size: 1024,
        ..PEER
    };
    for accepts in [true, false] {
        for steps in 0..3 {
            let mut hand = Hand::new(config(), All::new(), 1024, PEER);
            match accepts {
                true => hand.node.session.accept(),
                false => hand.node.session.open(NOW),
            }
            hand.turn();
            match (accepts, steps) {
                (_, 0) => {}
                (true, 1) => hand.give(&init(&PEER, false, &[])),
                (true, _) => hand.ask(),
                (false, 1) => hand.give(&init(&small, true, b"cookie")),
                (false, _) => hand.answer(),
            }
            hand.give(&close);
            let told = hand.node.take();
            match accepts && steps == 0 {
                true => assert_eq!(told, []),
                false => assert_eq!(told, [Told::Closed(Closed::ByPeer(4))]),
            }
            hand.sent();
            match accepts {
                true => hand.ask(),
                false => {
                    hand.node.session.open(NOW);
                    hand.turn();
                    hand.answer();
                }
            }
        }
    }
}

#[test]
fn flush_and_giving_up_after_the_end_do_nothing_on_the_next_link() {
    let mut config = config();
    config.batching = Duration::from_secs(1);
    let mut one = new_node(config, 128, 4);
    let mut other = new_node(Config::peer(zid("other")), 128, 4);
    join(&mut one, &mut other, NOW);
    let lamp = one
        .session
        .publisher("a".to_owned(), PublisherOptions::DEFAULT);
    let lamp = lamp.unwrap();
    other.session.subscriber("a".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    one.turn(NOW.after(Duration::from_secs(1)));
    one.session
        .put(&mut one.tx, lamp, b"in the batch", NOW)
        .unwrap();
    assert!(one.session.is_batching());
    one.session.link_lost();
    assert!(!one.session.is_batching());
    join(&mut one, &mut other, NOW);
    one.session.flush(&mut one.tx, NOW).unwrap();
    one.session.abandon();
    assert!(other.rx.borrow().packets.is_empty());
}

#[test]
fn driver_that_polls_at_each_deadline_always_moves_on() {
    let mut leases = vec![0, 1, 3, 4, 1000];
    leases.push(u32::MAX);
    for lease_ms in leases {
        for (resend, batching) in [(0, 0), (1, 1), (70_000, 500)] {
            let mut config = config();
            config.lease_ms = lease_ms;
            config.resend = resend;
            config.patience = 1_000_000;
            config.batching = Duration::from_micros(batching);
            // Alone, then with a peer.
            let mut hand = Hand::new(config, All::new(), 256, PEER);
            hand.node.session.open(NOW);
            runs(&mut hand, 50);
            let mut hand = Hand::asked(config, All::new(), 256, PEER);
            let session = &mut hand.node.session;
            session
                .publisher("a".to_owned(), PublisherOptions::DEFAULT)
                .unwrap();
            session.subscriber("b".to_owned()).unwrap();
            session.queryable("c".to_owned(), true).unwrap();
            runs(&mut hand, 50);
            hand.frame(|w| request(1, "c").encode(w));
            hand.frame(|w| request(2, "d").encode(w));
            runs(&mut hand, 50);
        }
    }
}

/// Polls until there is nothing to do, sleeps until there is.
fn runs<T: sinew::pubsub::session::Tables>(hand: &mut Hand<T>, times: usize) {
    for _ in 0..times {
        hand.turn();
        hand.sent();
        let due = hand.node.session.deadline();
        if due == Instant::FAR {
            return;
        }
        assert!(due > hand.now, "{:?}", hand.node.session.state());
        hand.now = due;
    }
}

#[test]
fn mark_that_gives_a_message_up_is_taken_and_signs_of_life_come_between_fragments() {
    let mut hand = asking();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    let message = bytes(|w| put("a", b"0123456789").encode(w));
    let (front, back) = message.split_at(6);
    hand.fragment(front, true, true);
    hand.give(&bytes(|w| KeepAlive.encode(w)));
    let drop = Fragment {
        reliable: true,
        more: true,
        sn: hand.sn[1],
        priority: Priority::Data,
        first: false,
        drop: true,
        payload: &[],
    };
    hand.sn[1] += 1;
    hand.give(&bytes(|w| drop.encode(w)));
    hand.fragment(front, true, true);
    hand.give(&bytes(|w| KeepAlive.encode(w)));
    hand.fragment(back, false, false);
    assert_eq!(hand.node.take(), [sample(sub, "a", b"0123456789")]);
    assert_eq!(hand.node.session.stats().fragments_lost, 1);
    let answer = asked().node.session.state();
    assert_eq!(answer, State::Open);
}

#[test]
fn sample_that_was_on_its_way_to_a_withdrawn_subscriber_is_not_given_to_the_next() {
    let mut hand = Hand::asked(
        config(),
        Fixed::<0, 1, 0, 0, 8, 0, String>::new(),
        1024,
        ROUTER,
    );
    let mut numbers = Vec::new();
    for at in 0..5 {
        let key = format!("key/{at}");
        let sub = hand.node.session.subscriber(key.clone()).unwrap();
        hand.turn();
        let said = hand.said().concat();
        // DECLARE, KEY, its number.
        let number = u16::from(said[2]);
        assert_eq!(said[..2], [0x1e, 0x20], "{said:02x?}");
        for &old in &numbers {
            let late = Push::put(WireExpr::declared(old, false), b"late");
            hand.frame(|w| late.encode(w));
        }
        assert_eq!(hand.node.take(), []);
        let new = Push::put(WireExpr::declared(number, false), b"new");
        hand.frame(|w| new.encode(w));
        assert_eq!(hand.node.take(), [sample(sub, &key, b"new")]);
        numbers.push(number);
        hand.node.session.withdraw_subscriber(sub);
        hand.turn();
        hand.sent();
    }
    assert_eq!(hand.node.session.stats().unknown_key, 1 + 2 + 3 + 4);
}

#[test]
fn what_was_declared_is_said_again_on_links_that_lose_and_changes_nothing_there() {
    let mut config = config();
    config.resend = 20_000;
    let mut one = new_node(config, 1024, 16);
    let mut other = new_node(Config::peer(zid("other")), 1024, 16);
    join(&mut one, &mut other, NOW);
    let lamp = other
        .session
        .publisher("a".to_owned(), PublisherOptions::DEFAULT);
    let lamp = lamp.unwrap();
    settle(&mut one, &mut other, NOW);
    let sub = one.session.subscriber("a".to_owned()).unwrap();
    one.turn(NOW);
    other.rx.borrow_mut().packets.clear();
    assert_eq!(
        other.session.put(&mut other.tx, lamp, b"on", NOW),
        Ok(Put::Unheard)
    );
    other.take();
    let later = one.session.deadline();
    assert!(later < NOW.after(Duration::from_secs(3)));
    settle(&mut one, &mut other, later);
    assert_eq!(other.take(), [Told::Heard]);
    assert_eq!(
        other.session.put(&mut other.tx, lamp, b"on", later),
        Ok(Put::Heard)
    );
    settle(&mut one, &mut other, later);
    assert_eq!(one.take().pop(), Some(sample(sub, "a", b"on")));
    let later = one.session.deadline();
    settle(&mut one, &mut other, later);
    assert_eq!(other.take(), []);
    // What is withdrawn before it is said again is withdrawn there.
    let later = one.session.deadline();
    one.tx.room = 0;
    one.turn(later);
    one.session.withdraw_subscriber(sub);
    one.tx.room = 16;
    settle(&mut one, &mut other, later);
    assert_eq!(
        other.session.put(&mut other.tx, lamp, b"on", later),
        Ok(Put::Unheard)
    );
}

#[test]
fn frame_of_an_earlier_session_does_not_make_all_others_old() {
    for stray in [0x0400_0000, 0x0c00_0000] {
        let mut hand = asking();
        let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
        hand.frame(|w| put("a", b"on").encode(w));
        let sn = std::mem::replace(&mut hand.sn, [stray; 2]);
        hand.frame(|w| put("a", b"of before").encode(w));
        hand.sn = sn;
        hand.frame(|w| put("a", b"on").encode(w));
        let on = sample(sub, "a", b"on");
        assert_eq!(hand.node.take(), [on.clone(), on.clone()]);
        assert_eq!(hand.node.session.stats().missed_reliable, 0);
        // Where that is where the others are from then on, only one is lost.
        hand.sn = [stray; 2];
        for _ in 0..3 {
            hand.frame(|w| put("a", b"on").encode(w));
        }
        assert_eq!(hand.node.take(), [on.clone(), on.clone()]);
    }
}

#[test]
fn sample_that_names_the_key_of_a_withdrawn_subscriber_still_reaches_another_one() {
    let mut hand = asked();
    let gone = hand.node.session.subscriber("a/b".to_owned()).unwrap();
    let stays = hand.node.session.subscriber("a/*".to_owned()).unwrap();
    hand.turn();
    let said = hand.said().concat();
    assert_eq!(said[..2], [0x1e, 0x20], "DECLARE, KEY: {said:02x?}");
    let named = Push::put(WireExpr::declared(u16::from(said[2]), false), b"on");
    hand.node.session.withdraw_subscriber(gone);
    hand.turn();
    let said = hand.said();
    assert_eq!(
        said,
        [[0x1e, 0x03, said[0][2]]],
        "NO_SUBSCRIBER, its number"
    );
    let no_key = bytes(|w| {
        let id = named.key.scope;
        let declaration = Declaration::NoKey { id };
        let (interest, qos) = (None, Qos::DEFAULT);
        Declare {
            interest,
            qos,
            declaration,
        }
        .encode(w);
    });
    let times = |said: &[Vec<u8>]| said.iter().filter(|said| **said == no_key).count();
    // What was sent before the peer heard of it, and then before it heard that the key is gone.
    let mut withdrawn = None;
    for second in 0..8 {
        hand.now = NOW.after(Duration::from_secs(second));
        hand.turn();
        match times(&hand.said()) {
            0 => {}
            1 => assert_eq!(withdrawn.replace(second), None),
            more => panic!("withdrawn {more} times"),
        }
        if withdrawn.is_none_or(|at| second <= at + 1) {
            hand.frame(|w| named.encode(w));
            assert_eq!(hand.node.take(), [sample(stays, "a/b", b"on")]);
        }
    }
    assert!(withdrawn.is_some_and(|at| (1..4).contains(&at)));
    // Who has not heard it is told once more.
    hand.frame(|w| named.encode(w));
    hand.turn();
    assert_eq!(hand.node.take(), []);
    assert_eq!(times(&hand.said()), 1);
    hand.turn();
    assert_eq!(times(&hand.said()), 0);
}

#[test]
fn number_that_is_left_out_behind_fragments_is_told_apart_from_what_is_missed() {
    let mut hand = asked();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    hand.turn();
    let message = bytes(|w| put("a", b"on").encode(w));
    let counts = |hand: &Hand<All>| {
        let stats = hand.node.session.stats();
        (stats.left_out, stats.missed_reliable, stats.gaps)
    };
    for round in 1..=2 {
        hand.fragment(&message[..4], true, true);
        hand.fragment(&message[4..], false, false);
        hand.sn[1] += 1;
        assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
        assert_eq!(counts(&hand), (round - 1, 0, 0));
        hand.fragment(&message[..4], true, true);
        assert_eq!(counts(&hand), (round, 0, 0));
        hand.fragment(&message[4..], false, false);
        assert_eq!(hand.node.take(), [sample(sub, "a", b"on")]);
    }
    // Two are missing; and one, behind no fragment.
    hand.sn[1] += 2;
    hand.frame(|w| put("a", b"on").encode(w));
    assert_eq!(counts(&hand), (2, 2, 1));
    hand.sn[1] += 1;
    hand.frame(|w| put("a", b"on").encode(w));
    assert_eq!(counts(&hand), (2, 3, 2));
}

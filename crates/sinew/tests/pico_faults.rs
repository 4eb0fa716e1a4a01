//! The six faults of Zenoh-Pico 1.9 that its users meet, each as what ours does instead. The parts of
//! them that are sockets' are tested where the drivers are.

#[path = "support/hand.rs"]
#[allow(dead_code)]
mod hand;
#[path = "support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;

use hand::{Hand, NOW, Offer, PEER, ROUTER, bytes};
use node::{All, Node, Told, join, node as new_node, peers, settle, zid};
use sinew::pubsub::codec::transport::{Close, KeepAlive};
use sinew::pubsub::codec::{
    Declaration, Declare, Decode, EntityKind, Interest, Kind, Push, Qos, Reader, WireExpr,
};
use sinew::pubsub::session::{
    Closed, Config, Fixed, PublisherOptions, Put, PutError, State, SubscriberId,
};

fn client() -> Hand<All> {
    Hand::asked(Config::client(zid("node")), Fixed::new(), 2048, ROUTER)
}

fn sample(of: SubscriberId, payload: &[u8]) -> Told {
    Told::Sample(of, "a".into(), Kind::Put, payload.into())
}

fn blocking() -> PublisherOptions {
    PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(true),
        ..PublisherOptions::DEFAULT
    }
}

#[test]
fn fault_1_frames_of_both_channels_and_signs_of_life_in_one_batch_are_all_taken() {
    let mut hand = client();
    let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
    let put = |payload| Push::put(WireExpr::text("a"), payload);
    let mut batch = Vec::new();
    for (reliable, payload) in [(true, b"1"), (false, b"2"), (true, b"3"), (false, b"4")] {
        let frame = hand.framed(reliable, |w| put(payload).encode(w));
        batch.extend(frame);
        batch.extend(bytes(|w| KeepAlive.encode(w)));
    }
    hand.give(&batch);
    let told = [b"1", b"2", b"3", b"4"].map(|payload| sample(sub, payload));
    assert_eq!(hand.node.take(), told);
    assert_eq!(hand.node.session.stats().gaps, 0);
}

#[test]
fn fault_2_nothing_is_lost_to_a_reader_that_is_slower_for_ever_while_put_says_it_was_sent() {
    for options in [blocking(), PublisherOptions::DEFAULT] {
        let (mut one, mut other) = peers(256, 4);
        let a = one.session.publisher("a".to_owned(), options).unwrap();
        let sub = other.session.subscriber("a".to_owned()).unwrap();
        settle(&mut one, &mut other, NOW);
        let (mut sent, mut refused) = (Vec::new(), 0);
        for number in 0..20_000u32 {
            let payload = number.to_le_bytes();
            match one.session.put(&mut one.tx, a, &payload, NOW) {
                Ok(Put::Heard) => sent.push(sample(sub, &payload)),
                Ok(Put::Dropped) | Err(PutError::Full) => refused += 1,
                became => panic!("{became:?}"),
            }
            // It reads one of three.
            if number % 3 == 0 {
                read_one(&mut other);
            }
        }
        assert!(refused > 10_000, "the reader is slower");
        settle(&mut one, &mut other, NOW);
        assert!(other.take() == sent, "each once, in order");
        assert_eq!(other.session.stats().gaps, 0);
    }
}

/// Takes one packet, and leaves the others on the link.
fn read_one(node: &mut Node) {
    let mut rest = node.rx.borrow_mut().packets.split_off(0);
    let first = rest.pop_front();
    node.rx.borrow_mut().packets.extend(first);
    node.turn(NOW);
    node.rx.borrow_mut().packets.append(&mut rest);
}

#[test]
fn fault_3_large_samples_arrive_or_are_refused_with_a_word() {
    let mut config = Config::peer(zid("one"));
    config.largest = 7_000;
    let mut one = new_node(config, 1024, 100);
    let mut other = new_node(Config::peer(zid("other")), 1024, 100);
    join(&mut one, &mut other, NOW);
    let a = one.session.publisher("a".to_owned(), blocking()).unwrap();
    let sub = other.session.subscriber("a".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    other.take();
    for len in [4_095, 4_096, 4_097, 5_000, 6_900] {
        let became = one.session.put(&mut one.tx, a, &vec![7; len], NOW);
        assert_eq!(became, Ok(Put::Heard));
        settle(&mut one, &mut other, NOW);
        assert_eq!(other.take(), [sample(sub, &vec![7; len])]);
    }
    let became = one.session.put(&mut one.tx, a, &[7; 7_000], NOW);
    assert_eq!(became, Err(PutError::TooLarge));
    // What the other side has no memory for is counted there.
    let became = other.session.publisher("b".to_owned(), blocking()).unwrap();
    one.session.subscriber("b".to_owned()).unwrap();
    settle(&mut one, &mut other, NOW);
    let put = other.session.put(&mut other.tx, became, &[7; 9_000], NOW);
    assert_eq!(put, Ok(Put::Heard));
    settle(&mut one, &mut other, NOW);
    assert_eq!(one.session.stats().too_large, 1);
}

#[test]
fn fault_4_aggregate_interest_is_answered_on_its_own_key_and_opens_our_filter_too() {
    let aggregate = Interest {
        id: 3,
        current: true,
        future: true,
        options: Interest::KEYS | Interest::SUBSCRIBERS | Interest::AGGREGATE,
        key: Some(WireExpr::text("demo/lamp")),
        qos: Qos::DEFAULT,
    };
    let mut hand = Hand::asking(Config::peer(zid("node")), All::new(), 1024, PEER);
    hand.node.session.subscriber("demo/**".to_owned()).unwrap();
    hand.node.session.subscriber("demo/*".to_owned()).unwrap();
    hand.turn();
    hand.sent();
    hand.frame(|w| aggregate.encode(w));
    let said = hand.said().concat();
    let mut reader = Reader::new(&said);
    let mut answers = Vec::new();
    while let Ok(header) = reader.byte() {
        let declare = Declare::decode(header, &mut reader).unwrap();
        assert_eq!(declare.interest, Some(3));
        answers.push(declare.declaration);
    }
    assert!(
        matches!(answers[..], [
            Declaration::Entity { kind: EntityKind::Subscriber, key, .. },
            Declaration::Final,
        ] if key.scope == 0 && key.suffix == "demo/lamp"),
        "{answers:?}"
    );
    // Our own publisher asks the same of a router, and waits for the same answer.
    let mut hand = client();
    let options = PublisherOptions {
        filter: true,
        ..PublisherOptions::DEFAULT
    };
    let lamp = hand.node.session.publisher("demo/lamp".to_owned(), options);
    let lamp = lamp.unwrap();
    hand.turn();
    let said = hand.said().concat();
    assert_eq!(said, b"\x1e\x20\x01\x00\x09demo/lamp\x79\x01\xd3\x01");
    let put = |hand: &mut Hand<All>| {
        let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
        session.put(tx, lamp, b"on", NOW)
    };
    assert_eq!(put(&mut hand), Ok(Put::Sent));
    // As captured: D_SUB on our own number, D_FINAL.
    hand.frame(|w| w.bytes(b"\xbe\x01\x21\x08\x1a"));
    assert_eq!(put(&mut hand), Ok(Put::Unheard));
    hand.frame(|w| w.bytes(b"\xbe\x01\x21\x08\x02\x02\x01\xbe\x01\x21\x08\x1a"));
    assert_eq!(put(&mut hand), Ok(Put::Heard));
    hand.frame(|w| w.bytes(b"\x9e\x21\x08\x03\x02"));
    assert_eq!(put(&mut hand), Ok(Put::Unheard));
}

#[test]
fn fault_5_session_that_is_still_held_is_told_by_name_and_another_id_works_at_once() {
    let mut hand = Hand::new(Config::client(zid("node")), All::new(), 1024, ROUTER);
    hand.node.session.open(NOW);
    hand.turn();
    let first = hand.sent();
    let close = Close {
        session: true,
        reason: Close::MAX_LINKS,
    };
    hand.give(&bytes(|w| close.encode(w)));
    let closed = Closed::ByPeer(Close::MAX_LINKS);
    assert_eq!(hand.node.take(), [Told::Closed(closed)]);
    assert!(closed.to_string().contains("same id"));
    hand.node.session.set_zid(zid("other"));
    hand.node.session.open(NOW);
    hand.turn();
    let second = hand.node.tx.way.borrow().packets[0].clone();
    assert_ne!(first[0], second);
    assert!(second.windows(5).any(|at| at == b"other"));
    hand.answer();
    assert_eq!(hand.node.session.state(), State::Open);
}

#[test]
fn fault_6_sides_whose_batch_sizes_differ_agree_on_the_lesser() {
    for (mine, theirs) in [(2048, 8192), (8192, 2048), (64, 65_535), (65_535, 64)] {
        let mut hands = Vec::new();
        let offer = Offer {
            batch_size: theirs,
            ..PEER
        };
        let config = Config::peer(zid("node"));
        hands.push(Hand::asked(config, All::new(), usize::from(mine), offer));
        hands.push(Hand::asking(config, All::new(), usize::from(mine), offer));
        for hand in &mut hands {
            let sub = hand.node.session.subscriber("a".to_owned()).unwrap();
            let lamp = hand
                .node
                .session
                .publisher("a".to_owned(), blocking())
                .unwrap();
            hand.turn();
            hand.sent();
            let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
            assert_eq!(session.put(tx, lamp, &[7; 8000], NOW), Ok(Put::Sent));
            let sent = hand.sent();
            let largest = sent.iter().map(Vec::len).max().unwrap();
            // The length before a batch on a stream is part of what was agreed.
            assert!(largest <= usize::from(mine.min(theirs)) - 2);
            hand.frame(|w| Push::put(WireExpr::text("a"), b"on").encode(w));
            assert_eq!(hand.node.take().pop(), Some(sample(sub, b"on")));
        }
    }
}

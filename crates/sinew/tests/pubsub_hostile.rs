//! A peer that means no good, or is broken: never a panic, never an endless loop, and the next link
//! works.

#[path = "support/hand.rs"]
#[allow(dead_code)]
mod hand;
#[path = "support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;
#[path = "support/pubsub_play.rs"]
mod play;
#[path = "simulation/prng.rs"]
#[allow(dead_code)]
mod prng;

use std::time::Duration;

use hand::{Hand, NOW, Offer, ROUTER, init};
use node::{All, Told, zid};
use play::Play;
use prng::Prng;
use sinew::pubsub::codec::{
    Declaration, Declare, Decode, EntityKind, Interest, Push, Qos, Query, Reader, Request,
    ResponseFinal, WireExpr,
};
use sinew::pubsub::session::{Closed, Config, PublisherOptions, State};

#[test]
fn random_scripts_break_nothing() {
    let mut prng = Prng::new(1);
    for _ in 0..20_000 {
        let len = prng.below(300) as usize;
        let mut script: Vec<u8> = (0..len).map(|_| prng.next() as u8).collect();
        // Half of them begin in an open session.
        if let Some(first) = script.first_mut() {
            *first |= 0x80;
        }
        Play::run(&script);
    }
}

/// How far a session is when it happens.
const PHASES: [&str; 7] = [
    "closed",
    "opening",
    "asked",
    "listening",
    "greeted",
    "asked for",
    "accepted",
];

fn in_phase(phase: &str) -> Hand<All> {
    let config = Config::peer(zid("node"));
    let mut hand = Hand::new(config, All::new(), 1024, ROUTER);
    for key in ["a", "q/**"] {
        hand.node.session.subscriber(key.to_owned()).unwrap();
        hand.node.session.queryable(key.to_owned(), true).unwrap();
        hand.node
            .session
            .publisher("a".to_owned(), PublisherOptions::DEFAULT)
            .unwrap();
    }
    match phase {
        "opening" | "asked" | "asked for" => hand.node.session.open(NOW),
        "listening" | "greeted" | "accepted" => hand.node.session.accept(),
        _ => {}
    }
    hand.turn();
    let small = Offer {
        batch_size: 1000,
        ..ROUTER
    };
    match phase {
        "asked" => hand.give(&init(&small, true, b"cookie")),
        "greeted" => hand.give(&init(&small, false, &[])),
        "asked for" => hand.answer(),
        "accepted" => hand.ask(),
        _ => {}
    }
    hand
}

/// Whatever has happened, the next link works.
fn comes_back(mut hand: Hand<All>, phase: &str, what: &[u8]) {
    hand.node.session.link_lost();
    hand.node.drop_packet();
    hand.node.rx.borrow_mut().packets.clear();
    hand.sent();
    hand.node.take();
    match phase {
        "listening" | "greeted" | "accepted" => {
            hand.node.session.accept();
            hand.ask();
        }
        _ => {
            hand.node.session.open(NOW);
            hand.turn();
            hand.answer();
        }
    }
    hand.frame(|w| Push::put(WireExpr::text("a"), b"on").encode(w));
    let arrived = |told: &Told| matches!(told, Told::Sample(..));
    let told = hand.node.take();
    assert_eq!(
        told.iter().filter(|told| arrived(told)).count(),
        1,
        "{phase} {what:02x?}"
    );
}

/// The worked examples of the wire reference, without the length that stands before them on streams.
/// What was left out there is filled in.
fn examples() -> Vec<Vec<u8>> {
    const ZID: &str = "000102030405060708090a0b0c0d0e0f";
    let cookie = "31".to_owned() + &"5a".repeat(49);
    // Where a sequence number is due, `sn`: 100 is the first of the hand.
    [
        "c109f2ZID0a00082701",
        "e109f0ZID0a0008COOKIE2701",
        "c109f2ZID0ac8ff81c20501020304052701",
        "420a00COOKIE",
        "620a8cb6c672",
        "e20a898d853842090102030405060708ff",
        "25sn1e2001000464656d6f",
        "25sn1e620100076465 6d6f2f2a2a",
        "a5sn31009e2108200100 0164",
        "a5sn31059e2108200100 0164",
        "25sn9e2108e40200022f2a2101",
        "25sn9e21082003000661 2f6c697665 9e2108460303",
        "25sn7901d300 25sn7902f3000161",
        "25snbe0221080202 02be0221081a",
        "25snb903790303 022a2a 2108",
        "25sn1902",
        "05sn5d0201084142434445464748",
        "25sn7d0003642f3101084142434445464748",
        "25sndd012119e1ffffffffffffffffff10ZID0904757466384304 6d657461084142434445464748",
        "25sndd012119c10904757466384113f0ZID01070153",
        "25sn7d0003642f3102",
        "25snfc010003712f78a10d26d00f2303",
        "25snfc020003712f78a10db40126d00fe307076b3d313b763d32c30500626f64794502 7161",
        "25snfb010003712f78a10d4312f0ZID0704c10a430261740 6616e73776572",
        "25sn7b010003712f780402",
        "25sn7b010003712f7845080362 6164",
        "25sn9a01210d",
        "25sn9e21080301 9e210885025f020000 9e210887035f020000",
        "e6sn02ffff",
        "66snffff",
        "26snffff",
        "0300",
        "04",
        "e709f1ZID0a0008 0a00002701",
        "25sn1e83015f09030064656d6f2f6578",
        "a5sn3100df0121082e",
        "25sn7d00016101 0141 05sn7d0001610 10142 04",
    ]
    .map(|text| {
        let text = text.replace("ZID", ZID).replace("COOKIE", &cookie);
        let text = text.replace("sn", "64").replace(' ', "");
        let digits = text.as_bytes().chunks_exact(2);
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16);
        digits.map(|two| byte(two).expect("hexadecimal")).collect()
    })
    .to_vec()
}

#[test]
fn every_prefix_of_every_example_in_every_phase_leaves_a_session_that_comes_back() {
    for phase in PHASES {
        for example in examples() {
            for len in 0..=example.len() {
                let mut hand = in_phase(phase);
                let before = hand.node.session.state();
                hand.node.take();
                hand.give(&example[..len]);
                let told = hand.node.take();
                let closed = |told: &&Told| matches!(told, Told::Closed(_));
                let ends = told.iter().filter(closed).count();
                assert!(ends <= 1, "{phase} {told:?}");
                if ends == 0 && before == State::Open {
                    assert_eq!(hand.node.session.state(), State::Open);
                }
                comes_back(hand, phase, &example[..len]);
            }
        }
    }
}

#[test]
fn every_byte_of_every_example_changed_leaves_a_session_that_comes_back() {
    let mut prng = Prng::new(2);
    for phase in ["greeted", "asked for", "accepted"] {
        for example in examples() {
            for at in 0..example.len() {
                for _ in 0..4 {
                    let mut packet = example.clone();
                    packet[at] = prng.next() as u8;
                    let mut hand = in_phase(phase);
                    hand.give(&packet);
                    comes_back(hand, phase, &packet);
                }
            }
        }
    }
}

#[test]
fn bad_input_is_treated_as_zenohs_router_does() {
    // What that router was seen to do: section 4.5.
    let ends = |body: &[u8]| {
        let mut hand = in_phase("accepted");
        hand.give(body);
        let told = hand.node.take();
        match told.iter().find(|told| matches!(told, Told::Closed(_))) {
            Some(Told::Closed(reason)) => {
                assert_eq!(hand.sent().last(), Some(&vec![0x23, 2]), "it is told so");
                Some(*reason)
            }
            _ => None,
        }
    };
    let malformed = Some(Closed::Malformed);
    assert_eq!(ends(b"\x18"), malformed, "an unknown transport message");
    assert_eq!(
        ends(b"\x25\x64\x1d\x00"),
        malformed,
        "a message that is cut off"
    );
    assert_eq!(
        ends(b"\xa5\x64\x31\x02"),
        malformed,
        "a priority that was not agreed"
    );
    assert_eq!(
        ends(b"\xa5\x64\x3e\x02"),
        malformed,
        "a mandatory extension"
    );
    assert_eq!(
        ends(b"\x25\x64\xfd\x00\x01a\x3e\x01\x01\x00"),
        malformed,
        "and of a sample"
    );
    assert_eq!(
        ends(b"\x5d\x01\x01\x00"),
        malformed,
        "a sample outside of a frame"
    );
    assert_eq!(ends(b"\xa5\x64\x2e\x02"), None, "an optional extension");
    assert_eq!(
        ends(b"\x25\x64\x5d\x63\x01\x00"),
        None,
        "a key that nobody declared"
    );
    assert_eq!(
        ends(b"\x25\x64\x7d\x00\x02//\x01\x00"),
        None,
        "a key that is none"
    );
    assert_eq!(ends(b"\x00\x05"), None, "an OAM message");
    assert_eq!(ends(b"\x25\x64\x1f\x01"), None, "and of the network");
}

#[test]
fn requests_beyond_the_table_and_repeated_ones_have_an_end_each_however_few_places_there_are() {
    for room in [1, 2, 1000] {
        let mut hand = in_phase("accepted");
        hand.turn();
        hand.sent();
        hand.node.tx.room = room;
        let mut ends = 0;
        let count = |hand: &mut Hand<All>| {
            let said = hand.said().concat();
            let mut reader = Reader::new(&said);
            let mut ends = 0;
            while let Ok(header) = reader.byte() {
                ResponseFinal::decode(header, &mut reader).unwrap();
                ends += 1;
            }
            ends
        };
        for round in 0..200u32 {
            let packet = hand.framed(true, |w| {
                for id in 0..5 {
                    // Of each five: one that is answered, others of the same id, some for nobody.
                    let key = WireExpr::text(if id < 3 { "q/x" } else { "nobody" });
                    let id = round * 10 + if id < 2 { 0 } else { id };
                    let query = Query::default();
                    Request {
                        id,
                        key,
                        query,
                        ..Request::default()
                    }
                    .encode(w);
                }
            });
            hand.give(&packet);
            for _ in 0..10 {
                ends += count(&mut hand);
                hand.turn();
            }
        }
        for told in hand.node.take() {
            if let Told::Query(_, request, ..) = told {
                let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
                session.finish(tx, request, NOW).unwrap();
                ends += count(&mut hand);
            }
        }
        for _ in 0..10 {
            hand.turn();
            ends += count(&mut hand);
        }
        assert_eq!(ends, 1000, "{room}");
    }
}

#[test]
fn what_the_peer_declares_beyond_the_tables_is_counted_and_the_rest_works() {
    let mut hand = in_phase("accepted");
    hand.frame(|w| {
        for id in 1..2000u32 {
            let key = WireExpr::text("some/key");
            let declaration = match id % 4 {
                0 => Declaration::Key { id: id as u16, key },
                1 => Declaration::NoKey { id: id as u16 },
                2 => {
                    let kind = EntityKind::Subscriber;
                    Declaration::Entity {
                        kind,
                        id,
                        key,
                        info: 0,
                    }
                }
                _ => {
                    let kind = EntityKind::Queryable;
                    Declaration::NoEntity {
                        kind,
                        id,
                        key: None,
                    }
                }
            };
            let (interest, qos) = (None, Qos::DEFAULT);
            Declare {
                interest,
                qos,
                declaration,
            }
            .encode(w);
        }
        for id in 0..500 {
            let current = true;
            let options = 0x0f;
            Interest {
                id,
                current,
                options,
                ..Interest::default()
            }
            .encode(w);
        }
        for id in 0..500 {
            ResponseFinal {
                id,
                qos: Qos::DEFAULT,
            }
            .encode(w);
        }
        Push::put(WireExpr::text("a"), b"on").encode(w);
    });
    let stats = *hand.node.session.stats();
    assert!(
        stats.no_room > 1400 && stats.late_replies == 500,
        "{stats:?}"
    );
    let told = hand.node.take();
    assert!(matches!(told.last(), Some(Told::Sample(..))), "{told:?}");
    comes_back(hand, "accepted", &[]);
}

#[test]
fn peer_that_never_reads_is_left_when_its_lease_ends() {
    let mut hand = in_phase("accepted");
    hand.node.tx.room = 0;
    let mut ended = false;
    for second in 0..30 {
        hand.now = NOW.after(Duration::from_secs(second));
        let packet = hand.framed(true, |w| {
            Request {
                id: second as u32,
                key: WireExpr::text("nobody"),
                ..Request::default()
            }
            .encode(w);
        });
        hand.give(&packet);
        ended |= hand.node.take().contains(&Told::Closed(Closed::Expired));
    }
    assert!(ended);
    hand.node.tx.room = 100;
    hand.now = NOW;
    comes_back(hand, "accepted", &[]);
}

#[test]
fn examples_are_what_an_open_session_can_read() {
    let unread = |example: &Vec<u8>| {
        let mut hand = in_phase("accepted");
        hand.give(example);
        hand.node.session.stats().malformed == 1
    };
    // Those whose frame has a priority, which was not agreed.
    let examples = examples();
    let unread: Vec<_> = examples.iter().filter(|example| unread(example)).collect();
    assert!(
        unread.iter().all(|example| example[2..4] == [0x31, 0]),
        "{unread:02x?}"
    );
    assert_eq!(unread.len(), 2);
}

//! Samples taken in by runs are the same as one by one, whatever stands between them.

#[path = "support/hand.rs"]
#[allow(dead_code)]
mod hand;
#[path = "support/node.rs"]
#[allow(dead_code, unused_imports)]
mod node;
#[path = "simulation/prng.rs"]
#[allow(dead_code)]
mod prng;

use hand::{Hand, PEER};
use node::{All, Told, zid};
use prng::Prng;
use sinew::pubsub::codec::{
    Body, Declaration, Declare, EntityKind, Push, Qos, Timestamp, WireExpr, Writer,
};
use sinew::pubsub::session::Config;

/// A node that subscribes to `a`, and twice to `b`, and to nothing of `c`. Its peer has declared `a`, `b`
/// and `c` as 1, 2 and 3.
fn hand(runs: bool) -> Hand<All> {
    let mut hand = Hand::asking(Config::peer(zid("node")), All::new(), 1024, PEER);
    hand.node.runs = runs;
    for key in ["a", "b", "$*b"] {
        hand.node.session.subscriber(key.to_owned()).unwrap();
    }
    for (id, key) in [(1, "a"), (2, "b"), (3, "c")] {
        hand.frame(|w| declared(id, key).encode(w));
    }
    hand.sent();
    hand
}

fn declared(id: u16, key: &str) -> Declare<'_> {
    let key = WireExpr::text(key);
    Declare {
        interest: None,
        qos: Qos::DEFAULT,
        declaration: Declaration::Key { id, key },
    }
}

fn payload(prng: &mut Prng) -> Vec<u8> {
    let len = match prng.below(8) {
        0 => 0,
        1 => 127,
        2 => 128,
        _ => prng.below(12) as usize,
    };
    vec![prng.next() as u8; len]
}

/// Some messages of one frame.
fn write(prng: &mut Prng, w: &mut Writer<'_>) {
    for _ in 0..prng.below(20) {
        let scope = prng.below(5) as u16;
        let key = WireExpr {
            scope: if prng.below(16) == 0 { 300 } else { scope },
            of_sender: prng.below(8) != 0,
            suffix: if prng.below(16) == 0 { "b" } else { "" },
        };
        let qos = match prng.below(4) {
            0 => Qos::DEFAULT.with_blocking(true),
            1 => Qos(prng.next() as u8),
            _ => Qos::DEFAULT,
        };
        let payload = payload(prng);
        let body = match prng.below(16) {
            0 => Body::del(),
            1 => Body {
                timestamp: Some(Timestamp {
                    time: 7,
                    id: zid("clock"),
                }),
                ..Body::put(&payload)
            },
            _ => Body::put(&payload),
        };
        for _ in 0..prng.below(4) {
            Push { key, qos, body }.encode(w);
        }
        match prng.below(40) {
            0 => declared(scope, "a").encode(w),
            1 => Declare {
                interest: None,
                qos: Qos::DEFAULT,
                declaration: Declaration::Entity {
                    kind: EntityKind::Subscriber,
                    id: 1,
                    key: WireExpr::text("x"),
                    info: 0,
                },
            }
            .encode(w),
            _ => {}
        }
    }
}

#[test]
fn a_run_is_the_same_as_its_samples_one_by_one() {
    let mut prng = Prng::new(7);
    let mut samples = 0;
    for _ in 0..4_000 {
        let (mut one, mut other) = (hand(false), hand(true));
        for _ in 0..1 + prng.below(3) {
            let reliable = prng.below(4) != 0;
            let mut packet = one.framed(reliable, |w| write(&mut prng, w));
            if prng.below(4) == 0 {
                packet.extend(one.framed(!reliable, |w| write(&mut prng, w)));
            }
            match prng.below(8) {
                0 => packet.truncate(prng.below(packet.len() as u64) as usize),
                1 => {
                    let at = prng.below(packet.len() as u64) as usize;
                    packet[at] = prng.next() as u8;
                }
                _ => {}
            }
            one.give(&packet);
            other.give(&packet);
            let told = one.node.take();
            assert_eq!(told, other.node.take(), "{packet:02x?}");
            assert_eq!(one.sent(), other.sent());
            assert_eq!(one.node.session.stats(), other.node.session.stats());
            let is_sample = |told: &&Told| matches!(told, Told::Sample(..));
            samples += told.iter().filter(is_sample).count();
        }
    }
    assert!(samples > 50_000, "{samples}");
}

/// How many samples the first run of this frame has, after all that is no run.
fn first_run(hand: &mut Hand<All>, write: impl FnOnce(&mut Writer<'_>)) -> u32 {
    let packet = hand.framed(true, write);
    let (session, tx) = (&mut hand.node.session, &mut hand.node.tx);
    assert!(session.run(&packet).is_none(), "before its frame");
    session.receive(&packet, tx, hand.now);
    session.run(&packet).map_or(0, |run| run.payloads.count())
}

#[test]
fn samples_that_differ_in_their_payloads_only_are_one_run() {
    let put = |scope, payload: &'static [u8]| Push::put(WireExpr::declared(scope, true), payload);
    let blocking = Push {
        qos: Qos::DEFAULT.with_blocking(true),
        ..put(1, b"blocking")
    };
    let of = |pushes: &[Push<'_>]| {
        first_run(&mut hand(true), |w| {
            pushes.iter().for_each(|push| push.encode(w));
        })
    };
    let (a, long) = (put(1, b"1234"), put(1, &[0; 128]));
    assert_eq!(of(&[a; 100]), 100);
    assert_eq!(of(&[blocking; 100]), 100);
    assert_eq!(of(&[a, a, blocking, a]), 2);
    assert_eq!(of(&[a, put(1, b""), a, put(3, b"other"), a]), 3);
    assert_eq!(of(&[a, long]), 1);
    // These are for the other way: no short payload, two subscribers, nobody, no such key.
    assert_eq!(of(&[long]), 0);
    assert_eq!(of(&[put(2, b"1234")]), 0);
    assert_eq!(of(&[put(3, b"1234")]), 0);
    assert_eq!(of(&[put(4, b"1234")]), 0);
}

#[test]
fn a_number_of_the_receivers_own_and_an_old_frame_are_told_apart() {
    let mut hand = hand(true);
    let own = Push::put(WireExpr::declared(1, false), b"12345678");
    assert_eq!(first_run(&mut hand, |w| own.encode(w)), 0);

    let mut hand = self::hand(true);
    hand.sn[1] -= 1;
    let push = Push::put(WireExpr::declared(1, true), b"12345678");
    assert_eq!(first_run(&mut hand, |w| push.encode(w)), 0);
}

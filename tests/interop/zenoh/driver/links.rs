//! Links that are lost while the router does not know, and a node that sleeps.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use sinew::pubsub::codec::Zid;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::pubsub::{self, Options};

use crate::alone;
use crate::lives::{both_ways, declare};
use crate::node::*;
use crate::ours::{Ours, Sinew};
use crate::peer::{Peer, Real};
use crate::proxy::Recorder;

/// A router, and where it listens.
pub fn router() -> (Peer, At) {
    let router = Peer::router(&At::any(Kind::Tcp, Path::new(""))).expect("a router");
    let at = router.at()[0].clone();
    (router, at)
}

/// How long it takes a node until samples, queries and filters work again both ways, after the router
/// has been left with a session that nobody is in any more; and its ids before and after.
fn after_a_silent_end(sinew: Sinew) -> (Duration, [String; 2]) {
    let (_router, at) = router();
    let proxy = Recorder::new(&at).expect("a proxy");
    let mut a = sinew.client_at(proxy.at()).expect("a session");
    let mut b = Real.client(&at).expect("a session");
    declare(&mut a, b.as_mut()).expect("declared");
    both_ways(&mut a, b.as_mut(), "before").expect("before");
    let before = a.zid();
    let started = Instant::now();
    proxy.hang_up();
    while opened(&a) < 2 {
        std::thread::sleep(Duration::from_millis(5));
        assert!(started.elapsed() < Duration::from_secs(60), "{}", a.notes());
    }
    let took = started.elapsed();
    both_ways(&mut a, b.as_mut(), "after").expect("after");
    (took, [before, a.zid()])
}

fn opened(node: &Ours) -> u32 {
    node.node().expect("a node").status().opened
}

#[test]
fn a_node_comes_back_at_once_under_another_id_where_the_router_holds_the_old_one() {
    let _turn = alone();
    let (took, [before, after]) = after_a_silent_end(Sinew::default());
    println!("back after {took:?}");
    assert_ne!(before, after);
    assert!(took < Duration::from_secs(5), "its lease is 10 s: {took:?}");
}

#[test]
fn a_node_whose_id_was_chosen_comes_back_under_it_when_its_lease_is_over() {
    let _turn = alone();
    let lease = Duration::from_secs(2);
    let sinew = Sinew {
        lease: Some(lease),
        zid: Zid::new(b"chosen"),
        ..Sinew::default()
    };
    let (took, [before, after]) = after_a_silent_end(sinew);
    println!("back after {took:?}, with a lease of {lease:?}");
    assert_eq!(before, after);
}

#[test]
fn a_node_that_sleeps_past_its_lease_comes_back_by_itself() {
    let _turn = alone();
    let (_router, at) = router();
    let mut real = Real.client(&at).expect("a session");
    let endpoint = Endpoint::parse(&at.sinew(), Use::Batches).expect("an endpoint");
    let options = Options {
        lease: Duration::from_millis(500),
        ..Options::client()
    };
    let (node, mut driver) = pubsub::driven(&endpoint, options);
    let (sender, seen) = channel();
    let _subscriber = node
        .subscriber("sleep/to", move |sample| {
            let _ = sender.send(sample.body.payload.to_vec());
        })
        .expect("a key");
    let publisher = node.publisher("sleep/from").expect("a key");
    let quality = Quality::default();
    real.subscribe("in", "sleep/from").expect("a key");
    real.publisher("out", "sleep/to", &quality, true)
        .expect("a key");
    let mut awake = |text: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        let (mut there, mut back) = (false, false);
        while !(there && back) {
            assert!(Instant::now() < end, "{text}: {:?}", node.status());
            // It turns as often as one that has other things to do.
            for _ in 0..10 {
                assert!(driver.turn(Some(Duration::from_millis(5))));
            }
            let _ = publisher.put(text.as_bytes());
            real.put("out", text.as_bytes(), &With::default())
                .expect("put");
            there |= seen.try_iter().any(|payload| payload == text.as_bytes());
            let event = real.event(Duration::from_millis(5)).expect("an event");
            back |= matches!(event, Some(Event { what: Happened::Sample(sample), .. })
                if sample.payload == Seen::of(text.as_bytes()));
        }
    };
    awake("before");
    std::thread::sleep(Duration::from_secs(2));
    awake("after");
    let opened = node.status().opened;
    assert_eq!(opened, 2, "the router has ended the first session");
}

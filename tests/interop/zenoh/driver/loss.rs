//! Datagrams that are lost are counted, each one.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::alone;
use crate::node::*;
use crate::ours::Sinew;
use crate::peer::Real;
use crate::proxy::Loser;

const COUNT: u32 = 1_000;

/// Waits until the sample before this number has come, and says what has come.
fn all(node: &mut dyn Node, id: &str, number: u32) -> Counted {
    let started = Instant::now();
    loop {
        let seen = node.counted(id).expect("counted");
        if seen.received + seen.missing >= u64::from(number) {
            return seen;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{seen:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Numbered samples from one to the other, of which some get lost, but not the last ones.
fn lossy(giver: &mut dyn Node, taker: &mut dyn Node, proxy: &Loser, reliable: bool) -> Counted {
    let id = format!("loss {reliable}");
    let key = format!("loss/{reliable}");
    let quality = Quality {
        block: true,
        express: true,
        ..Quality::default()
    };
    taker.count(&id, &key, Duration::ZERO).expect("a key");
    giver
        .publisher(&id, &key, &quality, reliable)
        .expect("a key");
    while !giver.matching(&id).expect("matching") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let first = giver.put(&id, &0_u32.to_le_bytes(), &With::default());
    first.expect("put");
    // With it went the key, which is said again only after seconds.
    assert_eq!(all(taker, &id, 1).received, 1);
    proxy.loses(true);
    for number in 1..COUNT {
        giver
            .put(&id, &number.to_le_bytes(), &With::default())
            .expect("put");
        // So that no buffer of a socket loses any.
        if number % 16 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    proxy.loses(false);
    giver
        .put(&id, &COUNT.to_le_bytes(), &With::default())
        .expect("put");
    let seen = all(taker, &id, COUNT + 1);
    assert_eq!(seen.backwards, 0);
    assert_eq!(seen.received + seen.missing, u64::from(COUNT) + 1);
    seen
}

#[test]
fn what_a_proxy_loses_of_datagrams_is_what_is_counted() {
    let _turn = alone();
    let any = At::any(Kind::Udp, Path::new(""));
    // No router between them: it would drop some of best effort itself.
    let (mut real, at) = Real.listens(&any).expect("a peer");
    let proxy = Loser::new(&at).expect("a proxy");
    let mut ours = Sinew::default().peer_at(proxy.at()).expect("a session");
    let missed = |ours: &crate::ours::Ours| {
        let stats = ours.node().expect("a node").stats();
        stats.missed_reliable
    };
    // Of its own samples of best effort Zenoh drops some, before they have a number.
    let before = missed(&ours);
    let taken = lossy(real.as_mut(), &mut ours, &proxy, true);
    let lost = proxy.lost(true, true);
    println!("taken: {taken:?}, the proxy lost {lost} frames");
    assert!(lost > 0);
    assert_eq!(missed(&ours) - before, lost, "{}", ours.notes());
    for reliable in [true, false] {
        let given = lossy(&mut ours, real.as_mut(), &proxy, reliable);
        let lost = proxy.lost(false, reliable);
        println!("given, reliable {reliable}: {given:?}, the proxy lost {lost} frames");
        assert_eq!(given.missing, u64::from(lost), "each sample is a frame");
    }
}

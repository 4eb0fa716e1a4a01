//! A node that is never idle does what time asks for all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sinew::pubsub::codec::Qos;
use sinew::pubsub::session::{PublisherOptions, State};
use sinew_io::apart;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::pubsub::{self, Options};

/// So short that signs of life are due many times in the test, and longer than a busy machine keeps a thread
/// from running.
const LEASE: Duration = Duration::from_secs(2);
/// Longer than anything takes that comes about at all.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn receiver_of_an_endless_stream_gives_signs_of_life_and_declares() {
    let at = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&at).unwrap();
    let options = Options {
        lease: LEASE,
        batching: Duration::from_millis(1),
        ..Options::peer()
    };
    let sender = pubsub::open(listener.endpoint(), options.clone());
    let receiver = pubsub::accept(listener.accept_within(None).unwrap(), options);
    sender.wait_open(SOON).unwrap();
    let blocking = PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(true),
        ..PublisherOptions::DEFAULT
    };
    let stream = sender.publisher_with("busy/stream", blocking).unwrap();
    let received = Arc::new(AtomicU64::new(0));
    let counts = received.clone();
    let _first = receiver
        .subscriber("busy/stream", move |_| {
            counts.fetch_add(1, Relaxed);
        })
        .unwrap();
    let probe = sender.publisher("busy/late").unwrap();
    let started = Instant::now();
    let (mut sent, mut late, mut heard) = (0, None, false);
    while started.elapsed() < 2 * LEASE || !heard {
        assert!(started.elapsed() < SOON, "it is not heard of");
        for _ in 0..100 {
            stream.put(&[7; 100]).expect("the session lasts");
            sent += 1;
        }
        // Declared while packets come without end, and heard of meanwhile.
        if late.is_none() && started.elapsed() > LEASE {
            late = Some(receiver.subscriber("busy/late", |_| ()).unwrap());
        }
        heard = probe.is_heard() == Some(true);
    }
    sender.flush().unwrap();
    assert_eq!(sender.state(), State::Open);
    assert!(sent > 0 && received.load(Relaxed) > 0);
    assert_eq!(sender.stats().opened, 1);
    assert_eq!(receiver.stats().gaps, 0);
}

#[test]
fn large_samples_reach_every_subscriber_whole() {
    let at = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&at).unwrap();
    let sender = pubsub::open(listener.endpoint(), Options::peer());
    let receiver = pubsub::accept(listener.accept_within(None).unwrap(), Options::peer());
    let blocking = PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(true),
        ..PublisherOptions::DEFAULT
    };
    let image = sender.publisher_with("busy/image", blocking).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let _subscribers: Vec<_> = (0..3)
        .map(|number| {
            let tell = tell.clone();
            let key = if number == 0 { "busy/image" } else { "busy/*" };
            let take = move |sample: &sinew::pubsub::session::Sample<'_>| {
                tell.send((number, sample.body.payload.to_vec())).unwrap();
            };
            receiver.subscriber(key, take).unwrap()
        })
        .collect();
    sender.wait_open(SOON).unwrap();
    let started = Instant::now();
    while image.is_heard() != Some(true) {
        assert!(started.elapsed() < SOON);
        std::thread::sleep(Duration::from_millis(5));
    }
    for (round, len) in [70_000_usize, 1 << 20, 65_536, 10, 200_000]
        .into_iter()
        .enumerate()
    {
        let payload: Vec<u8> = (0..len).map(|at| (at + round) as u8).collect();
        image.put(&payload).unwrap();
        let mut who: Vec<_> = (0..3)
            .map(|_| told.recv_timeout(SOON).unwrap())
            .map(|(number, got)| {
                assert!(got == payload, "round {round}");
                number
            })
            .collect();
        who.sort_unstable();
        assert_eq!(who, [0, 1, 2]);
    }
}

//! Nodes with threads of their own, joined by a socket.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::{Body, Consolidation, Decode, Kind, Qos, Reader, Zid, transport};
use sinew::pubsub::keyexpr::{KeyExpr, KeyExprError};
use sinew::pubsub::session::{
    Ask, AskError, Config, DeclareError, Fixed, PublisherOptions, Put, PutError, Session, State,
    Step,
};
use sinew::time::Instant;
use sinew_io::apart;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::pubsub::{self, Answer, Node, Options, Overflow, SendOnceError};

/// Longer than anything takes that comes about at all, however loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

/// Two peers with a session.
fn peers() -> (Node, Node) {
    let any = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&any).unwrap();
    let one = pubsub::open(listener.endpoint(), Options::peer());
    let apart = listener.accept_within(Some(SOON)).unwrap();
    let other = pubsub::accept(apart, Options::peer());
    one.wait_open(SOON).unwrap();
    other.wait_open(SOON).unwrap();
    (one, other)
}

/// Waits for what another thread does.
fn until(mut seen: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + SOON;
    while !seen() {
        assert!(std::time::Instant::now() < end, "not in {SOON:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const WAITS: PublisherOptions = PublisherOptions {
    qos: Qos::REQUEST,
    ..PublisherOptions::DEFAULT
};

#[test]
fn a_full_queue_that_nobody_reads_any_more_holds_up_nothing() {
    let (one, other) = peers();
    let publisher = one.publisher_with("demo/k", WAITS).unwrap();
    let samples = other.samples("demo/k", 1, Overflow::Wait).unwrap();
    until(|| publisher.is_heard() == Some(true));
    let before = other.stats().messages;
    assert_eq!(publisher.put(b"fills the queue"), Ok(Put::Heard));
    until(|| other.stats().messages > before);
    drop(samples);
    let (sender, seen) = channel();
    let _subscriber = other.subscriber("demo/other", move |sample| {
        let _ = sender.send(sample.body.payload.to_vec());
    });
    let publisher = one.publisher("demo/other").unwrap();
    until(|| publisher.is_heard() == Some(true));
    assert_eq!(publisher.put(b"arrives"), Ok(Put::Heard));
    assert_eq!(seen.recv_timeout(SOON).as_deref(), Ok(&b"arrives"[..]));
}

#[test]
fn the_longest_keys_that_the_wire_carries_are_known_to_the_other_side() {
    let (one, other) = peers();
    let key = &format!("demo/{}", "k".repeat(65_530));
    let publisher = one.publisher(key).unwrap();
    let samples = other.samples(key, 8, Overflow::Wait).unwrap();
    until(|| publisher.is_heard() == Some(true));
    assert_eq!(publisher.put(b"on"), Ok(Put::Heard));
    let sample = samples.next_within(Some(SOON)).unwrap();
    assert_eq!((&sample.key, &*sample.payload), (key, &b"on"[..]));
    for node in [&one, &other] {
        assert_eq!((node.stats().no_room, node.stats().unknown_key), (0, 0));
    }
    drop(samples);
    until(|| publisher.is_heard() == Some(false));
}

#[test]
fn a_key_that_the_wire_cannot_carry_is_refused() {
    let (one, _other) = peers();
    let key = &"k".repeat(65_536);
    let too_long = DeclareError::Key(KeyExprError::TooLong);
    assert_eq!(one.publisher(key).err(), Some(too_long));
    assert_eq!(one.subscriber(key, |_| {}).err(), Some(too_long));
    assert_eq!(one.queryable(key, true, |_, _| {}).err(), Some(too_long));
    let put = one.put(key, &Body::put(b"on"), PublisherOptions::DEFAULT);
    assert_eq!(put, Err(SendOnceError::Key(KeyExprError::TooLong)));
    let ask = Ask::new(KeyExpr::new(key).unwrap());
    assert_eq!(one.ask(&ask).err(), Some(AskError::Put(PutError::TooLarge)));
    assert!(one.peer().is_some());
}

#[test]
fn a_question_may_wait_for_ever() {
    let (one, _other) = peers();
    let ask = Ask {
        timeout: Duration::MAX,
        ..Ask::new(KeyExpr::new("demo/k").unwrap())
    };
    assert_eq!(one.ask(&ask).unwrap().count(), 0, "nobody answers");
}

#[test]
fn a_node_that_has_had_no_session_ends_at_once() {
    let any = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&any).unwrap();
    let _silent = apart::open(listener.endpoint()).unwrap();
    let apart = listener.accept_within(Some(SOON)).unwrap();
    let hours = Duration::from_secs(36_000);
    let options = Options {
        linger: hours,
        lease: hours,
        ..Options::peer()
    };
    let node = pubsub::accept(apart, options);
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        drop(node);
        let _ = sender.send(());
    });
    assert_eq!(ended.recv_timeout(SOON), Ok(()));
}

#[test]
fn a_node_lingers_no_longer_than_it_may_for_a_peer_that_lives_and_takes_nothing() {
    let any = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&any).unwrap();
    let stuck = pubsub::open(listener.endpoint(), Options::peer());
    let _samples = stuck.samples("demo/k", 1, Overflow::Wait).unwrap();
    let options = Options {
        linger: Duration::from_millis(100),
        ..Options::peer()
    };
    let apart = listener.accept_within(Some(SOON)).unwrap();
    let node = pubsub::accept(apart, options);
    let publisher = node.publisher("demo/k").unwrap();
    until(|| publisher.is_heard() == Some(true));
    until(|| publisher.put(&[0; 60_000]) == Ok(Put::Dropped));
    let ending = std::thread::spawn(move || drop((publisher, node)));
    until(|| ending.is_finished());
}

#[test]
fn what_a_handler_holds_goes_with_its_subscriber() {
    let (one, _other) = peers();
    let (sender, goes) = channel::<()>();
    let nested = one.subscriber("demo/a", |_| {}).unwrap();
    let subscriber = one.subscriber("demo/b", move |_| {
        let _ = (&sender, &nested);
    });
    drop(subscriber.unwrap());
    assert_eq!(
        goes.recv_timeout(SOON),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
}

/// The ids of three attempts in a row, to which the answer is that the id is taken.
fn ids(chosen: Option<Zid>) -> Vec<Zid> {
    let any = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&any).unwrap();
    let options = Options {
        zid: chosen,
        ..Options::client()
    };
    let _node = pubsub::open(listener.endpoint(), options);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let mut apart = listener.accept_within(Some(SOON)).unwrap();
        while apart.rx.peek().unwrap().is_none() {
            apart.rx.wait(Some(SOON));
        }
        let mut packet = Reader::new(apart.rx.peek().unwrap().unwrap());
        let header = packet.byte().unwrap();
        let init = transport::Init::decode(header, &mut packet).unwrap();
        seen.push(init.zid);
        let close = [transport::CLOSE, transport::Close::MAX_LINKS];
        apart.tx.place(2).unwrap()[..2].copy_from_slice(&close);
        apart.tx.commit(2).unwrap();
        apart.tx.flush();
        while let Ok(packet) = apart.rx.peek() {
            match packet {
                Some(_) => apart.rx.release(),
                None => apart.rx.wait(Some(SOON)),
            }
        }
    }
    seen
}

#[test]
fn where_the_id_is_taken_another_one_is_tried_unless_it_was_chosen() {
    let [first, second, third] = ids(None)[..] else {
        panic!("three");
    };
    assert!(first != second && second != third && first != third);
    let chosen = Zid::new(b"chosen").unwrap();
    assert_eq!(ids(Some(chosen)), [chosen; 3]);
}

/// What is answered when the same key has a value and then none.
fn answers(consolidation: Consolidation) -> Vec<(Kind, Qos)> {
    let (one, other) = peers();
    let _queryable = other.queryable("demo/k", true, |_, responder| {
        responder.reply(b"value").unwrap();
        responder.reply_on("demo/k", &Body::del()).unwrap();
    });
    let mut ask = Ask {
        qos: Qos::REQUEST.with_express(true),
        ..Ask::new(KeyExpr::new("demo/k").unwrap())
    };
    ask.query.consolidation = consolidation;
    let mut seen = Vec::new();
    until(|| {
        // It may not have heard of the queryable.
        seen = one.ask(&ask).unwrap().collect();
        !seen.is_empty()
    });
    let samples = seen.into_iter().map(|answer| match answer {
        Answer::Sample(sample) => (sample.kind, sample.qos),
        error => panic!("{error:?}"),
    });
    samples.collect()
}

#[test]
fn an_answer_may_say_that_there_is_nothing_any_more_and_travels_as_it_was_asked() {
    let qos = Qos::REQUEST.with_express(true);
    let (put, delete) = ((Kind::Put, qos), (Kind::Del, qos));
    assert_eq!(answers(Consolidation::Latest), [delete]);
    assert_eq!(answers(Consolidation::Monotonic), [put, delete]);
    assert_eq!(answers(Consolidation::None), [put, delete]);
}

#[test]
fn a_handler_answers_with_more_than_the_link_holds() {
    const ANSWERS: usize = 64;
    let (one, other) = peers();
    let _queryable = other.queryable("demo/*", true, |_, responder| {
        let value = vec![7; 256 << 10];
        for n in 0..ANSWERS {
            let key = format!("demo/{n}");
            responder.reply_on(&key, &Body::put(&value)).unwrap();
        }
    });
    let ask = Ask::new(KeyExpr::new("demo/*").unwrap());
    let mut seen = 0;
    until(|| {
        // It may not have heard of the queryable.
        seen = one.ask(&ask).unwrap().count();
        seen > 0
    });
    assert_eq!(seen, ANSWERS);
}

#[test]
fn two_handlers_that_fill_both_ways_of_a_link_do_not_wait_for_each_other_for_ever() {
    let (one, other) = peers();
    let (full, was_full) = channel();
    let (sender, arrived) = channel();
    let both = Arc::new(Barrier::new(2));
    let mut kept = Vec::new();
    for (node, from, to) in [(&one, "demo/a", "demo/b"), (&other, "demo/b", "demo/a")] {
        let publisher = Arc::new(node.publisher_with(to, WAITS).unwrap());
        let (back, full, sender) = (publisher.clone(), full.clone(), sender.clone());
        let both = both.clone();
        let subscriber = node.subscriber(from, move |sample| {
            if sample.body.payload == b"go" {
                // Each sends while the other one does not receive. Far more than sockets hold.
                both.wait();
                if back.put(&vec![0; 32 << 20]) == Err(PutError::Full) {
                    let _ = full.send(());
                }
            }
            let _ = sender.send(sample.body.payload.len());
        });
        kept.push((publisher, subscriber.unwrap()));
    }
    let publishers = || kept.iter().map(|(publisher, _)| publisher);
    until(|| publishers().all(|publisher| publisher.is_heard() == Some(true)));
    assert!(publishers().all(|publisher| publisher.put(b"go").is_ok()));
    was_full.recv_timeout(SOON).unwrap();
    assert!(publishers().all(|publisher| publisher.put(b"!").is_ok()));
    let mut small = 0;
    while small < 2 {
        small += usize::from(arrived.recv_timeout(SOON).unwrap() == 1);
    }
}

/// Keeps the last packet, to be changed on its way.
#[derive(Default)]
struct Kept(Vec<u8>);

impl Tx for Kept {
    fn mtu(&self) -> usize {
        65_535
    }

    fn place(&mut self, _min: usize) -> Result<&mut [u8], SendError> {
        self.0.resize(self.mtu(), 0);
        Ok(&mut self.0)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.0.truncate(len);
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &std::task::Waker) {
        waker.wake_by_ref();
    }
}

#[test]
fn what_stands_in_one_packet_with_the_end_of_the_session_arrives() {
    const LAMP: KeyExpr = KeyExpr::from_static("demo/lamp");
    let any = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&any).unwrap();
    let node = pubsub::open(listener.endpoint(), Options::peer());
    let samples = node.samples("demo/*", 1000, Overflow::Wait).unwrap();
    let mut apart = listener.accept_within(Some(SOON)).unwrap();
    let zid = Zid::new(b"other").unwrap();
    let config = Config {
        batching: SOON,
        ..Config::peer(zid)
    };
    let mut session = Session::new(config, Fixed::<1>::new());
    let now = Instant::START;
    let lamp = session.publisher(LAMP, PublisherOptions::DEFAULT).unwrap();
    session.accept();
    while session.state() != State::Open {
        let Some(packet) = apart.rx.peek().unwrap() else {
            apart.rx.wait(Some(SOON));
            continue;
        };
        while !matches!(session.receive(packet, &mut *apart.tx, now), Step::Done) {}
        apart.rx.release();
    }
    while !matches!(session.poll(&mut *apart.tx, now), Step::Done) {}
    let mut kept = Kept::default();
    for n in 0..100_u8 {
        session.put(&mut kept, lamp, &[n], now).unwrap();
    }
    session.flush(&mut kept, now).unwrap();
    kept.0.extend([transport::CLOSE, 0]);
    let len = kept.0.len();
    apart.tx.place(len).unwrap()[..len].copy_from_slice(&kept.0);
    apart.tx.commit(len).unwrap();
    apart.tx.flush();
    let seen: Vec<u8> = (0..100)
        .map_while(|_| Some(samples.next_within(Some(SOON))?.payload[0]))
        .collect();
    assert_eq!(seen, Vec::from_iter(0..100));
}

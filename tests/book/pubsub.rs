//! The samples of the pages on publish, subscribe and query.

// ANCHOR: uses
use std::error::Error;
use std::sync::mpsc::channel;
use std::time::Duration;

use sinew_io::apart;
use sinew_io::pubsub::{
    self, Answer, Ask, Body, Encoding, Ended, KeyExpr, Node, Options, Overflow, Priority,
    Publisher, PublisherOptions, Put, PutError, Qos, State,
};
// ANCHOR_END: uses

/// How long anything may take that should come at once.
const SOON: Duration = Duration::from_secs(10);

/// Two peers: the first has opened the session.
fn peers() -> Result<(Node, Node), Box<dyn Error>> {
    // ANCHOR: peers
    let mut listener = apart::listen(&pubsub::endpoint("tcp:127.0.0.1:0")?)?;
    let near = pubsub::open(listener.endpoint(), Options::peer());
    let link = listener.accept_within(None).ok_or("nobody came")?;
    let far = pubsub::accept(link, Options::peer());
    near.wait_open(Duration::from_secs(10))?;
    // ANCHOR_END: peers
    Ok((near, far))
}

#[test]
fn a_publisher_has_four_lines() -> Result<(), Box<dyn Error>> {
    let mut listener = apart::listen(&pubsub::endpoint("tcp:127.0.0.1:0")?)?;
    let router = listener.endpoint().to_string();
    let there = std::thread::spawn(move || {
        let peer = pubsub::accept(listener.accept_within(Some(SOON))?, Options::peer());
        let samples = peer.samples("demo/*", 16, Overflow::Wait).ok()?;
        samples.next_within(Some(SOON))
    });
    let router = router.as_str();
    // ANCHOR: publish
    let node = pubsub::connect(router)?; // "tcp:127.0.0.1:7447"
    let lamp = node.publisher("demo/lamp")?;
    let became = lamp.put(b"on")?;
    println!("{became}");
    // ANCHOR_END: publish
    // Its subscriber may have been told of by then.
    assert!(matches!(became, Put::Sent | Put::Heard));
    let sample = there.join().unwrap().ok_or("no sample")?;
    assert_eq!((&*sample.key, &*sample.payload), ("demo/lamp", &b"on"[..]));
    Ok(())
}

#[test]
fn many_samples_right_before_the_end_of_a_program_arrive() -> Result<(), Box<dyn Error>> {
    let mut listener = apart::listen(&pubsub::endpoint("tcp:127.0.0.1:0")?)?;
    let router = listener.endpoint().to_string();
    let there = std::thread::spawn(move || {
        let link = listener.accept_within(Some(SOON))?;
        let (peer, mut driver) = pubsub::driven_accept(link, Options::peer());
        let samples = peer.samples("demo/*", 16, Overflow::Wait).ok()?;
        std::thread::spawn(move || while driver.turn(None) {});
        (0..10_000).try_for_each(|_| samples.next_within(Some(SOON)).map(drop))
    });
    let router = router.as_str();
    // ANCHOR: surely
    let options = Options {
        linger: Duration::from_secs(5),
        ..Options::client()
    };
    let node = pubsub::open(&pubsub::endpoint(router)?, options);
    node.wait_open(Duration::from_secs(10))?;
    let waits = PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(true),
        ..PublisherOptions::DEFAULT
    };
    let lamp = node.publisher_with("demo/lamp", waits)?;
    // ANCHOR_END: surely
    for _ in 0..10_000 {
        lamp.put(b"on")?;
    }
    drop((lamp, node));
    there.join().unwrap().ok_or("some are missing")?;
    Ok(())
}

// ANCHOR: results
fn tell(level: &Publisher, percent: u8) -> Result<(), PutError> {
    match level.put(&[percent]) {
        Ok(Put::Heard | Put::Sent) => Ok(()), // it is on its way
        Ok(Put::Unheard) => Ok(()),           // nobody wants it: it was not sent
        Ok(Put::Dropped) => Ok(()),           // the link is full: the next one is newer anyway
        Err(PutError::NotOpen) => Ok(()),     // the node is connecting again
        Err(error) => Err(error),
    }
}
// ANCHOR_END: results

#[test]
fn samples_arrive_at_a_handler_and_in_a_queue() -> Result<(), Box<dyn Error>> {
    let (near, far) = peers()?;
    // ANCHOR: subscriber
    // In a queue of 100, from which any thread takes them.
    let levels = far.samples("tank/*/level", 100, Overflow::DropOldest)?;

    // In the node's thread, which receives nothing meanwhile: short, and without waiting.
    let (tell_main, alarms) = channel();
    let _subscriber = far.subscriber("tank/*/alarm", move |sample| {
        let _ = tell_main.send(sample.key.to_owned());
    })?;
    // ANCHOR_END: subscriber

    let level = near.publisher("tank/7/level")?;
    assert_eq!(level.wait_heard(SOON), Some(true));
    tell(&level, 42)?;
    // ANCHOR: next
    while let Some(sample) = levels.next_within(Some(Duration::from_secs(1))) {
        println!("{}: {:?}", sample.key, sample.payload);
        if sample.payload == [42] {
            break;
        }
    }
    println!("{} were dropped", levels.dropped());
    // ANCHOR_END: next

    // ANCHOR: options
    let options = PublisherOptions {
        qos: Qos::DEFAULT
            .with_priority(Priority::RealTime)
            .with_blocking(true)
            .with_express(true),
        reliable: true,
        filter: true,
    };
    let alarm = near.publisher_with("tank/7/alarm", options)?;
    alarm.wait_heard(Duration::from_secs(1));
    alarm.publish(&Body {
        encoding: Encoding::TEXT_PLAIN,
        attachment: Some(b"float switch"),
        ..Body::put(b"too full")
    })?;
    // ANCHOR_END: options
    assert_eq!(alarms.recv_timeout(SOON)?, "tank/7/alarm");

    // ANCHOR: place
    level.put_with(4, |place| place.copy_from_slice(&7u32.to_le_bytes()))?;
    // ANCHOR_END: place
    let sample = levels.next_within(Some(SOON)).ok_or("no sample")?;
    assert_eq!(sample.payload, [7, 0, 0, 0]);
    Ok(())
}

#[test]
fn a_queryable_answers_a_query() -> Result<(), Box<dyn Error>> {
    let (near, far) = peers()?;
    // ANCHOR: queryable
    let _queryable = far.queryable("tank/7/*", true, |question, responder| {
        // Any number of answers. The responder can go to another thread; dropped, it says that this
        // was all.
        let _ = match question.query.parameters {
            "unit=litre" => responder.reply_on("tank/7/limits", &Body::put(b"10 900")),
            _ => responder.error(Encoding::TEXT_PLAIN, b"unit: litre"),
        };
    })?;
    // ANCHOR_END: queryable

    // ANCHOR: query
    let mut ask = Ask::new(KeyExpr::new("tank/7/limits")?);
    ask.timeout = Duration::from_secs(2);
    ask.query.parameters = "unit=litre";
    let mut answers = near.ask(&ask)?;
    for answer in &mut answers {
        match answer {
            Answer::Sample(sample) => println!("{}: {:?}", sample.key, sample.payload),
            Answer::Error { payload, .. } => println!("{}", payload.escape_ascii()),
        }
    }
    assert_eq!(answers.ended(), Some(Ended::Complete));
    // ANCHOR_END: query
    let answers: Vec<Answer> = near.ask(&ask)?.collect();
    assert!(matches!(&answers[..], [Answer::Sample(one)] if one.payload == b"10 900"));
    ask.query.parameters = "";
    let answers: Vec<Answer> = near.ask(&ask)?.collect();
    assert!(matches!(&answers[..], [Answer::Error { .. }]));
    Ok(())
}

#[test]
fn a_node_says_how_it_is() -> Result<(), Box<dyn Error>> {
    let (near, far) = peers()?;
    let at = pubsub::endpoint("tcp:127.0.0.1:1")?;
    // ANCHOR: batching
    let options = Options {
        batching: Duration::from_millis(1), // a sample waits for others at most so long
        lease: Duration::from_secs(3),
        ..Options::client()
    };
    let node = pubsub::open(&at, options);
    // ANCHOR_END: batching
    drop(far);
    while near.state() == State::Open {
        std::thread::yield_now();
    }
    for node in [&node, &near] {
        // ANCHOR: state
        let status = node.status();
        println!("{}: {} sessions so far", node.state(), status.opened);
        if let Some(trouble) = status.trouble {
            println!("{trouble}; {} attempts since", status.failures);
        }
        for (name, count) in node.stats().iter().filter(|(_, count)| *count > 0) {
            println!("{name} {count}");
        }
        // ANCHOR_END: state
    }
    assert_eq!(near.stats().opened, 1);
    node.flush().unwrap_or_default();
    Ok(())
}

/// What a microcontroller does, and what is on the other side.
mod bare {
    // ANCHOR: step
    use sinew::link::{RecvError, Rx, Tx};
    use sinew::pubsub::session::{Event, Session, Step, Tables};
    use sinew::time::Instant;

    /// Does all that there is to do, and says when to come again if nothing arrives before.
    fn step<T: Tables>(
        session: &mut Session<T>,
        tx: &mut impl Tx,
        rx: &mut impl Rx,
        now: Instant,
        mut take: impl FnMut(Event<'_>),
    ) -> Result<Instant, RecvError> {
        while let Some(packet) = rx.peek()? {
            loop {
                match session.receive(packet, tx, now) {
                    Step::More => {}
                    Step::Event(event) => take(event),
                    Step::Done => break,
                    // An answer has no place: the same packet again when there is one.
                    Step::Full => return Ok(now),
                }
            }
            rx.release();
        }
        loop {
            match session.poll(tx, now) {
                Step::More => {}
                Step::Event(event) => take(event),
                Step::Done => return Ok(session.deadline()),
                Step::Full => return Ok(now), // or when there is a place: see `Tx::arm`
            }
        }
    }
    // ANCHOR_END: step

    #[test]
    fn two_sessions_without_heap() -> Result<(), Box<dyn std::error::Error>> {
        // ANCHOR: bare
        use std::time::Duration;

        use sinew::link::queue::pair;
        use sinew::pubsub::codec::Zid;
        use sinew::pubsub::session::{Config, Fixed, PublisherOptions, Put};
        use sinew_shm::{Queue, StdLock}; // on a chip: the lock of its critical sections

        // The link: eight blocks of 128 bytes in each direction.
        static THERE: Queue<StdLock, 8, 128> = Queue::new();
        static BACK: Queue<StdLock, 8, 128> = Queue::new();
        let ((mut tx, mut rx), (mut far_tx, mut far_rx)) = pair(&THERE, &BACK).ok_or("in use")?;

        // One publisher, two keys of the peer (and two rows to put keys together).
        let sensor = Zid::new(b"sensor").ok_or("an id")?; // random, and new after each reset
        let mut sensor = Session::new(Config::peer(sensor), Fixed::<1, 0, 0, 0, 4>::new());
        let level = sensor.publisher("tank/7/level", PublisherOptions::DEFAULT)?;
        // One subscriber, one key of the peer.
        let panel = Zid::new(b"panel").ok_or("an id")?;
        let mut panel = Session::new(Config::peer(panel), Fixed::<0, 1, 0, 0, 3>::new());
        panel.subscriber("tank/*/level")?;

        let mut now = Instant::from_micros(0);
        sensor.open(now);
        panel.accept();
        let (mut percent, mut seen) = (0, 0);
        while seen < 5 {
            now = now.after(Duration::from_millis(1)); // what a clock does
            step(&mut sensor, &mut tx, &mut rx, now, |_| {})?;
            if sensor.is_heard(level) == Some(true) {
                assert_eq!(sensor.put(&mut tx, level, &[percent], now), Ok(Put::Heard));
                percent += 1;
            }
            step(&mut panel, &mut far_tx, &mut far_rx, now, |event| {
                if let Event::Sample { sample, .. } = event {
                    assert_eq!(
                        (sample.key, sample.body.payload),
                        ("tank/7/level", &[seen][..])
                    );
                    seen += 1;
                }
            })?;
        }
        // ANCHOR_END: bare
        assert_eq!(seen, percent);
        Ok(())
    }
}

#[tokio::test]
async fn tasks_publish_and_receive() -> Result<(), Box<dyn Error>> {
    use sinew_io::tokio::pubsub;

    let (near, far) = sinew_io::threads::link();
    let near = pubsub::over(near.apart(), Options::peer());
    let far = pubsub::accept(far.apart(), Options::peer());

    // ANCHOR: tasks
    use sinew_io::tokio::pubsub::AsyncNode;

    async fn follow(node: AsyncNode) -> Result<(), Box<dyn Error>> {
        let lamp = node.publisher("demo/lamp")?;
        let mut switches = node.samples("demo/switch", 16, Overflow::Wait)?;
        while let Some(switch) = switches.recv().await {
            lamp.put(&switch.payload).await?;
        }
        Ok(()) // the node has ended
    }
    // ANCHOR_END: tasks

    near.wait_open(SOON).await?;
    let mut lamps = far.samples("demo/lamp", 16, Overflow::Wait)?;
    let switch = far.publisher("demo/switch")?;
    let following = follow(near);
    let pressing = async {
        switch.wait_heard(SOON).await;
        // Until the lamp knows that somebody looks at it.
        loop {
            switch.put(b"on").await?;
            let waited = tokio::time::timeout(Duration::from_millis(20), lamps.recv()).await;
            if let Ok(lamp) = waited {
                return Ok::<_, PutError>(lamp);
            }
        }
    };
    tokio::select! {
        followed = following => panic!("{followed:?}"),
        lamp = pressing => assert_eq!(lamp?.ok_or("it has ended")?.payload, b"on"),
    }
    Ok(())
}

//! Nodes in tasks.

#[path = "support/nodes.rs"]
mod nodes;
mod support;

use std::time::Duration;

use nodes::*;
use sinew::pubsub::codec::{Body, Encoding};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Ask, Ended, Put, PutError, State};
use sinew_io::apart::{Apart, Listener};
use sinew_io::pubsub::{Answer, Options, Overflow};
use sinew_io::threads;
use sinew_io::tokio::pubsub::{self, AsyncNode, AsyncPublisher};
use tokio::time::{sleep, timeout};

async fn accepted(mut listener: Listener) -> (Listener, Apart) {
    let accept = move || {
        let apart = listener.accept_within(Some(SOON)).expect("it comes");
        (listener, apart)
    };
    tokio::task::spawn_blocking(accept).await.unwrap()
}

async fn opened(one: AsyncNode, other: AsyncNode) -> (AsyncNode, AsyncNode) {
    one.wait_open(SOON).await.unwrap();
    other.wait_open(SOON).await.unwrap();
    (one, other)
}

/// Two peers with a session over a link of this kind.
async fn peers(kind: &str) -> (AsyncNode, AsyncNode) {
    if kind == "threads" {
        let (near, far) = threads::link();
        let one = pubsub::over(near.apart(), Options::peer());
        return opened(one, pubsub::accept(far.apart(), Options::peer())).await;
    }
    let listener = listener(kind);
    let one = pubsub::open(listener.endpoint(), Options::peer());
    let (_, apart) = accepted(listener).await;
    opened(one, pubsub::accept(apart, Options::peer())).await
}

async fn heard(publisher: &AsyncPublisher) {
    assert_eq!(publisher.wait_heard(SOON).await, Some(true));
}

async fn waits_and_keeps_order(kind: &str, count: u32) {
    let (one, other) = peers(kind).await;
    let mut samples = other.samples("demo/**", 8, Overflow::Wait).unwrap();
    let publisher = one.publisher_with("demo/k", WAITS).unwrap();
    heard(&publisher).await;
    let publishing = tokio::spawn(async move {
        for n in 0..count {
            assert_eq!(publisher.put(&n.to_le_bytes()).await, Ok(Put::Heard));
        }
        publisher
    });
    for n in 0..count {
        let sample = timeout(SOON, samples.recv()).await.expect("it arrives");
        let sample = sample.expect("the node is there");
        assert_eq!(
            (sample.key, sample.payload),
            ("demo/k".into(), n.to_le_bytes().into())
        );
    }
    publishing.await.unwrap();
    assert_eq!(samples.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn samples_arrive_in_order_over_every_link() {
    // Datagrams are lost where they come faster than they are read.
    for (kind, count) in [
        ("tcp", 3000),
        ("unix", 3000),
        ("shm", 3000),
        ("threads", 3000),
        ("udp", 50),
    ] {
        waits_and_keeps_order(kind, count).await;
    }
}

#[tokio::test]
async fn both_nodes_live_in_one_thread() {
    for kind in ["tcp", "shm", "threads"] {
        waits_and_keeps_order(kind, 3000).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_are_answered_by_tasks() {
    for kind in ["unix", "udp", "shm"] {
        answers(kind).await;
    }
}

async fn answers(kind: &str) {
    let (one, other) = peers(kind).await;
    let _queryable = other.queryable("demo/*", true, |question, responder| {
        let number: u32 = question.query.parameters.parse().unwrap();
        tokio::spawn(async move {
            sleep(Duration::from_millis(u64::from(number % 3))).await;
            if number == 7 {
                return responder.error(Encoding::TEXT_PLAIN, b"not that").await;
            }
            for key in ["demo/a", "demo/b"] {
                responder
                    .reply_on(key, &Body::put(&number.to_le_bytes()))
                    .await?;
            }
            Ok(())
        });
    });
    let asking: Vec<_> = (0..20u32)
        .map(|number| {
            let one = one.clone();
            tokio::spawn(async move {
                let parameters = number.to_string();
                let mut ask = Ask::new(KeyExpr::new("demo/*").unwrap());
                ask.query.parameters = &parameters;
                let mut replies = one.ask(&ask).await.unwrap();
                let mut keys = Vec::new();
                while let Some(answer) = replies.recv().await {
                    match answer {
                        Answer::Sample(sample) => {
                            assert_eq!(sample.payload, number.to_le_bytes());
                            keys.push(sample.key);
                        }
                        Answer::Error { payload, .. } => {
                            assert_eq!((number, &payload[..]), (7, &b"not that"[..]));
                            keys.push("none".into());
                        }
                    }
                }
                assert_eq!(replies.ended(), Some(Ended::Complete));
                keys
            })
        })
        .collect();
    for (number, task) in asking.into_iter().enumerate() {
        let keys = task.await.unwrap();
        match number {
            7 => assert_eq!(keys, ["none"]),
            _ => assert_eq!(keys, ["demo/a", "demo/b"]),
        }
    }
}

/// Puts until one waits: how many have gone.
async fn fill(publisher: &AsyncPublisher, len: usize) -> u32 {
    let mut count = 0;
    loop {
        let payload = payload(1, count, len);
        let put = timeout(Duration::from_millis(200), publisher.put(&payload));
        match put.await {
            Ok(put) => assert_eq!(put, Ok(Put::Heard)),
            Err(_) => return count,
        }
        count += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_is_dropped_while_it_waits_sends_nothing() {
    for (kind, len) in [
        ("tcp", 5000),
        ("tcp", LARGE),
        ("shm", LARGE),
        ("threads", 50_000),
    ] {
        let (one, other) = peers(kind).await;
        let mut samples = other.samples("demo/k", 1, Overflow::Wait).unwrap();
        let publisher = one.publisher_with("demo/k", WAITS).unwrap();
        heard(&publisher).await;
        let count = fill(&publisher, len).await;
        // Where the machine is busy, it was not the link that was full.
        let tried = publisher.try_put(&payload(2, 0, len));
        assert!(matches!(tried, Err(PutError::Full) | Ok(Put::Heard)));
        // The one that was dropped had this number, and so has another publisher's now.
        let publishing = tokio::spawn(async move {
            publisher.put(&payload(3, count, len)).await.unwrap();
            publisher.delete().await.unwrap();
            publisher
        });
        for n in 0..count {
            let sample = timeout(SOON, samples.recv()).await.unwrap().unwrap();
            assert_eq!((read(&sample.payload), sample.payload.len()), ((1, n), len));
        }
        if tried.is_ok() {
            let sample = timeout(SOON, samples.recv()).await.unwrap().unwrap();
            assert_eq!(read(&sample.payload), (2, 0));
        }
        let sample = timeout(SOON, samples.recv()).await.unwrap().unwrap();
        assert_eq!(
            (read(&sample.payload), sample.payload.len()),
            ((3, count), len)
        );
        let end = timeout(SOON, samples.recv()).await.unwrap().unwrap();
        assert!(end.payload.is_empty());
        publishing.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_publish_at_once_and_nothing_is_lost_or_torn() {
    const TASKS: u8 = 8;
    const EACH: u32 = 12;
    for kind in ["tcp", "shm", "threads"] {
        let (one, other) = peers(kind).await;
        let mut samples = other.samples("demo/*", 4, Overflow::Wait).unwrap();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                // All of one kind on the same key, so that only their bytes tell them apart.
                let publisher = one.publisher_with("demo/k", WAITS).unwrap();
                tokio::spawn(async move {
                    heard(&publisher).await;
                    for n in 0..EACH {
                        let len = if task % 4 == 3 { 100 } else { LARGE };
                        let put = publisher.put(&payload(task, n, len)).await;
                        assert_eq!(put, Ok(Put::Heard));
                    }
                })
            })
            .collect();
        let mut next = [0; TASKS as usize];
        for _ in 0..u32::from(TASKS) * EACH {
            let sample = timeout(SOON, samples.recv()).await.unwrap().unwrap();
            let (task, number) = read(&sample.payload);
            assert_eq!(next[usize::from(task)], number);
            next[usize::from(task)] += 1;
        }
        assert_eq!(next, [EACH; TASKS as usize]);
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_comes_back_when_the_listener_does() {
    let listener = listener("tcp");
    let at = listener.endpoint().clone();
    let one = pubsub::open(&at, Options::peer());
    let (listener, apart) = accepted(listener).await;
    let (one, other) = opened(one, pubsub::accept(apart, Options::peer())).await;
    let publisher = one.publisher_with("demo/k", WAITS).unwrap();
    let mut samples = other.samples("demo/k", 8, Overflow::Wait).unwrap();
    heard(&publisher).await;
    publisher.put(b"before").await.unwrap();
    assert_eq!(samples.recv().await.unwrap().payload, b"before");

    let _queryable = other.queryable("demo/q", true, |_, responder| std::mem::forget(responder));
    let mut replies = one
        .ask(&Ask::new(KeyExpr::new("demo/q").unwrap()))
        .await
        .unwrap();
    drop((listener, _queryable, samples, other));
    assert_eq!(timeout(SOON, replies.recv()).await.unwrap().map(drop), None);
    // The node may have said first that nobody answers any more.
    assert!(matches!(
        replies.ended(),
        Some(Ended::Lost | Ended::Complete)
    ));

    let lost = async {
        while one.state() == State::Open {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, lost).await.unwrap();
    assert_eq!(publisher.put(b"nowhere").await, Err(PutError::NotOpen));
    let troubled = async {
        while one.status().trouble.is_none() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, troubled).await.unwrap();

    let (_listener, apart) = accepted(sinew_io::apart::listen(&at).unwrap()).await;
    let (one, other) = opened(one, pubsub::accept(apart, Options::peer())).await;
    assert_eq!((one.status().opened, one.status().failures), (2, 0));
    let mut samples = other.samples("demo/k", 8, Overflow::Wait).unwrap();
    heard(&publisher).await;
    publisher
        .put_with(5, |room| room.copy_from_slice(b"after"))
        .await
        .unwrap();
    assert_eq!(samples.recv().await.unwrap().payload, b"after");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_receiver_holds_the_publisher_up_or_misses_what_is_counted() {
    let (one, other) = peers("unix").await;
    let mut waits = other.samples("demo/waits", 2, Overflow::Wait).unwrap();
    let mut misses = other
        .samples("demo/misses", 2, Overflow::DropOldest)
        .unwrap();
    let publisher = one.publisher_with("demo/waits", WAITS).unwrap();
    let missed = one.publisher_with("demo/misses", WAITS).unwrap();
    heard(&publisher).await;
    heard(&missed).await;
    const COUNT: u32 = 300;
    let publishing = tokio::spawn(async move {
        for n in 0..COUNT {
            missed.put(&n.to_le_bytes()).await.unwrap();
            publisher.put(&payload(0, n, 20_000)).await.unwrap();
        }
        (publisher, missed)
    });
    for n in 0..COUNT {
        sleep(Duration::from_millis(1)).await;
        let sample = timeout(SOON, waits.recv()).await.unwrap().unwrap();
        assert_eq!(read(&sample.payload), (0, n));
    }
    publishing.await.unwrap();
    assert_eq!(misses.dropped(), u64::from(COUNT) - 2);
    for n in [COUNT - 2, COUNT - 1] {
        assert_eq!(misses.recv().await.unwrap().payload, n.to_le_bytes());
    }
}

#[test]
fn a_put_allocates_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    for kind in ["tcp", "shm", "threads"] {
        let (one, other) = runtime.block_on(peers(kind));
        let enter = runtime.enter();
        let _subscriber = other.subscriber("demo/k", |_| ()).unwrap();
        let publisher = one.publisher_with("demo/k", WAITS).unwrap();
        drop(enter);
        runtime.block_on(heard(&publisher));
        let put = |count: u32| {
            runtime.block_on(async {
                for n in 0..count {
                    assert_eq!(publisher.put(&n.to_le_bytes()).await, Ok(Put::Heard));
                }
            });
        };
        // Until every buffer is there.
        put(20_000);
        let counted = allocation_counter::measure(|| put(1000)).count_total;
        assert_eq!(counted, 0, "over {kind}");
    }
}

#[tokio::test]
async fn receivers_end_with_the_node() {
    let (one, other) = peers("threads").await;
    let mut samples = other.samples("demo/k", 2, Overflow::Wait).unwrap();
    drop(one);
    assert_eq!(timeout(SOON, samples.recv()).await.unwrap(), None);
    assert!(other.wait_open(SOON).await.is_err());
}

#[tokio::test]
async fn handlers_publish_without_waiting() {
    let (one, other) = peers("tcp").await;
    let mut samples = one.samples("demo/answer", 8, Overflow::Wait).unwrap();
    let answer = other.publisher_with("demo/answer", WAITS).unwrap();
    heard(&answer).await;
    let _echo = other.subscriber("demo/k", move |sample| {
        assert_eq!(answer.try_put(sample.body.payload), Ok(Put::Heard));
    });
    let publisher = one.publisher("demo/k").unwrap();
    heard(&publisher).await;
    publisher.put(b"hello").await.unwrap();
    assert_eq!(
        timeout(SOON, samples.recv())
            .await
            .unwrap()
            .unwrap()
            .payload,
        b"hello"
    );
}

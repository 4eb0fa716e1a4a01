//! The async drivers: many tasks on one client, and a server in a task.

mod support;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use sinew::link::{Rx, Tx};
use sinew::rpc::{CallError, Status};
use sinew_demo::{KindsAnswers, Num, cache, exercise_async, exercise_kinds_async, kinds};
use sinew_io::shm::config::{CHANNEL, calls};
use sinew_io::shm::process::ProcessLink;
use sinew_io::tokio::{AsyncClient, connect, serve};
use sinew_io::{Link, shm, threads};
use sinew_shm::domain::Role;
use sinew_shm::linux::link;
use support::*;

async fn all_kinds(client: &AsyncClient, items: u32) {
    assert_eq!(
        exercise_async(&mut cache::AsyncClient(client), -7).await,
        Ok(-7)
    );
    // However slow the machine is: a stream of the client lives for as long as all of it takes.
    let client = client.with_timeout(Duration::from_secs(600));
    let mut kinds = kinds::AsyncClient(&client);
    let answers = KindsAnswers {
        doubled: 2 * items,
        summed: items * (items - 1) / 2,
    };
    assert_eq!(exercise_kinds_async(&mut kinds, items).await, Ok(answers));
    let over = Err(CallError::Status(Status::OUT_OF_RANGE));
    assert_eq!(kinds.double(&Num { n: 1 << 31 }).await, over);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_kinds_over_every_carrier() {
    // Datagrams are lost where they come faster than they are read.
    for (kind, items) in [("tcp", 1000), ("unix", 1000), ("shm", 1000), ("udp", 10)] {
        let (_server, listening) = listen(kind);
        all_kinds(&connect(listening.endpoint()).await.unwrap(), items).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_share_a_client() {
    for kind in ["tcp", "shm"] {
        share(kind).await;
    }
}

async fn share(kind: &str) {
    let (_server, listening) = listen(kind);
    let client = connect(listening.endpoint()).await.unwrap();
    let tasks: Vec<_> = (0..32)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    let n = task * 1000 + n;
                    let answer = kinds::AsyncClient(&client).double(&Num { n }).await;
                    assert_eq!(answer, Ok(Num { n: 2 * n }));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn client_and_server_in_one_runtime_thread() {
    let (near, far) = threads::link();
    near_calls_far(near.split(), far.split()).await;
}

#[tokio::test]
async fn client_and_server_share_memory_in_one_runtime_thread() {
    let (near, far) = shm::threads::link().unwrap();
    near_calls_far(near.split(), far.split()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_and_server_share_memory_in_two_runtime_threads() {
    let (near, far) = shm::threads::link().unwrap();
    near_calls_far(near.split(), far.split()).await;
}

async fn near_calls_far<T, R>(near: (T, R), far: (T, R))
where
    T: Tx + Send + 'static,
    R: Rx + Send + 'static,
{
    let server = server();
    let served = tokio::spawn({
        let server = server.clone();
        async move { serve(&server, far.0, far.1, 1).await }
    });
    let client = AsyncClient::over(Box::new(near.0), Box::new(near.1), None, 1);
    all_kinds(&client, 1000).await;
    drop(client);
    assert!(served.await.unwrap());
    assert_eq!(server.links(), 0);
}

#[tokio::test]
async fn cancelled_call_ends_at_the_server() {
    for kind in ["unix", "shm"] {
        cancels(kind).await;
    }
}

async fn cancels(kind: &str) {
    let (server, listening) = listen(kind);
    let client = connect(listening.endpoint()).await.unwrap();
    let count = kinds::AsyncClient(&client)
        .count(&Num { n: u32::MAX })
        .await
        .unwrap();
    count.cancel();
    while server.stats().cancelled == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(
        kinds::AsyncClient(&client).double(&Num { n: 4 }).await,
        Ok(Num { n: 8 })
    );
}

#[tokio::test]
async fn every_call_has_a_deadline_and_ends_with_the_link() {
    let path = fresh_path("sock");
    let mute = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let endpoint = format!("unix:{}", path.display()).parse().unwrap();
    let client = connect(&endpoint).await.unwrap();
    let peer = mute.accept().unwrap();
    let hasty = client.with_timeout(Duration::from_millis(20));
    let late = Err(CallError::DeadlineExceeded);
    assert_eq!(kinds::AsyncClient(&hasty).double(&Num { n: 1 }).await, late);
    let patient =
        tokio::spawn(async move { kinds::AsyncClient(&client).double(&Num { n: 1 }).await });
    tokio::task::yield_now().await;
    drop(peer);
    assert_eq!(patient.await.unwrap(), Err(CallError::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_shared_memory_end_with_the_thread_that_serves_them() {
    let (near, far) = shm::threads::link().unwrap();
    let (tx, rx) = far.split();
    let served = tokio::spawn(async move { serve(&server(), tx, rx, 1).await });
    let (tx, rx) = near.split();
    let client = AsyncClient::over(Box::new(tx), Box::new(rx), None, 1);
    let client = client.with_timeout(Duration::from_secs(3600));
    let mut echo = kinds::AsyncClient(&client).echo_all().await.unwrap();
    echo.send(&Num { n: 7 }).await.unwrap();
    assert_eq!(echo.next().await, Ok(Some(Num { n: 7 })));
    served.abort();
    assert_eq!(echo.next().await, Err(CallError::Closed));
    let late = kinds::AsyncClient(&client).double(&Num { n: 1 }).await;
    assert_eq!(late, Err(CallError::Closed));
}

/// The peer may take a side without one for dead.
#[tokio::test]
async fn idle_link_over_shared_memory_gives_its_sign_of_life() {
    let heartbeat = Duration::from_millis(5);
    let mut options = link::Options::default();
    options.end.heartbeat = 5;
    let (near, far) = link::Link::pair(calls(64), options).unwrap();
    let near = ProcessLink::new(near, CHANNEL, Duration::ZERO).unwrap();
    let _halves = near.split().unwrap();
    let seen = far.end().observe();
    let beats = || seen.side(Role::First).unwrap().heartbeat;
    let before = beats();
    while beats() < before + 5 {
        tokio::time::sleep(heartbeat).await;
    }
}

/// A task that nobody runs; its references are counted.
struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test]
async fn sender_that_gives_up_leaves_nothing_behind() {
    let (mut near, _far) = threads::link();
    let tx = near.halves().0;
    while tx.place(1).is_ok() {
        tx.commit(1).unwrap();
    }
    let (tx, rx) = near.split();
    let client = AsyncClient::over(Box::new(tx), Box::new(rx), None, 1);
    let mut kinds = kinds::AsyncClient(&client);
    for _ in 0..3 {
        let task = Arc::new(Idle);
        {
            let waker = Waker::from(task.clone());
            let mut call = pin!(kinds.double(&Num { n: 1 }));
            let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        assert_eq!(Arc::strong_count(&task), 1, "the link still knows the task");
    }
}

#[tokio::test]
async fn sender_goes_on_when_the_link_has_a_place_again() {
    let (mut near, mut far) = threads::link();
    let tx = near.halves().0;
    while tx.place(1).is_ok() {
        tx.commit(1).unwrap();
    }
    let (tx, rx) = near.split();
    let client = AsyncClient::over(Box::new(tx), Box::new(rx), None, 1);
    let mut kinds = kinds::AsyncClient(&client);
    let mut sum = pin!(kinds.sum());
    let polled = poll_fn(|cx| Poll::Ready(sum.as_mut().poll(cx).is_pending())).await;
    assert!(polled);
    assert!(far.halves().1.peek().unwrap().is_some());
    far.halves().1.release();
    assert!(sum.await.is_ok());
}

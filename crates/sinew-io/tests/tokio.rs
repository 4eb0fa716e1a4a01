//! The async drivers: many tasks on one client, and a server in a task.

mod support;

use std::time::Duration;

use sinew::rpc::{CallError, Status};
use sinew_demo::{KindsAnswers, Num, cache, exercise_async, exercise_kinds_async, kinds};
use sinew_io::threads;
use sinew_io::tokio::{AsyncClient, connect, serve};
use support::*;

async fn all_kinds(client: &AsyncClient, items: u32) {
    assert_eq!(
        exercise_async(&mut cache::AsyncClient(client), -7).await,
        Ok(-7)
    );
    let mut kinds = kinds::AsyncClient(client);
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
    for (kind, items) in [("tcp", 1000), ("unix", 1000), ("udp", 10)] {
        let (_server, listening) = listen(kind);
        all_kinds(&connect(listening.endpoint()).await.unwrap(), items).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_share_a_client() {
    let (_server, listening) = listen("tcp");
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
    let server = server();
    let (near, far) = threads::link();
    let (near, far) = (near.split(), far.split());
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
    let (server, listening) = listen("unix");
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

//! The async drivers over memory that two processes share. This program is both sides: with an
//! argument it is the other process, which is killed.

mod support;

use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sinew::rpc::CallError;
use sinew_demo::{KindsAnswers, Num, exercise_kinds_async, kinds};
use sinew_io::shm::config::{CHANNEL, calls};
use sinew_io::shm::process::ProcessLink;
use sinew_io::tokio::{connect, serve};
use sinew_io::{ConnectError, Endpoint};
use sinew_shm::linux::link::{Link, Listener, Options};
use support::*;

const MTU: usize = 1024;
/// Of calls that only the end of their link can end.
const FOR_EVER: Duration = Duration::from_secs(3600);

fn main() {
    let runtime = ::tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("serve"), Some(path)) => runtime.block_on(serve_one(path.as_ref())),
        (Some("call"), Some(path)) => runtime.block_on(call_for_ever(path.as_ref())),
        _ => runtime.block_on(async {
            calls_of_four_kinds_go_to_another_process().await;
            calls_end_when_the_server_is_killed_and_the_next_one_is_reached().await;
            calls_of_a_client_that_is_killed_end_at_the_server().await;
            println!("shm_tokio: 3 tests passed");
        }),
    }
}

fn endpoint(path: &Path) -> Endpoint {
    let text = format!("shm:{}?mtu={MTU}", path.display());
    text.parse().unwrap()
}

/// Serves one client in a task.
async fn serve_one(path: &Path) {
    let listener = Arc::new(Listener::bind(path).unwrap());
    say("ready");
    let link = accept(listener.clone()).await;
    assert!(serve_link(&server(), link).await);
}

async fn accept(listener: Arc<Listener>) -> Link {
    let accept = move || listener.accept(calls(MTU), Options::default(), None);
    let accepted = ::tokio::task::spawn_blocking(accept);
    accepted.await.unwrap().unwrap()
}

async fn serve_link(server: &sinew_io::Server<Demo>, link: Link) -> bool {
    let link = ProcessLink::new(link, CHANNEL, Duration::ZERO).unwrap();
    let (tx, rx) = link.split().unwrap();
    serve(server, tx, rx, 1).await
}

/// Has a stream open, in which everything is answered, and waits for one answer too many.
async fn call_for_ever(path: &Path) {
    let client = connect(&endpoint(path)).await.unwrap();
    let client = client.with_timeout(FOR_EVER);
    let mut echo = kinds::AsyncClient(&client).echo_all().await.unwrap();
    for n in 0..100 {
        echo.send(&Num { n }).await.unwrap();
        assert_eq!(echo.next().await, Ok(Some(Num { n })));
    }
    say("called");
    let end = echo.next().await;
    panic!("{end:?}");
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().unwrap();
}

/// The other process; it is killed, if it is not gone, when the test is done with it.
struct Other(Child);

impl Other {
    /// Starts it, and waits until it has said something.
    fn start(what: &str, path: &Path) -> Other {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(what).arg(path).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{what} has failed");
        Other(child)
    }

    /// Stops it where it is, as a debugger does.
    fn stop(&self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped());
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn calls_of_four_kinds_go_to_another_process() {
    let path = fresh_path("sock");
    let mut other = Other::start("serve", &path);
    let client = connect(&endpoint(&path)).await.unwrap();
    all_kinds(&client).await;
    drop(client);
    // The link is closed, and the server with it.
    assert!(other.0.wait().unwrap().success());
}

async fn all_kinds(client: &sinew_io::tokio::AsyncClient) {
    let answers = KindsAnswers {
        doubled: 2000,
        summed: 499_500,
    };
    // However slow the machine is: a stream of the client lives for as long as all of it takes.
    let client = client.with_timeout(FOR_EVER);
    let mut kinds = kinds::AsyncClient(&client);
    assert_eq!(exercise_kinds_async(&mut kinds, 1000).await, Ok(answers));
}

async fn calls_end_when_the_server_is_killed_and_the_next_one_is_reached() {
    let path = fresh_path("sock");
    for round in 0..10 {
        let mut other = Other::start("serve", &path);
        let client = connect(&endpoint(&path)).await.unwrap();
        let client = client.with_timeout(FOR_EVER);
        let mut echo = kinds::AsyncClient(&client).echo_all().await.unwrap();
        for n in 0..round {
            echo.send(&Num { n }).await.unwrap();
            assert_eq!(echo.next().await, Ok(Some(Num { n })));
        }
        // So that it does not answer before it dies.
        other.stop();
        let mut caller = kinds::AsyncClient(&client);
        let mut double = pin!(caller.double(&Num { n: 1 }));
        let is_pending = poll_fn(|cx| Poll::Ready(double.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
        other.kill();
        assert_eq!(double.await, Err(CallError::Closed));
        assert_eq!(echo.next().await, Err(CallError::Closed));
        let mut caller = kinds::AsyncClient(&client);
        assert_eq!(caller.double(&Num { n: 1 }).await, Err(CallError::Closed));
        // Its socket is still there, and nobody behind it.
        let error = connect(&endpoint(&path)).await.err().unwrap();
        assert!(matches!(error, ConnectError::NoServer(_)), "{error}");
    }
    let mut other = Other::start("serve", &path);
    all_kinds(&connect(&endpoint(&path)).await.unwrap()).await;
    assert!(other.0.wait().unwrap().success());
}

async fn calls_of_a_client_that_is_killed_end_at_the_server() {
    let path = fresh_path("sock");
    let server = server();
    for _ in 0..10 {
        let listener = Arc::new(Listener::bind(&path).unwrap());
        let accepted = ::tokio::spawn(accept(listener));
        let start = path.clone();
        let served = ::tokio::spawn({
            let server = server.clone();
            async move { serve_link(&server, accepted.await.unwrap()).await }
        });
        let other = ::tokio::task::spawn_blocking(move || Other::start("call", &start));
        let mut other = other.await.unwrap();
        assert_eq!(server.links(), 1);
        other.kill();
        assert!(served.await.unwrap());
        assert_eq!(server.links(), 0);
    }
}

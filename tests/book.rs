//! The code samples of the book: the sections that it shows are compiled and run.

#[path = "book/channels.rs"]
mod channels;
#[path = "book/fifo.rs"]
mod fifo;
#[path = "book/log.rs"]
mod log_console;
#[path = "book/messages.rs"]
mod messages;
#[path = "book/mocks.rs"]
mod mocks;
#[path = "book/porting.rs"]
mod porting;
#[path = "book/pubsub.rs"]
mod pubsub;
#[path = "book/sampling.rs"]
mod sampling;
#[path = "../examples/tutorial/src/service.rs"]
mod service;
#[path = "book/streams.rs"]
mod streams;
#[path = "book/telling.rs"]
mod telling;
#[path = "book/update.rs"]
mod update;
#[path = "book/xous.rs"]
mod xous;

/// A whole program, as the book shows it.
mod lamp_program {
    include!("book/lamp.rs");

    #[test]
    fn a_whole_program_publishes_and_receives() {
        main().unwrap();
    }
}

sinew::include_proto!("lamp");

use std::error::Error;

use sinew::rpc::{CallError, Cx, Responder, Stop};
use sinew_demo::{CacheService, GetValueResponse, KindsService, Num, SetValueResponse};
use sinew_demo::{cache, exercise, kinds};
use sinew_io::reconnect::Backoff;
use sinew_io::{Client, Endpoint, Server, connect, loopback, reconnect, threads};

type Demo = (cache::Serve<CacheService>, kinds::Serve<KindsService<64>>);

fn server() -> Server<Demo> {
    // ANCHOR: server
    let server: Server<Demo> = Server::new((
        cache::Serve(CacheService::new()),
        kinds::Serve(KindsService::new()),
    ));
    // ANCHOR_END: server
    server
}

#[test]
fn a_client_calls_methods_of_every_kind() -> Result<(), Box<dyn Error>> {
    let listening = server().listen(&"tcp:127.0.0.1:0".parse()?)?;
    let endpoint = listening.endpoint();
    // ANCHOR: kinds
    let client = connect(endpoint)?;
    let mut kinds = kinds::Client(&client);

    // unary
    let answer = kinds.double(&Num { n: 21 })?;
    assert_eq!(answer.n, 42);

    // server stream
    let mut count = kinds.count(&Num { n: 3 })?;
    let mut items = 0;
    while let Some(item) = count.next()? {
        assert_eq!(item.n, items);
        items += 1;
    }

    // client stream
    let mut sum = kinds.sum()?;
    sum.send(&Num { n: 1 })?;
    sum.send(&Num { n: 2 })?;
    let total = sum.finish_and_wait()?;
    assert_eq!(total.n, 3);

    // streams in both directions
    let mut echo = kinds.echo_all()?;
    echo.send(&Num { n: 7 })?;
    assert_eq!(echo.next()?, Some(Num { n: 7 }));
    echo.complete()?;
    assert_eq!(echo.next()?, None);
    // ANCHOR_END: kinds
    assert_eq!(items, 3);
    Ok(())
}

// ANCHOR: generic
fn total<R: kinds::Reach>(kinds: &mut kinds::Client<R>, upto: u32) -> Result<u32, CallError> {
    use sinew::rpc::streams::*;

    let mut count = kinds.count(&Num { n: upto })?;
    let mut sum = kinds.sum()?;
    while let Some(item) = count.next()? {
        sum.send(&item)?;
    }
    Ok(sum.finish_and_wait()?.n)
}
// ANCHOR_END: generic

#[test]
fn a_client_of_streams_is_generic_over_placement() -> Result<(), Box<dyn Error>> {
    let listening = server().listen(&"tcp:127.0.0.1:0".parse()?)?;
    let remote = connect(listening.endpoint())?;
    assert_eq!(total(&mut kinds::Client(&remote), 5)?, 10);
    let server = server();
    let local = loopback::connect(&server).ok_or("too many links")?;
    assert_eq!(total(&mut kinds::Client(&local), 5)?, 10);
    Ok(())
}

#[tokio::test]
async fn tasks_share_a_client() -> Result<(), Box<dyn Error>> {
    let listening = server().listen(&"tcp:127.0.0.1:0".parse()?)?;
    let endpoint = listening.endpoint();
    // ANCHOR: async
    let client = sinew_io::tokio::connect(endpoint).await?;
    let answer = kinds::AsyncClient(&client).double(&Num { n: 21 }).await?;
    assert_eq!(answer.n, 42);
    // ANCHOR_END: async
    Ok(())
}

#[test]
fn a_client_reconnects() -> Result<(), Box<dyn Error>> {
    let listening = server().listen(&"tcp:127.0.0.1:0".parse()?)?;
    let endpoint: &Endpoint = listening.endpoint();
    // ANCHOR: reconnect
    let client = reconnect::connect(endpoint, Backoff::default());
    // ANCHOR_END: reconnect
    assert_eq!(exercise(&mut cache::Client(&client), 5)?, 5);
    Ok(())
}

#[test]
fn a_mock_stands_for_the_service() {
    // ANCHOR: mock
    let mut reach = cache::mock::Reach::<4>::default();
    reach.set_value.answer(Ok(SetValueResponse {})).unwrap();
    reach
        .get_value
        .answer(Ok(GetValueResponse { value: 7 }))
        .unwrap();
    let mut client = cache::Client(reach);
    assert_eq!(exercise(&mut client, 7), Ok(7));
    assert_eq!(client.0.set_value.requests().len(), 1);
    // ANCHOR_END: mock
}

#[test]
fn a_service_runs_in_another_thread() -> Result<(), CallError> {
    let server = server();
    // ANCHOR: threads
    let (near, mut far) = threads::link();
    let thread = std::thread::spawn(move || server.serve(&mut far, 1));
    let client = Client::new(near, 1);
    assert_eq!(exercise(&mut cache::Client(&client), 5)?, 5);
    drop(client); // the link closes, and the server's thread ends
    thread.join().unwrap();
    // ANCHOR_END: threads
    Ok(())
}

#[test]
fn a_service_is_a_task() -> Result<(), Box<dyn Error>> {
    // ANCHOR: task
    use std::sync::mpsc::{TrySendError, sync_channel};
    use std::time::Duration;

    use sinew::rpc::AnswerError;
    use sinew_demo::{GetValueResponse, SetValueResponse, cache};
    use sinew_io::Server;

    /// Waits where the link is full; any other error says that nobody waits for the answer.
    fn patiently(mut answer: impl FnMut() -> Result<(), AnswerError>) {
        while answer() == Err(AnswerError::Full) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    let (queue, calls) = sync_channel::<cache::Calls>(8);
    let server: Server<_> = Server::new(cache::Serve(cache::Defer(move |call| {
        queue.try_send(call).map_err(|refused| match refused {
            TrySendError::Full(call) | TrySendError::Disconnected(call) => call,
        })
    })));
    let task = std::thread::spawn(move || {
        let mut value = 0;
        for call in calls {
            match call {
                cache::Calls::SetValue {
                    request,
                    mut responder,
                } => {
                    value = request.value;
                    patiently(|| responder.answer(&SetValueResponse {}));
                }
                cache::Calls::GetValue { mut responder, .. } => {
                    patiently(|| responder.answer(&GetValueResponse { value }));
                }
            }
        }
    });
    // ANCHOR_END: task
    let client = loopback::connect(&server).ok_or("too many links")?;
    assert_eq!(exercise(&mut cache::Client(&client), 8)?, 8);
    drop((client, server));
    task.join().unwrap();
    Ok(())
}

#[test]
fn streams_run_in_one_thread() -> Result<(), Box<dyn Error>> {
    let server = server();
    // ANCHOR: loopback
    let client = loopback::connect(&server).ok_or("too many links")?;
    let mut count = kinds::Client(&client).count(&Num { n: 1 })?;
    assert_eq!(count.next()?, Some(Num { n: 0 }));
    // ANCHOR_END: loopback
    Ok(())
}

/// A service that answers later, from another thread.
struct Slow {
    jobs: std::sync::mpsc::Sender<(Num, Responder<Num>)>,
    demo: KindsService<64>,
}

impl kinds::Kinds for Slow {
    // ANCHOR: defer
    fn double(&mut self, request: &Num, cx: Cx<'_, Responder<Num>>) -> Result<Num, Stop> {
        let (responder, later) = cx.defer()?; // ends the call where every slot is in use
        let _ = self.jobs.send((*request, responder)); // a responder that is dropped says ABORTED
        Err(later)
    }
    // ANCHOR_END: defer

    fn count(&mut self, request: &Num, cx: Cx<'_, sinew::rpc::Writer<Num>>) -> Result<(), Stop> {
        self.demo.count(request, cx)
    }

    fn sum(
        &mut self,
        input: sinew::rpc::StreamIn<'_, Num>,
        cx: sinew::rpc::StreamCx<'_, Responder<Num>>,
    ) -> Result<Num, Stop> {
        self.demo.sum(input, cx)
    }

    fn echo_all(
        &mut self,
        input: sinew::rpc::StreamIn<'_, Num>,
        cx: sinew::rpc::StreamCx<'_, sinew::rpc::Writer<Num>>,
    ) -> Result<(), Stop> {
        self.demo.echo_all(input, cx)
    }
}

#[test]
fn a_service_answers_later_from_another_thread() -> Result<(), Box<dyn Error>> {
    let (jobs, todo) = std::sync::mpsc::channel::<(Num, Responder<Num>)>();
    let worker = std::thread::spawn(move || {
        // ANCHOR: answer
        for (request, mut responder) in todo {
            let answer = Num { n: 2 * request.n };
            let _ = responder.answer(&answer); // Cancelled where nobody waits any more
        }
        // ANCHOR_END: answer
    });
    let demo = KindsService::new();
    let server: Server<_> = Server::new(kinds::Serve(Slow { jobs, demo }));
    let client = loopback::connect(&server).ok_or("too many links")?;
    assert_eq!(kinds::Client(&client).double(&Num { n: 4 })?.n, 8);
    drop((client, server));
    worker.join().unwrap();
    Ok(())
}

//! Answers and streams that come from another thread than the link's.

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use sinew::rpc::{AnswerError, CallError, Cx, Responder, Status, Stop, StreamCx, StreamIn, Writer};
use sinew_demo::{Num, kinds};
use sinew_io::{Client, Link, Server, connect, threads};
use support::*;

/// What the services hand over to the worker.
enum Work {
    Answer(u32, Responder<Num>),
    Count(u32, Writer<Num>),
    Echo(Num, Arc<Mutex<Writer<Num>>>),
}

/// `demo.Kinds` without a thought of its own: what it answers and sends comes from the worker. One
/// Sum and one EchoAll at a time.
struct Delegating {
    worker: Sender<Work>,
    total: u32,
    echo: Option<Arc<Mutex<Writer<Num>>>>,
}

impl kinds::Kinds for Delegating {
    fn double(&mut self, request: &Num, cx: Cx<'_, Responder<Num>>) -> Result<Num, Stop> {
        let (responder, later) = cx.defer()?;
        self.worker
            .send(Work::Answer(2 * request.n, responder))
            .unwrap();
        Err(later)
    }

    fn count(&mut self, request: &Num, cx: Cx<'_, Writer<Num>>) -> Result<(), Stop> {
        let (writer, later) = cx.defer()?;
        self.worker.send(Work::Count(request.n, writer)).unwrap();
        Err(later)
    }

    fn sum(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Responder<Num>>,
    ) -> Result<Num, Stop> {
        match input {
            StreamIn::Open => self.total = 0,
            StreamIn::Item(item) => self.total += item.n,
            StreamIn::End => {
                let (responder, later) = cx.defer()?;
                self.worker
                    .send(Work::Answer(self.total, responder))
                    .unwrap();
                return Err(later);
            }
            StreamIn::Closed(_) => {}
        }
        Err(cx.wait())
    }

    fn echo_all(
        &mut self,
        input: StreamIn<'_, Num>,
        cx: StreamCx<'_, Writer<Num>>,
    ) -> Result<(), Stop> {
        match input {
            StreamIn::Open => {
                let (writer, later) = cx.defer()?;
                self.echo = Some(Arc::new(writer.into()));
                return Err(later);
            }
            StreamIn::Item(item) => {
                let writer = self.echo.clone().expect("an open call");
                self.worker.send(Work::Echo(*item, writer)).unwrap();
            }
            // With the worker's last item the stream ends.
            StreamIn::End | StreamIn::Closed(_) => self.echo = None,
        }
        Err(cx.wait())
    }
}

/// Unparks the worker when there is a place.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn work(queue: Receiver<Work>) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let send = |writer: &mut Writer<Num>, n: u32| {
        while writer.send(&Num { n }) == Err(AnswerError::Full) {
            writer.arm(&waker);
            thread::park();
        }
    };
    for work in queue {
        match work {
            // Nobody answers zero.
            Work::Answer(0, _) => {}
            Work::Answer(n, mut responder) => {
                while responder.answer(&Num { n }) == Err(AnswerError::Full) {
                    responder.arm(&waker);
                    thread::park();
                }
            }
            Work::Count(end, mut writer) => (0..end).for_each(|n| send(&mut writer, n)),
            Work::Echo(item, writer) => send(&mut writer.lock().unwrap(), item.n),
        }
    }
}

fn delegating() -> Server<kinds::Serve<Delegating>> {
    let (worker, queue) = channel();
    thread::spawn(move || work(queue));
    Server::new(kinds::Serve(Delegating {
        worker,
        total: 0,
        echo: None,
    }))
}

/// All kinds; streams longer than what any queue on the way holds.
fn all_kinds(client: &Client<impl Link>) {
    const ITEMS: u32 = 500;
    let mut kinds = kinds::Client(client);
    let mut count = kinds.count(&Num { n: ITEMS }).unwrap();
    let mut sum = kinds.sum().unwrap();
    let mut echo = kinds.echo_all().unwrap();
    for n in 0..ITEMS {
        echo.send(&Num { n }).unwrap();
        sum.send(&Num { n }).unwrap();
        assert_eq!(count.next(), Ok(Some(Num { n })));
        assert_eq!(echo.next(), Ok(Some(Num { n })));
    }
    for n in 1..ITEMS {
        assert_eq!(kinds.double(&Num { n }), Ok(Num { n: 2 * n }));
    }
    let aborted = CallError::Status(Status::ABORTED);
    assert_eq!(kinds.double(&Num { n: 0 }), Err(aborted));
    echo.complete().unwrap();
    assert_eq!(count.next(), Ok(None));
    assert_eq!(echo.next(), Ok(None));
    let total = ITEMS * (ITEMS - 1) / 2;
    assert_eq!(sum.finish_and_wait(), Ok(Num { n: total }));
}

#[test]
fn another_thread_answers_over_sockets() {
    for kind in ["tcp", "unix"] {
        let server = delegating();
        let listening = server.listen(&fresh_endpoint(kind)).unwrap();
        all_kinds(&connect(listening.endpoint()).unwrap());
        assert_eq!(server.stats().dropped, 3, "unanswered, Count, EchoAll");
    }
}

#[test]
fn another_thread_answers_over_a_thread_link() {
    let (near, mut far) = threads::link();
    let server = delegating();
    let serving = server.clone();
    let thread = thread::spawn(move || serving.serve(&mut far, 1));
    let client = Client::new(near, 1);
    all_kinds(&client);
    drop(client);
    assert!(thread.join().unwrap());
    assert_eq!(server.stats().dropped, 3, "unanswered, Count, EchoAll");
}

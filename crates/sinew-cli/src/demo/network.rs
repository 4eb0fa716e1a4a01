//! Placements in the network: a sample goes to another process, which publishes it again.
//!
//! The other process is `sinew sub --echo`, a child. A call is a sample and its echo.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use sinew::link::{SendError, Tx};
use sinew_io::Endpoint;
use sinew_io::apart::{self, Apart};
use sinew_io::endpoint::Use;
use sinew_io::pubsub::{self, Driver, Node, Options, Publisher, Subscriber};

use super::Outcome;
use super::measure::times;
use super::processes::Socket;

/// The key of what is published.
const PING: &str = "demo/ping";
/// The key of its echo.
const PONG: &str = "demo/pong";
/// The other side is there after less, also on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub fn tcp(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let echo = Echo::listening("tcp:127.0.0.1:0")?;
    exchange(&echo.endpoint, Options::peer(), calls, bar)
}

pub fn shared_memory(calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let socket = Socket::new();
    let echo = Echo::listening(&format!("shm:{}", socket.path()))?;
    exchange(&echo.endpoint, Options::peer(), calls, bar)
}

/// Both are clients of a router that this command starts; the endpoint to listen at follows it.
pub fn routed(command: &str, calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let router = Router::start(command)?;
    let _echo = Echo::connected(&router.endpoint)?;
    exchange(&router.endpoint, Options::client(), calls, bar)
}

/// Publishes numbers at the endpoint, one after the other, and waits for each to come back.
fn exchange(
    endpoint: &str,
    options: Options,
    calls: u64,
    bar: &ProgressBar,
) -> Result<Outcome, String> {
    let at = Endpoint::parse(endpoint, Use::Batches).map_err(|error| error.to_string())?;
    let (link, sent) = counted(&at)?;
    // Driven by this thread, so that a call wakes nobody but the other side.
    let (node, driver) = pubsub::driven_over(link, options);
    let mut pair = Pair::new(&node, driver)?;
    let start = Instant::now();
    // Until both sides know who subscribes.
    while !pair.is_echoed(0, PAUSE) {
        if start.elapsed() > PATIENCE {
            return Err(trouble(&node));
        }
    }
    let carried = |pair: &mut Pair| {
        pair.driver.turn(Some(Duration::ZERO));
        node.status().traffic.bytes_in + sent.load(Ordering::Relaxed)
    };
    let before = carried(&mut pair);
    let mut number = 0i32;
    let times = times(calls, bar, || {
        // Twice, as every job is two calls.
        for _ in 0..2 {
            number = number.wrapping_add(1);
            if !pair.is_echoed(number, PATIENCE) {
                return Err(trouble(&node));
            }
        }
        Ok(())
    })?;
    let bytes = carried(&mut pair) - before;
    Ok(Outcome { times, bytes })
}

fn trouble(node: &Node) -> String {
    match node.status().trouble {
        Some(trouble) => trouble.to_string(),
        None => "no echo comes back".into(),
    }
}

/// What publishes and hears of the echo.
struct Pair {
    driver: Driver,
    publisher: Publisher,
    _subscriber: Subscriber,
    came: Arc<AtomicI64>,
}

/// What no number is.
const NOTHING: i64 = i64::MAX;

impl Pair {
    fn new(node: &Node, driver: Driver) -> Result<Pair, String> {
        let came = Arc::new(AtomicI64::new(NOTHING));
        let place = came.clone();
        let subscriber = node.subscriber(PONG, move |sample| {
            if let Ok(bytes) = sample.body.payload.try_into() {
                place.store(i32::from_le_bytes(bytes).into(), Ordering::Relaxed);
            }
        });
        Ok(Pair {
            driver,
            publisher: node.publisher(PING).map_err(|error| error.to_string())?,
            _subscriber: subscriber.map_err(|error| error.to_string())?,
            came,
        })
    }

    /// Publishes a number, and waits for its echo.
    fn is_echoed(&mut self, number: i32, patience: Duration) -> bool {
        let start = Instant::now();
        // Before there is a session it is not sent.
        let _ = self.publisher.put(&number.to_le_bytes());
        while self.came.load(Ordering::Relaxed) != i64::from(number) {
            if start.elapsed() > patience || !self.driver.turn(Some(PAUSE)) {
                return false;
            }
        }
        true
    }
}

/// A link to the endpoint, and how many bytes have left on it.
fn counted(at: &Endpoint) -> Result<(Apart, Arc<AtomicU64>), String> {
    let Apart { tx, rx } = apart::open(at).map_err(|error| error.to_string())?;
    let sent = Arc::new(AtomicU64::new(0));
    let each = match at.address.is_stream() {
        // Both streams of the demo are framed so.
        true => 2,
        false => 0,
    };
    let tx = Box::new(Counted {
        tx,
        each,
        sent: sent.clone(),
    });
    Ok((Apart { tx, rx }, sent))
}

struct Counted {
    tx: Box<dyn Tx + Send>,
    /// What stands before each packet.
    each: u64,
    sent: Arc<AtomicU64>,
}

impl Tx for Counted {
    fn mtu(&self) -> usize {
        self.tx.mtu()
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        self.tx.place(min)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.tx.commit(len)?;
        if len > 0 {
            self.sent
                .fetch_add(len as u64 + self.each, Ordering::Relaxed);
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.tx.flush();
    }

    fn arm(&mut self, waker: &Waker) {
        self.tx.arm(waker);
    }
}

/// A child that publishes every sample again, until it is dropped.
struct Echo {
    child: Child,
    endpoint: String,
}

impl Echo {
    /// One that waits for peers.
    fn listening(endpoint: &str) -> Result<Echo, String> {
        Echo::start(["--listen", endpoint], "listening on ")
    }

    /// One that is a client of this router.
    fn connected(endpoint: &str) -> Result<Echo, String> {
        Echo::start(["--connect", endpoint], "subscribed to ")
    }

    /// Starts it and waits for the line that begins so.
    fn start(place: [&str; 2], ready: &str) -> Result<Echo, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(program)
            .args(["sub", PING, "--echo", PONG])
            .args(place)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the other side: {error}"))?;
        let mut echo = Echo {
            child,
            endpoint: String::new(),
        };
        let mut line = String::new();
        if let Some(err) = &mut echo.child.stderr {
            let mut err = BufReader::new(err);
            let _ = err.read_line(&mut line);
            if !line.starts_with(ready) {
                let _ = err.read_to_string(&mut line);
                return Err(format!("the other side did not get ready: {}", line.trim()));
            }
        }
        if let Some(endpoint) = line.trim().strip_prefix(ready) {
            echo.endpoint = endpoint.into();
        }
        Ok(echo)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A child that is a router, until it is dropped.
struct Router {
    child: Child,
    endpoint: String,
}

impl Router {
    /// Starts it at a free port, and waits until it listens there.
    fn start(command: &str) -> Result<Router, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        // Its standard input ends with this process, and some routers with it.
        let child = Command::new("sh")
            .args(["-c", &format!("exec {command} tcp/127.0.0.1:{port}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the router: {error}"))?;
        let mut router = Router {
            child,
            endpoint: format!("tcp:127.0.0.1:{port}"),
        };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = router.child.try_wait().map_err(|error| error.to_string())?;
            if let Some(status) = ended {
                let mut text = String::new();
                if let Some(err) = &mut router.child.stderr {
                    let _ = err.read_to_string(&mut text);
                }
                return Err(format!("the router has ended: {status}: {}", text.trim()));
            }
            if start.elapsed() > PATIENCE {
                return Err("the router does not listen".into());
            }
            thread::sleep(PAUSE);
        }
        Ok(router)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

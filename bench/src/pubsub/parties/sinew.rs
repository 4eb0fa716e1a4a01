//! Sinew: nodes of `sinew_io::pubsub`. Who answers or subscribes has the node's own thread; who pings drives
//! the node himself, as one who waits for an answer can.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use sinew::pubsub::codec::Qos;
use sinew::pubsub::session::{PublisherOptions, Put};
use sinew_bench_party::{Options, Party, Path, Pinger, Publisher, Result};
use sinew_io::apart;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::pubsub::{self, Driver, Node};

/// How long a sample may wait for others.
const BATCHING: Duration = Duration::from_millis(1);
/// How long the other side may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

const KEY: &str = "bench/sample";
const BACK: &str = "bench/back";

pub struct Sinew;

/// As Zenoh writes it, or a path for shared memory.
fn endpoint(options: &Options) -> Result<Endpoint> {
    let text = match (options.path, options.endpoint.strip_prefix("tcp/")) {
        (Path::Shm, _) => {
            let name = options.endpoint.replace('/', "-");
            format!("shm:{}", std::env::temp_dir().join(name).display())
        }
        (_, Some(address)) => format!("tcp:{address}"),
        _ => return Err("only TCP and shared memory".into()),
    };
    Ok(Endpoint::parse(&text, Use::Batches)?)
}

fn behaviour(options: &Options) -> pubsub::Options {
    pubsub::Options {
        batching: if options.batched {
            BATCHING
        } else {
            Duration::ZERO
        },
        ..match options.path {
            Path::Router => pubsub::Options::client(),
            _ => pubsub::Options::peer(),
        }
    }
}

/// None is lost on the way; nothing is sent before somebody subscribes. That a router must not drop it is
/// said in two bytes of each sample; where there is none, who publishes tries again.
fn lossless(options: &Options) -> PublisherOptions {
    PublisherOptions {
        qos: Qos::DEFAULT.with_blocking(options.path == Path::Router),
        filter: true,
        ..PublisherOptions::DEFAULT
    }
}

/// Gives the node to `then` when there is one: at once as a client of a router, or when somebody connects.
fn served(options: &Options, then: impl FnOnce(Node) -> Result<()> + Send + 'static) -> Result<()> {
    let (at, behaviour) = (endpoint(options)?, behaviour(options));
    if options.path == Path::Router {
        let node = pubsub::open(&at, behaviour);
        node.wait_open(PATIENCE)?;
        return then(node);
    }
    let mut listener = apart::listen(&at)?;
    thread::spawn(move || {
        let apart = listener.accept_within(None).ok_or("nobody came")?;
        then(pubsub::accept(apart, behaviour))
    });
    Ok(())
}

fn heard(publisher: &pubsub::Publisher, mut wait: impl FnMut()) -> Result<()> {
    let started = Instant::now();
    while publisher.is_heard() != Some(true) {
        if started.elapsed() > PATIENCE {
            return Err("nobody subscribes".into());
        }
        wait();
    }
    Ok(())
}

impl Party for Sinew {
    fn publisher(options: &Options) -> Result<impl Publisher> {
        let node = pubsub::open(&endpoint(options)?, behaviour(options));
        node.wait_open(PATIENCE)?;
        let publisher = node.publisher_with(KEY, lossless(options))?;
        heard(&publisher, || thread::sleep(Duration::from_millis(5)))?;
        Ok(Publishes {
            node,
            publisher,
            large: vec![0; options.size],
            in_place: options.size < LARGE,
        })
    }

    fn subscriber(
        options: &Options,
        mut take: impl FnMut(&[u8]) + Send + Sync + 'static,
    ) -> Result<impl Sized> {
        served(options, move |node| {
            let subscriber = node.subscriber(KEY, move |sample| take(sample.body.payload))?;
            std::mem::forget((node, subscriber));
            Ok(())
        })
    }

    fn pinger(options: &Options) -> Result<impl Pinger> {
        let (node, mut driver) = pubsub::driven(&endpoint(options)?, behaviour(options));
        let publisher = node.publisher_with(KEY, lossless(options))?;
        let count = Arc::new(AtomicU64::new(0));
        let counts = count.clone();
        let back = node.subscriber(BACK, move |_| {
            counts.fetch_add(1, Relaxed);
        })?;
        heard(&publisher, || {
            driver.turn(Some(Duration::from_millis(5)));
        })?;
        Ok(Rounds {
            driver,
            publisher,
            count,
            sent: 0,
            _back: back,
        })
    }

    fn ponger(options: &Options) -> Result<impl Sized> {
        let qos = lossless(options);
        served(options, move |node| {
            let back = node.publisher_with(BACK, qos)?;
            let subscriber = node.subscriber(KEY, move |sample| {
                if let Err(error) = back.put(sample.body.payload) {
                    eprintln!("sinew: {error}");
                }
            })?;
            std::mem::forget((node, subscriber));
            Ok(())
        })
    }
}

/// A sample of more bytes leaves in several batches.
const LARGE: usize = 60_000;

struct Publishes {
    node: Node,
    publisher: pubsub::Publisher,
    large: Vec<u8>,
    in_place: bool,
}

impl Publisher for Publishes {
    #[inline]
    fn put(&mut self, size: usize, write: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut write = Some(write);
        loop {
            let put = if self.in_place {
                self.publisher.put_with(size, |room| {
                    if let Some(write) = write.take() {
                        write(room);
                    }
                })?
            } else {
                if let Some(write) = write.take() {
                    write(&mut self.large);
                }
                self.publisher.put(&self.large)?
            };
            if put != Put::Dropped {
                return Ok(());
            }
            // Who takes it up may need this very core.
            thread::yield_now();
        }
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.node.flush()?)
    }
}

struct Rounds {
    driver: Driver,
    publisher: pubsub::Publisher,
    count: Arc<AtomicU64>,
    sent: u64,
    _back: pubsub::Subscriber,
}

impl Pinger for Rounds {
    fn round(&mut self, payload: &[u8]) -> Result<()> {
        self.publisher.put(payload)?;
        self.sent += 1;
        while self.count.load(Relaxed) < self.sent {
            if !self.driver.turn(None) {
                return Err("the session has ended".into());
            }
        }
        Ok(())
    }
}

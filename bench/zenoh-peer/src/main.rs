//! The Rust Zenoh of crates.io as a party of `make bench BENCH=pubsub`: publisher, subscriber, ping,
//! pong, and the router of all contenders.
//!
//! It runs at the fastest settings that Zenoh documents. What is not said here is as it comes.
//!
//! | setting | why |
//! |---|---|
//! | no scouting, no gossip | there is one link, and nothing to be found |
//! | no time stamps, in the router too | 26 bytes less for each sample that a router passes on |
//! | congestion control `Block` | none may be lost |
//! | batched: as it comes, 65,535 bytes | the largest there are |
//! | 16 batches in the queue | the most there can be; with the 2 that it comes with it waits for itself |
//! | one thread that receives (`ZENOH_RUNTIME`, by the benchmark) | on two cores more of them take turns; round trips are shorter |
//! | unbatched: express, and no batching | each sample leaves at once, in a batch of its own |
//! | `--set transport=lowlatency` | messages without sequence numbers, written by the thread that puts; needs QoS off, cannot be cut into fragments |
//! | callbacks instead of queues for samples | as in Zenoh's own measurements |
//! | shared memory is not compiled | it is about the socket |
//! | `--set payload=same` | a payload made once and shared by all samples, as in Zenoh's own measurements; otherwise each is new |
//!
//! The router is a session in router mode: `zenohd` is the same library with this configuration and
//! plugins, and the wheel of PyPI is it with Python around. Here it has the profile of `zenohd` and the
//! settings above.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sinew_bench_party::{Options, Party, Path, Pinger, Publisher, Result, Role, run};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::handlers::FifoChannelHandler;
use zenoh::pubsub::{Publisher as Declared, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Config, Session};

/// What is published, in a few letters: where it is not declared its length counts.
const DATA: &str = "data";
const PING: &str = "ping";
const PONG: &str = "pong";

/// How long the others may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    run::<Zenoh>(std::env::args().skip(1))
}

struct Zenoh;

impl Party for Zenoh {
    fn publisher(options: &Options) -> Result<impl Publisher> {
        let session = open(options)?;
        let publisher = declare(&session, DATA, options)?;
        await_match(&publisher)?;
        Ok(Publishing {
            publisher,
            same: (options.setting("payload") == Some("same"))
                .then(|| ZBytes::from(vec![0; options.size])),
            _session: session,
        })
    }

    fn subscriber(
        options: &Options,
        mut take: impl FnMut(&[u8]) + Send + Sync + 'static,
    ) -> Result<impl Sized> {
        let session = open(options)?;
        let subscriber = session
            .declare_subscriber(DATA)
            .callback_mut(move |sample| take(&sample.payload().to_bytes()))
            .wait()?;
        Ok((session, subscriber))
    }

    fn pinger(options: &Options) -> Result<impl Pinger> {
        let session = open(options)?;
        let answers = session.declare_subscriber(PONG).wait()?;
        let publisher = declare(&session, PING, options)?;
        await_match(&publisher)?;
        let pinging = Pinging {
            publisher,
            answers,
            _session: session,
        };
        pinging.begin(options.size)?;
        Ok(pinging)
    }

    fn ponger(options: &Options) -> Result<impl Sized> {
        let session = open(options)?;
        let publisher = declare(&session, PONG, options)?;
        let subscriber = session
            .declare_subscriber(PING)
            .callback(move |sample| {
                if let Err(error) = publisher.put(sample.payload().clone()).wait() {
                    eprintln!("pong: {error}");
                }
            })
            .wait()?;
        Ok((session, subscriber))
    }

    fn router(options: &Options) -> Result<impl Sized> {
        open(options)
    }
}

fn open(options: &Options) -> Result<Session> {
    let mode = match (options.path, options.role) {
        (Path::Peer, _) => "peer",
        (Path::Router, Role::Router) => "router",
        (Path::Router, _) => "client",
        (Path::Shm, _) => return Err("not over shared memory".into()),
    };
    let (listen, connect) = match options.listens() {
        true => (format!("[\"{}\"]", options.endpoint), "[]".into()),
        false => ("[]".into(), format!("[\"{}\"]", options.endpoint)),
    };
    let mut config = Config::default();
    let mut set = |name: &str, value: &str| config.insert_json5(name, value);
    set("mode", &format!("\"{mode}\""))?;
    set("listen/endpoints", &listen)?;
    set("connect/endpoints", &connect)?;
    set("scouting/multicast/enabled", "false")?;
    set("scouting/gossip/enabled", "false")?;
    set("timestamping/enabled", "false")?;
    set("transport/link/tx/queue/size/data", "16")?;
    if !options.batched {
        set("transport/link/tx/queue/batching/enabled", "false")?;
    }
    for (name, value) in &options.settings {
        match (name.as_str(), value.as_str()) {
            ("transport", "lowlatency") => {
                set("transport/unicast/qos/enabled", "false")?;
                set("transport/unicast/lowlatency", "true")?;
            }
            ("payload", "same") => {}
            // Anything else of Zenoh's configuration, for experiments.
            _ => set(name, value)?,
        }
    }
    zenoh::open(config).wait()
}

fn declare(session: &Session, key: &'static str, options: &Options) -> Result<Declared<'static>> {
    let publisher = session
        .declare_publisher(key)
        .congestion_control(CongestionControl::Block)
        .express(!options.batched);
    publisher.wait()
}

/// Waits until somebody subscribes.
fn await_match(publisher: &Declared<'_>) -> Result<()> {
    let start = Instant::now();
    while !publisher.matching_status().wait()?.matching() {
        if start.elapsed() > PATIENCE {
            return Err("nobody subscribes".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

struct Publishing {
    publisher: Declared<'static>,
    same: Option<ZBytes>,
    _session: Session,
}

impl Publisher for Publishing {
    #[inline]
    fn put(&mut self, size: usize, write: impl FnOnce(&mut [u8])) -> Result<()> {
        let payload = match &self.same {
            Some(payload) => payload.clone(),
            None => {
                let mut payload = vec![0; size];
                write(&mut payload);
                payload.into()
            }
        };
        self.publisher.put(payload).wait()
    }
}

struct Pinging {
    publisher: Declared<'static>,
    answers: Subscriber<FifoChannelHandler<Sample>>,
    _session: Session,
}

impl Pinging {
    /// Sends until the first answer: the other one may not know yet that we subscribe.
    fn begin(&self, size: usize) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            self.publisher.put(vec![0; size]).wait()?;
            let answer = self.answers.recv_timeout(Duration::from_millis(100));
            if matches!(answer, Ok(Some(_))) {
                while let Ok(Some(_)) = self.answers.recv_timeout(Duration::from_millis(100)) {}
                return Ok(());
            }
        }
        Err("nobody answers".into())
    }
}

impl Pinger for Pinging {
    #[inline]
    fn round(&mut self, payload: &[u8]) -> Result<()> {
        self.publisher.put(payload).wait()?;
        self.answers.recv()?;
        Ok(())
    }
}

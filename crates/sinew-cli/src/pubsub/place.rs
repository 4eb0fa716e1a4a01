//! Where the other side is, and nodes that stay in touch with it.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use sinew::pubsub::codec::{Body, WhatAmI};
use sinew::pubsub::session::{Closed, Peer, Put, PutError, Stats};
use sinew_io::Endpoint;
use sinew_io::apart::{self, Apart};
use sinew_io::endpoint::{Address, EndpointError, Use};
use sinew_io::open::ConnectError;
use sinew_io::pubsub::{self, Node, Options, Publisher, Status, Trouble};

use super::Interrupt;
use crate::connection::{explain, other_file};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::span::above_zero;
use crate::{output, serve};

/// The router or peer to connect to.
#[derive(Debug, Args)]
pub struct Connect {
    /// Where the router is, or a peer
    #[arg(long, value_name = "ENDPOINT", default_value = "tcp:127.0.0.1:7447",
          value_parser = batches)]
    connect: Endpoint,
    /// Connect as a peer, and not as a client
    #[arg(long)]
    peer: bool,
    /// Wait for the other side where it is not up yet: until Ctrl-C, or TIME
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, value_parser = above_zero)]
    wait: Option<Option<Duration>>,
}

/// The other side, which may also come by itself.
#[derive(Debug, Args)]
pub struct Meet {
    #[command(flatten)]
    connect: Connect,
    /// Wait here for peers instead, any number of them
    #[arg(long, value_name = "ENDPOINT", value_parser = batches,
          conflicts_with_all = ["connect", "wait"])]
    listen: Option<Endpoint>,
}

/// An endpoint at which sessions of Zenoh are opened.
pub fn batches(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::parse(text, Use::Batches)
}

/// How long a router may take to answer, and one who comes to open a session: as long as a connection.
const PATIENCE: Duration = sinew_io::open::CONNECT_TIMEOUT;
/// Before the second attempt to connect: long enough for the failure of the first to be seen.
const PAUSE: Duration = Duration::from_millis(200);
/// Between later ones: short enough for whoever looks on.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a peer may take to say who subscribes there. What was lost on the way is said again after a
/// quarter of a lease.
const TELLING: Duration = Duration::from_secs(3);
/// How often the state of a session is looked at.
pub const TICK: Duration = Duration::from_millis(50);

/// Does what is to be done with each node, and keeps what came of it.
type Make<H> = Box<dyn FnMut(&Node) -> Result<H, Failure> + Send>;

/// The nodes of this side: one that connects, or one for each peer that came.
pub struct Nodes<H> {
    at: Endpoint,
    options: Options,
    make: Make<H>,
    comers: Option<Comers>,
    all: Vec<Party<H>>,
    /// Of those who have gone.
    before: Stats,
}

/// One session, and what was made with its node.
pub struct Party<H> {
    pub node: Node,
    pub has: H,
    seen: Status,
    /// Since when there is its link.
    since: Instant,
    /// This side is a peer.
    is_peer: bool,
    telling: Telling,
}

/// Whether the other side has said who subscribes there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Telling {
    /// There has been no session.
    Not,
    /// Not yet, in the session that began about here.
    Since(Instant),
    /// It has, or does not say so unasked.
    Done,
}

/// Links of those who come.
struct Comers {
    links: Receiver<Apart>,
    stop: Waker,
}

impl Drop for Comers {
    fn drop(&mut self) {
        self.stop.wake_by_ref();
    }
}

impl Connect {
    /// The one node, when its session is open, or Ctrl-C was pressed.
    pub fn open<H>(
        &self,
        options: Options,
        interrupt: &Interrupt,
        make: Make<H>,
    ) -> Result<Nodes<H>, Failure> {
        let options = Options {
            // An image asks for the session, as a peer.
            whatami: if self.peer || matches!(self.connect.address, Address::Qemu(_)) {
                WhatAmI::Peer
            } else {
                WhatAmI::Client
            },
            ..options
        };
        let mut nodes = Nodes::new(&self.connect, options, make);
        let node = pubsub::open(&nodes.at, nodes.options.clone());
        // Before the session, so that it begins with what is declared.
        let has = (nodes.make)(&node)?;
        self.wait_open(&node, interrupt)?;
        nodes.enter(node, has);
        Ok(nodes)
    }

    /// Waits for the first session: with --wait also for one that does not come about at once.
    fn wait_open(&self, node: &Node, interrupt: &Interrupt) -> Result<(), Failure> {
        let at = &self.connect;
        let patience = self
            .wait
            .map_or(PATIENCE, |wait| wait.unwrap_or(Duration::MAX));
        let started = Instant::now();
        let _shown = Progress::waiting(format!("connecting to {}", at.address));
        let mut known = None;
        while node.wait_open(TICK).is_err() && !interrupt.is_set() {
            let status = node.status();
            let fails = status.failures > 0;
            if started.elapsed() > patience || fails && self.wait.is_none() {
                let (cause, help) = why_not(at, &status);
                return Err(Failure::NoConnection {
                    endpoint: at.address.to_string(),
                    cause,
                    help,
                });
            }
            if fails {
                let cause = Some(why_not(at, &status).0);
                if let Some(cause) = cause.as_ref().filter(|_| cause != known) {
                    output::note(&format!("waiting for {at}: {cause}"));
                }
                known = cause;
            }
        }
        if let Some(peer) = node.peer().filter(|_| known.is_some()) {
            output::note(&format!("{at}: {} is there", name(&peer)));
        }
        Ok(())
    }
}

impl Meet {
    /// Whether packets can be lost on the way.
    pub fn loses(&self) -> bool {
        let at = self.listen.as_ref().unwrap_or(&self.connect.connect);
        matches!(at.address, Address::Udp(..) | Address::Serial(..))
    }

    /// The one node, when its session is open, or a listener that has nobody yet.
    pub fn open<H>(
        &self,
        options: Options,
        interrupt: &Interrupt,
        make: Make<H>,
    ) -> Result<Nodes<H>, Failure> {
        match &self.listen {
            None => self.connect.open(options, interrupt, make),
            Some(at) => listen(at, options, make),
        }
    }
}

fn listen<H>(at: &Endpoint, options: Options, make: Make<H>) -> Result<Nodes<H>, Failure> {
    let mut listener = apart::listen(at).map_err(|error| serve::cannot_serve(at, error))?;
    let at = listener.endpoint().clone();
    output::note(&format!("listening on {at}"));
    let (send, links) = channel();
    let stop = listener.waker();
    thread::spawn(move || {
        while let Some(link) = listener.accept_within(None) {
            if send.send(link).is_err() {
                break;
            }
        }
    });
    let options = Options {
        whatami: WhatAmI::Peer,
        ..options
    };
    let mut nodes = Nodes::new(&at, options, make);
    nodes.comers = Some(Comers { links, stop });
    Ok(nodes)
}

impl<H> Nodes<H> {
    fn new(at: &Endpoint, mut options: Options, make: Make<H>) -> Nodes<H> {
        options.backoff.min = PAUSE;
        options.backoff.max = LONGEST_PAUSE;
        Nodes {
            at: at.clone(),
            options,
            make,
            comers: None,
            all: Vec::new(),
            before: Stats::default(),
        }
    }

    /// Where the other side is, or comes to.
    pub fn at(&self) -> &Endpoint {
        &self.at
    }

    /// Whether this side waits for others.
    pub fn listens(&self) -> bool {
        self.comers.is_some()
    }

    /// Those that there are, with or without a session now.
    pub fn all(&mut self) -> &mut [Party<H>] {
        &mut self.all
    }

    fn enter(&mut self, node: Node, has: H) {
        // With a session, one that connects has been told of already.
        let seen = match &self.comers {
            None => node.status(),
            Some(_) => Status::default(),
        };
        self.all.push(Party {
            node,
            has,
            seen,
            since: Instant::now(),
            is_peer: self.options.whatami == WhatAmI::Peer,
            telling: Telling::Not,
        });
    }

    /// Takes up those who came, lets go who has left, and says on standard error what has changed.
    pub fn look(&mut self) -> Result<(), Failure> {
        while let Some(comers) = &self.comers {
            match comers.links.try_recv() {
                Ok(link) => {
                    let (node, driver) = pubsub::driven_accept(link, self.options.clone());
                    // Declared before there is a session, so that its first sample is not missed.
                    let has = (self.make)(&node)?;
                    node.keep_up(driver);
                    self.enter(node, has);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(Failure::internal(
                        format!("cannot listen on {} any more", self.at),
                        "its thread has ended",
                    ));
                }
            }
        }
        for party in &mut self.all {
            party.notice(&self.at, self.comers.is_some());
        }
        if self.comers.is_some() {
            let before = &mut self.before;
            let others_come = others_come(&self.at);
            self.all.retain(|party| {
                let is_silent = others_come && party.is_silent();
                if is_silent {
                    output::note("somebody connected, and opened no session in time");
                }
                let stays = party.seen.failures == 0 && !is_silent;
                if !stays {
                    add(before, &party.node.stats());
                }
                stays
            });
        }
        Ok(())
    }

    /// Why there is none.
    pub fn lost(&self) -> Failure {
        let trouble = self
            .all
            .iter()
            .find_map(|party| party.node.status().trouble);
        let cause = trouble.map_or("it does not answer".into(), |it| why(&self.at, &it));
        Failure::SessionLost {
            endpoint: self.at.address.to_string(),
            cause,
            help: "start the other side again, or look at its log; then repeat what is missing"
                .into(),
        }
    }

    /// What the sessions have counted, also of those who have gone.
    pub fn stats(&self) -> Stats {
        let mut sum = self.before;
        for party in &self.all {
            add(&mut sum, &party.node.stats());
        }
        sum
    }
}

/// Adds what a user is told of.
fn add(sum: &mut Stats, stats: &Stats) {
    for (sum, more) in [
        (&mut sum.missed_reliable, stats.missed_reliable),
        (&mut sum.missed_best_effort, stats.missed_best_effort),
        (&mut sum.gaps, stats.gaps),
        (&mut sum.old, stats.old),
        (&mut sum.fragments_lost, stats.fragments_lost),
        (&mut sum.too_large, stats.too_large),
        (&mut sum.unknown_key, stats.unknown_key),
        (&mut sum.bad_key, stats.bad_key),
        (&mut sum.no_room, stats.no_room),
        (&mut sum.unexpected, stats.unexpected),
        (&mut sum.malformed, stats.malformed),
    ] {
        *sum = sum.wrapping_add(more);
    }
}

impl<H> Party<H> {
    /// Who is there, or was there last.
    pub fn who(&self) -> Option<String> {
        self.node.status().peer.as_ref().map(name)
    }

    /// Whether it has come, and has opened no session in time.
    fn is_silent(&self) -> bool {
        let seen = &self.seen;
        seen.opened == 0 && seen.failures == 0 && self.since.elapsed() > PATIENCE
    }

    /// Says what has changed.
    fn notice(&mut self, at: &Endpoint, comes: bool) {
        let now = self.node.status();
        let who = now.peer.as_ref().map(name);
        if now.opened != self.seen.opened {
            self.telling = Telling::Not;
            let who = who.as_deref().unwrap_or("somebody");
            output::note(&match comes {
                true => format!("{who} connected"),
                false => format!("{at}: {who} is there again"),
            });
        }
        if now.failures > 0 && self.seen.failures == 0 {
            let why = now.trouble.as_ref();
            let why = why.map_or(String::new(), |it| format!(": {}", self::why(at, it)));
            output::note(&match (comes, who) {
                (true, Some(who)) => format!("{who} disconnected{why}"),
                (true, None) => format!("somebody connected, and opened no session{why}"),
                (false, _) => format!("{at} is lost{why}; trying again"),
            });
        }
        self.seen = now;
    }
}

impl Party<Publisher> {
    /// Publishes, as soon as it is known who subscribes there: peers say so unasked.
    /// [`PutError::NotOpen`] until then, too.
    pub fn publish(&mut self, body: &Body<'_>) -> Result<Put, PutError> {
        if self.telling != Telling::Done {
            self.telling = self.told()?;
        }
        let put = match self.telling {
            Telling::Done => self.has.publish(body),
            _ => return Err(PutError::NotOpen),
        };
        if put == Err(PutError::NotOpen) {
            self.telling = Telling::Not;
        }
        put
    }

    fn told(&self) -> Result<Telling, PutError> {
        let peer = self.node.peer().ok_or(PutError::NotOpen)?;
        let tells = self.is_peer && peer.whatami == WhatAmI::Peer;
        if !tells || self.has.is_heard().is_some() {
            return Ok(Telling::Done);
        }
        Ok(match self.telling {
            Telling::Since(since) if since.elapsed() >= TELLING => Telling::Done,
            Telling::Not => Telling::Since(Instant::now()),
            telling => telling,
        })
    }
}

/// Whether any number of others can come there: a line has one other side, which may come late.
fn others_come(at: &Endpoint) -> bool {
    match &at.address {
        Address::Tcp(..) | Address::Udp(..) | Address::Unix(_) => true,
        Address::Shm(_) => at.doorbell.is_none(),
        _ => false,
    }
}

/// What happened, without the remedy.
fn why(at: &Endpoint, trouble: &Trouble) -> String {
    match trouble {
        Trouble::Link(error) => explain(at, error).0,
        Trouble::Session(closed) => closed.to_string(),
    }
}

/// What it is, and its id.
fn name(peer: &Peer) -> String {
    let role = match peer.whatami {
        WhatAmI::Router => "router",
        WhatAmI::Peer => "peer",
        WhatAmI::Client => "client",
    };
    format!("{role} {}", peer.zid)
}

/// Why there is no session, and what to do about it.
fn why_not(at: &Endpoint, status: &Status) -> (String, String) {
    let silent = status.traffic.bytes_in == 0;
    let udp = matches!(at.address, Address::Udp(..));
    let serial = matches!(at.address, Address::Serial(..));
    let closed = match &status.trouble {
        Some(Trouble::Link(error)) => {
            let (cause, help) = explain(at, error);
            return match **error {
                ConnectError::NoServer(_) if other_file(at).is_none() => (cause, nobody(at, help)),
                _ => (cause, help),
            };
        }
        Some(Trouble::Session(closed)) => *closed,
        None => Closed::Unanswered,
    };
    if matches!(at.address, Address::Qemu(_)) {
        return (
            "the image asks for no session".into(),
            "it may be no node of Zenoh, or have ended, or talk by something else (option link=uart or \
             link=shm of the endpoint)"
                .into(),
        );
    }
    let other = match serial {
        true => OTHER_LINE,
        false => OTHER,
    };
    match closed {
        Closed::Link if udp => (
            "nobody listens on that port".into(),
            nobody(at, String::new()),
        ),
        Closed::Link if silent => (
            "the other side hung up before there was a session".into(),
            "it may be no Zenoh node, or one that does not want this role (--peer)".into(),
        ),
        Closed::Unanswered if silent && serial => (
            "nothing came back".into(),
            "start the other side of the line; compare baud= and frame= of both; --wait waits for it"
                .into(),
        ),
        Closed::Unanswered if silent && udp => (
            "nothing came back".into(),
            "start a router or peer there that listens on udp, or check the address; --wait waits \
             for it"
                .into(),
        ),
        Closed::Unanswered if silent => (
            "it takes the connection, but nothing came back".into(),
            "it may be no Zenoh node, or one that frames otherwise (option frame=NAME of the endpoint)".into(),
        ),
        Closed::Malformed => ("what came back is no message of Zenoh".into(), other.into()),
        Closed::Link | Closed::Unanswered => (
            format!(
                "{} bytes came back, but no session of Zenoh",
                status.traffic.bytes_in
            ),
            other.into(),
        ),
        other => (
            other.to_string(),
            "look at the log of the other side".into(),
        ),
    }
}

const OTHER: &str =
    "another protocol is spoken there, or it frames otherwise (option frame=NAME of the endpoint)";
const OTHER_LINE: &str = "the line has another speed or framing there (options baud=N and \
                          frame=NAME of the endpoint), or another protocol is spoken";

/// What to do where nobody is there; `help`: for any program at such an endpoint.
fn nobody(at: &Endpoint, help: String) -> String {
    match &at.address {
        Address::Tcp(..) | Address::Udp(..) => {
            "start a Zenoh router there, for example `zenohd`, or give --connect ENDPOINT; without \
             a router, one side listens with --listen ENDPOINT and the other connects to it; --wait \
             waits for whoever is not up yet"
                .into()
        }
        Address::Unix(_) | Address::Shm(_) if at.doorbell.is_none() => format!(
            "start the other side first, with --listen {at} where it is this tool, or check the \
             path; --wait waits for it"
        ),
        _ => format!("{help}; --wait waits for it"),
    }
}

//! Publish, subscribe and query from threads: a node with a session of Zenoh, on any link.
//!
//! ```no_run
//! use sinew_io::pubsub;
//!
//! let node = pubsub::connect("tcp:127.0.0.1:7447")?;
//! let lamp = node.publisher("demo/lamp")?;
//! println!("{}", lamp.put(b"on")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | `node` | the handles |
//! | `driver` | what keeps the session up: a thread, or the caller's |
//! | `handlers` | who is called with what has arrived |
//! | `core` | what threads share: the session and the sending half, behind one lock |
//! | `deliver` | what has arrived, kept while the lock is let go |
//! | `query`, `sample` | answers and samples with memory of their own |
//! | `tables` | tables that grow |
//! | `tasks` | the same for tasks: `sinew_io::tokio::pubsub` |

use std::sync::Arc;
use std::time::Duration;

use sinew::pubsub::keyexpr::KeyExprError;
use sinew::pubsub::session::Config;

use crate::apart::{self, Apart};
use crate::connect_error::ConnectError;
use crate::endpoint::{Address, Endpoint, EndpointError, Use};
use crate::reconnect::Backoff;

mod core;
mod deliver;
mod driver;
mod handlers;
mod node;
mod query;
mod sample;
mod tables;
#[cfg(feature = "tokio")]
pub(crate) mod tasks;

pub use self::core::{Status, Trouble};
pub use driver::Driver;
pub use node::{Node, NotOpen, Publisher, Queryable, Samples, SendOnceError, Subscriber};
pub use query::{Answer, Replies, ReplyError, Responder};
pub use sample::{Overflow, OwnedSample};
#[doc(no_inline)]
pub use sinew::pubsub::codec::{
    Body, Consolidation, Encoding, Kind, Priority, Qos, Target, WhatAmI, Zid,
};
#[doc(no_inline)]
pub use sinew::pubsub::keyexpr::KeyExpr;
#[doc(no_inline)]
pub use sinew::pubsub::session::{
    Ask, AskError, Closed, DeclareError, Ended, Peer, PublisherOptions, Put, PutError, Question,
    Sample, State, Stats,
};

/// How a node behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Client of a router, or peer.
    pub whatami: WhatAmI,
    /// The id of the node; `None`: a random one, and another one where a router still holds a session
    /// of that one. A router that holds one of a chosen id is asked again until its lease has passed.
    pub zid: Option<Zid>,
    /// The other side takes this one for gone after so long without a sign of life.
    pub lease: Duration,
    /// How long a sample may wait for others to share its batch; zero: each leaves at once.
    pub batching: Duration,
    /// The largest batch to agree on, in bytes; the link's mtu, where that is less.
    pub batch_size: u16,
    /// The largest message, in bytes, there and back.
    pub largest: usize,
    /// How long to wait between attempts to connect.
    pub backoff: Backoff,
    /// How long a node that ends waits for the other side to have taken what was sent, and to hang up;
    /// zero: it does not wait.
    pub linger: Duration,
}

impl Options {
    /// A client of a router: a lease of 10 s, no batching, messages of up to 64 MiB.
    pub fn client() -> Options {
        Options {
            whatami: WhatAmI::Client,
            zid: None,
            lease: Duration::from_secs(10),
            batching: Duration::ZERO,
            batch_size: u16::MAX,
            largest: 64 << 20,
            backoff: Backoff::default(),
            linger: Duration::ZERO,
        }
    }

    /// A peer, with the same.
    pub fn peer() -> Options {
        Options {
            whatami: WhatAmI::Peer,
            ..Options::client()
        }
    }

    fn config(&self, random: Zid, seed: u32) -> Config {
        let config = match self.whatami {
            WhatAmI::Client => Config::client(self.zid.unwrap_or(random)),
            _ => Config::peer(self.zid.unwrap_or(random)),
        };
        Config {
            lease_ms: u32::try_from(self.lease.as_millis()).unwrap_or(u32::MAX),
            batching: self.batching,
            batch_size: self.batch_size,
            largest: self.largest,
            seed,
            ..config
        }
    }
}

/// Why there is no node.
#[derive(Debug)]
pub enum OpenError {
    /// The text names no link.
    Endpoint(EndpointError),
    /// There was no session in time.
    NotOpen(NotOpen),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Endpoint(error) => error.fmt(f),
            OpenError::NotOpen(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// How long [`connect`] waits for the session.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a text names, for Zenoh: on a stream with its framing, unless the text says another. What
/// `text.parse()` gives is for calls.
pub fn endpoint(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::parse(text, Use::Batches)
}

/// A client of the router at an endpoint, when its session is open.
pub fn connect(at: &str) -> Result<Node, OpenError> {
    let at = endpoint(at).map_err(OpenError::Endpoint)?;
    let node = open(&at, Options::client());
    match node.wait_open(CONNECT_TIMEOUT) {
        Ok(_) => Ok(node),
        Err(error) => Err(OpenError::NotOpen(error)),
    }
}

/// A node that opens a session at the endpoint, now and whenever it is lost. It need not come about at
/// once: see [`Node::wait_open`] and [`Node::status`]. An image (`qemu:`) is started, and asks for the session
/// itself.
pub fn open(endpoint: &Endpoint, options: Options) -> Node {
    Node::start(Source::dial(endpoint), options)
}

/// As [`open`], without a thread: who calls [`Driver::turn`] keeps it up.
pub fn driven(endpoint: &Endpoint, options: Options) -> (Node, Driver) {
    Node::new(Source::dial(endpoint), options)
}

/// A node on a link that there is, whose other side opens the session: one that a listener gave. When
/// the link is lost, the node has ended.
///
/// The session may be open before anything is declared here, and what the other side sends until then
/// goes to nobody; [`driven_accept`] lets one declare first.
pub fn accept(apart: Apart, options: Options) -> Node {
    Node::start(Source::Accepted(Some(apart)), options)
}

/// As [`accept`], without a thread: who calls [`Driver::turn`] keeps it up, or [`Node::keep_up`] gives it
/// one when everything is declared.
pub fn driven_accept(apart: Apart, options: Options) -> (Node, Driver) {
    Node::new(Source::Accepted(Some(apart)), options)
}

/// A node on a link that there is, which opens the session; when the link is lost, it has ended.
pub fn over(apart: Apart, options: Options) -> Node {
    Node::start(Source::Given(Some(apart)), options)
}

/// As [`over`], without a thread: who calls [`Driver::turn`] keeps it up.
pub fn driven_over(apart: Apart, options: Options) -> (Node, Driver) {
    Node::new(Source::Given(Some(apart)), options)
}

/// A key expression that the wire can carry.
fn key_expr(key: &str) -> Result<KeyExpr<'_>, KeyExprError> {
    match u16::try_from(key.len()) {
        Ok(_) => KeyExpr::new(key),
        Err(_) => Err(KeyExprError::TooLong),
    }
}

/// How a link is opened.
type Dial = Box<dyn FnMut() -> Result<Apart, Arc<ConnectError>> + Send>;

/// Where a node's links come from.
enum Source {
    /// They are opened.
    Dial(Dial, Far),
    /// There is one, and the other side asks.
    Accepted(Option<Apart>),
    /// There is one, and this side asks.
    Given(Option<Apart>),
}

/// The other side of a link that is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Far {
    /// It waits to be asked for a session.
    Waits,
    /// The same, and packets can be lost.
    Loses,
    /// It was started for the link, and asks for a session itself: an image.
    Asks,
}

impl Source {
    fn dial(endpoint: &Endpoint) -> Source {
        let at = endpoint.clone();
        let far = match at.address {
            Address::Udp(..) | Address::Serial(..) => Far::Loses,
            Address::Qemu(_) => Far::Asks,
            _ => Far::Waits,
        };
        let dial = move || apart::open(&at).map_err(Arc::new);
        Source::Dial(Box::new(dial), far)
    }

    /// The next link; `None`: there is no more.
    fn link(&mut self) -> Option<Result<Apart, Arc<ConnectError>>> {
        match self {
            Source::Dial(dial, _) => Some(dial()),
            Source::Accepted(apart) | Source::Given(apart) => apart.take().map(Ok),
        }
    }

    fn accepts(&self) -> bool {
        matches!(self, Source::Accepted(_) | Source::Dial(_, Far::Asks))
    }

    /// After how many microseconds the handshake is asked for again.
    fn resend(&self) -> u64 {
        match self {
            Source::Dial(_, Far::Loses) => 1_000_000,
            _ => 0,
        }
    }
}

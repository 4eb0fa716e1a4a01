//! What either side of the matrix can be asked to do, and what it then sees.

use std::fmt;
use std::time::Duration;

/// Why a cell failed, for whoever reads it.
pub type Failure = String;

/// Where something listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    pub kind: Kind,
    /// `host:port`, or a path.
    pub address: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Tcp,
    Udp,
    Unix,
}

impl At {
    /// A port that the system chooses, or this path.
    pub fn any(kind: Kind, path: &std::path::Path) -> Self {
        let address = match kind {
            Kind::Tcp | Kind::Udp => "127.0.0.1:0".to_owned(),
            Kind::Unix => path.display().to_string(),
        };
        Self { kind, address }
    }

    /// As Zenoh writes it.
    pub fn zenoh(&self) -> String {
        let kind = match self.kind {
            Kind::Tcp => "tcp",
            Kind::Udp => "udp",
            Kind::Unix => "unixsock-stream",
        };
        format!("{kind}/{}", self.address)
    }

    /// As Sinew writes it.
    pub fn sinew(&self) -> String {
        let kind = match self.kind {
            Kind::Tcp => "tcp",
            Kind::Udp => "udp",
            Kind::Unix => "unix",
        };
        format!("{kind}:{}", self.address)
    }

    pub fn from_zenoh(text: &str) -> Option<Self> {
        let (kind, address) = text.split_once('/')?;
        let kind = match kind {
            "tcp" => Kind::Tcp,
            "udp" => Kind::Udp,
            "unixsock-stream" => Kind::Unix,
            _ => return None,
        };
        Some(Self {
            kind,
            address: address.to_owned(),
        })
    }
}

/// Bytes as they were seen: whole where they are few, else by length and CRC-32.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    pub len: usize,
    pub crc: u32,
    pub whole: Option<Vec<u8>>,
}

impl Seen {
    /// Up to how many bytes are kept.
    pub const WHOLE: usize = 256;

    pub fn of(bytes: &[u8]) -> Self {
        Self {
            len: bytes.len(),
            crc: sinew::wire::crc32::Crc32::new().update(bytes).finish(),
            whole: (bytes.len() <= Self::WHOLE).then(|| bytes.to_vec()),
        }
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.whole {
            Some(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            None => write!(f, "{} bytes, CRC {:08x}", self.len, self.crc),
        }
    }
}

/// A long payload: the pattern that `peer.py` makes too.
pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|n| match n % 256 {
            0 => (n / 256) as u8,
            within => (within as u8).wrapping_mul(7).wrapping_add(seed),
        })
        .collect()
}

/// How samples or replies travel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quality {
    /// 1 (real-time) to 7 (background).
    pub priority: u8,
    /// Wait where the link is full, instead of dropping.
    pub block: bool,
    pub express: bool,
}

impl Quality {
    /// What waits where the link is full.
    pub const BLOCKING: Quality = Quality {
        priority: 5,
        block: true,
        express: false,
    };
}

impl Default for Quality {
    fn default() -> Self {
        Self {
            priority: 5,
            block: false,
            express: false,
        }
    }
}

/// What goes with a payload.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct With {
    /// As text: `text/plain;utf8`. Empty: not said.
    pub encoding: String,
    pub attachment: Option<Vec<u8>>,
    /// NTP64, and an id as it is on the wire.
    pub timestamp: Option<(u64, Vec<u8>)>,
    /// The sequence number of a source info, whose entity is the publisher or session itself.
    pub source: Option<u32>,
}

/// What a queryable answers each query with. It travels as its query did.
#[derive(Clone, Debug)]
pub struct Answer {
    /// `None`: the query's key.
    pub key: Option<String>,
    pub what: What,
    pub with: With,
}

#[derive(Clone, Debug)]
pub enum What {
    Put(Vec<u8>),
    /// The query's own payload.
    Echo,
    Delete,
    Error(Vec<u8>),
}

impl Answer {
    pub fn put(payload: &[u8]) -> Self {
        Self::new(What::Put(payload.to_vec()))
    }

    pub fn new(what: What) -> Self {
        Self {
            key: None,
            what,
            with: With::default(),
        }
    }

    pub fn at(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Target {
    #[default]
    BestMatching,
    All,
    AllComplete,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Consolidation {
    #[default]
    Auto,
    None,
    Monotonic,
    Latest,
}

/// The time-out of a query that names none.
pub const NO_TIMEOUT: Duration = Duration::from_secs(60);

/// A query.
#[derive(Clone, Default, Debug)]
pub struct Get {
    pub key: String,
    pub parameters: String,
    pub target: Target,
    pub consolidation: Consolidation,
    /// `None`: so long that it does not end by it.
    pub timeout: Option<Duration>,
    pub payload: Option<Vec<u8>>,
    pub with: With,
    /// `None`: as Zenoh does where nothing is said, which is to block.
    pub quality: Option<Quality>,
    /// Replies on keys that do not match the query are taken too.
    pub any_key: bool,
}

impl Get {
    pub fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..Self::default()
        }
    }
}

/// A sample, also one of a reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    pub key: String,
    pub delete: bool,
    pub payload: Seen,
    pub encoding: String,
    pub attachment: Option<Vec<u8>>,
    pub timestamp: Option<(u64, Vec<u8>)>,
    pub quality: Quality,
    pub source: Option<Source>,
}

/// Who published, and the how many-th sample of his it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// As Zenoh prints it.
    pub zid: String,
    pub entity: u32,
    pub number: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    pub key: String,
    pub parameters: String,
    pub payload: Option<Seen>,
    pub encoding: Option<String>,
    pub attachment: Option<Vec<u8>>,
    pub source: Option<Source>,
    pub any_key: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Sample(Sample),
    Error { payload: Seen, encoding: String },
}

/// Something that a node has seen, with the name of the thing that saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    pub id: String,
    pub what: Happened,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happened {
    Sample(Sample),
    Query(Query),
    Reply(Reply),
    /// No further reply comes.
    End,
}

/// What a counting subscriber has seen. Payloads begin with their number, u32 LE.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counted {
    pub received: u64,
    /// Numbers that were skipped.
    pub missing: u64,
    /// Numbers that were not above the one before, of the same key.
    pub backwards: u64,
}

/// One side: a session, and things declared on it, which have names.
pub trait Node {
    /// This session's id, as Zenoh prints it.
    fn zid(&self) -> String;

    fn subscribe(&mut self, id: &str, key: &str) -> Result<(), Failure>;
    /// A subscriber that only counts, and takes so long for each sample.
    fn count(&mut self, id: &str, key: &str, pause: Duration) -> Result<(), Failure>;
    fn counted(&mut self, id: &str) -> Result<Counted, Failure>;

    fn publisher(
        &mut self,
        id: &str,
        key: &str,
        quality: &Quality,
        reliable: bool,
    ) -> Result<(), Failure>;
    fn put(&mut self, id: &str, payload: &[u8], with: &With) -> Result<(), Failure>;
    fn delete(&mut self, id: &str, with: &With) -> Result<(), Failure>;
    /// Numbered payloads of `size` bytes, one of each publisher in turn.
    fn burst(&mut self, ids: &[&str], count: u32, size: usize) -> Result<(), Failure>;
    /// Whether somebody subscribes to what this publisher publishes.
    fn matching(&mut self, id: &str) -> Result<bool, Failure>;

    /// Answers each query with all of these; `hold`: and ends it only at `release`.
    fn queryable(
        &mut self,
        id: &str,
        key: &str,
        complete: bool,
        answers: &[Answer],
        hold: bool,
    ) -> Result<(), Failure>;
    fn release(&mut self, id: &str) -> Result<(), Failure>;
    fn get(&mut self, id: &str, get: &Get) -> Result<(), Failure>;

    fn undeclare(&mut self, id: &str) -> Result<(), Failure>;

    /// The next event, if one comes in this time.
    fn event(&mut self, within: Duration) -> Result<Option<Event>, Failure>;
    /// What else it knows, for whoever reads why a cell failed.
    fn notes(&self) -> String {
        String::new()
    }
    /// Closes the session as one should.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// Makes nodes of one kind.
pub trait Maker {
    /// A client of the router that listens there.
    fn client(&self, router: &At) -> Result<Box<dyn Node>, Failure>;
    /// A peer that opens a session with the peer that listens there.
    fn opens(&self, peer: &At) -> Result<Box<dyn Node>, Failure>;
    /// A peer that listens.
    fn listens(&self, at: &At) -> Result<(Box<dyn Node>, At), Failure>;
}

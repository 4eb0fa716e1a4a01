//! A link that is opened again when it is lost, with exponential back-off and jitter.
//!
//! A call that is in flight when the link is lost ends with `Closed`: it may have run, so it is
//! never repeated silently. A new call waits for the connection until its time-out, then ends with
//! `Closed` as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use sinew::link::{RecvError, Rx, SendError, Tx};

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::link::{AnyLink, Link, Traffic, Want};
use crate::open::{ConnectError, open};

/// How long to wait between attempts to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// After the first failure. Each further failure doubles it.
    pub min: Duration,
    /// At most.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            min: Duration::from_millis(50),
            max: Duration::from_secs(5),
        }
    }
}

/// What is known of the connection, readable from any thread.
#[derive(Clone, Debug, Default)]
pub struct State(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    connected: AtomicU32,
    lost: AtomicU32,
    failures: AtomicU32,
}

impl State {
    /// Whether there is a connection, as far as was noticed.
    pub fn is_connected(&self) -> bool {
        self.connections() != self.0.lost.load(Ordering::Acquire)
    }

    /// How often a connection came about.
    pub fn connections(&self) -> u32 {
        self.0.connected.load(Ordering::Acquire)
    }

    /// How many attempts have failed since there was a connection.
    pub fn failures(&self) -> u32 {
        self.0.failures.load(Ordering::Acquire)
    }
}

/// A blocking client that reconnects. Nothing is opened before the first call.
pub fn connect(endpoint: &Endpoint, backoff: Backoff) -> Client<Redial> {
    let at = endpoint.clone();
    Client::new(Redial::new(move || open(&at), backoff), endpoint.channel)
}

/// How a link is opened.
type Dial = Box<dyn FnMut() -> Result<AnyLink, ConnectError> + Send>;

/// A link that comes back; see the [module](self).
pub struct Redial {
    dial: Dial,
    link: Option<AnyLink>,
    down: (Down, Down),
    backoff: Backoff,
    /// The span before the next attempt, without jitter.
    span: Duration,
    next: Option<Instant>,
    state: State,
    before: Traffic,
}

impl Redial {
    /// A link that `dial` opens, again and again.
    pub fn new(
        dial: impl FnMut() -> Result<AnyLink, ConnectError> + Send + 'static,
        backoff: Backoff,
    ) -> Redial {
        Redial {
            dial: Box::new(dial),
            link: None,
            down: (Down, Down),
            backoff,
            span: backoff.min,
            next: None,
            state: State::default(),
            before: Traffic::default(),
        }
    }

    /// A view of the connection for other threads.
    pub fn state(&self) -> State {
        self.state.clone()
    }

    /// One attempt to connect.
    fn attempt(&mut self) {
        match (self.dial)() {
            Ok(link) => {
                self.link = Some(link);
                self.span = self.backoff.min;
                self.next = None;
                self.state.0.failures.store(0, Ordering::Release);
                self.state.0.connected.fetch_add(1, Ordering::AcqRel);
            }
            Err(_) => {
                self.state.0.failures.fetch_add(1, Ordering::AcqRel);
                self.next = Some(Instant::now() + jitter(self.span));
                self.span = self.span.saturating_mul(2).min(self.backoff.max);
            }
        }
    }
}

/// Between half and all of the span, so that many clients do not come back at the same moment.
pub(crate) fn jitter(span: Duration) -> Duration {
    let random = crate::random() as u32;
    span / 2 + (span / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

impl Link for Redial {
    type Tx = dyn Tx + Send;
    type Rx = dyn Rx + Send;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        match &mut self.link {
            Some(link) => link.halves(),
            None => (&mut self.down.0, &mut self.down.1),
        }
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        if let Some(link) = &mut self.link {
            return link.wait(want, timeout);
        }
        let now = Instant::now();
        let pause = self
            .next
            .map_or(Duration::ZERO, |next| next.saturating_duration_since(now));
        if timeout.is_some_and(|timeout| timeout < pause) {
            return thread::sleep(timeout.unwrap_or_default());
        }
        thread::sleep(pause);
        self.attempt();
    }

    fn waker(&mut self) -> Waker {
        match &mut self.link {
            Some(link) => link.waker(),
            None => Waker::noop().clone(),
        }
    }

    fn is_idle(&self) -> bool {
        self.link.as_ref().is_none_or(|link| link.is_idle())
    }

    fn traffic(&self) -> Traffic {
        let now = self
            .link
            .as_ref()
            .map(|link| link.traffic())
            .unwrap_or_default();
        Traffic {
            bytes_in: self.before.bytes_in + now.bytes_in,
            bytes_out: self.before.bytes_out + now.bytes_out,
            frames: now.frames,
            dropped: self.before.dropped + now.dropped,
        }
    }

    fn revives(&self) -> bool {
        true
    }

    fn lost(&mut self) {
        if self.link.is_some() {
            self.before = self.traffic();
            self.link = None;
            self.state.0.lost.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Half of a link that is being opened: full, and empty.
struct Down;

impl Tx for Down {
    fn mtu(&self) -> usize {
        0
    }

    fn place(&mut self, _min: usize) -> Result<&mut [u8], SendError> {
        Err(SendError::Full)
    }

    fn commit(&mut self, _len: usize) -> Result<(), SendError> {
        Err(SendError::Closed)
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

impl Rx for Down {
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        Ok(None)
    }

    fn release(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

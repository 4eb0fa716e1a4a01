//! How two processes with one unix socket between them come to share memory.
//!
//! The side that connects calls [`join`] (or [`observe`]); the side that accepted calls [`greet`] and
//! then [`Greeting::join`], [`Greeting::show`] or [`Greeting::refuse`]; [`accept`] does both. Then:
//!
//! | step | from | what | descriptors |
//! |---|---|---|---|
//! | 1 | joining | hello: what it offers | its segment; its eventfd if that is the doorbell |
//! | 2 | serving | hello: what it offers, or a refusal | its segment; the exchange segment if trust = mutual; its eventfd |
//! | 3 | joining | hello again: agreed, or a refusal | none |
//!
//! Each step is one message of fixed size. Whoever finds a difference names it in a [`Refusal`] to the
//! other, so that both can show it, and ends. Nothing that the other side sends or leaves out makes a
//! call here take longer than its time limit in all, or leaves a descriptor open.
//!
//! After it, the socket carries nothing but doorbell bytes, and its hang-up says that the peer died.

mod error;
mod hello;
mod observe;
mod refusal;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use std::vec::Vec;

use rustix::net::{Shutdown, shutdown};

use super::Deadline;
use super::bell::EventFdBell;
use super::fds::{self, FdsError};
use super::memfd::Segment;
use error::refuse;
use hello::{Hello, Kind};

pub use error::ExchangeError;
pub use observe::{MAX_LINKS, MAX_SEGMENT, Observed, observe};
pub use refusal::{Field, Refusal};

/// A time limit that fits if nothing is known: 5 s.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// Whether the sides may harm each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Each side writes its own segment only.
    None,
    /// There is an exchange segment too, which both write.
    Mutual,
}

/// How the sides ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DoorbellKind {
    /// [`super::bell::SocketBell`].
    Socket,
    /// [`super::bell::EventFdBell`]: needs [`Trust::Mutual`].
    EventFd,
    /// [`super::bell::FutexBell`].
    Futex,
}

/// What one side brings and expects. Both must have the same but for the exchanged lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Of the configuration, as the layout defines it.
    pub config_hash: u32,
    /// Length of this side's segment in bytes, at least 1.
    pub own_len: u32,
    /// Length of the other side's segment in bytes, at least 1.
    pub peer_len: u32,
    /// Whether there is an exchange segment.
    pub trust: Trust,
    /// Length of the exchange segment in bytes, at least 1; 0 without one.
    pub exchange_len: u32,
    /// How both ring.
    pub doorbell: DoorbellKind,
}

/// What a side has after both agreed.
#[derive(Debug)]
pub struct Joined {
    /// One's own segment: zero bytes, writable here and nowhere else.
    pub mine: Segment,
    /// The peer's, read-only.
    pub peer: Segment,
    /// The exchange segment, writable on both sides, if trust = mutual.
    pub exchange: Option<Segment>,
    /// The eventfds, if that is the doorbell.
    pub eventfds: Option<EventFds>,
    /// For the doorbell bytes and the notice of death.
    pub socket: OwnedFd,
}

/// Arguments for [`EventFdBell::new`].
#[derive(Debug)]
pub struct EventFds {
    /// To wait on.
    pub mine: OwnedFd,
    /// To ring.
    pub peers: OwnedFd,
}

/// Joins as the side that connected. Waits at most `timeout` in all.
pub fn join(socket: OwnedFd, offer: &Offer, timeout: Duration) -> Result<Joined, ExchangeError> {
    let deadline = Deadline::after(timeout);
    let own = Own::make(offer, false)?;
    let hello = Hello::offer(Kind::Join, *offer);
    begin(&socket, &hello, &own.descriptors(), deadline)?;

    let (answer, received) =
        receive(&socket, deadline).map_err(|error| tell(&socket, error, deadline))?;
    if let Some(refusal) = answer.refusal {
        return Err(ExchangeError::RefusedByPeer(refusal.seen_from_other_side()));
    }
    let checked = take(offer, &answer, received, true);
    let theirs = checked.map_err(|error| tell(&socket, error, deadline))?;

    fds::send(&socket, &hello.encode(), &[], deadline)?;
    Ok(own.with(theirs, socket))
}

/// Receives the first message of the side that connected. Waits at most `timeout` in all.
pub fn greet(socket: OwnedFd, timeout: Duration) -> Result<Greeting, ExchangeError> {
    let deadline = Deadline::after(timeout);
    let (hello, received) =
        receive(&socket, deadline).map_err(|error| tell(&socket, error, deadline))?;
    Ok(Greeting {
        socket,
        hello,
        received,
    })
}

/// Sends away who connected without hearing what it wants: [`Field::Busy`] where there is nobody left
/// who could. Does not wait.
pub fn turn_away(socket: OwnedFd, refusal: Refusal) {
    let deadline = Deadline::after(Duration::ZERO);
    tell(&socket, ExchangeError::Refused(refusal), deadline);
    // The end of a socket with an unread message takes the answer back, so there is to be none.
    let _ = shutdown(&socket, Shutdown::Read);
    let _ = fds::receive(&socket, &mut [0; hello::SIZE], deadline);
}

/// Greets, and joins or shows: for a server with one configuration. Waits at most `timeout` in all,
/// twice.
pub fn accept(
    socket: OwnedFd,
    offer: &Offer,
    links: &[(BorrowedFd<'_>, BorrowedFd<'_>)],
    timeout: Duration,
) -> Result<Accepted, ExchangeError> {
    let greeting = greet(socket, timeout)?;
    if greeting.is_observer() {
        return Ok(Accepted::Observer(greeting.show(links, timeout)?));
    }
    Ok(Accepted::Joined(greeting.join(offer, timeout)?))
}

/// Who connected.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Accepted {
    /// The other side of a link.
    Joined(Joined),
    /// An observer, which has its descriptors now; the socket says by its hang-up when it goes.
    Observer(OwnedFd),
}

/// A side that connected and said what it wants; it waits for the answer.
#[derive(Debug)]
pub struct Greeting {
    socket: OwnedFd,
    hello: Hello,
    received: Vec<OwnedFd>,
}

impl Greeting {
    /// It wants to look, not to join: call [`Greeting::show`].
    pub fn is_observer(&self) -> bool {
        self.hello.kind == Kind::Observe
    }

    /// The hash of its configuration, by which a server of several links chooses its offer.
    pub fn config_hash(&self) -> u32 {
        self.hello.offer.config_hash
    }

    /// Agrees, or refuses naming what differs. Waits at most `timeout` in all.
    pub fn join(self, offer: &Offer, timeout: Duration) -> Result<Joined, ExchangeError> {
        let deadline = Deadline::after(timeout);
        let Greeting {
            socket,
            hello,
            received,
        } = self;
        let made = take(offer, &hello, received, false).and_then(|theirs| {
            let own = Own::make(offer, true)?;
            Ok((theirs, own))
        });
        let (theirs, own) = made.map_err(|error| tell(&socket, error, deadline))?;
        let hello = Hello::offer(Kind::Join, *offer);
        fds::send(&socket, &hello.encode(), &own.descriptors(), deadline)?;

        let (verdict, extra) = receive(&socket, deadline)?;
        if let Some(refusal) = verdict.refusal {
            return Err(ExchangeError::RefusedByPeer(refusal.seen_from_other_side()));
        }
        if !extra.is_empty() {
            return Err(refuse(Field::Descriptors, 0, extra.len()));
        }
        Ok(own.with(theirs, socket))
    }

    /// Sends it away, naming the reason: [`Field::Busy`] if there is no link free.
    pub fn refuse(self, refusal: Refusal) {
        let deadline = Deadline::after(Duration::ZERO);
        tell(&self.socket, ExchangeError::Refused(refusal), deadline);
    }
}

/// What a side makes for a link.
struct Own {
    segment: Segment,
    exchange: Option<Segment>,
    eventfd: Option<OwnedFd>,
}

/// What it takes from the other.
struct Theirs {
    segment: Segment,
    exchange: Option<Segment>,
    eventfd: Option<OwnedFd>,
}

impl Own {
    fn make(offer: &Offer, serving: bool) -> Result<Own, ExchangeError> {
        let mutual = offer.trust == Trust::Mutual;
        let eventfd = offer.doorbell == DoorbellKind::EventFd;
        if eventfd && !mutual {
            return Err(ExchangeError::EventFdWithoutTrust);
        }
        let exchange = (mutual && serving)
            .then(|| Segment::create_exchange(offer.exchange_len as usize))
            .transpose()?;
        Ok(Own {
            segment: Segment::create(offer.own_len as usize)?,
            exchange,
            eventfd: eventfd.then(EventFdBell::create).transpose()?,
        })
    }

    /// In the order in which [`take`] takes them.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let exchange = self.exchange.iter().map(Segment::as_fd);
        let eventfd = self.eventfd.iter().map(OwnedFd::as_fd);
        core::iter::once(self.segment.as_fd())
            .chain(exchange)
            .chain(eventfd)
            .collect()
    }

    fn with(self, theirs: Theirs, socket: OwnedFd) -> Joined {
        let eventfds = self.eventfd.zip(theirs.eventfd);
        Joined {
            mine: self.segment,
            peer: theirs.segment,
            exchange: self.exchange.or(theirs.exchange),
            eventfds: eventfds.map(|(mine, peers)| EventFds { mine, peers }),
            socket,
        }
    }
}

/// Checks everything that the other side said and sent. `joining`: this is the side that connected.
fn take(
    offer: &Offer,
    hello: &Hello,
    received: Vec<OwnedFd>,
    joining: bool,
) -> Result<Theirs, ExchangeError> {
    hello.check(offer, joining)?;
    let with_exchange = joining && offer.trust == Trust::Mutual;
    let with_eventfd = offer.doorbell == DoorbellKind::EventFd;
    let expected = 1 + usize::from(with_exchange) + usize::from(with_eventfd);
    let got = received.len();
    let wrong_count = || refuse(Field::Descriptors, expected, got);
    if got != expected {
        return Err(wrong_count());
    }
    let mut received = received.into_iter();
    let segment = received.next().ok_or_else(wrong_count)?;
    let segment = Segment::accept(segment, offer.peer_len as usize)?;
    let exchange = match with_exchange {
        true => {
            let fd = received.next().ok_or_else(wrong_count)?;
            let len = offer.exchange_len as usize;
            Some(Segment::accept_exchange(fd, len)?)
        }
        false => None,
    };
    Ok(Theirs {
        segment,
        exchange,
        eventfd: received.next(),
    })
}

/// Sends the first message. Who hung up before it may have said why.
fn begin(
    socket: &OwnedFd,
    hello: &Hello,
    fds: &[BorrowedFd<'_>],
    deadline: Deadline,
) -> Result<(), ExchangeError> {
    match fds::send(socket, &hello.encode(), fds, deadline) {
        Err(FdsError::HungUp) => {
            let (answer, _) = receive(socket, deadline)?;
            Err(answer.refusal.map_or(ExchangeError::HungUp, |refusal| {
                ExchangeError::RefusedByPeer(refusal.seen_from_other_side())
            }))
        }
        sent => Ok(sent?),
    }
}

fn receive(socket: &OwnedFd, deadline: Deadline) -> Result<(Hello, Vec<OwnedFd>), ExchangeError> {
    let mut bytes = [0; hello::SIZE];
    let received = fds::receive(socket, &mut bytes, deadline)?;
    Ok((Hello::decode(&bytes)?, received))
}

/// Tells the other side why, if it still listens, and gives the reason back.
fn tell(socket: &OwnedFd, error: ExchangeError, deadline: Deadline) -> ExchangeError {
    if let Some(refusal) = error.to_refusal() {
        // It may be gone, or not listen: the reason stays what it is.
        let _ = fds::send(socket, &Hello::refusal(refusal).encode(), &[], deadline);
    }
    error
}

//! Services for any number of links and clients, with blocking threads.
//!
//! Engine and services are shared by all links behind one mutex. It is held while a packet is
//! handled and while services are polled, never while something is sent or waited for. Each link
//! has a thread; deferred answers and streams of other threads reach it through two lanes per
//! link: answers leave as soon as the carrier has a place, streams when everything before them
//! has left, so that they do not hold up what is urgent.
//!
//! Where it listens (tcp, unix), clients come at the same time and one after another, up to
//! [`Server::max_links`]; one more is accepted, closed and counted. On udp each client address is
//! a link; the one that was silent longest makes room. A serial line, a child process and the own
//! standard input and output are one link each.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Waker;
use std::time::Duration;

use sinew::link::Tx;
use sinew::rpc::{self, Service, Slot};
use sinew_shm::linux::exchange::{ExchangeError, Field, Refusal};
use sinew_shm::linux::link::LinkError;

use crate::Clock;
use crate::link::{Link, Want};
use crate::lock;

pub(crate) mod control;
mod counters;
mod lane;
pub(crate) mod listen;
mod pump;
mod seat;
mod udp;

pub use counters::LinkCounters;
pub use listen::{ListenError, Listening};
pub(crate) use pump::Next;
use seat::{Drivers, Lanes, Promise, Seat};

/// Services `S` with room for `CALLS` calls that outlive their receive step, over all links.
pub struct Server<S: Service, const CALLS: usize = 64> {
    shared: Arc<Shared<S, CALLS>>,
}

impl<S: Service, const CALLS: usize> Clone for Server<S, CALLS> {
    fn clone(&self) -> Self {
        Server {
            shared: self.shared.clone(),
        }
    }
}

struct Shared<S: Service, const CALLS: usize> {
    clock: Clock,
    max_links: usize,
    refused: AtomicU32,
    watch: OnceLock<Box<dyn Fn(LinkEvent) + Send + Sync>>,
    counters: OnceLock<LinkCounters>,
    engine: Mutex<Engine<S, CALLS>>,
}

/// What the mutex guards.
struct Engine<S: Service, const CALLS: usize> {
    server: rpc::Server<CALLS>,
    services: S,
    /// By link id.
    links: Vec<Lanes>,
    /// Seats for links that are still coming about.
    promised: usize,
    drivers: Arc<Drivers>,
    /// Wakes all of them.
    waker: Waker,
}

/// What happened to a link, which is known by its number until it closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// A client is there.
    Opened(u16),
    /// It is gone; its calls have ended, and the next link may have its number.
    Closed(u16),
    /// A client was refused, and has no link. Not told over udp, where only packets are refused.
    Refused(Why),
}

/// Why a client was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Every link is taken: [`Server::max_links`].
    TooMany,
    /// Over shared memory: what differs between the two sides. Give both the same mtu or link file.
    Differs(Refusal),
    /// Over shared memory: it did not say in time what it wants.
    Silent,
    /// A thread, a descriptor or memory for it could not be had here, or it went away half-way.
    Trouble,
}

impl Why {
    fn of(error: &LinkError) -> Why {
        match error {
            LinkError::Exchange(error) => match error {
                ExchangeError::Refused(refusal) | ExchangeError::RefusedByPeer(refusal) => {
                    match refusal.field {
                        Field::Busy => Why::TooMany,
                        Field::Trouble => Why::Trouble,
                        _ => Why::Differs(*refusal),
                    }
                }
                ExchangeError::Silent => Why::Silent,
                _ => Why::Trouble,
            },
            _ => Why::Trouble,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::TooMany => f.write_str("there are too many"),
            Why::Differs(refusal) => write!(f, "it does not fit ({refusal})"),
            Why::Silent => f.write_str("it said nothing in time"),
            Why::Trouble => f.write_str("it went away, or this process lacks room for it"),
        }
    }
}

/// Links at the same time where nothing else is said.
pub const DEFAULT_MAX_LINKS: usize = 64;

impl<S: Service, const CALLS: usize> Shared<S, CALLS> {
    fn tell(&self, event: LinkEvent) {
        if let Some(watch) = self.watch.get() {
            watch(event);
        }
    }
}

impl<S: Service> Server<S> {
    /// A server of these services (one, or a tuple), with the default capacities.
    pub fn new(services: S) -> Self {
        Server::with_capacities(services, DEFAULT_MAX_LINKS)
    }
}

impl<S: Service, const CALLS: usize> Server<S, CALLS> {
    /// A server for up to `max_links` links at the same time.
    ///
    /// Its call slots, and 128 KiB per link that was ever open at the same time, stay allocated
    /// for the life of the program: answers in other threads may point at them.
    pub fn with_capacities(services: S, max_links: usize) -> Self {
        let slots: &'static [Slot; CALLS] = Box::leak(Box::new([const { Slot::new() }; CALLS]));
        let drivers = Arc::new(Drivers::default());
        Server {
            shared: Arc::new(Shared {
                clock: Clock::start(),
                max_links: max_links.min(usize::from(u16::MAX)),
                refused: AtomicU32::new(0),
                watch: OnceLock::new(),
                counters: OnceLock::new(),
                engine: Mutex::new(Engine {
                    server: rpc::Server::new(slots),
                    services,
                    links: Vec::new(),
                    promised: 0,
                    waker: drivers.clone().into(),
                    drivers,
                }),
            }),
        }
    }

    /// How many links there can be at the same time.
    pub fn max_links(&self) -> usize {
        self.shared.max_links
    }

    /// Calls `watch` when a link opens, when it closes and when a client is refused, in a thread of
    /// the server. Only the first watcher counts; set it before listening.
    pub fn on_link(&self, watch: impl Fn(LinkEvent) + Send + Sync + 'static) {
        let _ = self.shared.watch.set(Box::new(watch));
    }

    /// Counts there what passes over each link. Only the first counters count; set them before listening.
    ///
    /// They are told when a link's thread goes to sleep, and now and then while it does not.
    pub fn count_links(&self, counters: LinkCounters) {
        let _ = self.shared.counters.set(counters);
    }

    /// How many clients were refused, for whatever reason ([`Why`]); over udp, how many packets.
    pub fn refused(&self) -> u32 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// What the engine has refused so far.
    pub fn stats(&self) -> rpc::ServerStats {
        *self.engine().server.stats()
    }

    /// How many links are open.
    pub fn links(&self) -> usize {
        self.engine()
            .links
            .iter()
            .filter(|lanes| lanes.is_taken)
            .count()
    }

    /// Sets how long a call may stay without a packet from either side; 60 seconds at first.
    pub fn set_lifetime(&self, lifetime: Duration) {
        self.engine().server.set_lifetime(lifetime);
    }

    /// Reaches the services, between two packets.
    pub fn with_services<T>(&self, f: impl FnOnce(&mut S) -> T) -> T {
        f(&mut self.engine().services)
    }

    /// Serves one link in the caller's thread until it closes. `false` where there are too many.
    pub fn serve(&self, link: &mut impl Link, channel: u32) -> bool {
        self.serve_until(link, channel, None, || false)
    }

    /// Serves one link by hand, a turn at a time; `None` where there are too many.
    pub(crate) fn turns(&self, link: &mut impl Link, channel: u32) -> Option<Turns<S, CALLS>> {
        let seat = self.shared.seat(link.halves().0.mtu(), channel, None)?;
        Some(Turns {
            seat,
            clock: self.shared.clock,
            moved: false,
        })
    }

    fn serve_until(
        &self,
        link: &mut impl Link,
        channel: u32,
        promise: Option<Promise<S, CALLS>>,
        stopped: impl Fn() -> bool,
    ) -> bool {
        let mtu = link.halves().0.mtu();
        let Some(mut seat) = self.shared.seat(mtu, channel, promise) else {
            self.refuse_for(Why::TooMany);
            return false;
        };
        pump::run(link, &mut seat, self.shared.clock, stopped);
        true
    }

    fn refuse_for(&self, why: Why) {
        self.refuse();
        self.shared.tell(LinkEvent::Refused(why));
    }

    fn refuse(&self) {
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn engine(&self) -> MutexGuard<'_, Engine<S, CALLS>> {
        lock(&self.shared.engine)
    }
}

/// Serves a link in the thread of its client.
pub(crate) struct Turns<S: Service, const CALLS: usize> {
    seat: Seat<S, CALLS>,
    clock: Clock,
    moved: bool,
}

impl<S: Service, const CALLS: usize> Turns<S, CALLS> {
    /// One turn, and what comes after it.
    pub(crate) fn turn(&mut self, link: &mut impl Link) -> Next {
        pump::turn(link, &mut self.seat, self.clock, &mut self.moved)
    }

    /// Wakes `waker` when there is something to send that other threads have answered.
    pub(crate) fn arm(&mut self, waker: &Waker, want: Want) {
        self.seat.arm(waker, want);
    }
}

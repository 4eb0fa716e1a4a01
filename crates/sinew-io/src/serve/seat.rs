//! One link's part in the shared engine.

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use sinew::link::{Port, SendError};
use sinew::rpc::{Channels, Service, Via};
use sinew::time::Instant;

use super::lane::{Lane, LaneEnd};
use super::{Engine, LinkEvent, Shared};
use crate::link::{Traffic, Want};
use crate::lock;

/// The lanes of a link id; used again when no responder points at them any more.
pub(super) struct Lanes {
    pub(super) urgent: &'static Lane,
    pub(super) bulk: &'static Lane,
    pub(super) is_taken: bool,
}

impl Lanes {
    fn leak() -> Lanes {
        Lanes {
            urgent: Lane::leak(),
            bulk: Lane::leak(),
            is_taken: false,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.is_taken && (self.urgent.is_waiting() || self.bulk.is_waiting())
    }
}

/// The drivers of all links: what services wake that have something to go on with.
///
/// Any of them could go on, but one that waits for its carrier does not listen: so all are woken.
#[derive(Default)]
pub(super) struct Drivers(Mutex<Vec<&'static Lane>>);

impl Wake for Drivers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        for lane in lock(&self.0).iter() {
            lane.ring();
        }
    }
}

/// A link id, its lanes and what its thread knows of the engine. Dropping it ends the link's calls.
pub(super) struct Seat<S: Service, const CALLS: usize> {
    shared: Arc<Shared<S, CALLS>>,
    via: Via,
    pub(super) urgent: LaneEnd,
    pub(super) bulk: LaneEnd,
    /// When the engine has to be polled at the latest.
    pub(super) deadline: Instant,
    /// A service has more to do as soon as there is a place.
    pub(super) is_busy: bool,
    /// Turns since the counters were told.
    untold: u8,
    /// The last of the fields, so that the lanes are closed before it is dropped.
    _farewell: Farewell<S, CALLS>,
}

/// Tells that the link is gone when its number is free for another one, and not before.
struct Farewell<S: Service, const CALLS: usize>(Arc<Shared<S, CALLS>>, u16);

impl<S: Service, const CALLS: usize> Drop for Farewell<S, CALLS> {
    fn drop(&mut self) {
        self.0.tell(LinkEvent::Closed(self.1));
    }
}

/// So many turns at most.
const UNTOLD: u8 = 64;

/// A seat is kept free for a link that is still coming about, so that a client to whom memory was
/// given is not sent away after it.
pub(super) struct Promise<S: Service, const CALLS: usize>(Option<Arc<Shared<S, CALLS>>>);

impl<S: Service, const CALLS: usize> Drop for Promise<S, CALLS> {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            lock(&shared.engine).promised -= 1;
        }
    }
}

impl<S: Service, const CALLS: usize> Engine<S, CALLS> {
    fn is_full(&self, max_links: usize) -> bool {
        let taken = self.links.iter().filter(|lanes| lanes.is_taken).count();
        taken + self.promised >= max_links
    }

    /// Lets the services go on; `true` where they want it again as soon as there is a place.
    fn go_on(&mut self, now: Instant) -> bool {
        let is_busy = self.services.poll(now);
        if !is_busy {
            self.services.arm(&self.waker);
        }
        is_busy
    }
}

impl<S: Service, const CALLS: usize> Shared<S, CALLS> {
    /// Keeps a seat free; `None` where every one is taken or promised.
    pub(super) fn promise(self: &Arc<Self>) -> Option<Promise<S, CALLS>> {
        let mut engine = lock(&self.engine);
        if engine.is_full(self.max_links) {
            return None;
        }
        engine.promised += 1;
        Some(Promise(Some(self.clone())))
    }

    /// A seat for a new link; `None` where every one is taken, or promised to somebody else.
    pub(super) fn seat(
        self: &Arc<Self>,
        mtu: usize,
        channel: u32,
        promise: Option<Promise<S, CALLS>>,
    ) -> Option<Seat<S, CALLS>> {
        let mut engine = lock(&self.engine);
        match promise {
            Some(mut promise) => {
                promise.0 = None;
                engine.promised -= 1;
            }
            None if engine.is_full(self.max_links) => return None,
            None => {}
        }
        let Engine { server, links, .. } = &mut *engine;
        let take = |(id, lanes): (usize, &mut Lanes)| {
            let id = u16::try_from(id).ok()?;
            if lanes.is_taken || !server.is_quiet(id) {
                return None;
            }
            let ends = (lanes.urgent.open(mtu)?, lanes.bulk.open(mtu)?);
            lanes.is_taken = true;
            Some((id, ends))
        };
        let mut found = links.iter_mut().enumerate().find_map(take);
        if found.is_none() && links.len() < self.max_links {
            links.push(Lanes::leak());
            found = links.iter_mut().enumerate().next_back().and_then(take);
        }
        let (id, (urgent, bulk)) = found?;
        lock(&engine.drivers.0).push(urgent.lane());
        drop(engine);
        self.tell(LinkEvent::Opened(id));
        Some(Seat {
            via: Via {
                link: id,
                channels: Channels::Only(channel),
                port: Some(urgent.lane()),
                bulk: Some(bulk.lane()),
            },
            shared: self.clone(),
            urgent,
            bulk,
            deadline: Instant::FAR,
            is_busy: false,
            untold: 0,
            _farewell: Farewell(self.clone(), id),
        })
    }
}

impl<S: Service, const CALLS: usize> Seat<S, CALLS> {
    /// Handles one packet; the length of the answer in `place`.
    pub(super) fn handle(&mut self, packet: &[u8], place: &mut [u8], now: Instant) -> usize {
        let mut engine = lock(&self.shared.engine);
        let Engine {
            server, services, ..
        } = &mut *engine;
        let len = server.handle(packet, &self.via, place, services, now);
        self.deadline = server.deadline();
        self.is_busy = engine.go_on(now);
        len
    }

    /// Ends calls that need it, one packet per call of this; then lets the services go on.
    pub(super) fn poll(&mut self, place: &mut [u8], now: Instant) -> Result<usize, SendError> {
        let mut engine = lock(&self.shared.engine);
        let Engine {
            server, services, ..
        } = &mut *engine;
        let result = server.poll(&self.via, place, services, now);
        self.deadline = server.deadline();
        self.is_busy = engine.go_on(now);
        result
    }

    /// Whether another link's thread will poll the services, because it has packets to move.
    pub(super) fn others_will_poll(&self) -> bool {
        lock(&self.shared.engine)
            .links
            .iter()
            .any(Lanes::is_waiting)
    }

    /// Whether a call may have ended outside of the engine.
    pub(super) fn take_ring(&mut self) -> bool {
        self.urgent.take_ring() | self.bulk.take_ring()
    }

    /// Tells the counters, where there are some, what has passed over the link: `now`, or when it is time to.
    pub(super) fn count(&mut self, now: bool, traffic: impl FnOnce() -> Traffic) {
        let Some(counters) = self.shared.counters.get() else {
            return;
        };
        self.untold += 1;
        if now || self.untold == UNTOLD {
            self.untold = 0;
            counters.note(self.via.link, traffic());
        }
    }

    /// Wakes `waker` when a lane has something that can leave. What waits in a lane for the
    /// carrier does not: it would do so again and again.
    pub(super) fn arm(&mut self, waker: &Waker, want: Want) {
        if want != Want::Place {
            self.urgent.arm(waker);
        }
        if want == Want::Packet {
            self.bulk.arm(waker);
        }
    }
}

impl<S: Service, const CALLS: usize> Drop for Seat<S, CALLS> {
    fn drop(&mut self) {
        if let Some(counters) = self.shared.counters.get() {
            counters.close(self.via.link); // before another link can have its number
        }
        let now = self.shared.clock.now();
        let mut engine = lock(&self.shared.engine);
        let Engine {
            server, services, ..
        } = &mut *engine;
        server.link_down(&self.via, services, now);
        lock(&engine.drivers.0).retain(|lane| !std::ptr::eq(*lane, self.urgent.lane()));
        // Perhaps nobody is left who would: streams to this link are let go, so that its seat and
        // its call slots become free.
        if engine.go_on(now) {
            // A ring may have reached this link alone.
            engine.waker.wake_by_ref();
        }
        // Not before its lanes are closed, which happens when the fields are dropped: `open`
        // refuses until then.
        if let Some(lanes) = engine.links.get_mut(usize::from(self.via.link)) {
            lanes.is_taken = false;
        }
    }
}

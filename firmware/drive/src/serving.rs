//! Serving: packets to the engine, answers to the link, a bounded piece at a time.
//!
//! The rules are those of every driver (`sinew::link`): a packet is taken up only with a place for its answer in
//! hand, at most one in a step, and streams leave by a port that keeps one place free for it. Words are those of
//! `sinew-io`, which does the same for threads.

use core::mem::replace;
use core::task::Waker;

use sinew::link::queue::{QueueRx, QueueTx};
use sinew::link::{Rx, SendError, Tx};
use sinew::rpc::{Server, Service, Slot, Via};
use sinew::time::Instant;
use sinew_shm::{Bell, Lock};

/// Begins again with a peer that has: what a half does after it was found closed.
pub trait Renew {
    /// Whether it can be found closed at all. Where it cannot, an image has no code for that.
    const CLOSES: bool = true;

    /// Takes the half over into what there is now, or comes next.
    fn renew(&mut self);
}

/// A queue inside the image has no peer that begins again.
impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Renew for QueueTx<L, BLOCKS, SIZE> {
    const CLOSES: bool = false;
    fn renew(&mut self) {}
}

/// As above.
impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Renew for QueueRx<L, BLOCKS, SIZE> {
    const CLOSES: bool = false;
    fn renew(&mut self) {}
}

/// One link that is served: its two halves, and what the engine has to know of it.
#[repr(C)] // as below
pub struct Link<'v, T, R> {
    tx: T,
    rx: R,
    via: &'v Via,
    /// The last step found no place for an answer.
    is_full: bool,
}

impl<'v, T: Tx + Renew, R: Rx + Renew> Link<'v, T, R> {
    /// A link. `via.port` is onto the same link, and leaves one place free.
    pub const fn new(tx: T, rx: R, via: &'v Via) -> Self {
        Link {
            tx,
            rx,
            via,
            is_full: false,
        }
    }

    /// Serves one packet, or what is due; `false` where there is nothing, or no place for an answer. Where that changes
    /// it is `true`: what was armed before is not what is waited for now.
    fn step<S: Service, const CALLS: usize>(
        &mut self,
        server: &mut Server<CALLS>,
        services: &mut S,
        now: Instant,
    ) -> Result<bool, Closed> {
        let mtu = self.tx.mtu();
        let place = match self.tx.place(mtu) {
            Ok(place) => place,
            Err(SendError::Closed) if T::CLOSES => return Err(Closed),
            Err(_) => return Ok(!replace(&mut self.is_full, true)),
        };
        let was_full = replace(&mut self.is_full, false);
        let packet = match self.rx.peek() {
            Ok(packet) => packet,
            Err(_) if R::CLOSES => return Err(Closed),
            Err(_) => None,
        };
        let received = packet.is_some();
        let len = answer(server, packet, self.via, place, services, now);
        self.rx.release();
        // Whatever keeps the answer back, a link that is lost is found at the next step.
        let _ = self.tx.commit(len);
        self.tx.flush();
        Ok(received || len > 0 || was_full)
    }
}

/// One step of the engine: with the packet that has arrived, or without one with what is due. The length of what it
/// has to say.
pub(crate) fn answer<S: Service, const CALLS: usize>(
    server: &mut Server<CALLS>,
    packet: Option<&[u8]>,
    via: &Via,
    place: &mut [u8],
    services: &mut S,
    now: Instant,
) -> usize {
    match packet {
        Some(packet) => server.handle(packet, via, place, services, now),
        None => server.poll(via, place, services, now).unwrap_or(0),
    }
}

/// The peer is gone, or has begun again.
struct Closed;

/// What a driver turns: a link, a bell, or several of them, as a tuple.
pub trait Links {
    /// A step of each; whether there was anything to do.
    fn turn<S: Service, const CALLS: usize>(
        &mut self,
        server: &mut Server<CALLS>,
        services: &mut S,
        now: Instant,
    ) -> bool;

    /// Wakes `waker` once when there is something to do again for any of them.
    fn arm(&mut self, waker: &Waker);
}

impl<T: Tx + Renew, R: Rx + Renew> Links for Link<'_, T, R> {
    fn turn<S: Service, const CALLS: usize>(
        &mut self,
        server: &mut Server<CALLS>,
        services: &mut S,
        now: Instant,
    ) -> bool {
        self.step(server, services, now).unwrap_or_else(|Closed| {
            server.link_down(self.via, services, now);
            self.tx.renew();
            self.rx.renew();
            true
        })
    }

    fn arm(&mut self, waker: &Waker) {
        match self.is_full {
            true => self.tx.arm(waker),
            false => self.rx.arm(waker),
        }
    }
}

/// What ports ring, and handlers: a turn is due.
impl<L: Lock> Links for &Bell<L> {
    fn turn<S: Service, const CALLS: usize>(
        &mut self,
        _: &mut Server<CALLS>,
        _: &mut S,
        _: Instant,
    ) -> bool {
        self.take()
    }

    fn arm(&mut self, waker: &Waker) {
        Bell::arm(self, waker);
    }
}

impl<A: Links, B: Links> Links for (A, B) {
    fn turn<S: Service, const CALLS: usize>(
        &mut self,
        server: &mut Server<CALLS>,
        services: &mut S,
        now: Instant,
    ) -> bool {
        self.0.turn(server, services, now) | self.1.turn(server, services, now)
    }

    fn arm(&mut self, waker: &Waker) {
        self.0.arm(waker);
        self.1.arm(waker);
    }
}

/// Services, with room for `CALLS` calls that outlive their step, over any links.
#[repr(C)] // the links first: what is used most is near the start, where Thumb reaches it in two bytes
pub struct Serving<L, S, const CALLS: usize> {
    links: L,
    services: S,
    server: Server<CALLS>,
}

impl<L: Links, S: Service, const CALLS: usize> Serving<L, S, CALLS> {
    /// Serves the links with these services. Slots belong to one server; each link's [`Via::link`] is another.
    pub const fn new(slots: &'static [Slot; CALLS], services: S, links: L) -> Self {
        Serving {
            links,
            services,
            server: Server::new(slots),
        }
    }

    /// One turn: a packet of each link at most, and what services have to go on with. `false` where there was
    /// nothing to do.
    ///
    /// The calls of a link whose peer has begun again are ended, and the link is renewed.
    pub fn turn(&mut self, now: Instant) -> bool {
        let moved = self.links.turn(&mut self.server, &mut self.services, now);
        self.services.poll(now) || moved
    }

    /// Wakes `waker` once when there is something to do: after a turn that found nothing.
    pub fn arm(&mut self, waker: &Waker) {
        self.links.arm(waker);
        self.services.arm(waker);
    }

    /// When the next turn is due at the latest; [`Instant::FAR`] where only a link can bring something.
    pub fn deadline(&self) -> Instant {
        self.server.deadline()
    }
}

/// The driver without tasks: turns, and sleeps where there is nothing to do.
///
/// `look` comes first in every turn: it takes back what woke the core, looks at links that want it, and gives the
/// time. `sleep` waits for an interrupt, unless one has come since `look`: with interrupts masked, so that none is
/// missed in between. Something has to wake the core now and then, as no alarm is set for [`Serving::deadline`].
pub fn run<L: Links, S: Service, const CALLS: usize>(
    serving: &mut Serving<L, S, CALLS>,
    mut look: impl FnMut() -> Instant,
    mut sleep: impl FnMut(),
) -> ! {
    loop {
        let now = look();
        if serving.turn(now) {
            continue;
        }
        // Nobody is to be woken, but a peer is to be asked to ring; what came before is found by one more turn.
        serving.arm(Waker::noop());
        if !serving.turn(now) {
            sleep();
        }
    }
}

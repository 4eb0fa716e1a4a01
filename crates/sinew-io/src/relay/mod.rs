//! Carries packets between any two links, without looking into them: a core on a serial line opens
//! its own session with a router on the network, a client on TCP reaches a service in shared memory.
//!
//! The first endpoint is served, the second is opened for each link of the first. Where the first
//! has connections (tcp, unix, shm), the second is opened when one comes, and both close together.
//! Where it has none (udp, serial lines, child processes, the standard streams, the memory of another
//! core), the second is opened when the first packet comes, and again with the next packet after it
//! has closed.
//!
//! A side that does not take its packets holds the other one back: nothing is read for which there is
//! no place. So the memory is bounded, and nothing is dropped here but packets larger than the other
//! side's links carry, which are counted.

use std::sync::{Arc, Mutex};
use std::task::Wake;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use crate::apart::{self, Apart, Listener};
use crate::endpoint::{Address, Endpoint};
use crate::link::Traffic;
use crate::lock;
use crate::open::ConnectError;
use crate::reconnect::Backoff;
use crate::serve::ListenError;
use crate::serve::control::Control;

mod pump;

pub use pump::Carried;
use pump::{Bell, Ended, Ending, Noise, Trouble, Watch, pump};

/// Links at the same time. One more is closed and counted.
const MAX_LINKS: usize = 256;
/// How long a peer of udp, which cannot say that it goes, may be silent, with nothing for it either.
const IDLE: Duration = Duration::from_secs(60);
/// How soon the far side is tried again for a peer that has no connection to lose.
const BACKOFF: Backoff = Backoff {
    min: Duration::from_millis(50),
    max: Duration::from_secs(1),
};

/// What happens on a relay.
pub enum Event<'a> {
    /// A link is there on both sides; each has a number.
    Opened(u64),
    /// The far side of it has gone, and the near one too where it has connections. What it carried so
    /// far, and what its carriers dropped.
    Closed(u64, &'a Totals),
    /// The far side cannot be opened. Said once until it can.
    Unreachable(&'a ConnectError),
    /// There are too many links.
    TooMany,
    /// A packet is dropped: it has so many bytes, and a link of the endpoint takes up to so many. Said
    /// once per link and direction.
    TooLarge(&'a Endpoint, usize, usize),
    /// A packet of the endpoint is dropped, because it is larger than the endpoint's own mtu. Said once per
    /// link and direction.
    CameTooLarge(&'a Endpoint),
    /// So many bytes came on a stream of the endpoint, and no frame in them: it is framed otherwise, or is
    /// noise. Said once per link and direction.
    NoFrame(&'a Endpoint, u64),
}

/// A packet as it leaves, seen by who [watches](Relay::start_watched).
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// The number of the link, which [`Event::Opened`] gave.
    pub link: u64,
    /// Which way it goes.
    pub way: Way,
    /// When it was handed on, by this machine's clock.
    pub time: SystemTime,
    /// Its bytes, without the framing of either side.
    pub packet: &'a [u8],
}

/// A direction over a relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the first endpoint to the second.
    Forth,
    /// From the second endpoint to the first.
    Back,
}

/// What has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// From the first endpoint to the second.
    pub forth: Carried,
    /// From the second endpoint to the first.
    pub back: Carried,
    /// Frames that came damaged, or for another address; on both sides.
    pub bad_frames: u64,
    /// Datagrams that the kernel dropped because they came too fast, on both sides.
    pub dropped: u64,
    /// Links for which there was no far side, or no room.
    pub refused: u64,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        for (sum, part) in [
            (&mut self.forth, &other.forth),
            (&mut self.back, &other.back),
        ] {
            sum.packets += part.packets;
            sum.bytes += part.bytes;
            sum.too_large += part.too_large;
        }
        self.bad_frames += other.bad_frames;
        self.dropped += other.dropped;
        self.refused += other.refused;
    }

    /// What the receiving half of one side has dropped; `forth`: the first one.
    fn add_received(&mut self, forth: bool, traffic: Traffic) {
        let frames = traffic.frames;
        let bad = [
            frames.bad_escape,
            frames.too_short,
            frames.bad_crc,
            frames.other_address,
        ];
        let way = if forth {
            &mut self.forth
        } else {
            &mut self.back
        };
        way.too_large += u64::from(frames.too_large);
        self.bad_frames += bad.map(u64::from).iter().sum::<u64>();
        self.dropped += traffic.dropped;
    }
}

/// A relay that runs. Dropping it ends it, with every link.
pub struct Relay {
    served: Endpoint,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    served: Endpoint,
    far: Endpoint,
    control: Control,
    totals: Mutex<Totals>,
    say: Box<dyn Fn(Event<'_>) + Send + Sync>,
    see: Option<Box<See>>,
}

/// Who watches.
type See = dyn Fn(Passing<'_>) + Send + Sync;

impl Relay {
    /// Serves the first endpoint, in threads of its own: two for each link.
    pub fn start(
        served: &Endpoint,
        far: &Endpoint,
        say: impl Fn(Event<'_>) + Send + Sync + 'static,
    ) -> Result<Relay, ListenError> {
        Relay::begin(served, far, Box::new(say), None)
    }

    /// The same, and `see` is called with each packet just before it leaves: in order for each link and
    /// direction, an answer after what it answers, and from several threads at a time. The packet waits
    /// for as long as the call takes. One that is dropped is not seen; one whose link closes in that
    /// moment is.
    pub fn start_watched(
        served: &Endpoint,
        far: &Endpoint,
        say: impl Fn(Event<'_>) + Send + Sync + 'static,
        see: impl Fn(Passing<'_>) + Send + Sync + 'static,
    ) -> Result<Relay, ListenError> {
        Relay::begin(served, far, Box::new(say), Some(Box::new(see)))
    }

    fn begin(
        served: &Endpoint,
        far: &Endpoint,
        say: Box<dyn Fn(Event<'_>) + Send + Sync>,
        see: Option<Box<See>>,
    ) -> Result<Relay, ListenError> {
        let listener = apart::listen(served)?;
        let served = listener.endpoint().clone();
        let shared = Arc::new(Shared {
            served: served.clone(),
            far: far.clone(),
            control: Control::default(),
            totals: Mutex::default(),
            say,
            see,
        });
        let run = shared.clone();
        let thread = thread::Builder::new().name("sinew-relay".into());
        let thread = thread.spawn(move || run.accept(listener));
        let thread = thread.map_err(|error| ListenError::Io(served.clone(), error))?;
        Ok(Relay {
            served,
            shared,
            thread: Some(thread),
        })
    }

    /// The first endpoint, with the port that was found where 0 was asked for.
    pub fn served(&self) -> &Endpoint {
        &self.served
    }

    /// What has passed over the links that have gone.
    pub fn totals(&self) -> Totals {
        *lock(&self.shared.totals)
    }

    /// Whether there is nothing to serve any more: a serial line or child process has gone.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends every link, and says what has passed.
    pub fn stop(mut self) -> Totals {
        self.end();
        self.totals()
    }

    fn end(&mut self) {
        self.shared.control.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// Takes links up until told to stop, then waits for their threads.
    fn accept(self: Arc<Self>, mut listener: Listener) {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        let is_one = !self.has_connections() && !self.is_udp();
        self.control.during(listener.waker(), || {
            for id in 1.. {
                let link = loop {
                    // Before each sleep: the end may have come before there was anybody to wake.
                    if self.control.is_stopped() {
                        return;
                    }
                    if let Some(link) = listener.accept_within(None) {
                        break link;
                    }
                };
                if self.control.is_stopped() {
                    return;
                }
                threads.retain(|thread| !thread.is_finished());
                if threads.len() >= MAX_LINKS {
                    self.refuse(Event::TooMany);
                    continue;
                }
                let shared = self.clone();
                let thread = thread::Builder::new().name("sinew-relay".into());
                match thread.spawn(move || shared.serve(link, id)) {
                    Ok(thread) => threads.push(thread),
                    Err(_) => self.refuse(Event::TooMany),
                }
                if is_one {
                    return;
                }
            }
        });
        for thread in threads {
            let _ = thread.join();
        }
        lock(&self.totals).refused += listener.refused();
    }

    fn refuse(&self, event: Event<'_>) {
        lock(&self.totals).refused += 1;
        (self.say)(event);
    }

    /// Whether a link of the first endpoint ends when its peer wants it to.
    fn has_connections(&self) -> bool {
        match self.served.address {
            Address::Tcp(..) | Address::Unix(_) => true,
            Address::Shm(_) => self.served.doorbell.is_none(),
            _ => false,
        }
    }

    fn is_udp(&self) -> bool {
        matches!(self.served.address, Address::Udp(..))
    }

    fn idle(&self) -> Option<Duration> {
        self.is_udp().then_some(IDLE)
    }

    /// One link, from its beginning to its end.
    fn serve(&self, mut near: Apart, id: u64) {
        let mut totals = Totals::default();
        while self.has_connections() || self.is_there(&mut near) {
            let Some(mut far) = self.dial() else {
                break;
            };
            (self.say)(Event::Opened(id));
            let ended = self.join(id, &mut near, &mut far, &mut totals);
            drop(far);
            let mut so_far = totals;
            so_far.add_received(true, near.rx.traffic());
            (self.say)(Event::Closed(id, &so_far));
            if self.has_connections() || ended != Ended::Far {
                break;
            }
        }
        totals.add_received(true, near.rx.traffic());
        drop(near);
        lock(&self.totals).add(&totals);
    }

    /// Carries packets until one of the two ends.
    fn join(&self, id: u64, near: &mut Apart, far: &mut Apart, totals: &mut Totals) -> Ended {
        let ending = Ending::of(near, far);
        let tell = |way, trouble| {
            let (from, to) = match way {
                Way::Forth => (&self.served, &self.far),
                Way::Back => (&self.far, &self.served),
            };
            match trouble {
                Trouble::TooLarge(size, mtu) => (self.say)(Event::TooLarge(to, size, mtu)),
                Trouble::CameTooLarge => (self.say)(Event::CameTooLarge(from)),
                Trouble::NoFrame(bytes) => self.say_no_frame(from, bytes),
            }
        };
        let see = self.see.as_deref().map(|see| {
            move |way, packet: &[u8]| {
                see(Passing {
                    link: id,
                    way,
                    time: SystemTime::now(),
                    packet,
                })
            }
        });
        let watch = Watch {
            tell: &tell,
            see: see.as_ref().map(|see| see as _),
        };
        let ([forth, back], ended) = self.control.during(ending.clone().into(), || {
            if self.control.is_stopped() {
                ending.clone().wake();
            }
            pump(near, far, &ending, self.idle(), watch)
        });
        totals.add(&Totals {
            forth,
            back,
            ..Totals::default()
        });
        totals.add_received(false, far.rx.traffic());
        ended
    }

    fn say_no_frame(&self, from: &Endpoint, bytes: u64) {
        if from.address.is_stream() {
            (self.say)(Event::NoFrame(from, bytes));
        }
    }

    /// Waits for a packet of a peer that has no connection; `false` where it is gone.
    fn is_there(&self, near: &mut Apart) -> bool {
        let since = Instant::now();
        let waker = near.rx.waker();
        let mut noise = Noise::default();
        self.control.during(waker, || {
            while !self.control.is_stopped() {
                match near.rx.peek() {
                    Ok(Some(_)) => return true,
                    Err(_) => return false,
                    Ok(None) if self.idle().is_some_and(|idle| since.elapsed() >= idle) => {
                        return false;
                    }
                    Ok(None) => {
                        if let Some(bytes) = noise.look(&*near.rx, false) {
                            self.say_no_frame(&self.served, bytes);
                        }
                        near.rx.wait(noise.limit(self.idle()));
                    }
                }
            }
            false
        })
    }

    /// Opens the far side; again and again for the one peer that there is.
    fn dial(&self) -> Option<Apart> {
        let bell = Arc::new(Bell::default());
        let mut span = BACKOFF.min;
        self.control.during(bell.clone().into(), || {
            let mut is_known = false;
            while !self.control.is_stopped() {
                match apart::open(&self.far) {
                    Ok(far) => return Some(far),
                    Err(error) if !is_known => self.refuse(Event::Unreachable(&error)),
                    Err(_) => {}
                }
                is_known = true;
                // Its peer sees the end, or tries again by itself.
                if self.has_connections() || self.is_udp() || bell.wait_within(span) {
                    return None;
                }
                span = (span * 2).min(BACKOFF.max);
            }
            None
        })
    }
}

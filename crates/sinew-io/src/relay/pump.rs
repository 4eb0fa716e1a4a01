//! Packets from one link to another and back, until one of them closes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use sinew::link::{SendError, Tx};

use crate::apart::{Apart, Receive};
use crate::lock;

use super::Way;

/// What one direction has carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Packets that were given to the other side.
    pub packets: u64,
    /// Their bytes, without framing.
    pub bytes: u64,
    /// Packets larger than the other side takes, which were dropped.
    pub too_large: u64,
}

/// Why a pump has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The link that was served closed, or nothing has passed for too long.
    Near,
    /// The other link closed.
    Far,
    /// It was told to.
    Stopped,
}

/// Ends a pump from anywhere.
pub(super) struct Ending {
    why: Mutex<Option<Ended>>,
    is_over: AtomicBool,
    /// Packets in both directions.
    passed: AtomicU64,
    sleepers: [Waker; 2],
    bells: [Arc<Bell>; 2],
}

impl Ending {
    pub(super) fn of(near: &mut Apart, far: &mut Apart) -> Arc<Ending> {
        Arc::new(Ending {
            why: Mutex::default(),
            is_over: AtomicBool::new(false),
            passed: AtomicU64::new(0),
            sleepers: [near.rx.waker(), far.rx.waker()],
            bells: Default::default(),
        })
    }

    /// Whoever comes first says why.
    fn end(&self, why: Ended) {
        lock(&self.why).get_or_insert(why);
        self.is_over.store(true, Ordering::Release);
        for sleeper in &self.sleepers {
            sleeper.wake_by_ref();
        }
        for bell in &self.bells {
            bell.wake_by_ref();
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl Wake for Ending {
    fn wake(self: Arc<Self>) {
        self.end(Ended::Stopped);
    }
}

/// What is told of while packets are carried, once in each direction.
pub(super) enum Trouble {
    /// A packet has so many bytes, and the link takes up to so many.
    TooLarge(usize, usize),
    /// A packet came that the receiving half has no room for.
    CameTooLarge,
    /// So many bytes came, and no frame in them.
    NoFrame(u64),
}

/// How long bytes may come without a frame before that is told.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes that come on a link that has brought no frame yet.
#[derive(Default)]
pub(super) struct Noise {
    since: Option<Instant>,
    is_told: bool,
}

impl Noise {
    /// How many came, where that is to be told now: after some time, or at the end of the link.
    pub(super) fn look(&mut self, rx: &(dyn Receive + Send), is_end: bool) -> Option<u64> {
        let bytes = rx.traffic().bytes_in;
        if bytes == 0 || self.is_told {
            return None;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        self.is_told = is_end || since.elapsed() >= PATIENCE;
        self.is_told.then_some(bytes)
    }

    /// How long a look may wait for the next one.
    pub(super) fn limit(&self, idle: Option<Duration>) -> Option<Duration> {
        match self.since.is_some() && !self.is_told {
            true => Some(idle.map_or(PATIENCE, |idle| idle.min(PATIENCE))),
            false => idle,
        }
    }
}

type Look<'a> = dyn Fn(Way, &[u8]) + Sync + 'a;

/// Who is told of what happens while packets are carried; near to far is forth.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) tell: &'a (dyn Fn(Way, Trouble) + Sync),
    /// Sees each packet before it leaves, where anybody looks.
    pub(super) see: Option<&'a Look<'a>>,
}

/// Carries packets until a side closes, or nothing has passed for as long as `idle` says.
pub(super) fn pump(
    near: &mut Apart,
    far: &mut Apart,
    ending: &Ending,
    idle: Option<Duration>,
    watch: Watch<'_>,
) -> ([Carried; 2], Ended) {
    let [forth, back] = &ending.bells;
    let (forth, back) = (
        Lane {
            way: Way::Forth,
            rx: &mut *near.rx,
            tx: &mut *far.tx,
            ends: [Ended::Near, Ended::Far],
            bell: forth,
            idle,
        },
        Lane {
            way: Way::Back,
            rx: &mut *far.rx,
            tx: &mut *near.tx,
            ends: [Ended::Far, Ended::Near],
            bell: back,
            idle: None,
        },
    );
    let (forth, back) = thread::scope(|scope| {
        let back = scope.spawn(|| back.carry(ending, watch));
        let forth = forth.carry(ending, watch);
        (forth, back.join().unwrap_or_default())
    });
    let why = lock(&ending.why).unwrap_or(Ended::Stopped);
    ([forth, back], why)
}

/// One direction.
struct Lane<'a> {
    way: Way,
    rx: &'a mut (dyn Receive + Send),
    tx: &'a mut (dyn Tx + Send),
    /// Why, where the source or the target closes.
    ends: [Ended; 2],
    bell: &'a Arc<Bell>,
    idle: Option<Duration>,
}

impl Lane<'_> {
    fn carry(self, ending: &Ending, watch: Watch<'_>) -> Carried {
        let Lane {
            way,
            rx,
            tx,
            ends: [source, target],
            bell,
            idle,
        } = self;
        let tell = |trouble| (watch.tell)(way, trouble);
        let see = |packet: &[u8]| {
            if let Some(see) = watch.see {
                see(way, packet);
            }
        };
        let waker = bell.clone().into();
        let mut carried = Carried::default();
        let mut quiet = Quiet::default();
        let mut noise = Some(Noise::default());
        let mut has_room = true;
        while !ending.is_over() {
            let packet = match rx.peek() {
                Ok(Some(packet)) => {
                    noise = None;
                    packet
                }
                Ok(None) => {
                    tx.flush();
                    let passed = ending.passed.load(Ordering::Relaxed);
                    if idle.is_some_and(|idle| quiet.since(passed) >= idle) {
                        ending.end(source);
                        break;
                    }
                    if let Some(bytes) = noise.as_mut().and_then(|it| it.look(rx, false)) {
                        tell(Trouble::NoFrame(bytes));
                    }
                    if has_room && rx.traffic().frames.too_large > 0 {
                        has_room = false;
                        tell(Trouble::CameTooLarge);
                    }
                    rx.wait(noise.as_ref().map_or(idle, |it| it.limit(idle)));
                    continue;
                }
                Err(_) => {
                    if let Some(bytes) = noise.as_mut().and_then(|it| it.look(rx, true)) {
                        tell(Trouble::NoFrame(bytes));
                    }
                    tx.flush();
                    ending.end(source);
                    break;
                }
            };
            match give(tx, packet, see) {
                Ok(()) => {
                    carried.packets += 1;
                    carried.bytes += packet.len() as u64;
                    ending.passed.fetch_add(1, Ordering::Relaxed);
                }
                Err(SendError::TooLarge) => {
                    if carried.too_large == 0 {
                        tell(Trouble::TooLarge(packet.len(), tx.mtu()));
                    }
                    carried.too_large += 1;
                }
                Err(SendError::Full) => {
                    tx.flush();
                    tx.arm(&waker);
                    bell.wait();
                    continue;
                }
                Err(SendError::Closed) => {
                    ending.end(target);
                    break;
                }
            }
            rx.release();
        }
        carried
    }
}

/// Since when nothing has passed.
#[derive(Default)]
struct Quiet(Option<(u64, Instant)>);

impl Quiet {
    fn since(&mut self, passed: u64) -> Duration {
        match self.0 {
            Some((before, since)) if before == passed => since.elapsed(),
            _ => {
                self.0 = Some((passed, Instant::now()));
                Duration::ZERO
            }
        }
    }
}

/// A packet of no bytes says nothing, and is not sent. It is seen once it has a place, so that one which
/// waits for that is seen once, and before it leaves, so that its answer is seen after it.
fn give(tx: &mut (dyn Tx + Send), packet: &[u8], see: impl FnOnce(&[u8])) -> Result<(), SendError> {
    let place = tx.place(packet.len())?;
    let place = place.get_mut(..packet.len()).ok_or(SendError::TooLarge)?;
    place.copy_from_slice(packet);
    if !packet.is_empty() {
        see(packet);
    }
    tx.commit(packet.len())
}

/// Wakes a thread that waits for a place: on its receiving half it would be woken again and again by
/// what it cannot take up yet.
#[derive(Default)]
pub(super) struct Bell {
    is_rung: Mutex<bool>,
    ring: Condvar,
}

impl Bell {
    pub(super) fn wait(&self) {
        let is_rung = self.ring.wait_while(lock(&self.is_rung), |rung| !*rung);
        *is_rung.unwrap_or_else(std::sync::PoisonError::into_inner) = false;
    }

    /// `true` where it was rung.
    pub(super) fn wait_within(&self, span: Duration) -> bool {
        let waited = self
            .ring
            .wait_timeout_while(lock(&self.is_rung), span, |rung| !*rung);
        let mut is_rung = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        std::mem::take(&mut *is_rung)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *lock(&self.is_rung) = true;
        self.ring.notify_one();
    }
}

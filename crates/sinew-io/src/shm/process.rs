//! One end of a link to another process of this machine.
//!
//! A thread that waits looks at the shared memory for a bounded time first: a packet that comes
//! meanwhile costs neither side a system call. Then it asks the peer to ring, and sleeps on the
//! doorbell's socket. That socket's hang-up is the notice that the peer has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use sinew::link::{Rx, SendError, Tx};
use sinew_shm::StdLock;
use sinew_shm::domain::{Incoming, Outgoing, Staged};
use sinew_shm::linux::link::{self, ProcessEnd};

use super::spin::Spin;
use super::watch::Watch;
pub use super::watch::Watched;
use crate::counted::{Counted, traffic};
use crate::link::{Link, Traffic, Want};
use crate::sleep::{Sleeper, reading};

type EndRef = Arc<ProcessEnd<StdLock>>;

/// The sending half.
pub type ProcessTx = Outgoing<EndRef>;
/// The same on a device's memory; see [`ProcessLink::on_device`].
pub type DeviceTx = Staged<EndRef, Vec<u8>>;
/// The receiving half. What the peer wrote is copied out once, because the peer is not trusted.
pub type ProcessRx = Incoming<EndRef, Vec<u8>>;

/// One channel of a link to another process, for a thread that calls or serves.
///
/// `T` is the sending half.
pub struct ProcessLink<T = ProcessTx> {
    pub(super) tx: Counted<T>,
    pub(super) rx: Counted<ProcessRx>,
    pub(super) link: link::Link,
    pub(super) sleeper: Sleeper,
    pub(super) spin: Spin,
    pub(super) woken: Arc<Flag>,
    waker: Waker,
    /// Dropped with the link, after its halves: an emulator.
    pub(super) keep: Option<Box<dyn Send>>,
}

impl ProcessLink {
    /// Over the channel with this id; `None` where the link has no such channel. `spin`: how long a
    /// thread looks for a packet before it sleeps.
    pub fn new(link: link::Link, channel: u16, spin: Duration) -> Option<ProcessLink> {
        let tx = Outgoing::new((*link.sender(channel)?).clone());
        ProcessLink::with(link, channel, tx, spin)
    }
}

impl ProcessLink<DeviceTx> {
    /// As [`ProcessLink::new`], where the memory is a device's: a [`Region`](sinew_shm::linux::Region) of
    /// `/dev/mem` or `/dev/uioN`. On arm64 it is then Device memory, in which only aligned words may be read
    /// and written: packets are written elsewhere, and copied. The link is one without trust.
    pub fn on_device(link: link::Link, channel: u16, spin: Duration) -> Option<Self> {
        let sender = (*link.sender(channel)?).clone();
        let buffer = vec![0; sender.size()];
        ProcessLink::with(link, channel, Staged::new(sender, buffer)?, spin)
    }
}

impl<T: Tx> ProcessLink<T> {
    fn with(link: link::Link, channel: u16, tx: T, spin: Duration) -> Option<Self> {
        let receiver = link.receiver(channel)?;
        let buffer = match link.end().is_trusted() {
            true => Vec::new(),
            false => vec![0; receiver.size()],
        };
        let rx = Incoming::new((*receiver).clone(), buffer)?;
        // The peer may be there already.
        link.on_ready();
        let woken = Arc::new(Flag::default());
        Some(ProcessLink {
            tx: Counted::new(tx),
            rx: Counted::new(rx),
            link,
            sleeper: Sleeper::default(),
            spin: Spin::new(spin),
            waker: woken.clone().into(),
            woken,
            keep: None,
        })
    }

    /// Keeps something alive as long as the link.
    pub(crate) fn keeping(mut self, keep: impl Send + 'static) -> Self {
        self.keep = Some(Box::new(keep));
        self
    }

    /// What was given to be kept.
    pub(crate) fn take_keep(&mut self) -> Option<Box<dyn Send>> {
        self.keep.take()
    }

    /// The halves, for a driver that arms them instead of sleeping on the link: a thread of this
    /// crate takes the doorbell for them. `None` where no descriptor is left for that.
    pub fn split(self) -> Option<(Watched<T>, Watched<ProcessRx>)> {
        let watch = Arc::new(Watch::start(self.link)?);
        let tx = Watched::new(self.tx.half, watch.clone());
        Some((tx, Watched::new(self.rx.half, watch)))
    }

    /// The link, which may have other channels.
    pub fn link(&self) -> &link::Link {
        &self.link
    }

    /// Whether the driver can go on.
    fn is_ready(&mut self, want: Want) -> bool {
        let mut has_place = || !matches!(self.tx.half.place(1), Err(SendError::Full));
        // What is at hand already was looked at, and could not be taken up.
        let is_new = want != Want::Place || !self.rx.has_peeked();
        (is_new && !matches!(Rx::peek(&mut self.rx.half), Ok(None)))
            || (want != Want::Packet && has_place())
    }
}

impl<T: Tx> Link for ProcessLink<T> {
    type Tx = Counted<T>;
    type Rx = Counted<ProcessRx>;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        (&mut self.tx, &mut self.rx)
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        let mut spin = std::mem::take(&mut self.spin);
        let found = spin.until(timeout, || self.sleeper.take_ring() || self.is_ready(want));
        self.spin = spin;
        if found {
            return;
        }
        self.woken.0.store(false, Ordering::Relaxed);
        if want != Want::Packet {
            self.tx.arm(&self.waker);
        }
        // The packet that the driver cannot take up yet would wake it again and again.
        if want != Want::Place || !self.rx.has_peeked() {
            self.rx.arm(&self.waker);
        }
        if self.woken.0.load(Ordering::Acquire) {
            return;
        }
        sleep_on(&self.link, &mut self.sleeper, timeout);
        self.link.on_ready();
    }

    fn waker(&mut self) -> Waker {
        self.sleeper.waker()
    }

    fn traffic(&self) -> Traffic {
        traffic(&self.tx, &self.rx)
    }
}

/// Until the peer rings, for a heartbeat at most. [`link::Link::on_ready`] is the caller's.
pub(super) fn sleep_on(link: &link::Link, sleeper: &mut Sleeper, timeout: Option<Duration>) {
    let Some(bell) = link.descriptor() else {
        return;
    };
    // A sign of life now and then, for observers.
    let heartbeat = link.heartbeat();
    let timeout = timeout.map_or(heartbeat, |timeout| timeout.min(heartbeat));
    sleeper.sleep(reading(&bell), None, Some(timeout));
}

/// A waker for a thread that looks before it sleeps.
#[derive(Default)]
pub(super) struct Flag(pub(super) AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

//! One end of a link to another process of this machine.
//!
//! A thread that waits looks at the shared memory for a bounded time first: a packet that comes
//! meanwhile costs neither side a system call. Then it asks the peer to ring, and sleeps on the
//! doorbell's socket. That socket's hang-up is the notice that the peer has ended.
//!
//! Other threads may use other channels of the link at the same time: whoever takes the doorbell wakes
//! them as well.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use sinew::link::{Rx, SendError, Tx};
use sinew_shm::StdLock;
use sinew_shm::domain::{Incoming, Outgoing, Staged};
use sinew_shm::linux::link::{self, ProcessEnd};

use super::waiter::Waiter;
use super::watch::Watch;
pub use super::watch::Watched;
use crate::counted::{Counted, traffic};
use crate::link::{Link, Traffic, Want};

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
    pub(super) waiter: Waiter,
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
        Some(ProcessLink {
            tx: Counted::new(tx),
            rx: Counted::new(rx),
            link,
            waiter: Waiter::new(spin),
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
}

impl<T: Tx> Link for ProcessLink<T> {
    type Tx = Counted<T>;
    type Rx = Counted<ProcessRx>;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        (&mut self.tx, &mut self.rx)
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        let (tx, rx) = (&mut self.tx, &mut self.rx);
        // A packet that the driver has looked at and cannot take up yet would wake it again and again.
        let wants_packet = want != Want::Place || !rx.has_peeked();
        let wants_place = want != Want::Packet;
        let is_ready = || {
            (wants_packet && !matches!(Rx::peek(&mut rx.half), Ok(None)))
                || (wants_place && !matches!(tx.half.place(1), Err(SendError::Full)))
        };
        if self.waiter.look(timeout, is_ready) {
            return;
        }
        self.waiter.sleep(&self.link, timeout, |waker| {
            if wants_place {
                tx.arm(waker);
            }
            if wants_packet {
                rx.arm(waker);
            }
        });
    }

    fn waker(&mut self) -> Waker {
        self.waiter.waker()
    }

    fn traffic(&self) -> Traffic {
        traffic(&self.tx, &self.rx)
    }
}

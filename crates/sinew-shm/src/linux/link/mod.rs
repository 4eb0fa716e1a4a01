//! What a program of a Linux machine holds of a domain link: an end that can wait.
//!
//! | made by | between | death of the peer is seen |
//! |---|---|---|
//! | [`Link::connect`], [`Listener::accept`] | two processes, over a unix socket | at once: the socket hangs up |
//! | [`Link::in_region`] | two processes, or one and another core, in a file or physical memory | within a heartbeat, by the lock of its side; else by [`domain::Options::silence`] |
//! | [`Link::pair`] | two threads | they are one program |
//!
//! A [`Sender`], a [`Receiver`] and [`Messages`] are those of [`domain`], with calls that wait. Each takes a time
//! limit: `Some(Duration::ZERO)` polls, `None` waits for ever. All of them end with the pairing:
//! [`WaitError::Lost`] says how.
//!
//! Any number of threads may wait on one link at the same time. While none does, nobody gives the sign
//! of life nor sees the peer go: a program that is busy elsewhere calls [`Link::on_ready`] once in each
//! heartbeat, and one that lives by an event loop calls it also when [`Link::descriptor`] is readable,
//! and wakes its tasks by `arm` of the handles.

mod area;
mod error;
mod handles;
mod listener;
mod messages;
mod open;
mod wait;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};
use std::vec::Vec;

use super::Deadline;
use super::bell::{Bell, Woken};
use super::exchange::DoorbellKind;
use super::process::Process;
use super::role::Role as Claim;
use crate::domain::{self, Config, End, Lost, Role, Status};
use crate::lock::{Lock, StdLock};
use wait::{Crowd, Parker, Queue, lock};

pub use area::{Area, Locked};
pub use error::{LinkError, WaitError};
pub use handles::{Receiver, Sender};
pub use listener::Listener;
pub use messages::Messages;
pub use open::{RegionBell, connected, connected_stream};

/// This side's own choices.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Those of the end: sign of life, silence, faults.
    pub end: domain::Options,
    /// How processes ring each other; both sides choose the same. Of no meaning in a region.
    pub doorbell: DoorbellKind,
    /// How long a call that waits looks again and again before it sleeps: at most a millisecond.
    /// It is worth about what waking a thread takes.
    pub spin: Duration,
    /// Time limit of connecting, and then of the exchange with the other process.
    pub exchange: Duration,
}

impl Default for Options {
    /// Those of [`domain::Options`], a socket as the doorbell, 20 microseconds of looking where there
    /// is more than one processor, 5 seconds for the exchange.
    fn default() -> Options {
        let processors = std::thread::available_parallelism();
        let is_alone = processors.map_or(1, usize::from) == 1;
        Options {
            end: domain::Options::default(),
            doorbell: DoorbellKind::Socket,
            spin: match is_alone {
                true => Duration::ZERO,
                false => Duration::from_micros(20),
            },
            exchange: super::exchange::TIMEOUT,
        }
    }
}

/// The longest [`Options::spin`].
const MAX_SPIN: Duration = Duration::from_millis(1);

/// An end, and what it takes to wait on it. Clone it for other threads.
///
/// `L` is [`StdLock`] where threads share the link, [`Unshared`](crate::Unshared) where one thread has
/// it. The link closes when it and all handles on it are dropped.
pub struct Link<L: Lock = StdLock>(Arc<Shared<L>>);

impl<L: Lock> Clone for Link<L> {
    fn clone(&self) -> Self {
        Link(self.0.clone())
    }
}

/// The types of an end in a process.
pub type ProcessEnd<L> = End<Process<L>>;

/// What somebody waits for on a channel.
#[derive(Clone, Copy)]
enum For {
    Packet,
    Place,
    Reply,
}

struct Shared<L: Lock> {
    end: Arc<ProcessEnd<L>>,
    bell: Arc<dyn Bell>,
    /// Set when the bell will never ring again.
    is_gone: OnceLock<()>,
    /// In a region between processes: who is there.
    claim: Option<Arc<Claim>>,
    /// The descriptors of both segments, the first side's first.
    files: Option<Arc<[OwnedFd; 2]>>,
    config: Config<'static>,
    spin: Duration,
    heartbeat: Duration,
    begin: Instant,
    /// The time of the last look that gave a sign of life.
    looked: Mutex<Option<Instant>>,
    crowd: Crowd,
    /// Per channel, in the order of the configuration: for packets, places, replies.
    queues: Vec<[Arc<Queue>; 3]>,
    /// For the link to come up, and for a packet on any channel.
    any: Arc<Queue>,
}

impl<L: Lock> Link<L> {
    /// The end, for everything that does not wait.
    pub fn end(&self) -> &Arc<ProcessEnd<L>> {
        &self.0.end
    }

    /// Which side this is.
    pub fn role(&self) -> Role {
        self.0.end.role()
    }

    /// Sends on the channel with this id; `None` where the link has no such channel. Where this side
    /// has no blocks there (`Pool::new(0, 0)`), it says [`WaitError::TooLarge`] of each packet.
    pub fn sender(&self, channel: u16) -> Option<Sender<L>> {
        Sender::new(self, channel)
    }

    /// Receives on the channel with this id; `None` where the link has no such channel.
    pub fn receiver(&self, channel: u16) -> Option<Receiver<L>> {
        Receiver::new(self, channel)
    }

    /// One side of the message channel with this id; `None` where the link has no such channel.
    pub fn messages(&self, channel: u16) -> Option<Messages<L>> {
        Messages::new(self, channel)
    }

    /// The area of the lock channel with this id; `None` where the link has no such channel.
    pub fn area(&self, channel: u16) -> Option<Area<L>> {
        Area::new(self, channel)
    }

    /// Waits until the link is up. What a peer that has ended sent before, and nobody has received
    /// yet, is dropped.
    pub fn up_within(&self, limit: Option<Duration>) -> Result<(), WaitError> {
        let attempt = || {
            self.0.look();
            self.0.end.renew();
            match self.0.end.status() {
                Status::Up => Ok(Some(())),
                Status::Closed => Err(Lost::Closed.into()),
                Status::Fault(_) => Err(Lost::Fault.into()),
                Status::Waiting | Status::Refused(_) => Ok(None),
            }
        };
        self.wait(&self.0.any, limit, attempt, |waker| self.arm_all(waker))
    }

    /// Waits for a packet on any channel; the id of the most urgent channel that has one.
    pub fn next_within(&self, limit: Option<Duration>) -> Result<u16, WaitError> {
        let end = &self.0.end;
        let pairing = end.pairing();
        let attempt = || match end.next() {
            Some(channel) => Ok(Some(channel)),
            None => Ok(end.check(pairing).map(|()| None)?),
        };
        self.wait(&self.0.any, limit, attempt, |waker| self.arm_all(waker))
    }

    /// Tells the peer to send no more, and waits until every block is back with its owner. What the
    /// peer has sent must be received meanwhile, by other threads or before. Senders of both sides get
    /// [`Lost::Closed`] from now on. The link stays open until it is dropped.
    pub fn drain_within(&self, limit: Option<Duration>) -> Result<(), WaitError> {
        /// Nobody tells that this side has given the last block back.
        const AGAIN: Duration = Duration::from_millis(10);
        let end = &self.0.end;
        let pairing = end.pairing();
        let deadline = Deadline::within(limit);
        end.drain();
        loop {
            end.check(pairing)?;
            if end.is_drained() {
                return Ok(());
            }
            let left = deadline.remaining();
            if left.is_some_and(|left| left.is_zero()) {
                return Err(WaitError::TimedOut);
            }
            let slice = left.map_or(AGAIN, |left| left.min(AGAIN));
            // Ends when a block comes back, whoever may use it.
            let returned = |waker: &Waker| {
                for channel in self.0.config.channels {
                    if let Some(sender) = domain::Sender::new(end, channel.id) {
                        sender.with_reserve(u16::MAX).arm(waker);
                    }
                }
            };
            let drained = || Ok(end.is_drained().then_some(()));
            match self.wait(&self.0.any, Some(slice), drained, returned) {
                Err(WaitError::TimedOut) => {}
                over => return over,
            }
        }
    }

    /// Takes the doorbell, looks at the peer, gives the sign of life, wakes who can go on. To be
    /// called when [`Link::descriptor`] is readable, and at least once in each
    /// [`Link::heartbeat`], where no thread waits.
    pub fn on_ready(&self) -> Status {
        let seen = self.0.bell.seen();
        match self.0.bell.wait(seen, Some(Duration::ZERO)) {
            Woken::HungUp => self.0.hang_up(),
            Woken::Rung | Woken::TimedOut => {}
        }
        self.0.look()
    }

    /// Whether the doorbell has hung up: the peer is gone, and no other can come.
    pub fn is_gone(&self) -> bool {
        self.0.is_gone.get().is_some()
    }

    /// Becomes readable when the doorbell arrives. `None`: this link's doorbell has no descriptor, and
    /// is found by calling [`Link::on_ready`] every now and then.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.bell.descriptor()
    }

    /// The longest time between two calls of [`Link::on_ready`].
    pub fn heartbeat(&self) -> Duration {
        self.0.heartbeat
    }

    /// The segments, the first side's first, for observers
    /// ([`exchange::Greeting::show`](super::exchange::Greeting::show)). `None` in a region.
    pub fn segments(&self) -> Option<[BorrowedFd<'_>; 2]> {
        let [first, second] = self.0.files.as_deref()?;
        Some([first.as_fd(), second.as_fd()])
    }

    /// Wakes by whatever arrives, and when the link comes up.
    fn arm_all(&self, waker: &Waker) {
        for channel in self.0.config.channels {
            if let Some(receiver) = domain::Receiver::new(&self.0.end, channel.id) {
                receiver.arm(waker);
            }
            if let Some(messages) = domain::Messages::new(&self.0.end, channel.id) {
                messages.arm(waker);
            }
        }
    }

    /// Waits until `attempt` has something, which `arm` announces to a waker.
    fn wait<T>(
        &self,
        queue: &Arc<Queue>,
        limit: Option<Duration>,
        mut attempt: impl FnMut() -> Result<Option<T>, WaitError>,
        arm: impl Fn(&Waker),
    ) -> Result<T, WaitError> {
        let shared = &*self.0;
        if let Some(found) = attempt()? {
            return Ok(found);
        }
        if limit == Some(Duration::ZERO) {
            shared.look_in_time();
            return match attempt()? {
                Some(found) => Ok(found),
                None => Err(shared.timed_out()),
            };
        }
        let deadline = Deadline::within(limit);
        if let Some(found) = shared.spin(&mut attempt)? {
            return Ok(found);
        }
        let me = Parker::of_this_thread();
        let _leaving = Leaving {
            shared,
            queue,
            me: &me,
        };
        let waker = queue.waker();
        loop {
            me.reset();
            queue.add(&me);
            arm(&waker);
            if let Some(found) = attempt()? {
                return Ok(found);
            }
            if shared.is_gone.get().is_some() {
                return Err(Lost::Closed.into());
            }
            if deadline.is_over() {
                return Err(shared.timed_out());
            }
            shared
                .crowd
                .sleep(&me, deadline, || shared.lead(&me, deadline));
        }
    }
}

/// A thread on its way out of a wait, however it ends.
struct Leaving<'a, L: Lock> {
    shared: &'a Shared<L>,
    queue: &'a Queue,
    me: &'a Arc<Parker>,
}

impl<L: Lock> Drop for Leaving<'_, L> {
    fn drop(&mut self) {
        self.queue.remove(self.me);
        self.shared.crowd.leave();
    }
}

impl<L: Lock> Shared<L> {
    /// Sleeps on the bell until this thread is woken, and wakes the others meanwhile.
    fn lead(&self, me: &Parker, deadline: Deadline) {
        loop {
            let seen = self.bell.seen();
            self.look();
            let left = deadline.remaining();
            if self.is_gone.get().is_some() || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let slice = left.map_or(self.heartbeat, |left| left.min(self.heartbeat));
            if !me.listen(&self.bell) {
                return;
            }
            let woken = self.bell.wait(seen, Some(slice));
            me.listen_no_more();
            if woken == Woken::HungUp {
                self.hang_up();
            }
        }
    }

    /// Looks again and again for a bounded time.
    fn spin<T>(
        &self,
        attempt: &mut impl FnMut() -> Result<Option<T>, WaitError>,
    ) -> Result<Option<T>, WaitError> {
        if self.spin.is_zero() {
            return Ok(None);
        }
        let begin = Instant::now();
        while begin.elapsed() < self.spin {
            for _ in 0..16 {
                core::hint::spin_loop();
            }
            if let Some(found) = attempt()? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Looks at the peer, and whether it is there.
    fn look(&self) -> Status {
        let now = Instant::now();
        if self.is_time_to_look(now) && self.is_left_alone() {
            self.end.peer_has_ended();
        }
        let since = now.saturating_duration_since(self.begin);
        let before = self.end.status();
        // Milliseconds that wrap.
        let status = self.end.look(since.as_millis() as u32);
        if status != before {
            // Who waits for the link to come up has armed no channel, where none carries packets.
            self.any.wake_all();
        }
        status
    }

    /// For who polls: nothing, most of the time.
    fn look_in_time(&self) {
        let looked = *lock(&self.looked);
        let is_due = |looked: Instant| looked.elapsed() >= self.heartbeat;
        if looked.is_none_or(is_due) {
            let seen = self.bell.seen();
            if self.bell.wait(seen, Some(Duration::ZERO)) == Woken::HungUp {
                self.hang_up();
            }
            self.look();
        }
    }

    /// Whether a heartbeat has passed since this was last so.
    fn is_time_to_look(&self, now: Instant) -> bool {
        let mut looked = lock(&self.looked);
        let is_due = |looked: Instant| now.saturating_duration_since(looked) >= self.heartbeat;
        let is_due = looked.is_none_or(is_due);
        if is_due {
            *looked = Some(now);
        }
        is_due
    }

    /// Whether the peer's process is gone, by the lock that it had.
    fn is_left_alone(&self) -> bool {
        let is_gone = |claim: &Arc<Claim>| !claim.has_peer();
        self.end.status() == Status::Up && self.claim.as_ref().is_some_and(is_gone)
    }

    /// The bell will never ring again: the peer is gone, and no other can come. What it has sent can
    /// still be received.
    fn hang_up(&self) {
        if self.is_gone.set(()).is_err() {
            return;
        }
        self.end.peer_has_ended();
        if self.end.status() != Status::Up {
            self.end.close();
        }
        // Also those who wait for the next pairing.
        for queue in self.queues.iter().flatten() {
            queue.wake_all();
        }
        self.any.wake_all();
    }

    fn timed_out(&self) -> WaitError {
        match self.end.status() {
            Status::Refused(difference) => WaitError::Refused(difference),
            _ => WaitError::TimedOut,
        }
    }

    /// Who waits for this on the channel at this place of the configuration.
    fn queue(&self, at: usize, what: For) -> &Arc<Queue> {
        let queues = self.queues.get(at);
        queues.map_or(&self.any, |[packet, place, reply]| match what {
            For::Packet => packet,
            For::Place => place,
            For::Reply => reply,
        })
    }
}

impl<L: Lock> core::fmt::Debug for Link<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Link")
            .field("role", &self.role())
            .field("status", &self.0.end.status())
            .finish_non_exhaustive()
    }
}

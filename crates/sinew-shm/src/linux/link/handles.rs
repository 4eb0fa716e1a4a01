//! Sender and receiver of a link, with calls that wait.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use super::error::unless_full;
use super::{For, Link, ProcessEnd, WaitError};
use crate::domain::{self, Packet, Place, Refused, Reply};
use crate::lock::{Lock, StdLock};

/// How the handles reach their end.
pub(super) type Ref<L> = Arc<ProcessEnd<L>>;

/// Where a channel stands in the configuration.
pub(super) fn place_of<L: Lock>(link: &Link<L>, channel: u16) -> Option<usize> {
    let channels = link.0.config.channels;
    channels.iter().position(|known| known.id == channel)
}

/// A [`domain::Sender`] that can wait.
pub struct Sender<L: Lock = StdLock> {
    link: Link<L>,
    at: usize,
    sender: domain::Sender<Ref<L>>,
}

impl<L: Lock> Clone for Sender<L> {
    fn clone(&self) -> Self {
        Sender {
            link: self.link.clone(),
            at: self.at,
            sender: self.sender.clone(),
        }
    }
}

impl<L: Lock> Deref for Sender<L> {
    type Target = domain::Sender<Ref<L>>;

    fn deref(&self) -> &Self::Target {
        &self.sender
    }
}

impl<L: Lock> DerefMut for Sender<L> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.sender
    }
}

impl<L: Lock> Sender<L> {
    pub(super) fn new(link: &Link<L>, channel: u16) -> Option<Sender<L>> {
        Some(Sender {
            at: place_of(link, channel)?,
            sender: domain::Sender::new(link.end(), channel)?,
            link: link.clone(),
        })
    }

    /// The link it sends on.
    pub fn link(&self) -> &Link<L> {
        &self.link
    }

    /// See [`domain::Sender::with_reserve`].
    pub fn with_reserve(self, reserve: u16) -> Sender<L> {
        Sender {
            sender: self.sender.with_reserve(reserve),
            ..self
        }
    }

    /// Waits for a block for a packet of at least `min` bytes. Before it sleeps it flushes: the blocks may
    /// be under way unannounced.
    pub fn place_within(
        &self,
        min: usize,
        limit: Option<Duration>,
    ) -> Result<Place<'_, Ref<L>>, WaitError> {
        let attempt = || match self.sender.place(min) {
            Ok(place) => Ok(Some(place)),
            Err(refused) => unless_full(refused).map(|()| None),
        };
        let queue = self.link.0.queue(self.at, For::Place);
        self.link.wait(queue, limit, attempt, |waker| {
            self.sender.flush();
            self.sender.arm(waker);
        })
    }

    /// Waits for a block, copies the packet into it and sends it. `false` where the receiver's filter
    /// does not want it: it was not sent.
    pub fn send_within(&self, packet: &[u8], limit: Option<Duration>) -> Result<bool, WaitError> {
        let mut place = self.place_within(packet.len(), limit)?;
        if let Some(front) = place.get_mut(..packet.len()) {
            front.copy_from_slice(packet);
        }
        place.send(packet.len()).map_err(|refused| match refused {
            Refused::Lost(lost) => WaitError::Lost(lost),
            // A place is there, and large enough.
            Refused::TooLarge | Refused::Full => WaitError::TooLarge,
        })
    }

    /// Waits for an answer in a block of this channel, and flushes before it sleeps.
    pub fn reply_within(&self, limit: Option<Duration>) -> Result<Reply<'_, Ref<L>>, WaitError> {
        let queue = self.link.0.queue(self.at, For::Reply);
        let attempt = || Ok(self.sender.reply()?);
        self.link.wait(queue, limit, attempt, |waker| {
            self.sender.flush();
            self.sender.arm_reply(waker);
        })
    }
}

/// A [`domain::Receiver`] that can wait.
pub struct Receiver<L: Lock = StdLock> {
    link: Link<L>,
    at: usize,
    receiver: domain::Receiver<Ref<L>>,
}

impl<L: Lock> Clone for Receiver<L> {
    fn clone(&self) -> Self {
        Receiver {
            link: self.link.clone(),
            at: self.at,
            receiver: self.receiver.clone(),
        }
    }
}

impl<L: Lock> Deref for Receiver<L> {
    type Target = domain::Receiver<Ref<L>>;

    fn deref(&self) -> &Self::Target {
        &self.receiver
    }
}

impl<L: Lock> DerefMut for Receiver<L> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.receiver
    }
}

impl<L: Lock> Receiver<L> {
    pub(super) fn new(link: &Link<L>, channel: u16) -> Option<Receiver<L>> {
        Some(Receiver {
            at: place_of(link, channel)?,
            receiver: domain::Receiver::new(link.end(), channel)?,
            link: link.clone(),
        })
    }

    /// The link it receives on.
    pub fn link(&self) -> &Link<L> {
        &self.link
    }

    /// Waits for a packet.
    pub fn receive_within(&self, limit: Option<Duration>) -> Result<Packet<'_, Ref<L>>, WaitError> {
        let queue = self.link.0.queue(self.at, For::Packet);
        let attempt = || Ok(self.receiver.receive()?);
        self.link
            .wait(queue, limit, attempt, |waker| self.receiver.arm(waker))
    }

    /// Waits until `count` packets are there, and is woken once for all of them: "`count` pending, or
    /// after a time", which is [`WaitError::TimedOut`] here.
    pub fn gather_within(&self, count: u32, limit: Option<Duration>) -> Result<(), WaitError> {
        let queue = self.link.0.queue(self.at, For::Packet);
        let attempt = || Ok(self.receiver.has(count)?.then_some(()));
        let arm = |waker: &_| self.receiver.arm_at(count, waker);
        self.link.wait(queue, limit, attempt, arm)
    }
}

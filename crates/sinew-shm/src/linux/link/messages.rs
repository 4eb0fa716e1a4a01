//! A message channel of a link, with calls that wait.

use std::ops::{Deref, DerefMut};
use std::task::Waker;
use std::time::Duration;

use super::error::unless_full;
use super::handles::{Ref, place_of};
use super::{For, Link, WaitError};
use crate::domain::{self, Buffer, Message, Pending, Refused};
use crate::linux::Deadline;
use crate::lock::{Lock, StdLock};

/// A [`domain::Messages`] that can wait.
pub struct Messages<L: Lock = StdLock> {
    link: Link<L>,
    at: usize,
    messages: domain::Messages<Ref<L>>,
}

impl<L: Lock> Clone for Messages<L> {
    fn clone(&self) -> Self {
        Messages {
            link: self.link.clone(),
            at: self.at,
            messages: self.messages.clone(),
        }
    }
}

impl<L: Lock> Deref for Messages<L> {
    type Target = domain::Messages<Ref<L>>;

    fn deref(&self) -> &Self::Target {
        &self.messages
    }
}

impl<L: Lock> DerefMut for Messages<L> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.messages
    }
}

impl<L: Lock> Messages<L> {
    pub(super) fn new(link: &Link<L>, channel: u16) -> Option<Messages<L>> {
        Some(Messages {
            at: place_of(link, channel)?,
            messages: domain::Messages::new(link.end(), channel)?,
            link: link.clone(),
        })
    }

    /// The link.
    pub fn link(&self) -> &Link<L> {
        &self.link
    }

    /// Waits for a message of the peer's.
    pub fn receive_within(&self, limit: Option<Duration>) -> Result<Message<Ref<L>>, WaitError> {
        let queue = self.link.0.queue(self.at, For::Packet);
        let attempt = || Ok(self.messages.receive()?);
        let arm = |waker: &_| self.messages.arm(waker);
        self.link.wait(queue, limit, attempt, arm)
    }

    /// Waits for room, and sends a message that nobody answers.
    pub fn send_within(
        &self,
        opcode: u32,
        words: [u32; 5],
        limit: Option<Duration>,
    ) -> Result<(), WaitError> {
        let send = || self.messages.send(opcode, words);
        self.room_within(limit, send, |waker| self.messages.arm_room(waker))
    }

    /// Waits for room, sends a message, and waits for its answer: one limit for both.
    pub fn call_within(
        &self,
        opcode: u32,
        words: [u32; 5],
        limit: Option<Duration>,
    ) -> Result<[u32; 5], WaitError> {
        let deadline = Deadline::within(limit);
        let call = || self.messages.call(opcode, words);
        let mut call = self.room_within(limit, call, |waker| self.messages.arm_call(waker))?;
        self.answer_within(&mut call, deadline.remaining())
    }

    /// Waits for memory for a message of up to `len` bytes.
    pub fn memory_within(
        &self,
        len: usize,
        limit: Option<Duration>,
    ) -> Result<Buffer<Ref<L>>, WaitError> {
        let take = || self.messages.memory(len);
        self.room_within(limit, take, |waker| self.messages.arm_memory(waker))
    }

    /// Waits for the answer of a call or a loan of this channel, typed or not.
    pub fn answer_within<P: Pending>(
        &self,
        pending: &mut P,
        limit: Option<Duration>,
    ) -> Result<P::Answer, WaitError> {
        let queue = self.link.0.queue(self.at, For::Reply);
        // Both closures want it.
        let pending = core::cell::RefCell::new(pending);
        let attempt = || Ok(pending.borrow_mut().poll()?);
        let arm = |waker: &_| pending.borrow().arm(waker);
        self.link.wait(queue, limit, attempt, arm)
    }

    fn room_within<T>(
        &self,
        limit: Option<Duration>,
        take: impl Fn() -> Result<T, Refused>,
        arm: impl Fn(&Waker),
    ) -> Result<T, WaitError> {
        let queue = self.link.0.queue(self.at, For::Place);
        let attempt = || match take() {
            Ok(taken) => Ok(Some(taken)),
            Err(refused) => unless_full(refused).map(|()| None),
        };
        self.link.wait(queue, limit, attempt, arm)
    }
}

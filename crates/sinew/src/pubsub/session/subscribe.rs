//! Subscribing: samples in.

use crate::pubsub::codec::{Body, Payloads, Push, Qos};
use crate::pubsub::keyexpr::KeyExpr;

use super::event::{Event, Step};
use super::own::{self, Entry, Sort};
use super::publish::DeclareError;
use super::receive::Cx;
use super::stats::{count, count_many};
use super::{Phase, Session, Tables};

/// A subscriber as the application holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SubscriberId(pub(super) u16);

impl SubscriberId {
    /// Where it stands in its table.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A sample that has arrived. It borrows from the packet and from the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample<'s> {
    /// Its key.
    pub key: &'s str,
    /// How its publisher sent it.
    pub qos: Qos,
    /// On the reliable channel.
    pub reliable: bool,
    /// The value, or that the key is deleted, with what comes along.
    pub body: Body<'s>,
}

/// Samples of one packet that differ in their payloads only, for one subscriber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run<'s> {
    /// Whose.
    pub subscriber: SubscriberId,
    /// Their key.
    pub key: &'s str,
    /// How their publisher sent them.
    pub qos: Qos,
    /// On the reliable channel.
    pub reliable: bool,
    /// Where their values are in the packet; they have no options.
    pub payloads: Payloads,
}

impl<T: Tables> Session<T> {
    /// Takes in the next messages of a packet at once, where they are samples that differ in nothing but
    /// their payloads and have one subscriber. Else nothing is done, and [`Session::receive`] goes on with
    /// the packet; it gives the same samples, one by one, where this is never called.
    ///
    /// For who is given thousands of small samples in a packet. A call looks at every byte of the packet
    /// and every entry of the tables at most twice.
    pub fn run<'s>(&'s mut self, packet: &[u8]) -> Option<Run<'s>> {
        let incoming = &mut self.incoming;
        let is_between = self.broken.is_none()
            && self.phase == Phase::Open
            && incoming.frame == Some(true)
            && incoming.assembly.whole.is_none()
            && !incoming.counted;
        if !is_between {
            return None;
        }
        let (payloads, key, qos) = Payloads::read(packet, incoming.at)?;
        let (tables, _, _) = self.tables.all().share();
        let key = tables.scope(&key)?;
        let (index, more) = matching(tables.subscribers, 0, key, false).ok()??;
        if more {
            return None;
        }
        incoming.at = payloads.end();
        count_many(&mut self.stats.messages, payloads.count());
        Some(Run {
            subscriber: SubscriberId(index as u16),
            key,
            qos,
            reliable: incoming.reliable,
            payloads,
        })
    }

    /// Enters a subscriber to `key`, as with [`Session::publisher`].
    pub fn subscriber<K: TryInto<T::Key, Error: Into<DeclareError>>>(
        &mut self,
        key: K,
    ) -> Result<SubscriberId, DeclareError> {
        let key = key.try_into().map_err(Into::into)?;
        let slots = self.tables.all().subscribers;
        let entered = own::enter(slots, Sort::Subscriber, self.withdrawn, key);
        let (index, _) = entered.ok_or(DeclareError::NoRoom)?;
        self.owed = true;
        Ok(SubscriberId(index))
    }

    /// Ends a subscriber. What is on its way is not delivered any more.
    pub fn withdraw_subscriber(&mut self, id: SubscriberId) {
        let slot = self.tables.all().subscribers.get_mut(usize::from(id.0));
        if let Some(slot) = slot {
            own::withdraw(slot);
            self.owed = true;
        }
    }
}

/// Those entries from `from` on whose key intersects `key`: the first, and whether there are more.
pub(super) fn matching<K: AsRef<str>>(
    entries: &[Option<Entry<K>>],
    from: usize,
    key: &str,
    only_complete: bool,
) -> Result<Option<(usize, bool)>, BadKey> {
    let mut checked = None;
    let mut first = None;
    for (index, entry) in entries.iter().enumerate().skip(from) {
        let Some(entry) = entry else { continue };
        if entry.owes.is_withdrawn() || only_complete && !entry.complete {
            continue;
        }
        let own = entry.key.as_ref();
        // Most keys are simply the one subscribed to; it was checked when it was entered.
        if own != key {
            let expr = match checked {
                Some(expr) => expr,
                None => *checked.insert(KeyExpr::new(key).map_err(|_| BadKey)?),
            };
            if !KeyExpr::unchecked(own).intersects(expr) {
                continue;
            }
        }
        match first {
            None => first = Some(index),
            Some(index) => return Ok(Some((index, true))),
        }
    }
    Ok(first.map(|index| (index, false)))
}

/// What arrived as a key is none.
pub(super) struct BadKey;

impl<'s, T: Tables> Cx<'s, T> {
    /// A sample: an event for each subscriber that it is for, one a step.
    pub(super) fn push(self, push: Push<'s>) -> Step<'s> {
        let (tables, scratch, _) = self.all.share();
        let Some(key) = tables.resolve(&push.key, scratch, self.stats) else {
            // The peer has not heard that a key is gone, which on links that lose can be so for ever.
            if !push.key.of_sender {
                self.known.stranger = push.key.scope;
                *self.owed = true;
            }
            return self.place.next();
        };
        let Ok(found) = matching(tables.subscribers, self.place.entity(), key, false) else {
            count(&mut self.stats.bad_key);
            return self.place.next();
        };
        let Some((index, more)) = found else {
            return self.place.next();
        };
        let sample = Sample {
            key,
            qos: push.qos,
            reliable: self.place.reliable(),
            body: push.body,
        };
        let subscriber = SubscriberId(index as u16);
        self.place.stay(more.then_some(index));
        Step::Event(Event::Sample { subscriber, sample })
    }
}

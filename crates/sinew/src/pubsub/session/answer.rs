//! Answering: queries in, replies out.

use crate::link::Tx;
use crate::pubsub::codec::{
    self, Body, Encoding, Entity, Qos, Request as Message, Response, ResponseFinal, Target,
    WireExpr,
};
use crate::pubsub::keyexpr::KeyExpr;
use crate::time::Instant;

use super::agreed::Channel;
use super::event::{Event, Step};
use super::out::{How, Out, Refused};
use super::own::{self, Owes, Sort};
use super::publish::{DeclareError, PutError};
use super::receive::Cx;
use super::stats::count;
use super::subscribe::{BadKey, matching};
use super::{Phase, Session, Tables};

/// A queryable as the application holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct QueryableId(pub(super) u16);

impl QueryableId {
    /// Where it stands in its table.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A query of the peer that is being answered, in the tables.
#[derive(Debug)]
pub struct Request {
    pub(super) id: u32,
    pub(super) qos: Qos,
    /// Queryables that have not finished; one more while the next of them has not been told.
    pub(super) open: u16,
    /// After this, nobody waits for an answer.
    pub(super) deadline: Instant,
}

/// A query that one queryable answers, as the application holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct RequestId {
    id: u32,
    /// In which of the sessions there were: each has its own ids.
    session: u32,
    queryable: u16,
}

/// What a queryable is asked. It borrows from the packet and from the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question<'s> {
    /// For which keys; it may have wildcards.
    pub key: &'s str,
    /// Parameters, payload, attachment.
    pub query: codec::Query<'s>,
}

/// Where nobody says how long he waits for an answer, in microseconds.
const PATIENCE: u64 = 60_000_000;

impl<T: Tables> Session<T> {
    /// Enters a queryable for `key`, as with [`Session::publisher`]; `complete`: it knows all that there
    /// is for its key.
    pub fn queryable<K: TryInto<T::Key, Error: Into<DeclareError>>>(
        &mut self,
        key: K,
        complete: bool,
    ) -> Result<QueryableId, DeclareError> {
        let key = key.try_into().map_err(Into::into)?;
        let slots = self.tables.all().queryables;
        let entered = own::enter(slots, Sort::Queryable, self.withdrawn, key);
        let (index, queryable) = entered.ok_or(DeclareError::NoRoom)?;
        queryable.complete = complete;
        self.owed = true;
        Ok(QueryableId(index))
    }

    /// Ends a queryable. What it has not finished is finished by time.
    pub fn withdraw_queryable(&mut self, id: QueryableId) {
        let slot = self.tables.all().queryables.get_mut(usize::from(id.0));
        if let Some(slot) = slot {
            own::withdraw(slot);
            self.owed = true;
        }
    }

    /// Answers with a sample. `key` is what it is about: one that the question asks for; `None` is the
    /// queryable's own, which then must have no wildcard.
    pub fn reply<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        request: RequestId,
        key: Option<KeyExpr<'_>>,
        body: &Body<'_>,
        now: Instant,
    ) -> Result<(), PutError> {
        let answer = codec::Reply::Sample {
            consolidation: codec::Consolidation::Auto,
            body: *body,
        };
        self.respond(tx, request, key, answer, now)
    }

    /// Answers that it failed.
    pub fn reply_error<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        request: RequestId,
        encoding: Encoding<'_>,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), PutError> {
        let answer = codec::Reply::Error {
            encoding,
            source: None,
            payload,
        };
        self.respond(tx, request, None, answer, now)
    }

    fn respond<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        request: RequestId,
        key: Option<KeyExpr<'_>>,
        reply: codec::Reply<'_>,
        now: Instant,
    ) -> Result<(), PutError> {
        if self.phase != Phase::Open {
            return Err(PutError::NotOpen);
        }
        if request.session != self.stats.opened {
            return Err(PutError::NoSuch);
        }
        let mut open = self.tables.all().requests.iter().flatten();
        let open = open.find(|open| open.id == request.id);
        let qos = open.ok_or(PutError::NoSuch)?.qos;
        let how = self.answering(qos);
        let queryable = self
            .tables
            .all()
            .queryables
            .get(usize::from(request.queryable));
        let queryable = queryable.and_then(Option::as_ref).ok_or(PutError::NoSuch)?;
        let own = queryable.number;
        let is_one_key = queryable.parts().1.is_empty();
        let key = match key {
            Some(key) => WireExpr::text(key.as_str()),
            None if is_one_key || matches!(reply, codec::Reply::Error { .. }) => {
                match queryable.owes {
                    // Who asks before he has heard of it does not know its number.
                    Owes::Key => WireExpr::text(queryable.key.as_ref()),
                    _ => queryable.expr(),
                }
            }
            None => return Err(PutError::KeyNeeded),
        };
        let response = Response {
            id: request.id,
            key,
            qos,
            responder: Some(Entity {
                zid: self.config.zid,
                id: u32::from(own),
            }),
            reply,
        };
        Ok(self.out.send(tx, now, how, &mut |w| response.encode(w))?)
    }

    /// Ends the answer of one queryable: once for each that was asked, since only their number is kept.
    pub fn finish<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        request: RequestId,
        now: Instant,
    ) -> Result<(), PutError> {
        if request.session != self.stats.opened {
            return Err(PutError::NoSuch);
        }
        let how = self.answering(Qos::DEFAULT);
        let mut slots = self.tables.all().requests.iter_mut();
        let is =
            |slot: &&mut Option<Request>| slot.as_ref().is_some_and(|open| open.id == request.id);
        let slot = slots.find(is).ok_or(PutError::NoSuch)?;
        let Some(open) = slot else { return Ok(()) };
        if open.open > 1 {
            open.open -= 1;
            return Ok(());
        }
        let (id, qos) = (open.id, open.qos);
        end(&mut self.out, tx, how, ResponseFinal { id, qos }, now)?;
        *slot = None;
        Ok(())
    }

    fn answering(&self, qos: Qos) -> How {
        How {
            channel: Channel::Reliable,
            wait: self.batching != 0 && !qos.is_express(),
            whole: false,
            declares: false,
        }
    }

    /// Ends a query of the peer that nobody finished in time.
    pub(super) fn expire_request<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        now: Instant,
    ) -> Result<(), Refused> {
        let mut next = Instant::FAR;
        for slot in self.tables.all().requests.iter_mut() {
            let Some(open) = slot else { continue };
            if open.deadline > now {
                next = next.min(open.deadline);
                continue;
            }
            let (id, qos) = (open.id, open.qos);
            let last = ResponseFinal { id, qos };
            end(&mut self.out, tx, How::CONTROL, last, now)?;
            *slot = None;
        }
        self.expires = next;
        Ok(())
    }
}

/// Says that no more answers come.
#[inline(never)]
fn end<T: Tables, X: Tx + ?Sized>(
    out: &mut Out<T>,
    tx: &mut X,
    how: How,
    last: ResponseFinal,
    now: Instant,
) -> Result<(), Refused> {
    out.send(tx, now, how, &mut |w| last.encode(w))
}

impl<'s, T: Tables> Cx<'s, T> {
    /// A query: an event for each queryable that it is for, one a step. Where there is none, it is
    /// answered here.
    pub(super) fn request<X: Tx + ?Sized>(self, request: Message<'s>, tx: &mut X) -> Step<'s> {
        let from = self.place.entity();
        let Message {
            id,
            qos,
            target,
            query,
            ..
        } = request;
        let (tables, scratch, requests) = self.all.share();
        let key = tables.resolve(&request.key, scratch, self.stats);
        let all = |key| {
            let only_complete = target == Target::AllComplete;
            matching(tables.queryables, from, key, only_complete)
        };
        let found = match key.map(all) {
            Some(Ok(found)) => found,
            Some(Err(BadKey)) => {
                count(&mut self.stats.bad_key);
                None
            }
            None => None,
        };
        // Another queryable was told of it in the step before.
        let again = from > 0;
        let open = requests
            .iter_mut()
            .position(|slot| slot.as_ref().is_some_and(|open| open.id == id));
        let room = match open {
            Some(index) if again => Some(index),
            // The peer has given one id to two queries.
            Some(_) => None,
            // Its time was up.
            None if again => None,
            None => requests.iter().position(Option::is_none),
        };
        let slot = room.and_then(|index| requests.get_mut(index));
        if let (Some((index, more)), Some(key), Some(slot)) = (found, key, slot) {
            let timeout = request
                .timeout_ms
                .map(|ms| u64::from(ms).saturating_mul(1000));
            let deadline = self.now.later(timeout.unwrap_or(PATIENCE));
            *self.expires = deadline.min(*self.expires);
            let open = slot.get_or_insert(Request {
                id,
                qos,
                open: 1,
                deadline,
            });
            // Whoever has been told may finish before the next one is.
            open.open = open.open.saturating_add(u16::from(more));
            self.place.stay(more.then_some(index));
            let queryable = index as u16;
            let session = self.stats.opened;
            return Step::Event(Event::Query {
                queryable: QueryableId(queryable),
                request: RequestId {
                    id,
                    session,
                    queryable,
                },
                question: Question { key, query },
            });
        }
        if again {
            // The next one was withdrawn meanwhile.
            match open.and_then(|index| requests.get_mut(index)?.as_mut()) {
                Some(open) if open.open > 1 => open.open -= 1,
                // The end is sent at once by who looks for what was not finished in time.
                Some(open) => {
                    (open.open, open.deadline) = (0, self.now);
                    *self.expires = self.now;
                }
                None => {}
            }
            return self.place.next();
        }
        // Nobody here answers it, or there is no room for it: its asker shall not wait.
        let (last, now) = (ResponseFinal { id, qos }, self.now);
        if end(self.out, tx, How::CONTROL, last, now).is_err() {
            // It is said later, where there is room to remember it: two sides that wait for a place to
            // say it, and read nothing meanwhile, would wait for each other.
            let free = requests.iter_mut().find(|slot| slot.is_none());
            let Some(slot) = free.filter(|_| open.is_none()) else {
                return Step::Full;
            };
            *slot = Some(Request {
                id,
                qos,
                open: 0,
                deadline: now,
            });
            *self.expires = now;
        }
        if found.is_some() {
            count(&mut self.stats.queries_refused);
        }
        self.place.next()
    }
}

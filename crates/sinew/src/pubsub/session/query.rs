//! Asking: queries out, replies in.

use core::time::Duration;

use crate::link::Tx;
use crate::pubsub::codec::{
    self, Consolidation, Entity, Qos, Request, Response, ResponseFinal, Target, WireExpr,
};
use crate::pubsub::keyexpr::KeyExpr;
use crate::time::{Instant, micros};

use super::agreed::{Channel, RESOLUTION, mask};
use super::event::{Event, Step};
use super::out::How;
use super::publish::PutError;
use super::receive::Cx;
use super::stats::count;
use super::{Phase, Session, Tables};

/// A query in the tables.
#[derive(Debug)]
pub struct Query {
    pub(super) id: u32,
    pub(super) deadline: Instant,
}

/// A query as the application holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct QueryId(pub(super) u32);

/// What to ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask<'a> {
    /// For which keys.
    pub key: KeyExpr<'a>,
    /// Of whom.
    pub target: Target,
    /// How it is sent.
    pub qos: Qos,
    /// After this long no more answers are taken, here and there.
    pub timeout: Duration,
    /// Parameters, payload, attachment, and what becomes of several replies with one key. That is for
    /// those on the way; this session hands out every reply that arrives.
    pub query: codec::Query<'a>,
}

impl<'a> Ask<'a> {
    /// A query with no options, for 10 s.
    pub const fn new(key: KeyExpr<'a>) -> Self {
        Ask {
            key,
            target: Target::BestMatching,
            qos: Qos::REQUEST,
            timeout: Duration::from_secs(10),
            query: codec::Query {
                consolidation: Consolidation::Auto,
                parameters: "",
                source: None,
                body: None,
                attachment: None,
            },
        }
    }
}

/// An answer to a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply<'s> {
    /// The key that it is about.
    pub key: &'s str,
    /// How it was sent.
    pub qos: Qos,
    /// Who answers, where he says so.
    pub responder: Option<Entity>,
    /// A sample, or why there is none.
    pub answer: codec::Reply<'s>,
}

/// How a query ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Everybody has answered.
    Complete,
    /// Its time was up.
    TimedOut,
    /// The session was lost: answers may be missing.
    Lost,
}

impl core::fmt::Display for Ended {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Ended::Complete => "everybody has answered",
            Ended::TimedOut => "its time was up",
            Ended::Lost => "the session was lost: answers may be missing",
        })
    }
}

/// Why a query was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskError {
    /// As many are in flight as the session has room for. Wait for one to end, or give it more.
    TooMany,
    /// As for a sample.
    Put(PutError),
}

impl core::fmt::Display for AskError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AskError::TooMany => {
                f.write_str("too many queries in flight: wait for one to end, or configure more")
            }
            AskError::Put(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AskError {}

impl<T: Tables> Session<T> {
    /// Asks. Answers are [`Event::Reply`], then comes one [`Event::Ended`].
    ///
    /// After [`PutError::Cut`] the same query must be asked again, as with a sample; it has one id.
    pub fn ask<X: Tx + ?Sized>(
        &mut self,
        tx: &mut X,
        ask: &Ask<'_>,
        now: Instant,
    ) -> Result<QueryId, AskError> {
        if self.phase != Phase::Open {
            return Err(AskError::Put(PutError::NotOpen));
        }
        let mut slots = self.tables.all().queries.iter_mut();
        let slot = slots.find(|slot| slot.is_none()).ok_or(AskError::TooMany)?;
        // The ids of 2^28 queries pass before one comes again.
        let id = self.last_query.wrapping_add(1) & mask(RESOLUTION);
        let timeout = micros(ask.timeout);
        let request = Request {
            id,
            key: WireExpr::text(ask.key.as_str()),
            qos: ask.qos,
            target: ask.target,
            budget: None,
            timeout_ms: Some(u32::try_from(timeout / 1000).unwrap_or(u32::MAX)),
            query: ask.query,
        };
        let how = How {
            channel: Channel::Reliable,
            wait: self.batching != 0 && !ask.qos.is_express(),
            whole: false,
            declares: false,
        };
        let sent = self.out.send(tx, now, how, &mut |w| request.encode(w));
        sent.map_err(|refused| AskError::Put(refused.into()))?;
        self.last_query = id;
        let deadline = now.later(timeout);
        *slot = Some(Query { id, deadline });
        Ok(QueryId(id))
    }

    /// Takes no more answers to a query. Its end is not told.
    pub fn forget(&mut self, query: QueryId) {
        for slot in self.tables.all().queries.iter_mut() {
            if slot.as_ref().is_some_and(|open| open.id == query.0) {
                *slot = None;
            }
        }
    }

    /// The next query whose time is up, or all of them where there is no session.
    pub(super) fn ended_query(&mut self, now: Instant) -> Option<Event<'static>> {
        let lost = self.phase != Phase::Open;
        for slot in self.tables.all().queries.iter_mut() {
            let Some(open) = slot else { continue };
            if lost || open.deadline <= now {
                let query = QueryId(open.id);
                *slot = None;
                let how = if lost { Ended::Lost } else { Ended::TimedOut };
                return Some(Event::Ended { query, how });
            }
        }
        None
    }
}

impl<'s, T: Tables> Cx<'s, T> {
    pub(super) fn response(self, response: Response<'s>) -> Step<'s> {
        let is_open = |query: &Query| query.id == response.id;
        if !self.all.queries.iter().flatten().any(is_open) {
            count(&mut self.stats.late_replies);
            return self.place.next();
        }
        let (tables, scratch, _) = self.all.share();
        let Some(key) = tables.resolve(&response.key, scratch, self.stats) else {
            return self.place.next();
        };
        self.place.stay(None);
        Step::Event(Event::Reply {
            query: QueryId(response.id),
            reply: Reply {
                key,
                qos: response.qos,
                responder: response.responder,
                answer: response.reply,
            },
        })
    }

    pub(super) fn response_final(self, end: &ResponseFinal) -> Step<'s> {
        let is_open =
            |slot: &&mut Option<Query>| slot.as_ref().is_some_and(|query| query.id == end.id);
        let Some(slot) = self.all.queries.iter_mut().find(is_open) else {
            count(&mut self.stats.late_replies);
            return self.place.next();
        };
        *slot = None;
        self.place.stay(None);
        let (query, how) = (QueryId(end.id), Ended::Complete);
        Step::Event(Event::Ended { query, how })
    }
}

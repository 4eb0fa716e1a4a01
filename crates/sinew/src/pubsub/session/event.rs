//! What a session tells the application.

use super::answer::{QueryableId, Question, RequestId};
use super::query::{Ended, QueryId, Reply};
use super::subscribe::{Sample, SubscriberId};

/// What one step of [`Session::receive`](super::Session::receive) came to.
#[derive(Debug)]
pub enum Step<'s> {
    /// Something was handled. There may be more in this packet: call again.
    More,
    /// The packet is finished: release it.
    Done,
    /// An answer needs a place on the link, and none is free: wait for one, then call again with the
    /// same packet.
    Full,
    /// Something for the application. There may be more in this packet: call again.
    Event(Event<'s>),
}

/// Something happened.
#[derive(Debug)]
pub enum Event<'s> {
    /// The session is open. What was declared is being declared to the peer.
    Opened,
    /// The session has ended. Everything declared is kept for the next one.
    Closed(Closed),
    /// A sample for a subscriber.
    Sample {
        /// Which.
        subscriber: SubscriberId,
        /// The sample.
        sample: Sample<'s>,
    },
    /// A query for a queryable. It is answered by any number of replies and one
    /// [`Session::finish`](super::Session::finish).
    Query {
        /// Which.
        queryable: QueryableId,
        /// To answer it, now or later.
        request: RequestId,
        /// What is asked.
        question: Question<'s>,
    },
    /// An answer to one's own query.
    Reply {
        /// Which.
        query: QueryId,
        /// The answer.
        reply: Reply<'s>,
    },
    /// No more answers come to one's own query.
    Ended {
        /// Which. The id is used again only much later.
        query: QueryId,
        /// Why.
        how: Ended,
    },
    /// Somebody subscribed, or does not any more: [`Session::is_heard`](super::Session::is_heard)
    /// may have changed.
    Heard,
}

/// Why a session has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// [`Session::close`](super::Session::close) was called.
    Here,
    /// The peer closed it, with this reason (section 4.3, CLOSE). 4: it holds a session with the same
    /// id; wait for its lease to end, or take another id.
    ByPeer(u8),
    /// The link has ended.
    Link,
    /// Nothing came from the peer for its lease.
    Expired,
    /// The peer did not answer the handshake.
    Unanswered,
    /// The peer speaks another version, or asked for what cannot be.
    Refused,
    /// The peer is this node itself.
    Myself,
    /// The peer sent what is no message, and was told so.
    Malformed,
    /// The peer began a new session.
    Restarted,
}

impl core::fmt::Display for Closed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Closed::Here => "closed here",
            Closed::ByPeer(1) => "the peer does not support what was asked for",
            Closed::ByPeer(2) => "the peer could not read what was sent, or refuses it",
            Closed::ByPeer(3) => "the peer has as many sessions as it takes",
            Closed::ByPeer(4) => {
                "the peer still holds a session with the same id: take another, or wait for its lease"
            }
            Closed::ByPeer(5) => "the peer heard nothing for too long",
            Closed::ByPeer(_) => "the peer closed it",
            Closed::Link => "the link has ended",
            Closed::Expired => "nothing came from the peer for its lease",
            Closed::Unanswered => "the peer did not answer: is it a Zenoh node, with this framing?",
            Closed::Refused => "the peer speaks another version of the protocol",
            Closed::Myself => "the peer is this node itself",
            Closed::Malformed => "the peer sent what is no message of Zenoh",
            Closed::Restarted => "the peer began a new session",
        })
    }
}

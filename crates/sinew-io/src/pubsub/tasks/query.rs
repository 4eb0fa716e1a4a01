//! Answers, and answering, for tasks.

use std::future::poll_fn;

use ::tokio::time::{Instant, timeout_at};
use sinew::pubsub::codec::{Body, Encoding};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::Ended;

use super::super::key_expr;
use super::super::query::{Answer, Replies, ReplyError, Responder};
use super::send::send;

/// The answers to a query, as they arrive; with consolidation `Latest` (also where nothing was chosen)
/// the newest of each key, at the end. Dropping it ends the query.
pub struct AsyncReplies {
    pub(super) replies: Replies,
}

impl AsyncReplies {
    /// The next answer; `None` after the last one. A future that is dropped has taken nothing.
    pub async fn recv(&mut self) -> Option<Answer> {
        let replies = &mut self.replies;
        loop {
            if replies.ended().is_some() {
                return replies.left();
            }
            let until = Instant::from_std(replies.deadline);
            let arrived = timeout_at(until, poll_fn(|cx| replies.poll_arrived(cx))).await;
            // When time is up, the next look says so.
            let answer = arrived.ok().flatten();
            if let Some(answer) = answer.and_then(|answer| replies.consolidated(answer)) {
                return Some(answer);
            }
        }
    }

    /// How it ended; `None` while answers can come.
    pub fn ended(&self) -> Option<Ended> {
        self.replies.ended()
    }

    /// Answers for which there was no room: 65,536 wait, or 256 MiB, until somebody takes them out, and
    /// 256 MiB are kept to the end to find the newest of each key.
    pub fn dropped(&self) -> u64 {
        self.replies.dropped()
    }
}

/// Answers one query, now or later, from any task. Dropping it says that this was all.
///
/// A future that is dropped while it waits has sent nothing.
pub struct AsyncResponder {
    pub(super) responder: Responder,
}

impl AsyncResponder {
    /// Answers with a value of the queryable's own key, which then has no wildcard.
    pub async fn reply(&self, payload: &[u8]) -> Result<(), ReplyError> {
        self.answer(None, &Body::put(payload)).await
    }

    /// Answers with a value, or its absence, of this key, with options.
    pub async fn reply_on(&self, key: &str, body: &Body<'_>) -> Result<(), ReplyError> {
        let key = key_expr(key).map_err(ReplyError::Key)?;
        self.answer(Some(key), body).await
    }

    async fn answer(&self, key: Option<KeyExpr<'_>>, body: &Body<'_>) -> Result<(), ReplyError> {
        let sent = send(&self.responder.shared, true, |session, tx, now| {
            self.responder.attempt(session, tx, key, body, now)
        });
        sent.await.map(drop).map_err(ReplyError::Put)
    }

    /// Answers that there is no answer, and why.
    pub async fn error(&self, encoding: Encoding<'_>, payload: &[u8]) -> Result<(), ReplyError> {
        let sent = send(&self.responder.shared, true, |session, tx, now| {
            self.responder
                .attempt_error(session, tx, encoding, payload, now)
        });
        sent.await.map(drop).map_err(ReplyError::Put)
    }
}

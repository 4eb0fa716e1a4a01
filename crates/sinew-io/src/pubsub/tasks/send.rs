//! Sending from a task: as from a thread, but who waits for a place holds up nothing.

use std::sync::Arc;

use ::tokio::time::timeout;
use sinew::link::Tx;
use sinew::pubsub::session::{Ask, AskError, Put, PutError, QueryId, Session};
use sinew::time::Instant;

use super::super::core::{Asking, Core, PAUSE, Shared, Waiting};
use super::super::query::Mailbox;
use super::super::tables::Host;

/// Something that was sent in part goes on, or is given up when this is dropped.
struct Kept<'s> {
    shared: &'s Shared,
    waiting: Waiting,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let _ = self
            .waiting
            .give_up(&mut self.shared.core(), &self.shared.room);
    }
}

/// Sends, waiting for a place where the policy is to block; `done` is called under the lock under
/// which it was sent.
async fn send_and<R>(
    shared: &Shared,
    blocks: bool,
    mut f: impl FnMut(&mut Session<Host>, &mut dyn Tx, Instant) -> Result<Put, PutError>,
    done: impl FnOnce(&mut Core, Result<Put, PutError>) -> R,
) -> R {
    // Who never waits must leave the thread to the driver now and then.
    ::tokio::task::coop::consume_budget().await;
    let (mut seen, kept) = {
        let mut core = shared.core();
        match core.attempt(None, &mut f) {
            (Err(PutError::Full | PutError::Cut), ticket) => {
                let waiting = Waiting::new(ticket, blocks);
                (
                    shared.await_place(&mut core, Some(ticket)),
                    Kept { shared, waiting },
                )
            }
            (result, _) => {
                let result = done(&mut core, result);
                drop(core);
                shared.after_you();
                return result;
            }
        }
    };
    loop {
        ::tokio::task::coop::consume_budget().await;
        let _ = timeout(PAUSE, shared.room.changed(seen)).await;
        let mut core = shared.core();
        if let Some(result) = kept.waiting.again(&mut core, &shared.room, &mut f) {
            let result = done(&mut core, result);
            drop(core);
            return result;
        }
        seen = shared.await_place(&mut core, Some(kept.waiting.ticket));
    }
}

/// Sends, waiting for a place where the policy is to block.
pub(super) async fn send(
    shared: &Shared,
    blocks: bool,
    f: impl FnMut(&mut Session<Host>, &mut dyn Tx, Instant) -> Result<Put, PutError>,
) -> Result<Put, PutError> {
    send_and(shared, blocks, f, |_, result| result).await
}

/// Sends now, or not at all.
pub(super) fn try_send(
    shared: &Shared,
    blocks: bool,
    mut f: impl FnMut(&mut Session<Host>, &mut dyn Tx, Instant) -> Result<Put, PutError>,
) -> Result<Put, PutError> {
    let mut core = shared.core();
    match core.attempt(None, &mut f) {
        (Err(PutError::Full | PutError::Cut), ticket) => {
            Waiting::new(ticket, blocks).give_up(&mut core, &shared.room)
        }
        (result, _) => result,
    }
}

/// Asks, waiting for a place.
pub(super) async fn ask(
    shared: &Arc<Shared>,
    ask: &Ask<'_>,
    mailbox: &Mailbox,
) -> Result<QueryId, AskError> {
    let asking = std::sync::Mutex::new(Asking::new(ask));
    send_and(
        shared,
        true,
        |session, tx, now| crate::lock(&asking).attempt(session, tx, now),
        |core, result| crate::lock(&asking).enter(core, result, mailbox),
    )
    .await
}

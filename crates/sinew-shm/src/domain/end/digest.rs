//! What a side knows in private, for the exploration of the protocol's states.

use super::super::books::State;
use super::{End, Platform, Status};

/// The private state of an end with one channel: everything that a later call depends on.
pub(in super::super) struct Private {
    pub(in super::super) status: Status,
    pub(in super::super) is_draining: bool,
    /// The peer has ended, and what it sent is read.
    pub(in super::super) is_rest: bool,
    /// Of the pairings that are up, and in which is sent: 0, or the present one.
    pub(in super::super) is_live: (bool, bool),
    /// This side's session, the one of the peer's that it acknowledged, and the peer's state.
    pub(in super::super) session: [u32; 3],
    pub(in super::super) outbox: [u32; 8],
    pub(in super::super) inbox: [u32; 4],
    /// Of each block: where it is, and the next one in the stack.
    pub(in super::super) blocks: [(u32, u32); 4],
}

impl<P: Platform> End<P> {
    pub(in super::super) fn private(&self) -> Private {
        self.locked(|inner| {
            let mut blocks = [(0, 0); 4];
            for (block, book) in blocks.iter_mut().zip(inner.blocks.as_mut()) {
                // The other states leave what stood there before.
                let next = match book.state {
                    State::Free => book.next,
                    _ => 0,
                };
                *block = (book.state as u32, next.into());
            }
            let pairing = inner.pairing;
            Private {
                status: inner.status,
                is_draining: inner.is_draining,
                is_rest: inner.rest.is_some(),
                is_live: (inner.live == pairing, inner.sendable == pairing),
                session: inner.session.digest(),
                outbox: inner.channel(0).expect("a channel").0.outbox.digest(),
                inbox: inner.channel(0).expect("a channel").0.inbox.digest(),
                blocks,
            }
        })
    }

    /// Everything that a later call on an end with one lock channel depends on.
    pub(in super::super) fn lock_private(&self) -> [u64; 18] {
        self.locked(|inner| {
            let [me, peer, state] = inner.session.digest().map(u64::from);
            let [a, b, c, d, e, f, g, h, i, j, k] = inner.lock(0).expect("a lock").digest();
            let status = inner.status == Status::Up;
            let pairing = u64::from(inner.pairing);
            let (live, sendable) = (inner.live.into(), inner.sendable.into());
            [
                status.into(),
                pairing,
                live,
                sendable,
                me,
                peer,
                state,
                a,
                b,
                c,
                d,
                e,
                f,
                g,
                h,
                i,
                j,
                k,
            ]
        })
    }

    /// Whether a hold has the lock, in the present pairing.
    pub(in super::super) fn has_lock(&self, pairing: u32, hold: u32) -> bool {
        self.locked(|inner| {
            inner.live == pairing && inner.lock(0).expect("a lock").digest()[2] == hold.into()
        })
    }
}

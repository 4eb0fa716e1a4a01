//! What is under way on a message channel, from what both sides count.

use super::super::config::Pool;
use super::ChannelSide;
use super::flow::difference;

/// One direction of a message channel: what one side may send, and how much of it waits.
///
/// Of a link that is running each number is true of some instant during the look, not all of the same
/// one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageFlow {
    /// Messages that wait to be taken up, at most.
    pub requests: u16,
    /// Calls of words that wait for an answer, at most.
    pub calls: u16,
    /// Memory for messages of this side; no blocks where it has none.
    pub memory: Pool,
    /// Messages sent in this session.
    pub sent: u32,
    /// Messages that the receiver has not taken up. 0 while the link is down.
    pub waiting: u16,
    /// Whether two honest sides can have these counts; else a side is writing nonsense, or took a
    /// new session during the look: look again. The numbers are bounded all the same.
    pub is_consistent: bool,
}

impl MessageFlow {
    pub(super) fn of(
        sender: &[ChannelSide; 2],
        receiver: Option<&[ChannelSide; 2]>,
        is_up: bool,
    ) -> MessageFlow {
        let [_, side] = sender;
        let sent = sender.map(|side| side.counts.sent);
        let (waiting, is_consistent) = match receiver.filter(|_| is_up) {
            Some(to) => difference(sent, to.map(|side| side.counts.received), side.requests),
            None => (0, true),
        };
        MessageFlow {
            requests: side.requests,
            calls: side.calls,
            memory: side.pool,
            sent: side.counts.sent,
            waiting,
            is_consistent,
        }
    }
}

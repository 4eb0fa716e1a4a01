//! What arrives: how far the packet is handled, sequence numbers, fragments.

use crate::pubsub::codec::transport;

use super::agreed::Agreed;
use super::stats::{Stats, count, count_many};
use crate::wire::copy;

#[derive(Debug)]
pub(super) struct Incoming {
    /// How far the packet has been handled.
    pub at: usize,
    /// In a frame; `Some(false)` where its sequence number is old, and its messages are skipped.
    pub frame: Option<bool>,
    /// The last frame was of the reliable channel.
    pub reliable: bool,
    /// The entity to look at next, of those that one message is for.
    pub entity: usize,
    /// The message in hand has been counted.
    pub counted: bool,
    /// The next sequence number of each channel, the reliable one first.
    sn: [u32; 2],
    /// The number that follows the last one that was ignored.
    doubted: [u32; 2],
    /// The last number taken was of a last fragment.
    cut: [bool; 2],
    pub assembly: Assembly,
}

/// No frame has this number.
const NONE: u32 = u32::MAX;

/// Numbers that are further apart are not of the same second.
const FAR: u32 = 1 << 16;

/// What is known of the fragments of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Lost {
    /// None is missing.
    #[default]
    Nothing,
    /// Something is missing, so the next ones can be the rest of a message.
    Something,
    /// A part of the message whose rest is to come, which has been counted.
    Counted,
}

/// A message that is put together from fragments: one at a time.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Bytes so far.
    len: usize,
    /// There is one, of the reliable channel or of the other.
    going: Option<bool>,
    /// Of the best-effort and of the reliable channel.
    lost: [Lost; 2],
    /// All fragments have arrived; this many bytes are to be handled.
    pub whole: Option<usize>,
}

impl Incoming {
    pub(super) const fn new() -> Self {
        Incoming {
            at: 0,
            frame: None,
            reliable: false,
            entity: 0,
            counted: false,
            sn: [0; 2],
            doubted: [NONE; 2],
            cut: [false; 2],
            assembly: Assembly {
                len: 0,
                going: None,
                lost: [Lost::Nothing; 2],
                whole: None,
            },
        }
    }

    /// Begins anew with a peer whose first frames have this number.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(super) fn reset(&mut self, sn: u32) {
        self.sn = [sn; 2];
        self.doubted = [NONE; 2];
        self.cut = [false; 2];
        self.frame = None;
        self.entity = 0;
        self.counted = false;
        self.assembly = Assembly::default();
    }

    /// The peer has gone, and with it what is left of the packet in hand.
    pub(super) fn leave(&mut self) {
        if self.at > 0 {
            self.skip();
        }
        self.reset(0);
    }

    /// Whether nothing has arrived from a peer whose first frames have this number.
    pub(super) fn is_at(&self, sn: u32) -> bool {
        self.sn == [sn; 2]
    }

    /// The packet is finished, or given up.
    pub(super) fn finish(&mut self) {
        self.at = 0;
        self.frame = None;
        self.entity = 0;
        self.counted = false;
    }

    /// What is left of the packet is not looked at.
    pub(super) fn skip(&mut self) {
        self.at = usize::MAX;
    }

    /// Whether a frame or fragment of this number is taken: it is not older than the last one. A gap
    /// is accepted and counted (section 4.3, receive rule). `None`: no such number can be. `last`: it
    /// is the last fragment of a message.
    pub(super) fn take(
        &mut self,
        reliable: bool,
        last: bool,
        sn: u32,
        agreed: &Agreed,
        stats: &mut Stats,
    ) -> Option<bool> {
        if sn > agreed.mask {
            return None;
        }
        let row = usize::from(!reliable);
        let (next, doubted) = match (self.sn.get_mut(row), self.doubted.get_mut(row)) {
            (Some(next), Some(doubted)) => (next, doubted),
            _ => return None,
        };
        let gap = sn.wrapping_sub(*next) & agreed.mask;
        let behind = next.wrapping_sub(sn) & agreed.mask;
        let after = sn.wrapping_add(1) & agreed.mask;
        let old = gap >= agreed.mask >> 1;
        // What is far from all others may be of an earlier session of the same link. Taken at once, it
        // would make all that is to come old; so the next one must follow it.
        if old && behind <= FAR || gap.min(behind) > FAR && *doubted != sn {
            *doubted = after;
            count(&mut stats.old);
            return Some(false);
        }
        *next = after;
        let was_cut = self
            .cut
            .get_mut(row)
            .is_some_and(|cut| core::mem::replace(cut, last));
        if gap > 0 {
            self.assembly.missed(reliable, stats);
        }
        if gap == 1 && was_cut {
            // So Zenoh's own nodes do.
            count(&mut stats.left_out);
        } else if gap > 0 {
            count(&mut stats.gaps);
            if old {
                return Some(true);
            }
            let missed = match reliable {
                true => &mut stats.missed_reliable,
                false => &mut stats.missed_best_effort,
            };
            count_many(missed, gap);
        }
        Some(true)
    }
}

impl Assembly {
    fn lost(&mut self, reliable: bool) -> &mut Lost {
        let [of_best_effort, of_reliable] = &mut self.lost;
        match reliable {
            true => of_reliable,
            false => of_best_effort,
        }
    }

    /// What there is of a message of this channel can never be whole.
    #[inline(never)]
    fn lose(&mut self, reliable: bool, stats: &mut Stats) {
        if self.going == Some(reliable) {
            self.going = None;
            *self.lost(reliable) = Lost::Counted;
            count(&mut stats.fragments_lost);
        }
    }

    /// Something of this channel is missing.
    fn missed(&mut self, reliable: bool, stats: &mut Stats) {
        self.lose(reliable, stats);
        let lost = self.lost(reliable);
        if *lost == Lost::Nothing {
            *lost = Lost::Something;
        }
    }

    /// A frame has arrived, so no message of its channel is in fragments now.
    pub(super) fn framed(&mut self, reliable: bool, stats: &mut Stats) {
        self.lose(reliable, stats);
        *self.lost(reliable) = Lost::Nothing;
    }

    /// Takes one fragment, whose sequence number has been taken.
    pub(super) fn add(
        &mut self,
        fragment: &transport::Fragment<'_>,
        buffer: &mut [u8],
        agreed: &Agreed,
        stats: &mut Stats,
    ) {
        let reliable = fragment.reliable;
        if fragment.drop {
            return self.lose(reliable, stats);
        }
        // Without marks, the first that follows a last one is a first one.
        let first = match agreed.patch {
            0 => self.going != Some(reliable) && *self.lost(reliable) == Lost::Nothing,
            _ => fragment.first,
        };
        if first {
            if let Some(other) = self.going {
                self.lose(other, stats);
            }
            self.going = Some(reliable);
            self.len = 0;
        }
        if self.going == Some(reliable) {
            let end = self.len.saturating_add(fragment.payload.len());
            match buffer.get_mut(self.len..end) {
                Some(room) => {
                    copy(room, fragment.payload);
                    self.len = end;
                }
                None => {
                    self.going = None;
                    *self.lost(reliable) = Lost::Counted;
                    count(&mut stats.too_large);
                }
            }
        }
        if fragment.more {
            return;
        }
        if self.going == Some(reliable) {
            self.whole = Some(self.len);
            self.going = None;
        } else if *self.lost(reliable) != Lost::Counted {
            // Not even the first one has arrived.
            count(&mut stats.fragments_lost);
        }
        *self.lost(reliable) = Lost::Nothing;
    }
}

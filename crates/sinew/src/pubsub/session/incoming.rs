//! What arrives: how far the packet is handled, sequence numbers, fragments.

use crate::pubsub::codec::transport;

use super::agreed::Agreed;
use super::copy;
use super::stats::{Stats, count, count_many};

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
    /// The next sequence number of each channel.
    sn: [u32; 2],
    pub assembly: Assembly,
}

/// How a message in fragments goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Progress {
    /// None is being put together.
    #[default]
    Idle,
    /// Its first fragment has arrived, and none has been lost.
    Going,
    /// One has been lost: the others are ignored, down to the last.
    Skipping,
}

/// A message that is put together from fragments.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Bytes so far.
    len: usize,
    progress: Progress,
    reliable: bool,
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
            sn: [0; 2],
            assembly: Assembly {
                len: 0,
                progress: Progress::Idle,
                reliable: false,
                whole: None,
            },
        }
    }

    /// Begins anew with a peer whose first frames have this number.
    pub(super) fn reset(&mut self, sn: u32) {
        self.sn = [sn; 2];
        self.frame = None;
        self.entity = 0;
        self.assembly = Assembly::default();
    }

    /// The packet is finished, or given up.
    pub(super) fn finish(&mut self) {
        self.at = 0;
        self.frame = None;
        self.entity = 0;
    }

    /// What is left of the packet is not looked at.
    pub(super) fn skip(&mut self) {
        self.at = usize::MAX;
    }

    /// Whether a frame of this number is taken: it is not older than the last one. A gap is
    /// accepted and counted (section 4.3, receive rule). `None`: no such number can be.
    pub(super) fn take(
        &mut self,
        reliable: bool,
        sn: u32,
        agreed: &Agreed,
        stats: &mut Stats,
    ) -> Option<bool> {
        if sn > agreed.mask {
            return None;
        }
        let [of_reliable, of_best_effort] = &mut self.sn;
        let (next, missed) = if reliable {
            (of_reliable, &mut stats.missed_reliable)
        } else {
            (of_best_effort, &mut stats.missed_best_effort)
        };
        let gap = sn.wrapping_sub(*next) & agreed.mask;
        if gap >= agreed.mask >> 1 {
            count(&mut stats.old);
            return Some(false);
        }
        count_many(missed, gap);
        if gap > 0 {
            count(&mut stats.gaps);
        }
        *next = sn.wrapping_add(1) & agreed.mask;
        if gap > 0 && self.assembly.reliable == reliable {
            self.assembly.lose(stats);
        }
        Some(true)
    }
}

impl Assembly {
    /// What there is of a message can never be whole.
    fn lose(&mut self, stats: &mut Stats) {
        if self.progress == Progress::Going {
            count(&mut stats.fragments_lost);
        }
        self.progress = Progress::Skipping;
    }

    /// A frame has arrived, so no message is in fragments now.
    pub(super) fn framed(&mut self, reliable: bool, stats: &mut Stats) {
        if self.progress != Progress::Idle && self.reliable == reliable {
            self.lose(stats);
            self.progress = Progress::Idle;
        }
    }

    /// Takes one fragment, whose sequence number has been taken.
    pub(super) fn add(
        &mut self,
        fragment: &transport::Fragment<'_>,
        buffer: &mut [u8],
        agreed: &Agreed,
        stats: &mut Stats,
    ) {
        if fragment.drop {
            return self.lose(stats);
        }
        // Without marks, the first that follows a last one is a first one.
        let first = match agreed.patch {
            0 => self.progress == Progress::Idle,
            _ => fragment.first,
        };
        if first {
            self.lose(stats);
            self.progress = Progress::Going;
            self.reliable = fragment.reliable;
            self.len = 0;
        }
        if self.progress == Progress::Going && self.reliable == fragment.reliable {
            let end = self.len.saturating_add(fragment.payload.len());
            match buffer.get_mut(self.len..end) {
                Some(room) => {
                    copy(room, fragment.payload);
                    self.len = end;
                }
                None => {
                    self.progress = Progress::Skipping;
                    count(&mut stats.too_large);
                }
            }
        }
        if !fragment.more && self.reliable == fragment.reliable {
            if self.progress == Progress::Going {
                self.whole = Some(self.len);
            }
            self.progress = Progress::Idle;
        }
    }
}

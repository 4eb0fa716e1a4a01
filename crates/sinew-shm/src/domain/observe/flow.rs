//! Where the blocks of one direction are, from what both sides count.

use super::ChannelSide;

/// One direction of a channel: what one side sends, and where its blocks are.
///
/// Each block is free, queued or held. Lent is the sender's own view: what was sent and not taken
/// back yet, so queued, held or returned. Of a link that is running each number is true of some
/// instant during the look, not all of the same one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Blocks of the sender.
    pub blocks: u16,
    /// Bytes of each.
    pub size: u32,
    /// Blocks that are with the sender: to be taken, being written, or just given back.
    pub free: u16,
    /// Blocks that were sent and that the sender has not taken back yet.
    pub lent: u16,
    /// Packets that the receiver has not taken up. 0 while the link is down.
    pub queued: u16,
    /// Blocks in the receiver's hands.
    pub held: u16,
    /// Blocks that the receiver gave back and the sender has not taken up. 0 while the link is down.
    pub returned: u16,
    /// Packets sent in this session.
    pub sent: u32,
    /// Packets that met no free block.
    pub full: u32,
    /// Packets larger than a block.
    pub too_large: u32,
    /// Packets that the receiver does not want, kept back by either side.
    pub filtered: u32,
    /// Whether two honest sides can have these counts; else a side is writing nonsense, or took a
    /// new session during the look: look again. The numbers are bounded all the same.
    pub is_consistent: bool,
}

impl Flow {
    /// `None` where the sender has no blocks.
    pub(super) fn of(
        sender: &[ChannelSide; 2],
        receiver: Option<&[ChannelSide; 2]>,
        is_up: bool,
    ) -> Option<Flow> {
        let [_, side] = sender;
        let blocks = side.pool.blocks;
        if blocks == 0 {
            return None;
        }
        let from = sender.map(|side| side.counts);
        let to = receiver.map(|looks| looks.map(|side| side.counts));
        let mut is_consistent = true;
        let mut between = |ahead: [u32; 2], behind: Option<[u32; 2]>| {
            let (count, is_possible) = match behind {
                Some(behind) => difference(ahead, behind, blocks),
                None => (0, true),
            };
            is_consistent &= is_possible;
            count
        };
        let lent = between(
            from.map(|counts| counts.sent),
            Some(from.map(|counts| counts.reclaimed)),
        );
        let held = match to {
            Some(to) => between(
                to.map(|counts| counts.received),
                Some(to.map(|counts| counts.released)),
            ),
            None => 0,
        };
        // Positions of the two sides belong to the same session only while the link is up.
        let up = to.filter(|_| is_up);
        let queued = between(
            from.map(|counts| counts.sent),
            up.map(|to| to.map(|counts| counts.received)),
        );
        let returned = match up {
            Some(to) => between(
                to.map(|counts| counts.released),
                Some(from.map(|counts| counts.reclaimed)),
            ),
            None => 0,
        };
        let unwanted = to.map_or(0, |[_, counts]| counts.unwanted);
        // Both were seen at different instants.
        let under_way = queued.saturating_add(held);
        Some(Flow {
            blocks,
            size: side.pool.size,
            free: blocks.saturating_sub(under_way),
            lent,
            queued,
            held,
            returned,
            sent: side.counts.sent,
            full: side.counts.full,
            too_large: side.counts.too_large,
            filtered: side.counts.filtered.wrapping_add(unwanted),
            is_consistent,
        })
    }
}

/// How far one position is ahead of another, both read earlier and later; and whether that can be.
///
/// At the instant between the looks it was at least (early - late) and at most (late - early). The
/// middle is shown. A side counts a packet just after it is published, and the other may have
/// counted it by then: so one less than nothing is possible.
pub(super) fn difference(ahead: [u32; 2], behind: [u32; 2], blocks: u16) -> (u16, bool) {
    let distance = |ahead: u32, behind: u32| i64::from(ahead.wrapping_sub(behind) as i32);
    let least = distance(ahead[0], behind[1]);
    let most = distance(ahead[1], behind[0]);
    let blocks = i64::from(blocks);
    let is_possible = least <= most && least <= blocks && most >= -1;
    let middle = (least + most) / 2;
    (middle.clamp(0, blocks) as u16, is_possible)
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_link_at_rest_has_one_answer() {
        assert_eq!(difference([7, 7], [3, 3], 8), (4, true));
        assert_eq!(difference([3, 3], [3, 3], 8), (0, true));
    }

    #[test]
    fn positions_wrap() {
        assert_eq!(difference([2, 2], [u32::MAX, u32::MAX], 8), (3, true));
    }

    #[test]
    fn a_fast_link_is_no_contradiction() {
        // Thousands of packets between the looks, through 8 blocks.
        assert_eq!(difference([1000, 9000], [998, 8996], 8), (3, true));
        assert_eq!(difference([1000, 9000], [2000, 3000], 8), (8, true));
    }

    #[test]
    fn a_count_that_comes_a_little_late_is_no_contradiction() {
        assert_eq!(difference([5, 5], [6, 6], 8), (0, true));
    }

    #[test]
    fn impossible_positions_are_bounded_and_marked() {
        assert_eq!(difference([900, 900], [0, 0], 8), (8, false));
        assert_eq!(difference([0, 0], [900, 900], 8), (0, false));
        // A new session between the looks.
        assert!(!difference([900, 0], [899, 0], 8).1);
        let half = [u32::MAX / 2; 2];
        assert_eq!(difference(half, [0, 0], u16::MAX), (u16::MAX, false));
    }
}

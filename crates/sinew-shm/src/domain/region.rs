//! How a link lies in one region of memory: a shared file, a part of physical memory, a static that
//! an emulator exports.
//!
//! ```text
//! first side's segment | second side's segment | exchange segment (where channels have replies)
//! ```
//!
//! Each begins at a multiple of [`Region::ALIGN`] bytes from the region's base, so that a map of
//! one, with pages of that size, shows and protects nothing of the others, and the region is as
//! long as a whole number of them, so that several links lie one behind the other. Both sides, and
//! tools that look on, find everything from the base and the configuration alone; who has no
//! configuration reads the length of the first segment there and finds the second behind it
//! ([`Region::of_lengths`]).

use super::config::{Config, Role};

/// A part of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Bytes from the base of the region, a multiple of [`Region::ALIGN`].
    pub offset: u64,
    /// Bytes of it: of a segment, what the configuration needs. 0 for an exchange segment that is
    /// not there.
    pub len: u64,
}

impl Span {
    /// The first byte behind it.
    pub const fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// Where the segments of a link lie in one region.
///
/// ```
/// use sinew_shm::domain::{Channel, Config, Pool, Region, Role};
///
/// const LINK: Config = Config::new(&[Channel::new(1, "control", Pool::new(8, 64))]);
/// const REGION: Region = Region::of(&LINK);
///
/// assert_eq!(REGION.first.offset, 0);
/// assert_eq!(REGION.second.offset, 4096);
/// assert_eq!(REGION.segment(Role::Second).len, LINK.segment_len(Role::Second) as u64);
/// assert_eq!(REGION.len, 8192); // no channel has replies
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// The first side's segment, at the base.
    pub first: Span,
    /// The second side's segment.
    pub second: Span,
    /// What both sides may write.
    pub exchange: Span,
    /// Bytes of the whole region, a multiple of [`Region::ALIGN`]. At most a little above 6 GiB.
    pub len: u64,
}

impl Region {
    /// Bytes to which every part of a region is aligned; the base must be as well, where pages are
    /// to protect the parts from each other, and to [`Segment::ALIGN`](crate::Segment::ALIGN) at
    /// least.
    pub const ALIGN: u64 = 4096;

    /// Where the segments of this link lie.
    pub const fn of(config: &Config<'_>) -> Region {
        Region::of_lengths(
            config.segment_len(Role::First) as u32,
            config.segment_len(Role::Second) as u32,
            config.exchange_len() as u32,
        )
    }

    /// Where segments of these lengths lie. A segment says its own length, so this is how a tool
    /// without the configuration goes on from the first segment.
    pub const fn of_lengths(first: u32, second: u32, exchange: u32) -> Region {
        let first = span(0, first);
        let second = span(first.end(), second);
        let exchange = span(second.end(), exchange);
        Region {
            first,
            second,
            exchange,
            len: exchange.end().next_multiple_of(Region::ALIGN),
        }
    }

    /// The segment of this side.
    pub const fn segment(&self, role: Role) -> Span {
        match role {
            Role::First => self.first,
            Role::Second => self.second,
        }
    }
}

/// `len` bytes from the next aligned place on.
const fn span(behind: u64, len: u32) -> Span {
    Span {
        offset: behind.next_multiple_of(Region::ALIGN),
        len: len as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::{Region, Span};
    use crate::domain::{Channel, Config, Pool};

    #[test]
    fn parts_follow_each_other_at_whole_pages() {
        let region = Region::of_lengths(4096, 4097, 1);
        let span = |offset, len| Span { offset, len };
        assert_eq!(region.first, span(0, 4096));
        assert_eq!(region.second, span(4096, 4097));
        assert_eq!(region.exchange, span(12288, 1));
        assert_eq!(region.len, 16384);
    }

    #[test]
    fn a_link_without_replies_has_no_room_for_an_exchange_segment() {
        let region = Region::of_lengths(100, 200, 0);
        assert_eq!(region.exchange.len, 0);
        assert_eq!(region.len, 8192);
    }

    #[test]
    fn any_lengths_that_a_foreign_segment_may_claim_give_a_region() {
        let most = u64::from(u32::MAX);
        let region = Region::of_lengths(u32::MAX, u32::MAX, u32::MAX);
        assert_eq!(region.exchange.end(), 2 * (most + 1) + most);
    }

    #[test]
    fn a_region_holds_what_the_configuration_needs() {
        const CHANNELS: &[Channel] = &[
            Channel::new(1, "one", Pool::new(4, 100)),
            Channel::new(2, "two", Pool::new(3, 5000)).with_replies(),
        ];
        let region = Region::of(&Config::new(CHANNELS).mutual());
        // Both pools of the second channel: 6 blocks of 5000 bytes, rounded up to lines.
        assert_eq!(region.exchange.len, 6 * 5056);
        assert!(region.first.end() <= region.second.offset);
        assert!(region.second.end() <= region.exchange.offset);
        assert!(region.exchange.end() <= region.len);
    }
}

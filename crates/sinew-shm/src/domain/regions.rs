//! How several links of one configuration lie in one memory, for one master with several remotes:
//! a header, then as many *slots*, each with the [`Region`] of a whole link.
//!
//! ```text
//! header, 4096 bytes | slot 0: first, second, exchange | slot 1: first, second, exchange | ...
//! ```
//!
//! The master is the first side of every slot, each remote the second side of one. So no word has two
//! writers, and what happens in one slot is of no concern to another. The header is written once, by
//! whoever makes the memory, and then read alone: by it a peer sees that it means the same memory, and
//! a tool without a configuration finds every segment.

use super::config::{Config, MAJOR, MINOR, Role};
use super::layout::PROBE;
use super::observe::Source;
use super::region::{Region, Span};

/// Word indices of the header, from the base of the memory.
mod header {
    /// Stored last, 0 before.
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const PROBE: usize = 2;
    pub const SLOTS: usize = 3;
    /// Bytes of a slot: the low word, the high one.
    pub const LENGTH: usize = 4;
    pub const LENGTH_HIGH: usize = 5;
    pub const HASH: usize = 6;
    pub const FIRST: usize = 7;
    pub const SECOND: usize = 8;
    pub const EXCHANGE: usize = 9;
}

const MAGIC: u32 = u32::from_le_bytes(*b"SinS");

/// Where the links of several slots lie.
///
/// ```
/// use sinew_shm::domain::{Channel, Config, Pool, Regions, Role};
///
/// const LINK: Config = Config::new(&[Channel::new(1, "control", Pool::new(8, 64))]);
/// const REGIONS: Regions = Regions::of(&LINK, 2).unwrap(); // one master, two remotes
///
/// assert_eq!(REGIONS.slot(0).unwrap().offset, 4096);
/// assert_eq!(REGIONS.segment(1, Role::Second).unwrap().offset, 4096 + 8192 + 4096);
/// assert_eq!(REGIONS.len(), 4096 + 2 * 8192);
/// assert_eq!(REGIONS.slot(2), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Regions {
    /// How many slots, 1 to [`Regions::MAX`].
    pub slots: u32,
    /// Where what lies in a slot, from the slot's base.
    pub region: Region,
    /// Of the configuration of every slot.
    pub hash: u32,
}

impl Regions {
    /// Slots of one memory, at most.
    pub const MAX: u32 = 256;

    /// Bytes before the first slot.
    pub const HEADER: u64 = Region::ALIGN;

    /// `slots` links of this configuration; `None` for no slot, and above [`Regions::MAX`].
    pub const fn of(config: &Config<'_>, slots: u32) -> Option<Regions> {
        if slots == 0 || slots > Regions::MAX {
            return None;
        }
        Some(Regions {
            slots,
            region: Region::of(config),
            hash: config.hash(),
        })
    }

    /// The bytes of a slot, from the base of the memory; `None` where there is no such slot.
    pub const fn slot(&self, slot: u32) -> Option<Span> {
        if slot >= self.slots {
            return None;
        }
        Some(Span {
            offset: Regions::HEADER + slot as u64 * self.region.len,
            len: self.region.len,
        })
    }

    /// A side's segment in a slot, from the base of the memory; `None` where there is no such slot.
    pub const fn segment(&self, slot: u32, role: Role) -> Option<Span> {
        let Some(whole) = self.slot(slot) else {
            return None;
        };
        let inside = self.region.segment(role);
        Some(Span {
            offset: whole.offset + inside.offset,
            len: inside.len,
        })
    }

    /// Bytes of the whole memory.
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> u64 {
        Regions::HEADER + self.slots as u64 * self.region.len
    }

    /// The words of the header, little-endian, from the base of the memory on. An image that makes the
    /// memory itself writes the first word last, with release.
    pub const fn header(&self) -> [u32; 16] {
        let mut words = [0; 16];
        words[header::MAGIC] = MAGIC;
        words[header::VERSION] = (MAJOR as u32) << 16 | MINOR as u32;
        words[header::PROBE] = PROBE;
        words[header::SLOTS] = self.slots;
        words[header::LENGTH] = self.region.len as u32;
        words[header::LENGTH_HIGH] = (self.region.len >> 32) as u32;
        words[header::HASH] = self.hash;
        words[header::FIRST] = self.region.first.len as u32;
        words[header::SECOND] = self.region.second.len as u32;
        words[header::EXCHANGE] = self.region.exchange.len as u32;
        words
    }

    /// Reads the header of a memory. What it says is checked: the numbers fit together, and no more
    /// than [`Regions::MAX`] slots are believed.
    pub fn read(memory: &(impl Source + ?Sized)) -> Result<Regions, NoRegions> {
        let magic = memory.line(0).ok_or(NoRegions::Short)?[header::MAGIC];
        // A line is read backwards, and the first word was written last: the others of the same look
        // may be older than it.
        let mut words = memory.line(0).ok_or(NoRegions::Short)?;
        words[header::MAGIC] = magic;
        if words[header::MAGIC] == MAGIC.swap_bytes() {
            return Err(NoRegions::ByteOrder);
        }
        match words[header::MAGIC] {
            0 => return Err(NoRegions::Absent),
            MAGIC => {}
            other => return Err(NoRegions::Magic(other)),
        }
        if words[header::PROBE] != PROBE {
            return Err(NoRegions::ByteOrder);
        }
        let major = (words[header::VERSION] >> 16) as u16;
        if major != MAJOR {
            return Err(NoRegions::Version(major));
        }
        let slots = words[header::SLOTS];
        if slots == 0 || slots > Regions::MAX {
            return Err(NoRegions::Slots(slots));
        }
        let [first, second, exchange] =
            [header::FIRST, header::SECOND, header::EXCHANGE].map(|at| words[at]);
        let region = Region::of_lengths(first, second, exchange);
        let len = u64::from(words[header::LENGTH_HIGH]) << 32 | u64::from(words[header::LENGTH]);
        if region.len != len {
            return Err(NoRegions::Length(len));
        }
        Ok(Regions {
            slots,
            region,
            hash: words[header::HASH],
        })
    }
}

/// Why a memory is not one of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRegions {
    /// It ends within the header: the wrong file or offset, or nobody has given it its size yet.
    Short,
    /// All of it is new: nobody has written the header yet.
    Absent,
    /// Something else stands there: the wrong file or offset, or a link without slots.
    Magic(u32),
    /// Whoever made it writes words in the other byte order: it is built wrongly.
    ByteOrder,
    /// It is of another layout, of this major version: use what was built for it.
    Version(u16),
    /// No slots, or more than [`Regions::MAX`]: something wrote over it.
    Slots(u32),
    /// The length of a slot is not that of its parts: something wrote over it.
    Length(u64),
}

impl core::fmt::Display for NoRegions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NoRegions::Short => f.write_str("the memory ends before the header of slots does"),
            NoRegions::Absent => f.write_str("nobody has made slots in this memory"),
            NoRegions::Magic(magic) => {
                write!(f, "these are no slots ({magic:#010x} stands there)")
            }
            NoRegions::ByteOrder => f.write_str("the header of slots is in the other byte order"),
            NoRegions::Version(major) => {
                write!(f, "the slots have layout {major}, and this is {MAJOR}")
            }
            NoRegions::Slots(slots) => write!(
                f,
                "the header says {slots} slots, and there are 1 to {}",
                Regions::MAX
            ),
            NoRegions::Length(len) => {
                write!(f, "a slot of {len} bytes is not as long as its parts")
            }
        }
    }
}

impl core::error::Error for NoRegions {}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{MAGIC, NoRegions, Regions, Source, header};
    use crate::domain::{Channel, Config, Pool, Role};

    const LINK: Config = Config::new(&[
        Channel::new(1, "one", Pool::new(4, 100)),
        Channel::new(2, "two", Pool::new(3, 5000)).with_replies(),
    ])
    .mutual();

    fn bytes(words: [u32; 16]) -> std::vec::Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn read(words: [u32; 16]) -> Result<Regions, NoRegions> {
        Regions::read(bytes(words).as_slice())
    }

    #[test]
    fn the_header_is_this_one_byte_for_byte() {
        const SMALL: Config = Config::new(&[Channel::new(1, "control", Pool::new(8, 64))]);
        let regions = Regions::of(&SMALL, 3).unwrap();
        let [first, second] =
            [Role::First, Role::Second].map(|role| SMALL.segment_len(role) as u32);
        let mut expected = b"SinS\0\0\x01\0\x04\x03\x02\x01\x03\0\0\0\0\x20\0\0\0\0\0\0".to_vec();
        for word in [SMALL.hash(), first, second, 0, 0, 0, 0, 0, 0, 0] {
            expected.extend(word.to_le_bytes());
        }
        assert_eq!(bytes(regions.header()), expected);
    }

    #[test]
    fn what_was_written_is_read() {
        for slots in [1, 2, 7, Regions::MAX] {
            let regions = Regions::of(&LINK, slots).unwrap();
            assert_eq!(read(regions.header()), Ok(regions));
        }
    }

    #[test]
    fn slots_lie_behind_each_other_and_in_the_memory() {
        let regions = Regions::of(&LINK, 5).unwrap();
        let mut end = Regions::HEADER;
        for slot in 0..5 {
            let whole = regions.slot(slot).unwrap();
            assert_eq!(whole.offset, end);
            end = whole.end();
            let [first, second] =
                [Role::First, Role::Second].map(|role| regions.segment(slot, role).unwrap());
            assert_eq!(first.offset, whole.offset);
            assert!(first.end() <= second.offset && second.end() <= whole.end());
        }
        assert_eq!(end, regions.len());
        assert_eq!(regions.segment(5, Role::First), None);
    }

    #[test]
    fn numbers_of_slots_that_none_can_have_are_refused() {
        assert_eq!(Regions::of(&LINK, 0), None);
        assert_eq!(Regions::of(&LINK, Regions::MAX + 1), None);
        assert_eq!(Regions::of(&LINK, u32::MAX), None);
    }

    #[test]
    fn each_word_of_a_header_that_is_wrong_is_named() {
        let good = Regions::of(&LINK, 2).unwrap().header();
        let with = |at: usize, value: u32| {
            let mut words = good;
            words[at] = value;
            read(words)
        };
        let len = Regions::of(&LINK, 2).unwrap().region.len;
        assert_eq!(with(header::MAGIC, 0), Err(NoRegions::Absent));
        assert_eq!(with(header::MAGIC, 7), Err(NoRegions::Magic(7)));
        let swapped = MAGIC.swap_bytes();
        assert_eq!(with(header::MAGIC, swapped), Err(NoRegions::ByteOrder));
        assert_eq!(with(header::PROBE, 7), Err(NoRegions::ByteOrder));
        assert_eq!(with(header::VERSION, 9 << 16), Err(NoRegions::Version(9)));
        for slots in [0, Regions::MAX + 1, u32::MAX] {
            assert_eq!(with(header::SLOTS, slots), Err(NoRegions::Slots(slots)));
        }
        let high = Err(NoRegions::Length(len + (1 << 32)));
        assert_eq!(with(header::LENGTH_HIGH, 1), high);
        for part in [header::FIRST, header::SECOND, header::EXCHANGE] {
            assert_eq!(with(part, u32::MAX), Err(NoRegions::Length(len)));
        }
        let short = Regions::read(&bytes(good)[..63]);
        assert_eq!(short, Err(NoRegions::Short));
    }

    /// A header that is being written while it is read.
    struct Written(core::cell::Cell<usize>);

    impl Source for Written {
        fn line(&self, _: u32) -> Option<[u32; 16]> {
            let mut words = Regions::of(&LINK, 2)?.header();
            let looks = self.0.replace(self.0.get() + 1);
            if looks == 0 {
                // The later words were read before, and the first one after, they were written.
                words[1..].fill(0);
            }
            Some(words)
        }
    }

    #[test]
    fn a_header_that_is_just_written_is_read_whole() {
        let found = Regions::read(&Written(Default::default()));
        assert_eq!(found, Ok(Regions::of(&LINK, 2).unwrap()));
    }

    #[test]
    fn any_lengths_that_a_foreign_header_may_claim_give_no_overflow() {
        let mut words = Regions::of(&LINK, Regions::MAX).unwrap().header();
        for part in [header::FIRST, header::SECOND, header::EXCHANGE] {
            words[part] = u32::MAX;
        }
        let Err(NoRegions::Length(_)) = read(words) else {
            panic!("the length does not fit");
        };
        let len = 3u64 << 32;
        words[header::LENGTH] = len as u32;
        words[header::LENGTH_HIGH] = (len >> 32) as u32;
        let regions = read(words).unwrap();
        assert_eq!(
            regions.len(),
            Regions::HEADER + u64::from(Regions::MAX) * len
        );
    }
}

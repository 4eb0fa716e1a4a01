//! What differs between two sides, as both are told.

use core::fmt;

/// What the sides do not agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// The first message is none of this protocol, or says what no sender of it says.
    Hello,
    /// Version of this protocol. Build both sides from releases that have the same.
    Version,
    /// One side is big-endian.
    ByteOrder,
    /// It wants to join where it may only observe, or the other way round.
    Kind,
    /// [`super::Offer::trust`]: 0 none, 1 mutual.
    Trust,
    /// [`super::Offer::doorbell`]: 0 socket, 1 eventfd, 2 futex.
    Doorbell,
    /// Length of the segment of the side that connects, in bytes, as each side expects it.
    JoiningLength,
    /// Length of the segment of the side that accepts, in bytes, as each side expects it.
    ServingLength,
    /// Length of the exchange segment in bytes.
    ExchangeLength,
    /// The configuration in something that is not named here. Give both sides the same.
    Configuration,
    /// How many descriptors are expected, and came.
    Descriptors,
    /// A descriptor that is no memfd.
    NotMemory,
    /// The seals (`F_SEAL_*`) that a memfd needs, and has.
    Seals,
    /// The size of a memfd in bytes: expected, and found.
    SegmentSize,
    /// Every link is taken. Try again when one is free.
    Busy,
    /// One side could not do its part; the number is its `errno`.
    Trouble,
}

/// In the order of their numbers on the wire, from 1.
const FIELDS: [Field; 16] = [
    Field::Hello,
    Field::Version,
    Field::ByteOrder,
    Field::Kind,
    Field::Trust,
    Field::Doorbell,
    Field::JoiningLength,
    Field::ServingLength,
    Field::ExchangeLength,
    Field::Configuration,
    Field::Descriptors,
    Field::NotMemory,
    Field::Seals,
    Field::SegmentSize,
    Field::Busy,
    Field::Trouble,
];

impl Field {
    pub(super) fn number(self) -> u8 {
        let index = FIELDS.iter().position(|field| *field == self);
        index.map_or(0, |index| index as u8 + 1)
    }

    pub(super) fn from_number(number: u8) -> Option<Field> {
        FIELDS.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The first thing that differs, and the value on each side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What differs.
    pub field: Field,
    /// Here; 0 if there is no value to show.
    pub ours: u32,
    /// There; 0 if there is no value to show.
    pub theirs: u32,
}

impl Refusal {
    /// One without values.
    pub const fn of(field: Field) -> Self {
        Refusal {
            field,
            ours: 0,
            theirs: 0,
        }
    }

    /// An error if the two differ.
    pub(super) fn unless_equal(field: Field, ours: u32, theirs: u32) -> Result<(), Refusal> {
        if ours == theirs {
            return Ok(());
        }
        Err(Refusal {
            field,
            ours,
            theirs,
        })
    }

    pub(super) fn seen_from_other_side(self) -> Self {
        Refusal {
            field: self.field,
            ours: self.theirs,
            theirs: self.ours,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal {
            field,
            ours,
            theirs,
        } = *self;
        let name = match field {
            Field::Hello => return f.write_str("not a message of a domain link"),
            Field::ByteOrder => return f.write_str("the sides differ in byte order"),
            Field::NotMemory => return f.write_str("a descriptor is no memfd"),
            Field::Busy => return f.write_str("every link is taken"),
            Field::Trouble => {
                return write!(f, "one side failed: errno {}", ours.max(theirs));
            }
            Field::Configuration => {
                return write!(
                    f,
                    "configuration hash: {ours:#010x} here, {theirs:#010x} there"
                );
            }
            Field::Seals => return write!(f, "seals: {ours:#x} here, {theirs:#x} there"),
            Field::Version => "version",
            Field::Kind => "kind (0 join, 1 observe)",
            Field::Trust => "trust (0 none, 1 mutual)",
            Field::Doorbell => "doorbell (0 socket, 1 eventfd, 2 futex)",
            Field::JoiningLength => "length of the joining side's segment",
            Field::ServingLength => "length of the serving side's segment",
            Field::ExchangeLength => "length of the exchange segment",
            Field::Descriptors => "descriptors",
            Field::SegmentSize => "size of a memfd",
        };
        write!(f, "{name}: {ours} here, {theirs} there")
    }
}

//! The one message of the exchange: 64 bytes.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `sinewdom` |
//! | 8 | 4 | version of this protocol: 1. Up to here, and the size, it is the same for ever |
//! | 12 | 4 | 0x01020304 in the sender's own byte order |
//! | 16 | 1 | kind: 0 join, 1 observe |
//! | 17 | 1 | trust: 0 none, 1 mutual |
//! | 18 | 1 | doorbell: 0 socket, 1 eventfd, 2 futex |
//! | 19 | 1 | 0 |
//! | 20 | 4 | configuration hash |
//! | 24 | 4 | length of the sender's segment |
//! | 28 | 4 | length of the receiver's segment |
//! | 32 | 4 | length of the exchange segment |
//! | 36 | 4 | to an observer: how many links there are |
//! | 40 | 4 | 0, or what is refused |
//! | 44 | 4 | the refusing side's value |
//! | 48 | 4 | the other side's value |
//! | 52 | 12 | 0 |
//!
//! Numbers are little-endian. In a refusal, 12 to 39 are not looked at.

use super::refusal::{Field, Refusal};
use super::{DoorbellKind, Offer, Trust};

pub(super) const SIZE: usize = 64;
const MAGIC: [u8; 8] = *b"sinewdom";
const VERSION: u32 = 1;
const PROBE: u32 = 0x0102_0304;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Join,
    Observe,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub(super) kind: Kind,
    pub(super) offer: Offer,
    pub(super) links: u32,
    pub(super) refusal: Option<Refusal>,
}

/// What an observer offers.
const NOTHING: Offer = Offer {
    config_hash: 0,
    own_len: 0,
    peer_len: 0,
    trust: Trust::None,
    exchange_len: 0,
    doorbell: DoorbellKind::Socket,
};

impl Hello {
    pub(super) fn offer(kind: Kind, offer: Offer) -> Self {
        Hello {
            kind,
            offer,
            links: 0,
            refusal: None,
        }
    }

    pub(super) fn observe(links: u32) -> Self {
        Hello {
            links,
            ..Hello::offer(Kind::Observe, NOTHING)
        }
    }

    pub(super) fn refusal(refusal: Refusal) -> Self {
        Hello {
            refusal: Some(refusal),
            ..Hello::offer(Kind::Join, NOTHING)
        }
    }

    pub(super) fn encode(&self) -> [u8; SIZE] {
        let offer = &self.offer;
        let (refused, ours, theirs) = self.refusal.map_or((0, 0, 0), |refusal| {
            (refusal.field.number(), refusal.ours, refusal.theirs)
        });
        let kinds = [
            u8::from(self.kind == Kind::Observe),
            trust_number(offer.trust),
            doorbell_number(offer.doorbell),
            0,
        ];
        let words = [
            offer.config_hash,
            offer.own_len,
            offer.peer_len,
            offer.exchange_len,
            self.links,
            u32::from(refused),
            ours,
            theirs,
        ];
        let head = MAGIC
            .into_iter()
            .chain(VERSION.to_le_bytes())
            .chain(PROBE.to_ne_bytes())
            .chain(kinds);
        let mut bytes = [0; SIZE];
        let all = head.chain(words.into_iter().flat_map(u32::to_le_bytes));
        for (to, byte) in bytes.iter_mut().zip(all) {
            *to = byte;
        }
        bytes
    }

    /// Refuses what no sender of this version says.
    pub(super) fn decode(bytes: &[u8; SIZE]) -> Result<Hello, Refusal> {
        const GARBAGE: Refusal = Refusal::of(Field::Hello);
        let word = |at: usize| -> [u8; 4] {
            let four = bytes.get(at..).and_then(|rest| rest.first_chunk());
            four.copied().unwrap_or_default()
        };
        let number = |at| u32::from_le_bytes(word(at));
        if !bytes.starts_with(&MAGIC) {
            return Err(GARBAGE);
        }
        Refusal::unless_equal(Field::Version, VERSION, number(8))?;
        let refusal = match number(40) {
            0 => None,
            field => Some(Refusal {
                field: u8::try_from(field)
                    .ok()
                    .and_then(Field::from_number)
                    .ok_or(GARBAGE)?,
                ours: number(44),
                theirs: number(48),
            }),
        };
        if let Some(refusal) = refusal {
            return Ok(Hello::refusal(refusal));
        }
        match u32::from_ne_bytes(word(12)) {
            PROBE => {}
            probe if probe == PROBE.swap_bytes() => return Err(Refusal::of(Field::ByteOrder)),
            _ => return Err(GARBAGE),
        }
        let [kind, trust, doorbell, rest] = word(16);
        let unused = [44, 48, 52, 56, 60].map(number);
        if rest != 0 || unused != [0; 5] {
            return Err(GARBAGE);
        }
        Ok(Hello {
            kind: match kind {
                0 => Kind::Join,
                1 => Kind::Observe,
                _ => return Err(GARBAGE),
            },
            offer: Offer {
                config_hash: number(20),
                own_len: number(24),
                peer_len: number(28),
                trust: match trust {
                    0 => Trust::None,
                    1 => Trust::Mutual,
                    _ => return Err(GARBAGE),
                },
                exchange_len: number(32),
                doorbell: match doorbell {
                    0 => DoorbellKind::Socket,
                    1 => DoorbellKind::EventFd,
                    2 => DoorbellKind::Futex,
                    _ => return Err(GARBAGE),
                },
            },
            links: number(36),
            refusal: None,
        })
    }

    /// Whether the sender of this offers what we do, the lengths the other way round. `joining`: we
    /// are the side that connected. What says most comes first.
    pub(super) fn check(&self, ours: &Offer, joining: bool) -> Result<(), Refusal> {
        use Refusal as R;
        let theirs = &self.offer;
        let observes = u32::from(self.kind == Kind::Observe);
        R::unless_equal(Field::Kind, 0, observes)?;
        let trust = |offer: &Offer| u32::from(trust_number(offer.trust));
        R::unless_equal(Field::Trust, trust(ours), trust(theirs))?;
        let doorbell = |offer: &Offer| u32::from(doorbell_number(offer.doorbell));
        R::unless_equal(Field::Doorbell, doorbell(ours), doorbell(theirs))?;
        let (my_length, peers_length) = match joining {
            true => (Field::JoiningLength, Field::ServingLength),
            false => (Field::ServingLength, Field::JoiningLength),
        };
        R::unless_equal(my_length, ours.own_len, theirs.peer_len)?;
        R::unless_equal(peers_length, ours.peer_len, theirs.own_len)?;
        R::unless_equal(
            Field::ExchangeLength,
            ours.exchange_len,
            theirs.exchange_len,
        )?;
        R::unless_equal(Field::Configuration, ours.config_hash, theirs.config_hash)
    }
}

fn trust_number(trust: Trust) -> u8 {
    match trust {
        Trust::None => 0,
        Trust::Mutual => 1,
    }
}

fn doorbell_number(doorbell: DoorbellKind) -> u8 {
    match doorbell {
        DoorbellKind::Socket => 0,
        DoorbellKind::EventFd => 1,
        DoorbellKind::Futex => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            links: 7,
            ..Hello::offer(
                Kind::Observe,
                Offer {
                    config_hash: 0x1234_5678,
                    own_len: 4096,
                    peer_len: 8192,
                    trust: Trust::Mutual,
                    exchange_len: 100,
                    doorbell: DoorbellKind::Futex,
                },
            )
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for hello in [
            hello(),
            Hello::observe(64),
            Hello::refusal(Refusal {
                field: Field::Trouble,
                ours: 12,
                theirs: 13,
            }),
        ] {
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
    }

    #[test]
    fn bytes_are_as_the_table_says() {
        let bytes = hello().encode();
        assert_eq!(&bytes[..12], b"sinewdom\x01\0\0\0");
        assert_eq!(bytes[12..16], 0x0102_0304u32.to_ne_bytes());
        assert_eq!(
            bytes[16..40],
            [
                1, 1, 2, 0, 0x78, 0x56, 0x34, 0x12, 0, 16, 0, 0, 0, 32, 0, 0, 100, 0, 0, 0, 7, 0,
                0, 0
            ]
        );
        assert_eq!(bytes[40..], [0; 24]);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        for at in 0..SIZE {
            for bit in 0..8 {
                let mut bytes = hello().encode();
                bytes[at] ^= 1 << bit;
                assert_ne!(Hello::decode(&bytes), Ok(hello()), "byte {at}");
            }
        }
    }

    #[test]
    fn version_and_byte_order_are_named() {
        let mut bytes = hello().encode();
        bytes[8] = 2;
        let refusal = Hello::decode(&bytes).unwrap_err();
        assert_eq!(
            (refusal.field, refusal.ours, refusal.theirs),
            (Field::Version, 1, 2)
        );
        let mut bytes = hello().encode();
        bytes[12..16].reverse();
        let refusal = Hello::decode(&bytes).unwrap_err();
        assert_eq!(refusal.field, Field::ByteOrder);
    }

    #[test]
    fn every_field_has_a_number() {
        for number in 1..=16 {
            let field = Field::from_number(number).unwrap();
            assert_eq!(field.number(), number);
        }
        assert_eq!(Field::from_number(0), None);
        assert_eq!(Field::from_number(17), None);
        assert_eq!(Field::Trouble.number(), 16);
    }
}

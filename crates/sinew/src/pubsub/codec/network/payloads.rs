//! Samples that follow each other in a packet, and differ in their payloads only.

use super::super::body::PUT;
use super::super::key::{M, N};
use super::super::{Qos, WireExpr, Z, id_of};
use super::PUSH;

/// Where payloads are in a packet: those of one PUSH behind the other, all on one declared key, of values
/// without options and of less than 128 bytes. A packet with many samples mostly holds nothing else.
///
/// It borrows nothing, so that it can be kept while the packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payloads {
    /// Where the messages begin and end.
    start: usize,
    end: usize,
    /// Bytes of each before its payload; the last one is the payload's length.
    head: usize,
    count: u32,
}

impl Payloads {
    /// Those of the messages from `start` on, with what they have in common; `None` where the message
    /// there is none of these.
    pub(in crate::pubsub) fn read(
        packet: &[u8],
        start: usize,
    ) -> Option<(Payloads, WireExpr<'static>, Qos)> {
        let mut rest = packet.get(start..)?;
        let first: [u8; 8] = *rest.first_chunk()?;
        let (head, qos) = match first {
            [header, _, PUT, ..] if header & (N | Z) == 0 => (4, Qos::DEFAULT),
            [header, _, Qos::EXT, qos @ 0..0x80, PUT, ..] if header & (N | Z) == Z => (6, Qos(qos)),
            _ => return None,
        };
        let [header, scope @ 1..0x80, ..] = first else {
            return None;
        };
        if id_of(header) != PUSH {
            return None;
        }
        // All but the length is compared at once, and that the length has no second byte.
        let shift = 8 * (head - 1);
        let same = u64::from_le_bytes(first) & ((1 << shift) - 1);
        let mask = (0x80 << shift) | ((1 << shift) - 1);
        let mut count = 0;
        while let Some(word) = rest.first_chunk().copied().map(u64::from_le_bytes)
            && word & mask == same
            && let Some(behind) = rest.get(head + usize::from((word >> shift) as u8)..)
        {
            rest = behind;
            count += 1;
        }
        let payloads = Payloads {
            start,
            end: packet.len() - rest.len(),
            head,
            count,
        };
        let key = WireExpr::declared(scope.into(), header & M != 0);
        (count > 0).then_some((payloads, key, qos))
    }

    /// Where the rest of the packet begins.
    pub(in crate::pubsub) fn end(&self) -> usize {
        self.end
    }

    /// How many there are, at least one.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// They, of the packet in which they were found.
    #[inline]
    pub fn of<'p>(&self, packet: &'p [u8]) -> impl Iterator<Item = &'p [u8]> + use<'p> {
        let head = self.head;
        let mut rest = packet.get(self.start..self.end).unwrap_or_default();
        core::iter::from_fn(move || {
            let (before, behind) = rest.split_at_checked(head)?;
            let (payload, behind) = behind.split_at_checked(usize::from(*before.last()?))?;
            rest = behind;
            Some(payload)
        })
    }
}

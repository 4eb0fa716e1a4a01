//! A record as it waits, and how it becomes a `sinew.Record`.
//!
//! It is written once, into its block, and from there into the packet: an image that only writes records has nothing
//! that decodes them, and a handler needs no room for one on its stack.

use sinew::rpc::Encode;
use sinew::wire::Reader;

use super::{TEXT, cut};
use crate::{Record, Severity};

/// Fields of `sinew.Record` whose wire type is a length: `text`, and `deferred`.
pub const SAID: u8 = 4;
pub const DEFERRED: u8 = 5;
/// The most bytes of a module's name.
const MODULE: usize = 24;
/// Before the module's name: times and count as they are, severity, length of the name, and the field.
const HEAD: usize = 8 + 4 + 1 + 1 + 1;
/// The bytes of a block for one record, whatever it says.
pub const RECORD: usize = HEAD + MODULE + TEXT;

/// A record.
#[derive(Debug)]
pub struct Kept<'b> {
    pub severity: Severity,
    pub micros: u64,
    pub module: &'b [u8],
    /// [`SAID`] or [`DEFERRED`].
    pub field: u8,
    pub said: &'b [u8],
    pub dropped: u32,
    pub number: u32,
    pub age: u64,
}

impl<'b> Kept<'b> {
    /// Writes it into a block: as much as there is room for of the module's name, then what `said` writes, which says
    /// how much that is. The length of the whole.
    pub fn keep(&self, block: &mut [u8], said: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let module = cut(self.module, MODULE);
        let mut out = Out::new(block);
        out.bytes(&self.micros.to_le_bytes());
        out.bytes(&self.dropped.to_le_bytes());
        out.bytes(&[self.severity.0 as u8, module.len() as u8, self.field]);
        out.bytes(module);
        let start = out.len;
        let rest = block.get_mut(start..).unwrap_or_default();
        let len = rest.len().min(TEXT);
        start + said(rest.get_mut(..len).unwrap_or_default()).min(len)
    }

    /// Reads it in its block; `None` where none was written there.
    pub fn read(block: &'b [u8]) -> Option<Self> {
        let mut block = Reader::new(block);
        let (low, high) = (block.fixed32()?, block.fixed32()?);
        let dropped = block.fixed32()?;
        let (severity, module, field) = (block.byte()?, block.byte()?, block.byte()?);
        let module = block.take(usize::from(module))?;
        Some(Kept {
            severity: Severity(severity.into()),
            micros: u64::from(high) << 32 | u64::from(low),
            module,
            field,
            said: block.rest(),
            dropped,
            number: 0,
            age: 0,
        })
    }
}

/// As generated code writes a `sinew.Record`.
impl Encode for Kept<'_> {
    const MAX_LEN: usize = <Record as Encode>::MAX_LEN;

    fn encoded_len(&self) -> usize {
        self.encode_to(&mut [])
    }

    fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let len = self.encode_to(out);
        (len <= out.len()).then_some(len)
    }
}

impl Kept<'_> {
    /// How long it is, also where there is less room.
    #[inline(never)] // one copy where flash is short
    fn encode_to(&self, out: &mut [u8]) -> usize {
        let mut out = Out::new(out);
        out.number(1, self.severity.0 as u64);
        out.number(2, self.micros);
        out.text(3, self.module);
        out.text(self.field, self.said);
        out.number(6, self.dropped.into());
        out.number(7, self.number.into());
        out.number(8, self.age);
        out.len
    }
}

/// Bytes one after another; what has no room is counted.
struct Out<'p> {
    place: &'p mut [u8],
    len: usize,
}

impl<'p> Out<'p> {
    fn new(place: &'p mut [u8]) -> Self {
        Out { place, len: 0 }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let rest = self.place.get_mut(self.len..).unwrap_or_default();
        for (place, byte) in rest.iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.len += bytes.len();
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.bytes(&[value as u8 | 0x80]);
            value >>= 7;
        }
        self.bytes(&[value as u8]);
    }

    /// A field that is a number; none where it is 0.
    fn number(&mut self, field: u8, value: u64) {
        if value > 0 {
            self.bytes(&[field << 3]);
            self.varint(value);
        }
    }

    /// A field that has a length. One that is empty is written too: it says which it is.
    fn text(&mut self, field: u8, bytes: &[u8]) {
        self.bytes(&[field << 3 | 2]);
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }
}

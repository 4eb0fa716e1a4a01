//! Extensions: what a later version adds to a message, without a new id.

use super::{CodecError, Reader, Z};

/// One extension as it was read.
pub struct Ext<'p> {
    /// Its identity: the id, whether it is mandatory, and the kind of its value. Two that differ in any
    /// of these are different extensions.
    pub id: u8,
    /// The value, if it is a number; above 32 bits [`u32::MAX`].
    pub number: u32,
    /// The value, if it is bytes.
    pub bytes: &'p [u8],
}

impl Ext<'_> {
    /// In [`Ext::id`]: the value is a number.
    pub const NUMBER: u8 = 0x20;
    /// In [`Ext::id`]: the value is bytes, with their length before them.
    pub const BYTES: u8 = 0x40;
    /// In [`Ext::id`]: who does not know it cannot read the message.
    pub const MANDATORY: u8 = 0x10;

    /// What to do with an extension that is not known here: nothing, unless it must be understood.
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn unknown(&self, r: &mut Reader<'_>) {
        if self.id & Ext::MANDATORY != 0 {
            r.fail(CodecError::Mandatory);
        }
    }
}

/// The extensions behind a header, one after another.
pub struct Extensions {
    last: u8,
}

impl Extensions {
    /// Those of the message with this header. The reader must stand where they begin.
    pub const fn of(header: u8) -> Self {
        Extensions { last: header }
    }

    /// The next one, or `None` behind the last, or where something is wrong.
    #[inline(never)] // one copy for all messages
    pub fn next<'p>(&mut self, r: &mut Reader<'p>) -> Option<Ext<'p>> {
        if self.last & Z == 0 {
            return None;
        }
        self.last = r.one();
        let mut ext = Ext {
            id: self.last & !Z,
            number: 0,
            bytes: &[],
        };
        match ext.id & (Ext::NUMBER | Ext::BYTES) {
            0 => {}
            Ext::NUMBER => ext.number = r.vle_capped(),
            Ext::BYTES => ext.bytes = r.zbytes(),
            _ => r.fail(CodecError::Reserved),
        }
        r.end(ext).ok()
    }

    /// Skips all, where none is known.
    pub fn skip(header: u8, r: &mut Reader<'_>) {
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            ext.unknown(r);
        }
    }
}

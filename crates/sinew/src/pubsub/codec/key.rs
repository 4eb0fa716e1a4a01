//! Key expressions as they are written: a declared beginning, and the rest as text.

use super::{Reader, Writer};

/// A key expression on the wire: what was declared under the number `scope`, and then `suffix`, with
/// nothing in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireExpr<'p> {
    /// The number of the declared beginning; 0 is the empty one.
    pub scope: u16,
    /// Who declared it: the sender of this message, else its receiver. Means nothing with scope 0 (Zenoh's
    /// own nodes then set it).
    pub of_sender: bool,
    /// The rest; at most 65,535 bytes.
    pub suffix: &'p str,
}

/// In the header of a message: the expression has a suffix.
pub(super) const N: u8 = 0x20;
/// In the header of a message: the number was declared by its sender.
pub(super) const M: u8 = 0x40;

impl<'p> WireExpr<'p> {
    /// What was declared under `scope`, by the sender of the message or by its receiver.
    pub const fn declared(scope: u16, of_sender: bool) -> Self {
        WireExpr {
            scope,
            of_sender,
            suffix: "",
        }
    }

    /// The whole of it as text.
    pub const fn text(suffix: &'p str) -> Self {
        WireExpr {
            scope: 0,
            of_sender: true,
            suffix,
        }
    }

    /// The flags N and M.
    #[inline]
    pub(super) const fn flags(&self) -> u8 {
        (if self.suffix.is_empty() { 0 } else { N }) | (if self.of_sender { M } else { 0 })
    }

    /// The fields, with the flags of the header before them.
    #[inline(never)]
    pub(super) fn read(flags: u8, r: &mut Reader<'p>) -> Self {
        let scope = r.vle16();
        let suffix = if flags & N == 0 { "" } else { r.zstr() };
        WireExpr {
            scope,
            of_sender: flags & M != 0,
            suffix,
        }
    }

    #[inline(never)]
    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        w.vle32(u32::from(self.scope));
        if !self.suffix.is_empty() {
            w.zbytes(self.suffix.as_bytes());
        }
        if self.suffix.len() > 0xffff {
            w.refuse();
        }
    }
}

//! DECLARE: what a node has and no longer has.

use super::{
    CodecError, Decode, Ext, Extensions, Qos, Reader, WireExpr, Writer, id_of, key::M, network,
    writer::vle_len,
};

/// What a node has, or no longer has, or that it has said all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declare<'p> {
    /// The interest that it answers; none if the sender says it of its own accord.
    pub interest: Option<u32>,
    /// How it is to be treated.
    pub qos: Qos,
    /// What is said.
    pub declaration: Declaration<'p>,
}

/// What a [`Declare`] says. The numbers are the sender's own, on this link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration<'p> {
    /// From now on `id` stands for this key; not 0. The scope of the key is always one that the sender
    /// declared, and its `of_sender` not written.
    Key {
        /// The number.
        id: u16,
        /// What it stands for.
        key: WireExpr<'p>,
    },
    /// It stands for nothing any more.
    NoKey {
        /// The number.
        id: u16,
    },
    /// There is something with this key.
    Entity {
        /// What.
        kind: EntityKind,
        /// Its number.
        id: u32,
        /// Its key.
        key: WireExpr<'p>,
        /// Of a queryable: bit 0, whether it is complete (it knows all that its key can ask for); from
        /// bit 8 on, 16 bits, how far it is. 0 for others.
        info: u32,
    },
    /// There is no such thing any more.
    NoEntity {
        /// What.
        kind: EntityKind,
        /// Its number.
        id: u32,
        /// Its key, which some nodes say again; the empty one says nothing.
        key: Option<WireExpr<'p>>,
    },
    /// All that the interest asked for has been said.
    Final,
}

/// What can be declared with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntityKind {
    /// Somebody subscribes.
    Subscriber = 0x02,
    /// Somebody answers queries.
    Queryable = 0x04,
    /// Somebody is alive.
    Token = 0x06,
}

impl EntityKind {
    /// In a queryable's `info`: it knows all that its key can ask for.
    pub const COMPLETE: u32 = 1;

    const fn of(id: u8) -> Self {
        match id & 0x06 {
            0x02 => EntityKind::Subscriber,
            0x04 => EntityKind::Queryable,
            _ => EntityKind::Token,
        }
    }
}

/// In the header of DECLARE: the number of an interest follows.
const I: u8 = 0x20;
/// The id of a key's declaration; that of its end is one more.
const KEY: u8 = 0x00;
const NO_KEY: u8 = 0x01;
/// The last of those with a number.
const LAST: u8 = 0x07;
const FINAL: u8 = 0x1a;
const INFO: u8 = 0x1 | Ext::NUMBER;
/// The key of what ends. Its flags are one byte, bits 0 and 1, and its suffix has no length.
const ENDED_KEY: u8 = 0xf | Ext::BYTES | Ext::MANDATORY;

fn ended_key<'p>(bytes: &'p [u8], r: &mut Reader<'p>) -> WireExpr<'p> {
    let mut part = Reader::new(bytes);
    let flags = part.one();
    let scope = part.vle16();
    let suffix = if flags & 1 == 0 { &[] } else { part.rest() };
    let suffix = part.text(suffix);
    r.fail_as(&part);
    WireExpr {
        scope,
        of_sender: flags & 2 != 0,
        suffix,
    }
}

impl<'p> Declare<'p> {
    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let i = if self.interest.is_some() { I } else { 0 };
        let mut head = w.head(network::DECLARE | i);
        if let Some(interest) = self.interest {
            w.vle32(interest);
        }
        self.qos.encode(&mut head, w);
        self.declaration.encode(w);
    }
}

impl<'p> Decode<'p> for Declare<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let interest = if header & I == 0 {
            None
        } else {
            Some(r.vle32())
        };
        let qos = network::qos(header, r);
        let declaration = Declaration::read(r);
        Declare {
            interest,
            qos,
            declaration,
        }
    }
}

impl<'p> Declaration<'p> {
    /// It, with its header.
    fn read(r: &mut Reader<'p>) -> Self {
        let header = r.one();
        let what = id_of(header);
        let (ends, kind) = (what & 1 != 0, EntityKind::of(what));
        let (mut id, mut key, mut info) = (0, None, 0);
        if what <= LAST {
            id = r.vle32();
            if !ends {
                // The scope in a key's declaration is always its sender's.
                let flags = if what == KEY { header | M } else { header };
                key = Some(WireExpr::read(flags, r));
            }
        } else if what != FINAL {
            r.fail(CodecError::Unknown);
        }
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                INFO if what == EntityKind::Queryable as u8 => info = ext.number & 0x00ff_ff01,
                ENDED_KEY if ends && what != NO_KEY => key = Some(ended_key(ext.bytes, r)),
                _ => ext.unknown(r),
            }
        }
        if what <= NO_KEY && id > 0xffff {
            r.fail(CodecError::OutOfRange);
        }
        match (what, key) {
            (KEY, Some(key)) => Declaration::Key { id: id as u16, key },
            (NO_KEY, _) => Declaration::NoKey { id: id as u16 },
            (FINAL, _) => Declaration::Final,
            (_, Some(key)) if !ends => Declaration::Entity {
                kind,
                id,
                key,
                info,
            },
            (_, key) => Declaration::NoEntity { kind, id, key },
        }
    }

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Declaration::Key { id, key } => {
                w.byte(KEY | key.flags() & !M);
                w.vle32(u32::from(*id));
                key.encode(w);
            }
            Declaration::NoKey { id } => {
                w.byte(NO_KEY);
                w.vle32(u32::from(*id));
            }
            Declaration::Entity {
                kind,
                id,
                key,
                info,
            } => {
                let mut head = w.head(*kind as u8 | key.flags());
                w.vle32(*id);
                key.encode(w);
                if *kind == EntityKind::Queryable && *info != 0 {
                    head.number(w, INFO, *info);
                }
            }
            Declaration::NoEntity { kind, id, key } => {
                let mut head = w.head(*kind as u8 | 1);
                w.vle32(*id);
                if let Some(key) = key {
                    let len = 1 + vle_len(u32::from(key.scope)) + key.suffix.len();
                    head.bytes(w, ENDED_KEY, len);
                    w.byte(key.flags() >> 5);
                    w.vle32(u32::from(key.scope));
                    w.bytes(key.suffix.as_bytes());
                }
            }
            Declaration::Final => w.byte(FINAL),
        }
    }
}

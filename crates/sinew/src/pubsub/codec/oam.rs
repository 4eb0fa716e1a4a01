//! OAM: what routers and peers tell each other beside the protocol. We skip it.

use super::{CodecError, Decode, Ext, Extensions, Qos, Reader, Writer, id_of, network, transport};

/// Operation, administration, maintenance: a message of the transport or of the network, which differ in
/// their header. Rust peers gossip with it (id 1 in the network).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oam<'p> {
    /// Whether it is the network's, else the transport's.
    pub network: bool,
    /// What it is about.
    pub id: u16,
    /// How it is to be treated.
    pub qos: Qos,
    /// What it says.
    pub body: OamBody<'p>,
}

/// What an OAM says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OamBody<'p> {
    /// Nothing.
    None,
    /// A number; above 32 bits [`u32::MAX`].
    Number(u32),
    /// Bytes.
    Bytes(&'p [u8]),
}

/// The bits of an extension's kind stand in its header too.
const KIND: u8 = Ext::NUMBER | Ext::BYTES;

impl<'p> Oam<'p> {
    /// Skips what follows `header`, of either OAM: as [`Oam::decode`], with less code.
    #[inline(never)]
    pub fn skip(header: u8, r: &mut Reader<'_>) {
        r.vle16();
        let own = match id_of(header) {
            network::OAM => Qos::EXT,
            _ => transport::QOS,
        };
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            if ext.id != own {
                ext.unknown(r);
            }
        }
        match header & KIND {
            0 => {}
            Ext::NUMBER => drop(r.vle_capped()),
            Ext::BYTES => drop(r.zbytes()),
            _ => r.fail(CodecError::Reserved),
        }
    }

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let (id, ext) = match self.network {
            true => (network::OAM, Qos::EXT),
            false => (transport::OAM, transport::QOS),
        };
        let kind = match self.body {
            OamBody::None => 0,
            OamBody::Number(_) => Ext::NUMBER,
            OamBody::Bytes(_) => Ext::BYTES,
        };
        let mut head = w.head(id | kind);
        w.vle32(u32::from(self.id));
        if self.qos != Qos::DEFAULT {
            head.number(w, ext, u32::from(self.qos.0));
        }
        match self.body {
            OamBody::None => {}
            OamBody::Number(number) => w.vle32(number),
            OamBody::Bytes(bytes) => w.zbytes(bytes),
        }
    }
}

impl<'p> Decode<'p> for Oam<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let network = id_of(header) == network::OAM;
        let id = r.vle16();
        let mut qos = Qos::DEFAULT;
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                Qos::EXT if network => qos = Qos::of(&ext),
                transport::QOS if !network => qos = Qos::of(&ext),
                _ => ext.unknown(r),
            }
        }
        let body = match header & KIND {
            0 => OamBody::None,
            Ext::NUMBER => OamBody::Number(r.vle_capped()),
            Ext::BYTES => OamBody::Bytes(r.zbytes()),
            _ => {
                r.fail(CodecError::Reserved);
                OamBody::None
            }
        };
        Oam {
            network,
            id,
            qos,
            body,
        }
    }
}

//! INTEREST: who wants to hear of declarations.

use super::super::{Decode, Qos, Reader, WireExpr, Writer};
use super::{INTEREST, qos};

/// Asks for declarations: those that are, those to come, or both; neither ends an earlier interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest<'p> {
    /// Its number, which the answers to it carry; of the sender, on this link.
    pub id: u32,
    /// Those that are now; a final declaration ends them.
    pub current: bool,
    /// Those to come.
    pub future: bool,
    /// Of what, and how: [`KEYS`](Interest::KEYS) and the other constants here.
    pub options: u8,
    /// Only those that meet this key.
    pub key: Option<WireExpr<'p>>,
    /// How it is to be treated.
    pub qos: Qos,
}

/// In the header: those that are now.
const CURRENT: u8 = 0x20;
/// In the header: those to come.
const FUTURE: u8 = 0x40;
/// In the options: a key follows. The bits before and behind it are the flags of the key.
const RESTRICTED: u8 = 0x10;

impl<'p> Interest<'p> {
    /// Declarations of keys.
    pub const KEYS: u8 = 0x01;
    /// Declarations of subscribers.
    pub const SUBSCRIBERS: u8 = 0x02;
    /// Declarations of queryables.
    pub const QUERYABLES: u8 = 0x04;
    /// Declarations of tokens.
    pub const TOKENS: u8 = 0x08;
    /// At most one declaration of each kind is wanted, on the interest's own key.
    pub const AGGREGATE: u8 = 0x80;

    const OPTIONS: u8 = 0x8f;

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let current = if self.current { CURRENT } else { 0 };
        let future = if self.future { FUTURE } else { 0 };
        let mut head = w.head(INTEREST | current | future);
        w.vle32(self.id);
        if current | future != 0 {
            let options = self.options & Self::OPTIONS;
            match &self.key {
                Some(key) => {
                    w.byte(options | RESTRICTED | key.flags());
                    key.encode(w);
                }
                None => w.byte(options),
            }
        }
        self.qos.encode(&mut head, w);
    }
}

impl<'p> Decode<'p> for Interest<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let mut interest = Interest {
            id: r.vle32(),
            current: header & CURRENT != 0,
            future: header & FUTURE != 0,
            ..Interest::default()
        };
        if interest.current || interest.future {
            let options = r.one();
            interest.options = options & Self::OPTIONS;
            if options & RESTRICTED != 0 {
                interest.key = Some(WireExpr::read(options, r));
            }
        }
        interest.qos = qos(header, r);
        interest
    }
}

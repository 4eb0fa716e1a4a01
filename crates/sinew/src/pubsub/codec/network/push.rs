//! PUSH: a sample.

use super::super::body::PUT;
use super::super::key::{M, N};
use super::super::{Body, CodecError, Kind, Qos, Reader, WireExpr, Writer, Z};
use super::{PUSH, qos};

/// A sample for all who subscribe to its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Push<'p> {
    /// Its key.
    pub key: WireExpr<'p>,
    /// How it is to be treated.
    pub qos: Qos,
    /// It.
    pub body: Body<'p>,
}

impl<'p> Push<'p> {
    /// A value without options.
    pub const fn put(key: WireExpr<'p>, payload: &'p [u8]) -> Self {
        Push {
            key,
            qos: Qos::DEFAULT,
            body: Body::put(payload),
        }
    }

    /// No value, without options.
    pub const fn del(key: WireExpr<'p>) -> Self {
        Push {
            key,
            qos: Qos::DEFAULT,
            body: Body::del(),
        }
    }

    /// Reads what follows `header`.
    ///
    /// # Errors
    ///
    /// See [`CodecError`].
    #[inline]
    pub fn decode(header: u8, r: &mut Reader<'p>) -> Result<Self, CodecError> {
        // Nearly every sample: a declared key, no options, and a short payload.
        if header & (N | Z) == 0
            && let Some((scope, payload)) = r.short_sample()
        {
            let key = WireExpr::declared(scope.into(), header & M != 0);
            return Ok(Push::put(key, payload));
        }
        Push::decode_long(header, r)
    }

    #[inline(never)]
    fn decode_long(header: u8, r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let push = Push {
            key: WireExpr::read(header, r),
            qos: qos(header, r),
            body: Body::read(r),
        };
        r.end(push)
    }

    /// Writes it whole, with its header.
    #[inline]
    pub fn encode(&self, w: &mut Writer<'_>) {
        self.encode_head(w, self.body.payload.len());
        if self.body.kind == Kind::Put {
            w.bytes(self.body.payload);
        }
    }

    /// Writes all but the payload, of which `len` bytes (at most `u32::MAX`) are to follow a PUT.
    // Nearly every sample has four bytes before its payload: one check, one store.
    #[inline]
    pub fn encode_head(&self, w: &mut Writer<'_>, len: usize) {
        let short = self.key.scope < 0x80 && self.key.suffix.is_empty() && len < 0x80;
        if !(short && self.qos.0 < 0x80 && self.body.is_plain_put()) {
            // A copy, so that the sample of the short path never has to be in memory.
            let sample = *self;
            return sample.encode_long_head(w, len);
        }
        let (header, scope) = (PUSH | self.key.flags(), self.key.scope as u8);
        if self.qos == Qos::DEFAULT {
            w.array([header, scope, PUT, len as u8]);
        } else {
            w.array([header | Z, scope, Qos::EXT, self.qos.0, PUT, len as u8]);
        }
    }

    #[inline(never)]
    fn encode_long_head(&self, w: &mut Writer<'_>, len: usize) {
        let mut head = w.head(PUSH | self.key.flags());
        self.key.encode(w);
        self.qos.encode(&mut head, w);
        self.body.encode_head(w, len);
    }
}

//! PUSH: a sample.

use super::super::body::PUT;
use super::super::key::{M, N};
use super::super::{Body, Decode, Kind, Qos, Reader, WireExpr, Writer, Z};
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

    #[inline(never)]
    fn read_long(header: u8, r: &mut Reader<'p>) -> Self {
        Push {
            key: WireExpr::read(header, r),
            qos: qos(header, r),
            body: Body::read(r),
        }
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
        if self.body.is_plain_put() {
            return Push::put_head(self.key, self.qos, len, w);
        }
        // A copy, so that the sample of the short path never has to be in memory.
        let sample = *self;
        Push::start(sample.key, sample.qos, w);
        sample.body.encode_head(w, len);
    }

    /// Writes all but the payload of a value without options, of which `len` bytes (at most
    /// `u32::MAX`) are to follow. Who writes nothing else does not link the options.
    #[inline]
    pub fn put_head(key: WireExpr<'_>, qos: Qos, len: usize, w: &mut Writer<'_>) {
        let short = key.scope < 0x80 && key.suffix.is_empty() && len < 0x80 && qos.0 < 0x80;
        let (header, scope) = (PUSH | key.flags(), key.scope as u8);
        let written = short
            && match qos {
                Qos::DEFAULT => w.array([header, scope, PUT, len as u8]),
                _ => w.array([header | Z, scope, Qos::EXT, qos.0, PUT, len as u8]),
            };
        if !written {
            Push::long_put_head(key, qos, len, w);
        }
    }

    /// As [`Push::put_head`], field by field.
    #[inline(never)]
    pub(in crate::pubsub) fn long_put_head(
        key: WireExpr<'_>,
        qos: Qos,
        len: usize,
        w: &mut Writer<'_>,
    ) {
        Push::start(key, qos, w);
        w.byte(PUT);
        w.vle_len(len);
    }

    fn start(key: WireExpr<'_>, qos: Qos, w: &mut Writer<'_>) {
        let mut head = w.head(PUSH | key.flags());
        key.encode(w);
        qos.encode(&mut head, w);
    }
}

impl<'p> Decode<'p> for Push<'p> {
    #[inline]
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        // Nearly every sample: a declared key, no options, and a short payload.
        if header & (N | Z) == 0
            && let Some((scope, payload)) = r.short_sample()
        {
            let key = WireExpr::declared(scope.into(), header & M != 0);
            return Push::put(key, payload);
        }
        Push::read_long(header, r)
    }
}

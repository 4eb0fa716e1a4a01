//! A sample: what PUSH and REPLY carry.

use super::{CodecError, Encoding, Ext, Extensions, Reader, SourceInfo, Timestamp, Writer, id_of};

/// The id of PUT.
pub(super) const PUT: u8 = 0x01;
/// The id of DEL.
pub(super) const DEL: u8 = 0x02;
/// In the header of both: a time stamp follows.
const T: u8 = 0x20;
/// In the header of PUT: an encoding follows.
const E: u8 = 0x40;

const PUT_ATTACHMENT: u8 = 0x3 | Ext::BYTES;
const DEL_ATTACHMENT: u8 = 0x2 | Ext::BYTES;

/// Whether a sample gives its key a value, or takes it away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A value.
    #[default]
    Put,
    /// No value any more. Encoding and payload are not written.
    Del,
}

/// A sample, without its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body<'p> {
    /// PUT or DEL.
    pub kind: Kind,
    /// When it was made.
    pub timestamp: Option<Timestamp>,
    /// What the payload is.
    pub encoding: Encoding<'p>,
    /// Whose it is, and which.
    pub source: Option<SourceInfo>,
    /// What the application sends beside the payload.
    pub attachment: Option<&'p [u8]>,
    /// The payload.
    pub payload: &'p [u8],
}

impl<'p> Body<'p> {
    /// A value with no options.
    pub const fn put(payload: &'p [u8]) -> Self {
        let encoding = Encoding { id: 0, schema: &[] };
        Body {
            kind: Kind::Put,
            timestamp: None,
            encoding,
            source: None,
            attachment: None,
            payload,
        }
    }

    /// No value, with no options.
    pub const fn del() -> Self {
        Body {
            kind: Kind::Del,
            ..Body::put(&[])
        }
    }

    /// It, with its header.
    #[inline(never)]
    pub(super) fn read(r: &mut Reader<'p>) -> Self {
        let header = r.one();
        let (kind, attachment) = match id_of(header) {
            PUT => (Kind::Put, PUT_ATTACHMENT),
            DEL => (Kind::Del, DEL_ATTACHMENT),
            _ => {
                r.fail(CodecError::Unknown);
                (Kind::Del, DEL_ATTACHMENT)
            }
        };
        let mut body = Body {
            kind,
            ..Body::put(&[])
        };
        if header & T != 0 {
            body.timestamp = Some(Timestamp::read(r));
        }
        if kind == Kind::Put && header & E != 0 {
            body.encoding = Encoding::read(r);
        }
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                SourceInfo::EXT => body.source = Some(SourceInfo::of(&ext, r)),
                id if id == attachment => body.attachment = Some(ext.bytes),
                _ => ext.unknown(r),
            }
        }
        if kind == Kind::Put {
            body.payload = r.zbytes();
        }
        body
    }

    /// Writes it whole.
    #[inline]
    pub fn encode(&self, w: &mut Writer<'_>) {
        self.encode_head(w, self.payload.len());
        if self.kind == Kind::Put {
            w.bytes(self.payload);
        }
    }

    /// Writes all but the payload, of which `len` bytes (at most `u32::MAX`) are to follow a PUT.
    #[inline]
    pub fn encode_head(&self, w: &mut Writer<'_>, len: usize) {
        if self.is_plain_put() {
            w.byte(PUT);
            w.vle_len(len);
        } else {
            // A copy, so that the sample of the short path never has to be in memory.
            let sample = *self;
            sample.encode_options(w, len);
        }
    }

    /// Whether it is a PUT without options.
    #[inline]
    pub(super) const fn is_plain_put(&self) -> bool {
        matches!(self.kind, Kind::Put)
            && self.encoding.is_default()
            && matches!(
                (self.timestamp, self.source, self.attachment),
                (None, None, None)
            )
    }

    /// As [`Body::encode_head`], without its short way.
    #[inline(never)]
    pub(super) fn encode_options(&self, w: &mut Writer<'_>, len: usize) {
        let put = self.kind == Kind::Put;
        let has_encoding = put && !self.encoding.is_default();
        let mut head = w.head(
            if put { PUT } else { DEL }
                | if self.timestamp.is_some() { T } else { 0 }
                | if has_encoding { E } else { 0 },
        );
        if let Some(timestamp) = &self.timestamp {
            timestamp.encode(w);
        }
        if has_encoding {
            self.encoding.encode(w);
        }
        if let Some(source) = &self.source {
            source.encode(&mut head, w);
        }
        if let Some(attachment) = self.attachment {
            head.bytes(w, if put { 0x3 } else { 0x2 }, attachment.len());
            w.bytes(attachment);
        }
        if put {
            w.vle_len(len);
        }
    }
}

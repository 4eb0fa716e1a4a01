//! What REQUEST and RESPONSE carry: a question, an answer, an error.

use super::{Body, CodecError, Encoding, Ext, Extensions, Reader, SourceInfo, Writer, id_of};

/// The id of QUERY.
const QUERY: u8 = 0x03;
/// The id of REPLY.
const REPLY: u8 = 0x04;
/// The id of ERR.
const ERR: u8 = 0x05;
/// In the header of QUERY and REPLY: the consolidation follows.
const C: u8 = 0x20;
/// In the header of QUERY: parameters follow.
const P: u8 = 0x40;
/// In the header of ERR: an encoding follows.
const E: u8 = 0x40;

const BODY: u8 = 0x3 | Ext::BYTES;
const ATTACHMENT: u8 = 0x5 | Ext::BYTES;

/// Which queryables a request is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Target {
    /// The nearest that is complete, or all.
    #[default]
    BestMatching = 0,
    /// All.
    All = 1,
    /// All that are complete.
    AllComplete = 2,
}

impl Target {
    pub(super) fn of(ext: &Ext<'_>, r: &mut Reader<'_>) -> Self {
        match ext.number {
            0 => Target::BestMatching,
            1 => Target::All,
            2 => Target::AllComplete,
            _ => {
                r.fail(CodecError::Reserved);
                Target::BestMatching
            }
        }
    }
}

/// What happens on the way to several replies with one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Consolidation {
    /// As the nodes on the way think best.
    #[default]
    Auto = 0,
    /// All arrive.
    None = 1,
    /// One that is older than what went before is dropped.
    Monotonic = 2,
    /// Only the newest arrives, at the end.
    Latest = 3,
}

impl Consolidation {
    fn read(header: u8, r: &mut Reader<'_>) -> Self {
        let value = if header & C == 0 { 0 } else { r.vle_capped() };
        match value {
            1 => Consolidation::None,
            2 => Consolidation::Monotonic,
            3 => Consolidation::Latest,
            _ => Consolidation::Auto, // so Zenoh's own nodes read what they do not know
        }
    }

    fn flag(self) -> u8 {
        if self == Consolidation::Auto { 0 } else { C }
    }

    fn encode(self, w: &mut Writer<'_>) {
        if self != Consolidation::Auto {
            w.byte(self as u8);
        }
    }
}

/// A question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query<'p> {
    /// What happens to several replies with one key.
    pub consolidation: Consolidation,
    /// What the application asks for beside the key: `k=1;v=2` by custom.
    pub parameters: &'p str,
    /// Who asks.
    pub source: Option<SourceInfo>,
    /// A payload, and what it is.
    pub body: Option<(Encoding<'p>, &'p [u8])>,
    /// What the application sends beside the payload.
    pub attachment: Option<&'p [u8]>,
}

impl<'p> Query<'p> {
    /// It, with its header.
    pub(super) fn read(r: &mut Reader<'p>) -> Self {
        let header = r.one();
        if id_of(header) != QUERY {
            r.fail(CodecError::Unknown);
        }
        let mut query = Query {
            consolidation: Consolidation::read(header, r),
            ..Query::default()
        };
        if header & P != 0 {
            query.parameters = r.zstr();
        }
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                SourceInfo::EXT => query.source = Some(SourceInfo::of(&ext, r)),
                BODY => {
                    let mut part = Reader::new(ext.bytes);
                    query.body = Some((Encoding::read(&mut part), part.rest()));
                    r.fail_as(&part);
                }
                ATTACHMENT => query.attachment = Some(ext.bytes),
                _ => ext.unknown(r),
            }
        }
        query
    }

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let p = if self.parameters.is_empty() { 0 } else { P };
        let mut head = w.head(QUERY | self.consolidation.flag() | p);
        self.consolidation.encode(w);
        if p != 0 {
            w.zbytes(self.parameters.as_bytes());
        }
        if let Some(source) = &self.source {
            source.encode(&mut head, w);
        }
        if let Some((encoding, payload)) = &self.body {
            head.bytes(w, 0x3, encoding.len().saturating_add(payload.len()));
            encoding.encode(w);
            w.bytes(payload);
        }
        if let Some(attachment) = self.attachment {
            head.bytes(w, 0x5, attachment.len());
            w.bytes(attachment);
        }
    }
}

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'p> {
    /// A sample.
    Sample {
        /// What happened to the others with its key.
        consolidation: Consolidation,
        /// It.
        body: Body<'p>,
    },
    /// Why there is none.
    Error {
        /// What the payload is.
        encoding: Encoding<'p>,
        /// Whose it is.
        source: Option<SourceInfo>,
        /// In the application's words.
        payload: &'p [u8],
    },
}

impl<'p> Reply<'p> {
    /// It, with its header.
    pub(super) fn read(r: &mut Reader<'p>) -> Self {
        let header = r.one();
        match id_of(header) {
            REPLY => {
                let consolidation = Consolidation::read(header, r);
                Extensions::skip(header, r);
                Reply::Sample {
                    consolidation,
                    body: Body::read(r),
                }
            }
            ERR => Reply::error(header, r),
            _ => {
                r.fail(CodecError::Unknown);
                Reply::error(0, r)
            }
        }
    }

    fn error(header: u8, r: &mut Reader<'p>) -> Self {
        let encoding = match header & E {
            0 => Encoding::default(),
            _ => Encoding::read(r),
        };
        let mut source = None;
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                SourceInfo::EXT => source = Some(SourceInfo::of(&ext, r)),
                _ => ext.unknown(r),
            }
        }
        Reply::Error {
            encoding,
            source,
            payload: r.zbytes(),
        }
    }

    /// Writes it whole.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let payload = match self {
            Reply::Sample { body, .. } => body.payload,
            Reply::Error { payload, .. } => payload,
        };
        self.encode_head(w, payload.len());
        if !matches!(self, Reply::Sample { body, .. } if body.kind == super::Kind::Del) {
            w.bytes(payload);
        }
    }

    /// Writes all but the payload, of which `len` bytes are to follow unless it is a DEL.
    pub fn encode_head(&self, w: &mut Writer<'_>, len: usize) {
        match self {
            Reply::Sample {
                consolidation,
                body,
            } => {
                w.byte(REPLY | consolidation.flag());
                consolidation.encode(w);
                body.encode_options(w, len);
            }
            Reply::Error {
                encoding, source, ..
            } => {
                let e = if encoding.is_default() { 0 } else { E };
                let mut head = w.head(ERR | e);
                if e != 0 {
                    encoding.encode(w);
                }
                if let Some(source) = source {
                    source.encode(&mut head, w);
                }
                w.vle_len(len);
            }
        }
    }
}

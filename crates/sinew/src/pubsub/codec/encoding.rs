//! What a payload is: a number that stands for a media type, and a schema.

use super::writer::vle_len;
use super::{CodecError, Reader, Writer};

/// What a payload is. Zenoh carries it, and never looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding<'p> {
    /// One of the numbers named here, or one of the application's own.
    pub id: u16,
    /// More about it, in the application's own words (for [`TEXT_PLAIN`](Encoding::TEXT_PLAIN) often the
    /// character set); at most 255 bytes.
    pub schema: &'p [u8],
}

/// Makes the constants and the list of names, in the order of their numbers.
macro_rules! encodings {
    ($($name:ident = $id:literal, $text:literal;)*) => {
        impl Encoding<'static> {
            $(#[doc = concat!("`", $text, "`")]
            pub const $name: Encoding<'static> = Encoding { id: $id, schema: &[] };)*

            /// The names; the number is the place in the list.
            pub const NAMES: &'static [&'static str] = &[$($text),*];
        }
    };
}

encodings! {
    ZENOH_BYTES = 0, "zenoh/bytes";
    ZENOH_STRING = 1, "zenoh/string";
    ZENOH_SERIALIZED = 2, "zenoh/serialized";
    APPLICATION_OCTET_STREAM = 3, "application/octet-stream";
    TEXT_PLAIN = 4, "text/plain";
    APPLICATION_JSON = 5, "application/json";
    TEXT_JSON = 6, "text/json";
    APPLICATION_CDR = 7, "application/cdr";
    APPLICATION_CBOR = 8, "application/cbor";
    APPLICATION_YAML = 9, "application/yaml";
    TEXT_YAML = 10, "text/yaml";
    TEXT_JSON5 = 11, "text/json5";
    APPLICATION_PYTHON_SERIALIZED_OBJECT = 12, "application/python-serialized-object";
    APPLICATION_PROTOBUF = 13, "application/protobuf";
    APPLICATION_JAVA_SERIALIZED_OBJECT = 14, "application/java-serialized-object";
    APPLICATION_OPENMETRICS_TEXT = 15, "application/openmetrics-text";
    IMAGE_PNG = 16, "image/png";
    IMAGE_JPEG = 17, "image/jpeg";
    IMAGE_GIF = 18, "image/gif";
    IMAGE_BMP = 19, "image/bmp";
    IMAGE_WEBP = 20, "image/webp";
    APPLICATION_XML = 21, "application/xml";
    APPLICATION_X_WWW_FORM_URLENCODED = 22, "application/x-www-form-urlencoded";
    TEXT_HTML = 23, "text/html";
    TEXT_XML = 24, "text/xml";
    TEXT_CSS = 25, "text/css";
    TEXT_JAVASCRIPT = 26, "text/javascript";
    TEXT_MARKDOWN = 27, "text/markdown";
    TEXT_CSV = 28, "text/csv";
    APPLICATION_SQL = 29, "application/sql";
    APPLICATION_COAP_PAYLOAD = 30, "application/coap-payload";
    APPLICATION_JSON_PATCH_JSON = 31, "application/json-patch+json";
    APPLICATION_JSON_SEQ = 32, "application/json-seq";
    APPLICATION_JSONPATH = 33, "application/jsonpath";
    APPLICATION_JWT = 34, "application/jwt";
    APPLICATION_MP4 = 35, "application/mp4";
    APPLICATION_SOAP_XML = 36, "application/soap+xml";
    APPLICATION_YANG = 37, "application/yang";
    AUDIO_AAC = 38, "audio/aac";
    AUDIO_FLAC = 39, "audio/flac";
    AUDIO_MP4 = 40, "audio/mp4";
    AUDIO_OGG = 41, "audio/ogg";
    AUDIO_VORBIS = 42, "audio/vorbis";
    VIDEO_H261 = 43, "video/h261";
    VIDEO_H263 = 44, "video/h263";
    VIDEO_H264 = 45, "video/h264";
    VIDEO_H265 = 46, "video/h265";
    VIDEO_H266 = 47, "video/h266";
    VIDEO_MP4 = 48, "video/mp4";
    VIDEO_OGG = 49, "video/ogg";
    VIDEO_RAW = 50, "video/raw";
    VIDEO_VP8 = 51, "video/vp8";
    VIDEO_VP9 = 52, "video/vp9";
}

impl<'p> Encoding<'p> {
    /// The name of its number: `text/plain`. `None` if it is not one of Zenoh's.
    pub fn name(&self) -> Option<&'static str> {
        Encoding::NAMES.get(usize::from(self.id)).copied()
    }

    /// The encoding that is written so: a name, or a name and a schema behind `;`. As with Zenoh's own
    /// nodes, what begins with no name of the list is all schema, of `zenoh/bytes`.
    pub fn parse(text: &'p str) -> Encoding<'p> {
        let (name, schema) = text.split_once(';').unwrap_or((text, ""));
        match (0..)
            .zip(Encoding::NAMES)
            .find(|(_, known)| **known == name)
        {
            Some((id, _)) => Encoding {
                id,
                schema: schema.as_bytes(),
            },
            None => Encoding {
                id: 0,
                schema: text.as_bytes(),
            },
        }
    }

    /// The same with this schema, of which at most 255 bytes can be written.
    #[must_use]
    pub const fn with_schema(self, schema: &[u8]) -> Encoding<'_> {
        Encoding {
            id: self.id,
            schema,
        }
    }

    /// Whether it is the one that a message without one has.
    #[inline]
    pub const fn is_default(&self) -> bool {
        self.id == 0 && self.schema.is_empty()
    }

    pub(super) fn read(r: &mut Reader<'p>) -> Self {
        let word = r.vle32();
        let schema = if word & 1 == 0 { &[] } else { r.zbytes() };
        if word >> 17 != 0 || schema.len() > 255 {
            r.fail(CodecError::OutOfRange);
        }
        Encoding {
            id: (word >> 1) as u16,
            schema,
        }
    }

    pub(super) fn encode(&self, w: &mut Writer<'_>) {
        if self.schema.len() > 255 {
            return w.refuse();
        }
        w.vle32(self.word());
        if !self.schema.is_empty() {
            w.zbytes(self.schema);
        }
    }

    /// How many bytes it takes.
    pub(super) fn len(&self) -> usize {
        let schema = match self.schema.len() {
            0 => 0,
            len @ 1..0x80 => len + 1,
            len => len + 2,
        };
        vle_len(self.word()) + schema
    }

    fn word(&self) -> u32 {
        u32::from(self.id) << 1 | u32::from(!self.schema.is_empty())
    }
}

/// As Zenoh's tools print it: `text/plain;utf8`.
impl core::fmt::Display for Encoding<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "unknown({})", self.id)?,
        }
        if self.schema.is_empty() {
            return Ok(());
        }
        write!(
            f,
            ";{}",
            core::str::from_utf8(self.schema).unwrap_or("(not UTF-8)")
        )
    }
}

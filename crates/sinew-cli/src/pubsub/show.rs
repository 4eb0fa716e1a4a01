//! Samples as text for people, and as JSON for programs.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use sinew::pubsub::codec::{Kind, Priority, Timestamp};
use sinew::pubsub::session::Question;
use sinew_io::pubsub::OwnedSample;

use crate::output::{has_colour, hex, plain};

/// Bytes that are no text are shown up to this many.
const MOST: usize = 64;

/// A question, with memory of its own.
pub struct Asked {
    pub key: String,
    parameters: String,
    /// Its encoding and payload.
    body: Option<(String, Vec<u8>)>,
    attachment: Option<Vec<u8>>,
}

impl From<&Question<'_>> for Asked {
    fn from(question: &Question<'_>) -> Asked {
        let query = &question.query;
        Asked {
            key: question.key.into(),
            parameters: query.parameters.into(),
            body: query
                .body
                .map(|(encoding, payload)| (encoding.to_string(), payload.to_vec())),
            attachment: query.attachment.map(<[u8]>::to_vec),
        }
    }
}

impl Asked {
    /// As `sinew get` takes it.
    pub fn selector(&self) -> String {
        let question = match self.parameters.as_str() {
            "" => String::new(),
            parameters => format!("?{parameters}"),
        };
        plain(&format!("{}{question}", self.key))
    }

    /// `key?parameters: payload` on one line, as far as the payload has one.
    pub fn text(&self, verbose: bool) -> String {
        let mut out = coloured(&self.selector());
        if let Some((_, payload)) = &self.body {
            let _ = write!(out, ": {}", words(payload));
        }
        let mut details = Vec::new();
        if let Some((encoding, payload)) = &self.body {
            details.push(format!("{} bytes", payload.len()));
            details.push(plain(encoding));
        }
        if let Some(attachment) = &self.attachment {
            details.push(format!("attachment {}", words(attachment)));
        }
        if verbose && !details.is_empty() {
            let _ = write!(out, "\n  {}", details.join(", "));
        }
        out
    }

    /// One object.
    pub fn json(&self) -> String {
        let mut out = Map::new();
        out.insert("key".into(), json!(self.key));
        out.insert("parameters".into(), json!(self.parameters));
        if let Some((encoding, payload)) = &self.body {
            insert(&mut out, "payload", payload);
            out.insert("encoding".into(), json!(encoding));
        }
        if let Some(attachment) = &self.attachment {
            insert(&mut out, "attachment", attachment);
        }
        Value::Object(out).to_string()
    }
}

fn coloured(key: &str) -> String {
    match has_colour() {
        true => format!("\x1b[36m{key}\x1b[0m"),
        false => key.into(),
    }
}

/// `key: payload` on one line, as far as the payload has one; with `verbose` all that came along.
pub fn text(sample: &OwnedSample, verbose: bool) -> String {
    let mut out = coloured(&plain(&sample.key)) + ": ";
    match sample.kind {
        Kind::Put => out += &words(&sample.payload),
        Kind::Del => out += "(deleted)",
    }
    if verbose {
        let _ = write!(out, "\n  {}", details(sample).join(", "));
    }
    out
}

fn details(sample: &OwnedSample) -> Vec<String> {
    let mut all = Vec::new();
    if sample.kind == Kind::Put {
        all.push(format!("{} bytes", sample.payload.len()));
        all.push(plain(&sample.encoding));
    }
    if let Some(stamp) = &sample.timestamp {
        all.push(format!("{} by {}", time(stamp), stamp.id));
    }
    if let Some(attachment) = &sample.attachment {
        all.push(format!("attachment {}", words(attachment)));
    }
    if let Some(source) = &sample.source {
        let (zid, entity, sn) = (source.zid, source.entity, source.sn);
        all.push(format!("number {sn} of {zid}/{entity}"));
    }
    all.push(priority(sample.qos.priority()).into());
    all.push(
        if sample.reliable {
            "reliable"
        } else {
            "best effort"
        }
        .into(),
    );
    if sample.qos.is_express() {
        all.push("express".into());
    }
    all
}

/// One object.
pub fn json(sample: &OwnedSample) -> String {
    let mut out = Map::new();
    out.insert("key".into(), json!(sample.key));
    let kind = match sample.kind {
        Kind::Put => "put",
        Kind::Del => "delete",
    };
    out.insert("kind".into(), json!(kind));
    if sample.kind == Kind::Put {
        insert(&mut out, "payload", &sample.payload);
        out.insert("encoding".into(), json!(sample.encoding));
    }
    if let Some(stamp) = &sample.timestamp {
        let stamp = json!({"time": time(stamp), "id": stamp.id.to_string()});
        out.insert("timestamp".into(), stamp);
    }
    if let Some(attachment) = &sample.attachment {
        insert(&mut out, "attachment", attachment);
    }
    if let Some(source) = &sample.source {
        let (zid, entity, sn) = (source.zid.to_string(), source.entity, source.sn);
        let source = json!({"id": zid, "entity": entity, "number": sn});
        out.insert("source".into(), source);
    }
    out.insert("priority".into(), json!(priority(sample.qos.priority())));
    out.insert("reliable".into(), json!(sample.reliable));
    out.insert("express".into(), json!(sample.qos.is_express()));
    Value::Object(out).to_string()
}

/// An answer that is none.
pub fn json_error(encoding: &str, payload: &[u8]) -> String {
    let mut out = Map::new();
    insert(&mut out, "error", payload);
    out.insert("encoding".into(), json!(encoding));
    Value::Object(out).to_string()
}

/// Bytes under `name` where they are text, else in hexadecimal under `name_hex`.
fn insert(out: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.insert(name.into(), json!(text)),
        Err(_) => out.insert(format!("{name}_hex"), json!(hex(bytes))),
    };
}

/// Text as it is where a terminal can show it, else hexadecimal.
pub fn words(bytes: &[u8]) -> String {
    let is_shown = |it: char| !it.is_control() || matches!(it, '\n' | '\t');
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(is_shown) => text.into(),
        _ if bytes.len() <= MOST => format!("0x{}", hex(bytes)),
        _ => {
            let start = bytes.get(..MOST).unwrap_or_default();
            format!("0x{}… ({} bytes)", hex(start), bytes.len())
        }
    }
}

fn time(stamp: &Timestamp) -> String {
    let nanos = ((stamp.time & 0xffff_ffff) * 1_000_000_000) >> 32;
    let since = Duration::new(stamp.time >> 32, nanos as u32);
    humantime::format_rfc3339_nanos(SystemTime::UNIX_EPOCH + since).to_string()
}

fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Control => "control",
        Priority::RealTime => "real-time",
        Priority::InteractiveHigh => "interactive-high",
        Priority::InteractiveLow => "interactive-low",
        Priority::DataHigh => "data-high",
        Priority::Data => "data",
        Priority::DataLow => "data-low",
        Priority::Background => "background",
    }
}

#[cfg(test)]
mod tests {
    use sinew::pubsub::codec::{Qos, Zid};

    use super::*;

    fn sample(payload: &[u8]) -> OwnedSample {
        OwnedSample {
            key: "demo/a\x1b[1m".into(),
            kind: Kind::Put,
            payload: payload.into(),
            encoding: "text/plain".into(),
            attachment: Some(vec![0, 255]),
            timestamp: Some(Timestamp {
                time: 86_400 << 32 | 1 << 31,
                id: Zid::new(&[0xab]).unwrap(),
            }),
            source: None,
            qos: Qos::DEFAULT,
            reliable: true,
        }
    }

    #[test]
    fn text_stays_text_and_other_bytes_are_hexadecimal() {
        assert_eq!(words("für\talle\n".as_bytes()), "für\talle\n");
        assert_eq!(words(b"\x1b[2J"), "0x1b5b324a");
        assert_eq!(words(&[0xff]), "0xff");
        assert!(words(&[0; 100]).ends_with("00… (100 bytes)"));
    }

    #[test]
    fn a_sample_has_all_that_came_along() {
        assert_eq!(
            text(&sample(b"on"), true),
            "demo/a\\u{1b}[1m: on\n  2 bytes, text/plain, 1970-01-02T00:00:00.500000000Z by ab, \
             attachment 0x00ff, data, reliable"
        );
        assert_eq!(
            json(&sample(&[0xc0])),
            "{\"attachment_hex\":\"00ff\",\"encoding\":\"text/plain\",\"express\":false,\
             \"key\":\"demo/a\\u001b[1m\",\"kind\":\"put\",\"payload_hex\":\"c0\",\
             \"priority\":\"data\",\"reliable\":true,\
             \"timestamp\":{\"id\":\"ab\",\"time\":\"1970-01-02T00:00:00.500000000Z\"}}"
        );
    }
}

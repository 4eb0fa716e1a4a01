//! What came against what was recorded, by meaning: messages field by field, by the schemas in the file.

use std::collections::HashSet;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions, Value};
use serde_json::Value as Json;

use crate::output::hex;

/// Fields that are left out, as `package.Message.field`.
pub type Ignored = HashSet<String>;

/// The first difference of two messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The field, as in `readings[3].value`; empty where it is the message as a whole.
    pub path: String,
    /// As JSON; `None` where there is nothing.
    pub recorded: Option<String>,
    pub came: Option<String>,
}

/// The first difference; `None` where both say the same.
pub fn messages(
    recorded: &[u8],
    came: &[u8],
    message: Option<&MessageDescriptor>,
    ignored: &Ignored,
) -> Option<Difference> {
    if recorded == came {
        return None;
    }
    let decode = |bytes: &[u8]| {
        let mut decoded = DynamicMessage::decode(message?.clone(), bytes).ok()?;
        strip(&mut decoded, ignored);
        let unknown = unknown(&decoded);
        Some((json(&decoded)?, unknown))
    };
    let (Some(recorded_as), Some(came_as)) = (decode(recorded), decode(came)) else {
        return Some(Difference {
            path: String::new(),
            recorded: Some(shown(recorded)),
            came: Some(shown(came)),
        });
    };
    let mut path = String::new();
    if let Some((recorded, came)) = first(&recorded_as.0, &came_as.0, &mut path) {
        let text = |value: Option<&Json>| value.map(Json::to_string);
        return Some(Difference {
            path,
            recorded: text(recorded),
            came: text(came),
        });
    }
    (recorded_as.1 != came_as.1).then(|| Difference {
        path: "(fields that the schema does not have)".into(),
        recorded: Some(shown(&recorded_as.1)),
        came: Some(shown(&came_as.1)),
    })
}

/// A message for people to read, on one line.
pub fn text(bytes: &[u8], message: Option<&MessageDescriptor>) -> String {
    let decoded = message.and_then(|message| DynamicMessage::decode(message.clone(), bytes).ok());
    match decoded.as_ref().and_then(json) {
        Some(json) => json.to_string(),
        None => shown(bytes),
    }
}

fn json(message: &DynamicMessage) -> Option<Json> {
    let options = SerializeOptions::new()
        .skip_default_fields(false)
        .use_proto_field_name(true);
    message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .ok()
}

/// In hexadecimal, as much as a line takes.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 32;
    match bytes.get(..MOST).filter(|_| bytes.len() > MOST) {
        Some(start) => format!("0x{}... ({} bytes)", hex(start), bytes.len()),
        None => format!("0x{}", hex(bytes)),
    }
}

/// The fields that its type does not have, and those of what is in it.
fn unknown(message: &DynamicMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in message.unknown_fields() {
        field.encode(&mut bytes);
    }
    for (_, value) in message.fields() {
        each(value, &mut |message| bytes.extend(unknown(message)));
    }
    bytes
}

/// Each message in a value.
fn each(value: &Value, see: &mut dyn FnMut(&DynamicMessage)) {
    match value {
        Value::Message(message) => see(message),
        Value::List(list) => list.iter().for_each(|value| each(value, see)),
        Value::Map(map) => {
            // In the order of their keys: a map has none.
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by(|a, b| a.0.cmp(b.0));
            pairs.into_iter().for_each(|(_, value)| each(value, see));
        }
        _ => {}
    }
}

fn strip(message: &mut DynamicMessage, ignored: &Ignored) {
    if ignored.is_empty() {
        return;
    }
    let fields: Vec<_> = message.fields().map(|(field, _)| field).collect();
    for field in fields {
        match ignored.contains(field.full_name()) {
            true => message.clear_field(&field),
            false => strip_value(message.get_field_mut(&field), ignored),
        }
    }
}

fn strip_value(value: &mut Value, ignored: &Ignored) {
    match value {
        Value::Message(message) => strip(message, ignored),
        Value::List(list) => list
            .iter_mut()
            .for_each(|value| strip_value(value, ignored)),
        Value::Map(map) => map
            .values_mut()
            .for_each(|value| strip_value(value, ignored)),
        _ => {}
    }
}

/// The first place where the two differ, which is appended to the path.
fn first<'j>(
    recorded: &'j Json,
    came: &'j Json,
    path: &mut String,
) -> Option<(Option<&'j Json>, Option<&'j Json>)> {
    let length = path.len();
    match (recorded, came) {
        (Json::Object(recorded), Json::Object(came)) => {
            let keys = recorded.keys();
            let others = came.keys().filter(|key| !recorded.contains_key(*key));
            for key in keys.chain(others) {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(key);
                if let Some(found) = both(recorded.get(key), came.get(key), path) {
                    return Some(found);
                }
                path.truncate(length);
            }
            None
        }
        (Json::Array(recorded), Json::Array(came)) => {
            for at in 0..recorded.len().max(came.len()) {
                path.push_str(&format!("[{at}]"));
                if let Some(found) = both(recorded.get(at), came.get(at), path) {
                    return Some(found);
                }
                path.truncate(length);
            }
            None
        }
        (recorded, came) => (recorded != came).then_some((Some(recorded), Some(came))),
    }
}

fn both<'j>(
    recorded: Option<&'j Json>,
    came: Option<&'j Json>,
    path: &mut String,
) -> Option<(Option<&'j Json>, Option<&'j Json>)> {
    match (recorded, came) {
        (Some(recorded), Some(came)) => first(recorded, came, path),
        (recorded, came) => Some((recorded, came)),
    }
}

/// Whether a pool has a field of this full name.
pub fn has_field(pool: &DescriptorPool, name: &str) -> bool {
    let Some((message, field)) = name.rsplit_once('.') else {
        return false;
    };
    let message = pool.get_message_by_name(message);
    message.is_some_and(|message| message.get_field_by_name(field).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTO: &str = r#"
        syntax = "proto3";
        package t;
        message Point { int32 x = 1; int32 y = 2; }
        message Path { repeated Point points = 1; string name = 2; map<string, Point> named = 3; double f = 4; }
        message Small { string name = 2; }
    "#;

    fn pool() -> DescriptorPool {
        let file = protox::file::File::from_source("t.proto", PROTO).unwrap();
        let mut set = prost_reflect::prost_types::FileDescriptorSet::default();
        set.file.push(file.file_descriptor_proto().clone());
        DescriptorPool::from_file_descriptor_set(set).unwrap()
    }

    fn bytes(json: &str) -> Vec<u8> {
        let message = pool().get_message_by_name("t.Path").unwrap();
        crate::json::to_bytes(json, "a message", &message).unwrap()
    }

    fn compare(recorded: &str, came: &str, ignored: &[&str]) -> Option<Difference> {
        let message = pool().get_message_by_name("t.Path").unwrap();
        let ignored = ignored.iter().map(|&name| name.to_owned()).collect();
        messages(&bytes(recorded), &bytes(came), Some(&message), &ignored)
    }

    fn differs(path: &str, recorded: Option<&str>, came: Option<&str>) -> Option<Difference> {
        Some(Difference {
            path: path.into(),
            recorded: recorded.map(str::to_owned),
            came: came.map(str::to_owned),
        })
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        let recorded = r#"{"points": [{"x": 1}, {"x": 2, "y": 3}], "name": "a"}"#;
        let came = r#"{"points": [{"x": 1}, {"x": 2, "y": 4}], "name": "b"}"#;
        let found = compare(recorded, came, &[]);
        assert_eq!(found, differs("name", Some("\"a\""), Some("\"b\"")));
        let found = compare(recorded, came, &["t.Path.name"]);
        assert_eq!(found, differs("points[1].y", Some("3"), Some("4")));
    }

    #[test]
    fn a_field_that_is_ignored_is_so_wherever_its_message_is() {
        let recorded = r#"{"points": [{"x": 1, "y": 2}], "named": {"a": {"y": 3}}}"#;
        let came = r#"{"points": [{"x": 1, "y": 9}], "named": {"a": {"y": 8}}}"#;
        assert!(compare(recorded, came, &[]).is_some());
        assert_eq!(compare(recorded, came, &["t.Point.y"]), None);
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_zero() {
        let found = compare(r#"{"points": [{}]}"#, r#"{}"#, &[]);
        assert_eq!(found, differs("points[0]", Some(r#"{"x":0,"y":0}"#), None));
    }

    #[test]
    fn the_same_message_in_other_bytes_is_the_same() {
        let message = pool().get_message_by_name("t.Point").unwrap();
        let ignored = Ignored::new();
        // The fields in the other order.
        let same = messages(&[8, 1, 16, 2], &[16, 2, 8, 1], Some(&message), &ignored);
        assert_eq!(same, None);
        let bytes = messages(&[8, 1, 16, 2], &[16, 2, 8, 1], None, &ignored);
        assert_eq!(bytes, differs("", Some("0x08011002"), Some("0x10020801")));
    }

    #[test]
    fn fields_that_the_schema_does_not_have_are_compared_as_well() {
        let message = pool().get_message_by_name("t.Small").unwrap();
        let found = messages(&[8, 1], &[8, 2], Some(&message), &Ignored::new());
        assert_eq!(
            found.unwrap().path,
            "(fields that the schema does not have)"
        );
    }

    #[test]
    fn bytes_that_are_no_message_are_shown() {
        let message = pool().get_message_by_name("t.Path").unwrap();
        let found = messages(&[0xff], &[8], Some(&message), &Ignored::new());
        assert_eq!(found, differs("", Some("0xff"), Some("0x08")));
    }
}

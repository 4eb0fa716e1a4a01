//! Messages from and to JSON, by the canonical mapping of proto3.

use std::sync::Arc;

use miette::{NamedSource, SourceSpan};
use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::{Number, Value};

use crate::failure::Failure;
use crate::schema::nearest;

/// Encodes a message that the user wrote; `origin` says where, for errors.
pub fn to_bytes(text: &str, origin: &str, message: &MessageDescriptor) -> Result<Vec<u8>, Failure> {
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = DynamicMessage::deserialize(message.clone(), &mut json)
        .and_then(|message| json.end().map(|()| message));
    parsed
        .or_else(|error| match error.to_string().starts_with(NO_NUMBER) {
            true => with_plain_numbers(text, message),
            false => Err(error),
        })
        .map(|message| message.encode_to_vec())
        .map_err(|error| explain(text, origin, message, &error))
}

/// What is said of a number with a fraction or an exponent where a crate of this program has serde_json keep
/// the digits of such numbers (`arbitrary_precision`, of defmt-decoder): it is then given as a map.
const NO_NUMBER: &str = "invalid type: map";

/// The same with numbers as they are everywhere else. Where something is wrong, its place is not known.
fn with_plain_numbers(
    text: &str,
    message: &MessageDescriptor,
) -> Result<DynamicMessage, serde_json::Error> {
    let mut value = serde_json::from_str(text)?;
    make_plain(&mut value);
    DynamicMessage::deserialize(message.clone(), value)
}

fn make_plain(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_u64() && !number.is_i64() => {
            if let Some(plain) = number.as_f64().and_then(Number::from_f64) {
                *number = plain;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_plain),
        Value::Object(values) => values.values_mut().for_each(make_plain),
        _ => {}
    }
}

fn explain(
    text: &str,
    origin: &str,
    message: &MessageDescriptor,
    error: &serde_json::Error,
) -> Failure {
    let problem = error.to_string();
    let problem = match problem.rfind(" at line ") {
        Some(end) => problem[..end].to_string(),
        None => problem,
    };
    let fields: Vec<String> = message
        .fields()
        .map(|f| f.json_name().to_string())
        .collect();
    let unknown = problem
        .split('\'')
        .nth(1)
        .filter(|_| problem.contains("unrecognized field"));
    let near = unknown.and_then(|name| nearest(name, fields.iter().map(String::as_str)));
    let shape = message
        .fields()
        .map(|f| format!("\"{}\": {:?}", f.json_name(), f.kind()))
        .collect::<Vec<_>>()
        .join(", ");
    let help = match near {
        Some(near) => format!("did you mean \"{near}\"? {} is {{{shape}}}", message.name()),
        None => format!("correct it: {} is {{{shape}}}", message.name()),
    };
    Failure::Json {
        problem: format!("{origin} is no {}: {problem}", message.full_name()),
        at: span(text, error, unknown),
        text: Arc::new(NamedSource::new(origin, text.to_string())),
        help,
    }
}

/// Where the problem is: the name of the unknown field, or where the parser stopped.
fn span(text: &str, error: &serde_json::Error, unknown: Option<&str>) -> SourceSpan {
    let quoted = unknown.map(|name| format!("\"{name}\""));
    if let Some(quoted) = quoted
        && let Some(start) = text.find(&quoted)
    {
        return (start, quoted.len()).into();
    }
    let before: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let at = (before + error.column().saturating_sub(1)).min(text.len());
    (at, usize::from(at < text.len())).into()
}

/// Decodes a message that the server sent.
pub fn from_bytes(
    bytes: &[u8],
    message: &MessageDescriptor,
    pretty: bool,
) -> Result<String, Failure> {
    let undecodable = |cause: String| Failure::Undecodable {
        message: message.full_name().to_string(),
        cause,
    };
    let decoded = DynamicMessage::decode(message.clone(), bytes)
        .map_err(|error| undecodable(error.to_string()))?;
    let mut out = Vec::new();
    // Default values are shown: who looks at an answer wants to see the zero.
    let options = SerializeOptions::new().skip_default_fields(false);
    let written = if pretty {
        decoded.serialize_with_options(&mut serde_json::Serializer::pretty(&mut out), &options)
    } else {
        decoded.serialize_with_options(&mut serde_json::Serializer::new(&mut out), &options)
    };
    written.map_err(|error| undecodable(error.to_string()))?;
    String::from_utf8(out).map_err(|error| undecodable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn num() -> MessageDescriptor {
        let pool = crate::schema::load(&[], &[]).unwrap();
        pool.get_message_by_name("demo.Num").unwrap()
    }

    #[test]
    fn a_message_becomes_the_bytes_of_its_fields() {
        assert_eq!(
            to_bytes("{\"n\": 21}", "the request", &num()).unwrap(),
            [0x08, 21]
        );
    }

    #[test]
    fn numbers_with_fractions_and_exponents_are_taken() {
        let text =
            "syntax = \"proto3\"; message M { double d = 1; repeated float f = 2; int32 n = 3; }";
        let folder = std::env::temp_dir().join(format!("sinew-json-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("m.proto");
        std::fs::write(&path, text).unwrap();
        let pool = crate::schema::load(&[path], &[]).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let message = pool.get_message_by_name("M").unwrap();
        let bytes = to_bytes(
            "{\"d\": 1.50, \"f\": [2.5e-1, -1E2], \"n\": 3e0}",
            "it",
            &message,
        );
        let shown = from_bytes(&bytes.unwrap(), &message, false).unwrap();
        assert_eq!(shown, "{\"d\":1.5,\"f\":[0.25,-100.0],\"n\":3}");
        assert!(to_bytes("{\"d\": {}}", "it", &message).is_err());
        assert!(to_bytes("{\"n\": 0.5}", "it", &message).is_err());
    }

    #[test]
    fn default_values_are_shown() {
        assert_eq!(from_bytes(&[], &num(), false).unwrap(), "{\"n\":0}");
    }

    #[test]
    fn an_unknown_field_is_pointed_at() {
        let Failure::Json { at, help, .. } =
            to_bytes("{\"n\": 1, \"m\": 2}", "the request", &num()).unwrap_err()
        else {
            panic!("not a JSON failure");
        };
        assert_eq!((at.offset(), at.len()), (9, 3));
        assert!(help.contains("\"n\": uint32"), "{help}");
    }

    #[test]
    fn a_value_out_of_range_is_pointed_at() {
        let text = "{\n  \"n\": -1\n}";
        let Failure::Json { at, .. } = to_bytes(text, "the request", &num()).unwrap_err() else {
            panic!("not a JSON failure");
        };
        assert_eq!(&text[at.offset()..at.offset() + at.len()], "1");
    }

    #[test]
    fn bytes_of_another_type_are_undecodable() {
        assert!(matches!(
            from_bytes(&[0x0a, 0xff], &num(), false),
            Err(Failure::Undecodable { .. })
        ));
    }
}

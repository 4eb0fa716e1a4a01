//! Generated messages speak protobuf: prost-reflect is the oracle.

use std::path::Path;

use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use sinew::rpc::{Decode, Encode};

use sinew_generated::features as generated;
use sinew_generated::rootless as generated_rootless;
use sinew_generated::versions as generated_versions;

use generated::tests::features::{
    Choice, Choice_, Color, Imports, Lists, Maps, Optional, Optional_, Scalars,
};
use generated_versions::tests::versions::{New, Old};

fn pool(proto: &str) -> DescriptorPool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [
        here.join("protos"),
        here.join("../../crates/sinew-gen/proto"),
    ];
    let mut compiler = protox::Compiler::new(folders).expect("folders");
    compiler.include_imports(true);
    compiler.open_file(proto).expect("a good .proto");
    compiler.descriptor_pool()
}

/// A small generator of numbers (xorshift): the same messages in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // Often a small number, often an extreme one.
        match self.0 % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << 31,
            3 => self.0 % 200,
            _ => self.0,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.roll();
        (self.0 >> 11) % n
    }

    fn text(&mut self) -> String {
        let len = self.below(6);
        (0..len)
            .map(|i| char::from(b'a' + (i as u8) + self.below(9) as u8))
            .collect()
    }

    fn scalar(&mut self, kind: &Kind) -> Value {
        let number = self.roll();
        match kind {
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(number as i32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(number as i64),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(number as u32),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(number),
            Kind::Bool => Value::Bool(number & 1 == 1),
            Kind::Float => Value::F32(number as i64 as f32 / 3.0),
            Kind::Double => Value::F64(number as i64 as f64 / -3.0),
            Kind::String => Value::String(self.text()),
            Kind::Bytes => Value::Bytes(self.text().into_bytes().into()),
            Kind::Enum(_) => Value::EnumNumber(number as i32),
            Kind::Message(message) => Value::Message(self.message(message)),
        }
    }

    fn field(&mut self, field: &FieldDescriptor) -> Value {
        let most = if field.name() == "own" { 3 } else { 4 };
        match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
                let entries = (0..self.below(most)).map(|_| {
                    let key = match self.scalar(&key.kind()) {
                        Value::Bool(v) => MapKey::Bool(v),
                        Value::I32(v) => MapKey::I32(v),
                        Value::U32(v) => MapKey::U32(v),
                        Value::String(v) => MapKey::String(v),
                        other => panic!("no key of these protos: {other:?}"),
                    };
                    (key, self.scalar(&value.kind()))
                });
                Value::Map(entries.collect())
            }
            kind if field.is_list() => {
                Value::List((0..self.below(most)).map(|_| self.scalar(&kind)).collect())
            }
            kind => self.scalar(&kind),
        }
    }

    fn message(&mut self, descriptor: &MessageDescriptor) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        for field in descriptor.fields() {
            if self.below(4) > 0 {
                message.set_field(&field, self.field(&field));
            }
        }
        message
    }
}

fn encode<T: Encode>(message: &T) -> Vec<u8> {
    let mut place = vec![0; message.encoded_len()];
    assert_eq!(message.encode(&mut place), Some(place.len()));
    assert!(
        place.len() <= T::MAX_LEN,
        "{} > {}",
        place.len(),
        T::MAX_LEN
    );
    if let Some(short) = place.len().checked_sub(1) {
        assert_eq!(message.encode(&mut place.clone()[..short]), None);
    }
    place
}

/// Sorted text of what the oracle reads; a value that is the default is as good as none.
fn read(descriptor: &MessageDescriptor, bytes: &[u8]) -> Option<String> {
    let message = DynamicMessage::decode(descriptor.clone(), bytes).ok()?;
    Some(text(&Value::Message(message)))
}

fn text(value: &Value) -> String {
    match value {
        Value::Message(message) => {
            let fields = message.fields().filter(|(field, value)| {
                field.supports_presence() || !value.is_default_for_field(field)
            });
            let mut fields: Vec<String> = fields
                .map(|(field, value)| format!("{}: {}", field.name(), text(value)))
                .collect();
            fields.sort();
            format!("{{{}}}", fields.join(", "))
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{key:?}: {}", text(value)));
            let mut entries: Vec<String> = entries.collect();
            entries.sort();
            format!("<{}>", entries.join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn round_trips<T: Encode + Decode>(name: &str) {
    let descriptor = pool("features.proto")
        .get_message_by_name(&format!("tests.features.{name}"))
        .expect("a message of the file");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut read_damaged = 0;
    for _ in 0..500 {
        let theirs = dice.message(&descriptor).encode_to_vec();
        let ours = T::decode(&theirs).expect("a message within its bounds");
        assert_eq!(
            read(&descriptor, &encode(&ours)),
            read(&descriptor, &theirs)
        );

        // Two messages behind each other are one: the later field counts, messages merge.
        let both = [theirs.clone(), dice.message(&descriptor).encode_to_vec()].concat();
        if let Some(ours) = T::decode(&both) {
            assert_eq!(read(&descriptor, &encode(&ours)), read(&descriptor, &both));
        }

        // A damaged message is refused, or read as the oracle reads it.
        let mut damaged = theirs;
        let at = dice.below(1 + damaged.len() as u64) as usize;
        if let Some(byte) = damaged.get_mut(at) {
            *byte = dice.roll() as u8;
        }
        if let Some(ours) = T::decode(&damaged) {
            // A varint that is too long is cut here, as by protobuf's C++, and refused there.
            if let Err(error) = DynamicMessage::decode(descriptor.clone(), damaged.as_slice()) {
                let reason = error.to_string();
                let is_long = reason.contains("varint") || reason.contains("key value");
                assert!(is_long, "{reason}: {damaged:02x?}");
                continue;
            }
            read_damaged += 1;
            assert_eq!(
                read(&descriptor, &encode(&ours)),
                read(&descriptor, &damaged),
                "{damaged:02x?}"
            );
        }
    }
    assert!(
        read_damaged > 20,
        "the damage must not always be found: {read_damaged}"
    );
}

#[test]
fn scalars_round_trip() {
    round_trips::<Scalars>("Scalars");
}

#[test]
fn optionals_round_trip() {
    round_trips::<Optional>("Optional");
}

#[test]
fn lists_round_trip() {
    round_trips::<Lists>("Lists");
}

#[test]
fn maps_round_trip() {
    round_trips::<Maps>("Maps");
}

#[test]
fn oneofs_round_trip() {
    round_trips::<Choice>("Choice");
}

#[test]
fn imported_types_round_trip() {
    round_trips::<Imports>("Imports");
}

#[test]
fn an_explicit_default_replaces_an_earlier_value() {
    let scalars = Scalars::decode(b"\x08\x05\x72\x01a\x7a\x01b\x08\x00\x72\x00\x7a\x00");
    assert_eq!(scalars, Some(Scalars::default()));
}

#[test]
fn a_map_entry_without_its_value_has_the_default() {
    let maps = Maps::decode(b"\x0a\x03\x0a\x01a").expect("a map");
    assert_eq!(
        maps.counts.iter().next().map(|(k, v)| (k.as_str(), *v)),
        Some(("a", 0))
    );
}

#[test]
fn negative_zero_is_sent() {
    let scalars = Scalars {
        l: -0.0,
        m: -0.0,
        ..Scalars::default()
    };
    let back = Scalars::decode(&encode(&scalars)).expect("scalars");
    assert!(back.l.is_sign_negative() && back.m.is_sign_negative());
}

#[test]
fn a_wrong_wire_type_in_a_oneof_or_a_map_is_refused() {
    // Each would be a good message if only the tag's field number were looked at.
    assert_eq!(Choice::decode(b"\x0a\x02\x08\x01"), None); // number, as bytes
    assert_eq!(Choice::decode(b"\x10\x01a"), None); // text, as a varint
    assert_eq!(Maps::decode(b"\x0a\x05\x08\x01a\x10\x01"), None); // a key, as a varint
}

#[test]
fn what_exceeds_a_bound_is_refused() {
    assert!(Choice::decode(b"\x12\x05abcde").is_some());
    assert_eq!(Choice::decode(b"\x12\x06abcdef"), None);
    assert!(Lists::decode(b"\x42\x02\x01\x02").is_some());
    assert_eq!(Lists::decode(b"\x42\x03\x01\x02\x03"), None);
}

#[test]
fn types_are_what_a_person_would_write() {
    let optional = Optional {
        a: Some(-1),
        d: Some(Color::Yellow),
        e: Some(Optional_::Inner {
            v: 2,
            deep: Optional_::Inner_::Deep::Some,
        }),
        ..Optional::default()
    };
    let copy = Optional::decode(&encode(&optional));
    assert_eq!(copy, Some(optional));
    let choice = Choice {
        choice: Some(Choice_::Choice::Number(3)),
        after: 0,
    };
    assert_eq!(encode(&choice), b"\x08\x03");
}

#[test]
fn an_old_reader_skips_what_is_new() {
    let mut new = New {
        value: 7,
        scale: Some(0.5),
        ..New::default()
    };
    new.label.push_str("label").expect("room");
    new.samples.extend([1, 2, 3]);
    new.inner = Some(Old {
        value: 1,
        removed: 2,
    });
    assert_eq!(
        Old::decode(&encode(&new)),
        Some(Old {
            value: 7,
            removed: 0
        })
    );
}

#[test]
fn a_new_reader_has_defaults_for_what_is_absent() {
    let old = Old {
        value: -7,
        removed: 9,
    };
    assert_eq!(
        New::decode(&encode(&old)),
        Some(New {
            value: -7,
            ..New::default()
        })
    );
}

#[test]
fn the_descriptor_set_describes_the_service() {
    let pool = DescriptorPool::decode(generated::SCHEMA.set).expect("a descriptor set");
    let service = pool
        .get_service_by_name("tests.features.Store")
        .expect("the service");
    assert_eq!(service.methods().len(), 8);
    // Nothing of an imported file but what is in use.
    assert!(pool.get_message_by_name("tests.shared.Point").is_some());
    assert!(pool.get_message_by_name("tests.shared.Unused").is_none());
    assert!(
        pool.get_file_by_name("google/protobuf/descriptor.proto")
            .is_none()
    );
}

#[test]
fn a_service_without_a_package_has_its_bare_name() {
    use generated_rootless::{Mode, Reading, sensor};
    use sinew::rpc::Method;

    assert_eq!(sensor::method::Read::NAME, "Sensor/Read");
    assert_eq!(sensor::SERVICE_ID, sinew::rpc::id("Sensor"));
    assert_eq!(Mode::On, Mode(1));
    assert_eq!(Reading::decode(b""), Some(Reading::default()));
}

//! What a recording is made of, for who writes one and who reads it: `docs/src/recordings.md`.
//!
//! The types are those of `proto/sinew/recording.proto` and of Foxglove's log, which are in the file as well.

use std::collections::HashSet;

use prost::Message;
use prost_reflect::prost_types::FileDescriptorSet;
use prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor};
use sinew::rpc::{MethodId, MethodKind, id};

use crate::failure::Failure;

/// The topic of [`CallEvent`]s.
pub const CALLS: &str = "sinew/calls";
/// The topic of [`Log`]s.
pub const LOG: &str = "log";
/// What messages and schemas are encoded by.
pub const PROTOBUF: &str = "protobuf";
/// Messages whose schema is not known.
pub const BYTES: &str = "application/octet-stream";
/// The name of the metadata of the whole file, and the version in it.
pub const METADATA: &str = "sinew";
pub const VERSION: (&str, &str) = ("format", "1");
/// The keys of a channel's metadata.
pub const ENDPOINT: &str = "endpoint";
pub const METHOD: &str = "method";
pub const KIND: &str = "kind";
pub const SIDE: &str = "direction";

/// The two directions of a method's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Side {
    Request,
    Response,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Side::Request => "request",
            Side::Response => "response",
        }
    }

    pub fn from_name(name: &str) -> Option<Side> {
        [Side::Request, Side::Response]
            .into_iter()
            .find(|side| side.name() == name)
    }
}

/// `sinew.CallEvent.Step`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum Step {
    Unspecified = 0,
    Opened = 1,
    Completed = 2,
    GivenUp = 3,
    Answered = 4,
    Refused = 5,
}

/// `sinew.CallEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CallEvent {
    #[prost(uint32, tag = "1")]
    pub call: u32,
    #[prost(enumeration = "Step", tag = "2")]
    pub step: i32,
    #[prost(string, tag = "3")]
    pub method: String,
    /// A `sinew.CallEvent.Status`, or any other number that a peer has sent.
    #[prost(int32, tag = "4")]
    pub status: i32,
    #[prost(uint32, tag = "5")]
    pub link: u32,
}

/// What of a `sinew.Record` Foxglove shows.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DeviceRecord {
    #[prost(int32, tag = "1")]
    pub severity: i32,
    #[prost(string, tag = "3")]
    pub module: String,
    #[prost(string, tag = "4")]
    pub text: String,
    /// In place of the text: a frame of `defmt`.
    #[prost(bytes = "vec", tag = "5")]
    pub deferred: Vec<u8>,
    /// Microseconds for which it has waited to be sent.
    #[prost(uint64, tag = "8")]
    pub age: u64,
}

/// `foxglove.Log`, as far as it is used.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Log {
    #[prost(message, optional, tag = "1")]
    pub timestamp: Option<Timestamp>,
    #[prost(int32, tag = "2")]
    pub level: i32,
    #[prost(string, tag = "3")]
    pub message: String,
    #[prost(string, tag = "4")]
    pub name: String,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Log {
    /// A record of a device, which has its text, that came at this time, in nanoseconds since 1970.
    pub fn of(record: DeviceRecord, time: u64) -> Log {
        let time = time.saturating_sub(record.age.saturating_mul(1000));
        let level = match record.severity {
            1 | 2 => 1, // TRACE, DEBUG: DEBUG
            3 => 2,     // INFO
            4 => 3,     // WARN
            5 => 4,     // ERROR
            _ => 0,
        };
        Log {
            timestamp: Some(Timestamp {
                seconds: i64::try_from(time / 1_000_000_000).unwrap_or(i64::MAX),
                nanos: (time % 1_000_000_000) as i32,
            }),
            level,
            message: record.text,
            name: record.module,
        }
    }
}

/// The messages above, for the schemas in the file.
pub fn own() -> Result<DescriptorPool, Failure> {
    let mut files = protox::file::ChainFileResolver::new();
    files.add(Own);
    files.add(protox::file::GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(files);
    compiler.open_files([RECORDING, LOG_FILE, DEVICE_LOG])?;
    Ok(compiler.descriptor_pool())
}

struct Own;

const RECORDING: &str = "sinew/recording.proto";
/// Known also of a device that does not tell of it.
const DEVICE_LOG: &str = "sinew/log.proto";
const LOG_FILE: &str = "foxglove/Log.proto";

impl protox::file::FileResolver for Own {
    fn open_file(&self, name: &str) -> Result<protox::file::File, protox::Error> {
        let text = match name {
            RECORDING => include_str!("../../../../proto/sinew/recording.proto"),
            LOG_FILE => include_str!("log.proto"),
            DEVICE_LOG => include_str!("../../../../proto/sinew/log.proto"),
            _ => return Err(protox::Error::file_not_found(name)),
        };
        protox::file::File::from_source(name, text)
    }
}

/// The file of a message and all that it needs, each behind those that it imports: a schema of MCAP.
pub fn schema_of(message: &MessageDescriptor) -> Vec<u8> {
    let mut set = FileDescriptorSet::default();
    add(message.parent_file(), &mut set, &mut HashSet::new());
    set.encode_to_vec()
}

fn add(file: FileDescriptor, set: &mut FileDescriptorSet, known: &mut HashSet<String>) {
    if !known.insert(file.name().to_owned()) {
        return;
    }
    for needed in file.dependencies() {
        add(needed, set, known);
    }
    set.file.push(file.file_descriptor_proto().clone());
}

/// The name of a kind, as it stands in the file.
pub fn kind_name(kind: MethodKind) -> &'static str {
    match kind {
        MethodKind::Unary => "unary",
        MethodKind::ServerStream => "server_stream",
        MethodKind::ClientStream => "client_stream",
        MethodKind::Bidi => "bidi",
    }
}

/// The kind of this name.
pub fn kind_from_name(name: &str) -> Option<MethodKind> {
    use MethodKind::{Bidi, ClientStream, ServerStream, Unary};
    [Unary, ServerStream, ClientStream, Bidi]
        .into_iter()
        .find(|&kind| kind_name(kind) == name)
}

/// The name of a method that nobody has named.
pub fn name_of_ids(service: u32, method: u32) -> String {
    format!("{service:#010x}/{method:#010x}")
}

/// The ids of a method by its name; `None` where it is no name of a method.
pub fn ids_of_name(name: &str) -> Option<(u32, u32)> {
    let (service, method) = name.split_once('/')?;
    let ids = match (service.strip_prefix("0x"), method.strip_prefix("0x")) {
        (Some(service), Some(method)) => (
            u32::from_str_radix(service, 16).ok()?,
            u32::from_str_radix(method, 16).ok()?,
        ),
        _ => (id(service), id(method)),
    };
    (ids.0 != 0 && ids.1 != 0).then_some(ids)
}

/// The stream by which a device tells its log.
pub const RECORDS: MethodId = MethodId {
    service: id("sinew.Log"),
    method: id("Records"),
    kind: MethodKind::ServerStream,
};

#[cfg(test)]
mod tests {
    use prost_reflect::DynamicMessage;

    use super::*;

    fn reread(name: &str, bytes: &[u8]) -> String {
        let pool = own().unwrap();
        let message = pool.get_message_by_name(name).unwrap();
        let message = DynamicMessage::decode(message, bytes).unwrap();
        assert_eq!(message.unknown_fields().count(), 0, "{message}");
        message.to_string()
    }

    #[test]
    fn events_are_what_their_proto_file_says() {
        let event = CallEvent {
            call: 7,
            step: Step::GivenUp.into(),
            method: "demo.Kinds/Sum".into(),
            status: 4,
            link: 2,
        };
        assert_eq!(
            reread("sinew.CallEvent", &event.encode_to_vec()),
            "call:7,step:GIVEN_UP,method:\"demo.Kinds/Sum\",status:DEADLINE_EXCEEDED,link:2"
        );
    }

    #[test]
    fn a_record_of_a_device_is_a_line_of_foxgloves_log() {
        let record = DeviceRecord {
            severity: 4,
            module: "motor".into(),
            text: "81 degrees".into(),
            age: 250_000,
            ..DeviceRecord::default()
        };
        let log = Log::of(record, 1_750_000_007);
        assert_eq!(
            reread("foxglove.Log", &log.encode_to_vec()),
            "timestamp{seconds:1,nanos:500000007},level:WARNING,message:\"81 degrees\",name:\"motor\""
        );
    }

    #[test]
    fn methods_are_found_by_their_names_or_their_ids() {
        let ids = (id("demo.Kinds"), id("Double"));
        assert_eq!(ids_of_name("demo.Kinds/Double"), Some(ids));
        assert_eq!(ids_of_name(&name_of_ids(ids.0, ids.1)), Some(ids));
        for wrong in ["", "/", "demo.Kinds", "0x/0x", "0x0/0x1", "0xfffffffff/0x1"] {
            assert_eq!(ids_of_name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_schema_holds_what_its_message_needs_before_it() {
        let pool = own().unwrap();
        let message = pool.get_message_by_name("foxglove.Log").unwrap();
        let set = FileDescriptorSet::decode(&*schema_of(&message)).unwrap();
        let names: Vec<_> = set.file.iter().map(|file| file.name()).collect();
        assert_eq!(names, ["google/protobuf/timestamp.proto", LOG_FILE]);
    }
}

//! The calls in a file, each with what both sides did, in order.
//!
//! The file may be anybody's: what is in it is checked, and takes no more memory than some times its size.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use mcap::McapError;
use mcap::records::{Channel, Record};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use prost::Message as _;
use prost_reflect::MessageDescriptor;
use sinew::rpc::{MethodKind, Status};

use crate::failure::Failure;
use crate::output::plain;
use crate::record::format::{self, CallEvent, Side, Step};
use crate::reflect::pool;

/// The largest chunk, and the largest message.
const LARGEST: usize = 64 << 20;
/// How much of the file is asked for at once: what a length in it claims is believed when it is there.
const PIECE: usize = 1 << 20;

/// What one side did in a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The request, or an item of the client's stream.
    Request(Vec<u8>),
    Completed,
    GivenUp(Status),
    /// An item of the server's stream, or the response.
    Response(Vec<u8>),
    Answered(Status),
    Refused(Status),
}

/// A step of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Nanoseconds since 1970.
    pub time: u64,
    pub what: What,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    pub number: u32,
    pub link: u32,
    /// `package.Service/Method`, or the two ids.
    pub method: String,
    pub ids: (u32, u32),
    pub time: u64,
    pub entries: Vec<Entry>,
    /// Where in the file it begins and where it has ended, for what was before what.
    pub opened: u64,
    pub ended: Option<u64>,
}

/// What is known of a method.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub kind: Option<MethodKind>,
    pub request: Option<MessageDescriptor>,
    pub response: Option<MessageDescriptor>,
}

/// What the file has.
#[derive(Debug, Default)]
pub struct Recorded {
    /// In the order in which they were opened.
    pub calls: Vec<Call>,
    pub methods: HashMap<String, Known>,
    /// The file has no end: its recorder was.
    pub is_cut: bool,
    /// Messages of calls whose beginning is not in the file.
    pub strays: u64,
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Recorded, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::usage(
            format!("cannot read {}: {error}", path.display()),
            "give the path of a file that `sinew record` has written",
        )
    };
    let mut file = File::open(path).map_err(cannot)?;
    let mut io = None;
    let read = read_from(|place| {
        file.read(place).unwrap_or_else(|error| {
            io = Some(error);
            0
        })
    });
    if let Some(error) = io {
        return Err(cannot(error));
    }
    read.map_err(|wrong| wrong.at(path))
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum Wrong {
    /// It does not begin as an MCAP file does.
    Other,
    /// It is an MCAP file, and nothing of `sinew record` is in it.
    NotOurs,
    /// It is of a later version of the format.
    Later(String),
    Compressed(String),
    Damaged(String),
}

impl Wrong {
    fn at(self, path: &Path) -> Failure {
        let path = path.display();
        let (what, help) = match self {
            Wrong::Other => (
                format!("{path} is no MCAP file"),
                "give a file that `sinew record` has written",
            ),
            Wrong::NotOurs => (
                format!("{path} is an MCAP file without calls: `sinew record` has not written it"),
                "record calls by `sinew record --at`",
            ),
            Wrong::Later(version) => (
                format!("{path} is of format {version}, which a later sinew has written"),
                "replay it with that sinew",
            ),
            Wrong::Compressed(how) => (
                format!("the chunks of {path} are compressed by {how}"),
                "decompress it first, as with `mcap decompress`",
            ),
            Wrong::Damaged(why) => (
                format!("{path} is damaged: {why}"),
                "take the file from where it was recorded again; `mcap recover` saves what is good of it",
            ),
        };
        Failure::usage(plain(&what), help)
    }
}

/// Reads what `more` puts into its argument; it gives 0 at the end.
pub fn read_from(mut more: impl FnMut(&mut [u8]) -> usize) -> Result<Recorded, Wrong> {
    let options = LinearReaderOptions::default()
        .with_prevalidate_chunk_crcs(true)
        .with_record_length_limit(LARGEST);
    let mut reader = LinearReader::new_with_options(options);
    let mut file = Reading::default();
    while let Some(event) = reader.next_event() {
        match event {
            Ok(LinearReadEvent::ReadRequest(need)) => {
                let read = more(reader.insert(need.min(PIECE)));
                reader.notify_read(read);
            }
            Ok(LinearReadEvent::Record { opcode, data }) => {
                let record = mcap::parse_record(opcode, data)
                    .map_err(|error| Wrong::Damaged(error.to_string()))?;
                file.record(record)?;
            }
            Err(McapError::BadMagic) if !file.has_begun => return Err(Wrong::Other),
            Err(McapError::UnexpectedEof) if file.has_begun => {
                file.recorded.is_cut = true;
                break;
            }
            Err(McapError::UnexpectedEof) => return Err(Wrong::Other),
            Err(McapError::UnsupportedCompression(how)) => return Err(Wrong::Compressed(how)),
            Err(error) => return Err(Wrong::Damaged(error.to_string())),
        }
    }
    match file.is_ours {
        true => Ok(file.recorded),
        false => Err(Wrong::NotOurs),
    }
}

/// What a channel is for.
enum Purpose {
    Events,
    Messages(Side),
}

#[derive(Default)]
struct Reading {
    recorded: Recorded,
    has_begun: bool,
    is_ours: bool,
    schemas: HashMap<u16, Option<MessageDescriptor>>,
    channels: HashMap<u16, Purpose>,
    /// Where a call is, by its number.
    at: HashMap<u32, usize>,
    /// Counts events and messages.
    order: u64,
}

impl Reading {
    fn record(&mut self, record: Record<'_>) -> Result<(), Wrong> {
        self.has_begun = true;
        match record {
            Record::Metadata(metadata) if metadata.name == format::METADATA => {
                let (key, ours) = format::VERSION;
                match metadata.metadata.get(key) {
                    Some(version) if version == ours => self.is_ours = true,
                    Some(version) => return Err(Wrong::Later(version.clone())),
                    None => {}
                }
            }
            Record::Schema { header, data } => {
                let known = self.schemas.entry(header.id);
                known.or_insert_with(|| match &*header.encoding {
                    format::PROTOBUF => pool::of(&data)
                        .ok()
                        .and_then(|pool| pool.get_message_by_name(&header.name)),
                    _ => None,
                });
            }
            Record::Channel(channel) => self.channel(&channel),
            Record::Message { header, data } => {
                self.order += 1;
                match self.channels.get(&header.channel_id) {
                    Some(Purpose::Events) => {
                        let event = CallEvent::decode(&*data).map_err(|_| {
                            Wrong::Damaged("an event of a call cannot be read".into())
                        })?;
                        self.event(event, header.log_time)?;
                    }
                    Some(Purpose::Messages(side)) => {
                        let what = match side {
                            Side::Request => What::Request(data.into_owned()),
                            Side::Response => What::Response(data.into_owned()),
                        };
                        self.step(header.sequence, header.log_time, what);
                    }
                    None => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn channel(&mut self, channel: &Channel) {
        if channel.topic == format::CALLS {
            self.channels.insert(channel.id, Purpose::Events);
            return;
        }
        let of = |key| channel.metadata.get(key);
        let side = of(format::SIDE).and_then(|name| Side::from_name(name));
        let (Some(method), Some(side)) = (of(format::METHOD), side) else {
            return;
        };
        self.channels.insert(channel.id, Purpose::Messages(side));
        let schema = self.schemas.get(&channel.schema_id).cloned().flatten();
        let known = self.recorded.methods.entry(method.clone()).or_default();
        let kind = of(format::KIND).and_then(|name| format::kind_from_name(name));
        known.kind = known.kind.or(kind);
        match side {
            Side::Request => known.request = known.request.take().or(schema),
            Side::Response => known.response = known.response.take().or(schema),
        }
    }

    fn event(&mut self, event: CallEvent, time: u64) -> Result<(), Wrong> {
        let status = Status::from_code(event.status as u32);
        let what = match event.step() {
            Step::Opened => {
                let ids = Some(&event.method).filter(|name| plain(name) == **name);
                let ids = ids
                    .and_then(|name| format::ids_of_name(name))
                    .ok_or_else(|| {
                        Wrong::Damaged(format!("{:?} is no name of a method", event.method))
                    })?;
                self.at.insert(event.call, self.recorded.calls.len());
                self.recorded.calls.push(Call {
                    number: event.call,
                    link: event.link,
                    method: event.method,
                    ids,
                    time,
                    entries: Vec::new(),
                    opened: self.order,
                    ended: None,
                });
                return Ok(());
            }
            Step::Completed => What::Completed,
            Step::GivenUp => What::GivenUp(status),
            Step::Answered => What::Answered(status),
            Step::Refused => What::Refused(status),
            Step::Unspecified => return Ok(()),
        };
        self.step(event.call, time, what);
        Ok(())
    }

    fn step(&mut self, number: u32, time: u64, what: What) {
        let at = self.at.get(&number);
        let Some(call) = at.and_then(|&at| self.recorded.calls.get_mut(at)) else {
            self.recorded.strays += 1;
            return;
        };
        // What comes behind the end was on its way when the other side ended the call.
        if call.ended.is_some() {
            return;
        }
        if matches!(
            what,
            What::GivenUp(_) | What::Answered(_) | What::Refused(_)
        ) {
            call.ended = Some(self.order);
        }
        call.entries.push(Entry { time, what });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;
    use sinew::rpc::packet::{self, PacketType, Route};

    use super::*;
    use crate::record::file::Recording;
    use crate::schema;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sinew-read-{name}-{}.mcap", std::process::id()))
    }

    /// A recording with these packets of link 1, a microsecond after one another.
    fn recording(name: &str, packets: &[(PacketType, u32, &str, &[u8], Status)]) -> Vec<u8> {
        let path = path(name);
        let recording = Recording::new(&path).unwrap();
        recording.begin(recording.hold()).unwrap();
        let pool = schema::load(&[], &[]).unwrap();
        let methods = schema::methods(&pool);
        let source = recording.add(&"tcp:127.0.0.1:1".parse().unwrap(), Some(pool), None, true);
        for (at, &(packet_type, call_id, method, payload, status)) in packets.iter().enumerate() {
            let method = methods.iter().find(|known| known.name == method).unwrap();
            let route = Route::new(1, method.id, call_id);
            let mut place = [0; 256];
            let len = packet::encode(&mut place, packet_type, &route, payload, status).unwrap();
            let time = UNIX_EPOCH + Duration::from_micros(at as u64 + 1);
            recording.packet(source, 1, time, &place[..len]);
        }
        recording.finish().unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    }

    const DOUBLE: &str = "demo.Kinds/Double";
    const ECHO: &str = "demo.Kinds/EchoAll";

    fn some(name: &str) -> Vec<u8> {
        recording(
            name,
            &[
                (PacketType::REQUEST, 1, ECHO, &[], Status::OK),
                (PacketType::REQUEST, 1, DOUBLE, &[8, 21], Status::OK),
                (PacketType::CLIENT_STREAM, 1, ECHO, &[8, 1], Status::OK),
                (PacketType::RESPONSE, 1, DOUBLE, &[8, 42], Status::OK),
                (PacketType::SERVER_STREAM, 1, ECHO, &[8, 1], Status::OK),
                (PacketType::CLIENT_ERROR, 1, ECHO, &[], Status::CANCELLED),
                (PacketType::SERVER_STREAM, 1, ECHO, &[8, 2], Status::OK),
            ],
        )
    }

    fn read_bytes(mut bytes: &[u8]) -> Result<Recorded, Wrong> {
        read_from(|place| {
            assert!(place.len() <= PIECE, "believes a length: {}", place.len());
            bytes.read(place).unwrap()
        })
    }

    fn entry(micros: u64, what: What) -> Entry {
        let time = micros * 1000;
        Entry { time, what }
    }

    #[test]
    fn calls_that_overlap_are_told_apart() {
        let recorded = read_bytes(&some("overlap")).unwrap();
        let [echo, double] = &recorded.calls[..] else {
            panic!("{recorded:?}");
        };
        assert_eq!((&*echo.method, &*double.method), (ECHO, DOUBLE));
        assert_eq!(
            echo.entries,
            [
                entry(3, What::Request(vec![8, 1])),
                entry(5, What::Response(vec![8, 1])),
                entry(6, What::GivenUp(Status::CANCELLED)),
            ],
            "what came behind the end is left out"
        );
        assert_eq!(
            double.entries,
            [
                entry(2, What::Request(vec![8, 21])),
                entry(4, What::Response(vec![8, 42])),
                entry(4, What::Answered(Status::OK)),
            ]
        );
        assert!(echo.opened < double.opened && double.ended < echo.ended);
        assert!(!recorded.is_cut && recorded.strays == 0);
        let known = &recorded.methods[ECHO];
        assert_eq!(known.kind, Some(MethodKind::Bidi));
        assert_eq!(known.response.as_ref().unwrap().full_name(), "demo.Num");
    }

    #[test]
    fn an_id_that_is_used_again_is_another_call() {
        let bytes = recording(
            "again",
            &[
                (PacketType::REQUEST, 7, DOUBLE, &[8, 1], Status::OK),
                (PacketType::REQUEST, 7, DOUBLE, &[8, 2], Status::OK),
                (PacketType::RESPONSE, 7, DOUBLE, &[8, 4], Status::OK),
            ],
        );
        let calls = read_bytes(&bytes).unwrap().calls;
        assert_eq!(
            calls
                .iter()
                .map(|call| call.entries.len())
                .collect::<Vec<_>>(),
            [1, 3]
        );
    }

    #[test]
    fn an_answer_that_names_no_call_is_of_the_open_one() {
        let bytes = recording(
            "unnamed",
            &[
                (PacketType::REQUEST, 7, DOUBLE, &[8, 1], Status::OK),
                (
                    PacketType::RESPONSE,
                    packet::OPEN_CALL_ID,
                    DOUBLE,
                    &[8, 2],
                    Status::OK,
                ),
            ],
        );
        let calls = read_bytes(&bytes).unwrap().calls;
        assert!(calls[0].ended.is_some());
    }

    #[test]
    fn messages_of_no_call_are_counted() {
        let bytes = recording(
            "strays",
            &[(PacketType::RESPONSE, 7, DOUBLE, &[8, 2], Status::OK)],
        );
        let recorded = read_bytes(&bytes).unwrap();
        assert_eq!((recorded.calls.len(), recorded.strays), (0, 2));
    }

    #[test]
    fn a_file_is_read_up_to_where_it_was_cut() {
        let whole = some("cut");
        let mut most = 0;
        for len in 0..whole.len() {
            match read_bytes(&whole[..len]) {
                Ok(recorded) => {
                    assert!(recorded.is_cut, "{len}");
                    most = most.max(recorded.calls.len());
                }
                Err(wrong) => assert!(
                    matches!(wrong, Wrong::Other | Wrong::NotOurs),
                    "{len}: {wrong:?}"
                ),
            }
        }
        assert_eq!(most, 2, "calls of whole chunks are there");
    }

    #[test]
    fn files_of_others_are_told_apart() {
        assert!(matches!(read_bytes(b"sinew\n"), Err(Wrong::Other)));
        let mut bytes = std::io::Cursor::new(Vec::new());
        let mut other = mcap::WriteOptions::new()
            .compression(None)
            .create(&mut bytes)
            .unwrap();
        other.finish().unwrap();
        drop(other);
        assert!(matches!(read_bytes(bytes.get_ref()), Err(Wrong::NotOurs)));
        let ours = some("version");
        let at = ours.windows(6).position(|part| part == b"format").unwrap();
        let mut later = ours.clone();
        later[at + 6 + 4] = b'9';
        assert!(matches!(read_bytes(&later), Err(Wrong::Later(version)) if version == "9"));
        let mut damaged = ours;
        let at = damaged.windows(2).position(|part| part == [8, 42]).unwrap();
        damaged[at + 1] = 43;
        assert!(matches!(read_bytes(&damaged), Err(Wrong::Damaged(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_believe_a_length(
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            cut in any::<Option<prop::sample::Index>>(),
        ) {
            static WHOLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            let mut bytes = WHOLE.get_or_init(|| some("edits")).clone();
            for (at, byte) in edits {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
            let _ = read_bytes(&bytes);
        }

        #[test]
        fn nor_do_any_events_and_messages(
            records in prop::collection::vec(
                (0u16..4, any::<u64>(), 0u32..3, -1i32..8, any::<u32>(), "[a-c0x/.]{0,8}", any::<Vec<u8>>()),
                0..32,
            ),
        ) {
            let mut bytes = std::io::Cursor::new(Vec::new());
            let mut file = mcap::WriteOptions::new().compression(None).create(&mut bytes).unwrap();
            let (key, version) = format::VERSION;
            let metadata = [(key.to_owned(), version.to_owned())].into();
            let name = format::METADATA.to_owned();
            file.write_metadata(&mcap::records::Metadata { name, metadata }).unwrap();
            let mut channels = vec![file.add_channel(0, format::CALLS, format::PROTOBUF, &Default::default()).unwrap()];
            for side in [Side::Request, Side::Response] {
                let metadata = [(format::METHOD, "0x1/0x2"), (format::SIDE, side.name())];
                let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
                channels.push(file.add_channel(0, side.name(), format::BYTES, &metadata).unwrap());
            }
            for (channel, log_time, call, step, status, method, data) in records {
                let event = CallEvent { call, step, method, status: status as i32, link: 1 };
                let data = match channel {
                    0 | 3 => event.encode_to_vec(),
                    _ => data,
                };
                let header = mcap::records::MessageHeader {
                    channel_id: channels[usize::from(channel % 3)],
                    sequence: call,
                    log_time,
                    publish_time: log_time,
                };
                file.write_to_known_channel(&header, &data).unwrap();
            }
            file.finish().unwrap();
            drop(file);
            if let Err(wrong) = read_bytes(bytes.get_ref()) {
                prop_assert!(matches!(wrong, Wrong::Damaged(_)), "{:?}", wrong);
            }
        }

        #[test]
        fn nor_do_any_records(
            records in prop::collection::vec((1u8..16, prop::collection::vec(any::<u8>(), 0..64)), 0..16),
        ) {
            let mut bytes = mcap::MAGIC.to_vec();
            for (opcode, body) in records {
                bytes.push(opcode);
                bytes.extend((body.len() as u64).to_le_bytes());
                bytes.extend(body);
            }
            let _ = read_bytes(&bytes);
        }
    }
}

//! The file that is being written: packets and samples in, an MCAP file out.
//!
//! Chunks are made in memory and written whole, at the latest with the next [`Recording::flush`]: whatever ends the
//! tool, the file can be read up to there. The first failure is kept, and nothing is written behind it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use mcap::records::MessageHeader;
use mcap::write::NoSeek;
use mcap::{McapError, McapResult, WriteOptions, Writer};
use prost::Message;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use sinew::rpc::packet::{Packet, PacketType, Route, is_open_id};
use sinew::rpc::{MethodKind, Status};
use sinew_io::Endpoint;
use sinew_io::pubsub::OwnedSample;

use super::format::{self, CallEvent, DeviceRecord, Log, Side, Step};
use crate::failure::Failure;
use crate::log::texts::{self, Texts};
use crate::output::hex;
use crate::replace::{self, Kind, begins};
use crate::schema::{self, Method};

/// A chunk is written when it has so many bytes.
const CHUNK: u64 = 1 << 20;
const MCAP: Kind = Kind {
    name: "MCAP file",
    is: |file| begins(file, mcap::MAGIC),
};
/// What the file is written through: as it may be a FIFO, nothing goes back in it.
type Out = NoSeek<BufWriter<File>>;

/// Calls that are remembered, over all links: one more makes those forgotten that have ended.
const MOST_CALLS: usize = 1 << 16;

/// A recording that several threads write to.
pub struct Recording {
    inner: Mutex<Inner>,
    path: PathBuf,
}

/// The right to write.
pub struct Held<'a>(MutexGuard<'a, Inner>);

/// What there is in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub calls: u64,
    /// Requests, responses, items of streams, samples.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// All messages of MCAP: those, the events of calls, and lines of Foxglove's log.
    pub entries: u64,
    /// Packets that are none of pw_rpc: they are not in the file.
    pub strange: u64,
}

struct Inner {
    /// `None` before it is begun, and where it is complete.
    file: Option<Writer<Out>>,
    failure: Option<McapError>,
    sources: Vec<Source>,
    own: DescriptorPool,
    events: u16,
    channels: HashMap<Key, u16>,
    calls: HashMap<Address, Call>,
    counts: Counts,
    /// The time of the last message: that of the next one is not before it, whatever happens to the clock.
    last: u64,
}

/// An endpoint that is recorded.
struct Source {
    endpoint: String,
    /// What its topics begin with, where there are several endpoints.
    prefix: String,
    methods: HashMap<(u32, u32), Method>,
    pool: Option<DescriptorPool>,
    /// Of deferred records.
    texts: Option<Texts>,
}

/// Which channel a message belongs to.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Method(usize, u32, u32, Side),
    Log(usize),
    /// A key of Zenoh, its encoding, and whether it says that there is no value any more.
    Sample(usize, String, String, bool),
}

/// Where a call is, while it is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Address {
    source: usize,
    link: u32,
    route: Route,
}

#[derive(Clone, Copy)]
struct Call {
    number: u32,
    is_open: bool,
}

/// Nanoseconds since 1970.
pub fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Recording {
    /// A recording that is to be in this file, which is made by [`Recording::begin`].
    pub fn new(path: &Path) -> Result<Recording, Failure> {
        let inner = Inner {
            file: None,
            failure: None,
            sources: Vec::new(),
            own: format::own()?,
            events: 0,
            channels: HashMap::new(),
            calls: HashMap::new(),
            counts: Counts::default(),
            last: 0,
        };
        Ok(Recording {
            inner: Mutex::new(inner),
            path: path.to_owned(),
        })
    }

    /// Keeps everybody else from writing until the file is begun: what they have waits.
    pub fn hold(&self) -> Held<'_> {
        Held(self.inner())
    }

    /// Makes the file, anew where an earlier recording is there, and lets everybody write.
    pub fn begin(&self, held: Held<'_>) -> Result<(), Failure> {
        let Held(mut inner) = held;
        let file = replace::create(&self.path, &MCAP)?;
        inner.attempt(|inner| {
            let (file, events) = begin(file, &inner.own)?;
            (inner.file, inner.events) = (Some(file), events);
            Ok(())
        });
        drop(inner);
        self.check()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an endpoint, of which this is known; the number by which its packets are given.
    pub fn add(
        &self,
        endpoint: &Endpoint,
        pool: Option<DescriptorPool>,
        texts: Option<Texts>,
        is_one: bool,
    ) -> usize {
        let mut inner = self.inner();
        // What the endpoint says of its own log wins.
        let pools = [Some(&inner.own), pool.as_ref()];
        let methods = pools.into_iter().flatten().flat_map(schema::methods);
        let methods = methods.map(|method| ((method.id.service, method.id.method), method));
        let name = endpoint.to_string();
        let source = Source {
            prefix: match is_one {
                true => String::new(),
                false => format!("{name}/"),
            },
            endpoint: name,
            methods: methods.collect(),
            pool,
            texts,
        };
        inner.sources.push(source);
        inner.sources.len() - 1
    }

    /// A packet that passes on a link of the endpoint.
    pub fn packet(&self, source: usize, link: u32, time: SystemTime, packet: &[u8]) {
        self.inner()
            .attempt(|inner| inner.packet(source, link, nanos(time), packet));
    }

    /// A sample that somebody has published.
    pub fn sample(&self, source: usize, time: SystemTime, sample: &OwnedSample) {
        self.inner()
            .attempt(|inner| inner.sample(source, nanos(time), sample));
    }

    /// The link has gone, and with it its calls.
    pub fn closed(&self, source: usize, link: u32) {
        let gone = |address: &Address| address.source == source && address.link == link;
        self.inner().calls.retain(|address, _| !gone(address));
    }

    /// Writes what is not written yet.
    pub fn flush(&self) -> Result<(), Failure> {
        let mut inner = self.inner();
        inner.attempt(|inner| inner.file().map_or(Ok(()), Writer::flush));
        drop(inner);
        self.check()
    }

    /// Completes the file.
    pub fn finish(&self) -> Result<(), Failure> {
        let mut inner = self.inner();
        inner.attempt(|inner| {
            let Some(mut file) = inner.file.take() else {
                return Ok(());
            };
            file.finish()?;
            let file = file.into_inner().into_inner().into_inner();
            let file = file.map_err(|error| error.into_error())?;
            // Of a FIFO or a device there is nothing to sync.
            match file.metadata()?.is_file() {
                true => Ok(file.sync_all()?),
                false => Ok(()),
            }
        });
        drop(inner);
        self.check()
    }

    pub fn counts(&self) -> Counts {
        self.inner().counts
    }

    /// Whether something could not be written.
    fn check(&self) -> Result<(), Failure> {
        let inner = self.inner();
        let Some(error) = &inner.failure else {
            return Ok(());
        };
        let (cause, help) = match error {
            McapError::Io(error) => return Err(replace::unwritten(&self.path, error, "record")),
            McapError::TooManyChannels | McapError::TooManySchemas => (
                "it holds 65,535 methods and keys, and there are more".to_owned(),
                "what passed before is in it; record fewer keys by --key",
            ),
            error => (error.to_string(), "this should not be: please report it"),
        };
        Err(Failure::outcome(
            Status::RESOURCE_EXHAUSTED,
            format!("cannot write {}: {cause}", self.path.display()),
            help,
        ))
    }
}

/// The head of a file, and the channel of events.
fn begin(file: File, own: &DescriptorPool) -> McapResult<(Writer<Out>, u16)> {
    let mut file = WriteOptions::new()
        .compression(None)
        .chunk_size(Some(CHUNK))
        // A chunk leaves whole and is never gone back to.
        .disable_seeking(true)
        .library(concat!("sinew ", env!("CARGO_PKG_VERSION")))
        .create(NoSeek::new(BufWriter::new(file)))?;
    let (key, version) = format::VERSION;
    file.write_metadata(&mcap::records::Metadata {
        name: format::METADATA.into(),
        metadata: BTreeMap::from([(key.into(), version.into())]),
    })?;
    let schema = add_schema(&mut file, own.get_message_by_name("sinew.CallEvent"))?;
    let events = file.add_channel(schema, format::CALLS, format::PROTOBUF, &BTreeMap::new())?;
    file.flush()?;
    Ok((file, events))
}

/// The schema of a message; 0 where there is none.
fn add_schema(file: &mut Writer<Out>, message: Option<MessageDescriptor>) -> McapResult<u16> {
    match message {
        Some(message) => file.add_schema(
            message.full_name(),
            format::PROTOBUF,
            &format::schema_of(&message),
        ),
        None => Ok(0),
    }
}

/// What is to be known of a channel that is not there yet.
struct New {
    topic: String,
    message: Option<MessageDescriptor>,
    encoding: String,
    metadata: BTreeMap<String, String>,
}

impl Inner {
    fn file(&mut self) -> Option<&mut Writer<Out>> {
        self.file.as_mut()
    }

    /// Does it unless something has failed before.
    fn attempt(&mut self, write: impl FnOnce(&mut Inner) -> McapResult<()>) {
        if self.failure.is_none()
            && let Err(error) = write(self)
        {
            self.failure = Some(error);
        }
    }

    fn packet(&mut self, source: usize, link: u32, time: u64, bytes: &[u8]) -> McapResult<()> {
        let Ok(packet) = Packet::decode(bytes) else {
            self.counts.strange += 1;
            return Ok(());
        };
        let address = Address {
            source,
            link,
            route: packet.route,
        };
        let call = match packet.packet_type {
            PacketType::REQUEST => self.open(address),
            _ => self.call(address),
        };
        let kind = self.method(&address).map(|method| method.id.kind);
        let event = |step| Some((step, packet.status));
        // A message is what the method has there; of a method that is not known, whatever there is.
        let has = |is_there: fn(MethodKind) -> bool| {
            kind.is_none_or(is_there) || !packet.payload.is_empty()
        };
        let (message, event) = match packet.packet_type {
            PacketType::REQUEST => (
                has(|kind| !kind.client_streams()).then_some(Side::Request),
                event(Step::Opened),
            ),
            PacketType::CLIENT_STREAM => (Some(Side::Request), None),
            PacketType::CLIENT_REQUEST_COMPLETION => (None, event(Step::Completed)),
            PacketType::CLIENT_ERROR => (None, event(Step::GivenUp)),
            PacketType::SERVER_STREAM => (Some(Side::Response), None),
            PacketType::RESPONSE => {
                let is_ok = packet.status == Status::OK;
                let has = has(|kind| !kind.server_streams()) && is_ok || !packet.payload.is_empty();
                (has.then_some(Side::Response), event(Step::Answered))
            }
            PacketType::SERVER_ERROR => (None, event(Step::Refused)),
            _ => {
                self.counts.strange += 1;
                return Ok(());
            }
        };
        let time = self.time(time);
        let is_opened = packet.packet_type == PacketType::REQUEST;
        if let (true, Some((step, status))) = (is_opened, event) {
            // In each case, as it says of what kind the method is: there need not be any message.
            self.method_channel(&address, Side::Request)?;
            self.event(&address, call, step, status, time)?;
        }
        if let Some(side) = message {
            self.message(&address, call, side, packet.payload, time)?;
        }
        if let (false, Some((step, status))) = (is_opened, event) {
            if matches!(step, Step::Answered | Step::Refused) {
                self.end(address, call);
            }
            self.event(&address, call, step, status, time)?;
        }
        Ok(())
    }

    fn time(&mut self, time: u64) -> u64 {
        self.last = self.last.max(time);
        self.last
    }

    fn method(&self, address: &Address) -> Option<&Method> {
        let ids = (address.route.service, address.route.method);
        self.sources.get(address.source)?.methods.get(&ids)
    }

    /// A call begins. One that had its id before is over.
    fn open(&mut self, address: Address) -> u32 {
        if self.calls.len() >= MOST_CALLS {
            self.calls.retain(|_, call| call.is_open);
        }
        if self.calls.len() >= MOST_CALLS {
            self.calls.clear();
        }
        self.counts.calls += 1;
        let number = u32::try_from(self.counts.calls).unwrap_or(u32::MAX);
        self.calls.insert(
            address,
            Call {
                number,
                is_open: true,
            },
        );
        number
    }

    /// The call that a packet belongs to, which may have ended just now; 0 where its beginning is not there.
    fn call(&self, address: Address) -> u32 {
        if let Some(call) = self.calls.get(&address) {
            return call.number;
        }
        self.any_of(&address)
            .and_then(|address| self.calls.get(&address))
            .map_or(0, |call| call.number)
    }

    /// An answer that names no call is for any open one of its method: the oldest, as it is taken here.
    fn any_of(&self, address: &Address) -> Option<Address> {
        if !is_open_id(address.route.call_id) {
            return None;
        }
        let with = |call_id| Address {
            route: Route {
                call_id,
                ..address.route
            },
            ..*address
        };
        let open = self.calls.iter().filter(|(_, call)| call.is_open);
        let same = open.filter(|(other, _)| with(other.route.call_id) == **other);
        let oldest = same.min_by_key(|(_, call)| call.number);
        oldest.map(|(address, _)| *address)
    }

    fn end(&mut self, address: Address, number: u32) {
        let address = match self.calls.contains_key(&address) {
            true => address,
            false => self.any_of(&address).unwrap_or(address),
        };
        if let Some(call) = self.calls.get_mut(&address)
            && call.number == number
        {
            call.is_open = false;
        }
    }

    fn event(
        &mut self,
        address: &Address,
        call: u32,
        step: Step,
        status: Status,
        time: u64,
    ) -> McapResult<()> {
        let method = match self.method(address) {
            Some(method) => method.name.clone(),
            None => format::name_of_ids(address.route.service, address.route.method),
        };
        let event = CallEvent {
            call,
            step: step.into(),
            method,
            status: status.code() as i32,
            link: address.link,
        };
        self.write(self.events, call, time, &event.encode_to_vec())
    }

    fn message(
        &mut self,
        address: &Address,
        call: u32,
        side: Side,
        payload: &[u8],
        time: u64,
    ) -> McapResult<()> {
        let (service, method) = (address.route.service, address.route.method);
        let channel = self.method_channel(address, side)?;
        self.counts.messages += 1;
        self.counts.bytes += payload.len() as u64;
        self.write(channel, call, time, payload)?;
        let ids = (format::RECORDS.service, format::RECORDS.method);
        if side == Side::Response && (service, method) == ids {
            self.log(address.source, call, payload, time)?;
        }
        Ok(())
    }

    fn method_channel(&mut self, address: &Address, side: Side) -> McapResult<u16> {
        let (service, method) = (address.route.service, address.route.method);
        let key = Key::Method(address.source, service, method, side);
        self.channel(key, |inner| inner.of_method(address, side))
    }

    fn of_method(&self, address: &Address, side: Side) -> New {
        let method = self.method(address);
        let name = match method {
            Some(method) => method.name.clone(),
            None => format::name_of_ids(address.route.service, address.route.method),
        };
        let (prefix, mut metadata) = self.source(address.source);
        metadata.insert(format::METHOD.into(), name.clone());
        metadata.insert(format::SIDE.into(), side.name().into());
        let kind = method.map(|method| format::kind_name(method.id.kind));
        metadata.extend(kind.map(|kind| (format::KIND.into(), kind.into())));
        New {
            topic: format!("{prefix}{name}/{}", side.name()),
            message: method.map(|method| match side {
                Side::Request => method.request.clone(),
                Side::Response => method.response.clone(),
            }),
            encoding: match method {
                Some(_) => format::PROTOBUF.into(),
                None => format::BYTES.into(),
            },
            metadata,
        }
    }

    /// How the topics of an endpoint begin, and what the metadata of each of its channels has.
    fn source(&self, source: usize) -> (&str, BTreeMap<String, String>) {
        let Some(source) = self.sources.get(source) else {
            return ("", BTreeMap::new());
        };
        let endpoint = (format::ENDPOINT.into(), source.endpoint.clone());
        (&source.prefix, BTreeMap::from([endpoint]))
    }

    /// The same as a line of Foxglove's log.
    fn log(&mut self, source: usize, call: u32, record: &[u8], time: u64) -> McapResult<()> {
        let Ok(mut record) = DeviceRecord::decode(record) else {
            return Ok(());
        };
        if !record.deferred.is_empty() {
            let texts = self.sources.get_mut(source);
            let texts = texts.and_then(|source| source.texts.as_mut());
            match texts::text(texts, &record.deferred) {
                Ok(text) => {
                    record.severity = text.severity.0;
                    (record.module, record.text) = (text.module, text.text);
                }
                Err(why) => record.text = format!("<{why}> {}", hex(&record.deferred)),
            }
        }
        let channel = self.channel(Key::Log(source), |inner| {
            let (prefix, metadata) = inner.source(source);
            New {
                topic: format!("{prefix}{}", format::LOG),
                message: inner.own.get_message_by_name("foxglove.Log"),
                encoding: format::PROTOBUF.into(),
                metadata,
            }
        })?;
        self.write(channel, call, time, &Log::of(record, time).encode_to_vec())
    }

    fn sample(&mut self, source: usize, time: u64, sample: &OwnedSample) -> McapResult<()> {
        use sinew_io::pubsub::Kind;
        let time = self.time(time);
        let is_gone = sample.kind != Kind::Put;
        let key = Key::Sample(source, sample.key.clone(), sample.encoding.clone(), is_gone);
        let channel = self.channel(key, |inner| inner.of_sample(source, sample, is_gone))?;
        self.counts.messages += 1;
        self.counts.bytes += sample.payload.len() as u64;
        self.write(channel, 0, time, &sample.payload)
    }

    fn of_sample(&self, source: usize, sample: &OwnedSample, is_gone: bool) -> New {
        let (prefix, mut metadata) = self.source(source);
        metadata.insert("encoding".into(), sample.encoding.clone());
        if is_gone {
            metadata.insert("kind".into(), "delete".into());
        }
        let (encoding, schema) = match sample.encoding.split_once(';') {
            Some((encoding, schema)) => (encoding, Some(schema)),
            None => (&*sample.encoding, None),
        };
        let pool = self.sources.get(source).and_then(|it| it.pool.as_ref());
        let message = schema
            .filter(|_| encoding == "application/protobuf")
            .and_then(|name| pool?.get_message_by_name(name));
        New {
            topic: format!("{prefix}{}", sample.key),
            encoding: match encoding {
                _ if message.is_some() => format::PROTOBUF.into(),
                "application/json" | "text/json" => "json".into(),
                other => other.into(),
            },
            message,
            metadata,
        }
    }

    fn channel(&mut self, key: Key, new: impl FnOnce(&Inner) -> New) -> McapResult<u16> {
        if let Some(&channel) = self.channels.get(&key) {
            return Ok(channel);
        }
        let new = new(self);
        let Some(file) = self.file() else {
            return Ok(0);
        };
        let schema = add_schema(file, new.message)?;
        let channel = file.add_channel(schema, &new.topic, &new.encoding, &new.metadata)?;
        self.channels.insert(key, channel);
        Ok(channel)
    }

    fn write(&mut self, channel: u16, sequence: u32, time: u64, data: &[u8]) -> McapResult<()> {
        let header = MessageHeader {
            channel_id: channel,
            sequence,
            log_time: time,
            publish_time: time,
        };
        let Some(file) = self.file() else {
            return Ok(());
        };
        file.write_to_known_channel(&header, data)?;
        self.counts.entries += 1;
        Ok(())
    }
}

//! Zenoh's own codec, one message at a time. The fuzz target uses it too.

use std::time::Duration;

use sinew::pubsub::codec::{Declaration, EntityKind, WireExpr};
use zenoh_buffers::reader::{HasReader, Reader};
use zenoh_buffers::writer::HasWriter;
use zenoh_codec::{RCodec, WCodec, Zenoh080};
use zenoh_protocol::common::ZExtBody;
use zenoh_protocol::core::Encoding;
use zenoh_protocol::network::{DeclareBody, NetworkBody, NetworkMessage};
use zenoh_protocol::scouting::ScoutingMessage;
use zenoh_protocol::transport::frame::FrameHeader;
use zenoh_protocol::transport::{TransportBody, TransportMessage};
use zenoh_protocol::zenoh::{PushBody, RequestBody, ResponseBody};

use super::any::Message;

/// One message, as Zenoh's own crates have it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, clippy::large_enum_variant)]
pub enum Theirs {
    Transport(TransportMessage),
    /// Without the messages behind it, which come next.
    Frame(FrameHeader),
    Network(NetworkMessage),
}

impl Theirs {
    /// The first message of a batch, and how many bytes it has; `None` if it is refused.
    pub fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut reader = bytes.reader();
        let header = *bytes.first()? & 0x1f;
        let message = match header {
            0x19.. => Theirs::Network(Zenoh080.read(&mut reader).ok()?),
            0x05 => Theirs::Frame(Zenoh080.read(&mut reader).ok()?),
            _ => Theirs::Transport(Zenoh080.read(&mut reader).ok()?),
        };
        Some((message, bytes.len() - reader.remaining()))
    }

    /// Its bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = bytes.writer();
        let written = match self {
            Theirs::Transport(message) => Zenoh080.write(&mut writer, message),
            Theirs::Frame(message) => Zenoh080.write(&mut writer, message),
            Theirs::Network(message) => Zenoh080.write(&mut writer, message),
        };
        written.expect("a Vec grows");
        bytes
    }

    /// The same without what we read over: extensions of features that we do not have, time stamps on
    /// messages that are no samples, routers' trees, what is unknown to them too,
    /// times of ages, an OAM's number above 32 bits, and schemas of no bytes.
    pub fn known(mut self) -> Self {
        match &mut self {
            Theirs::Frame(frame) => {
                // Five bits that nobody uses.
                frame.ext_qos =
                    zenoh_protocol::transport::frame::ext::QoSType::new(frame.ext_qos.priority());
            }
            Theirs::Transport(message) => transport(&mut message.body),
            Theirs::Network(message) => network(&mut message.body),
        }
        self
    }
}

fn transport(body: &mut TransportBody) {
    match body {
        TransportBody::InitSyn(m) => {
            (m.ext_qos, m.ext_qos_link, m.ext_auth, m.ext_mlink) = (None, None, None, None);
            (m.ext_lowlatency, m.ext_compression, m.ext_region_name) = (None, None, None);
        }
        TransportBody::InitAck(m) => {
            (m.ext_qos, m.ext_qos_link, m.ext_auth, m.ext_mlink) = (None, None, None, None);
            (m.ext_lowlatency, m.ext_compression, m.ext_region_name) = (None, None, None);
        }
        TransportBody::OpenSyn(m) => {
            cap(&mut m.lease);
            (m.ext_qos, m.ext_auth, m.ext_mlink) = (None, None, None);
            (m.ext_lowlatency, m.ext_compression, m.ext_remote_bound) = (None, None, None);
        }
        TransportBody::OpenAck(m) => {
            cap(&mut m.lease);
            (m.ext_qos, m.ext_auth, m.ext_mlink) = (None, None, None);
            (m.ext_lowlatency, m.ext_compression, m.ext_remote_bound) = (None, None, None);
        }
        TransportBody::Join(m) => {
            m.ext_shm = None;
            cap(&mut m.lease);
        }
        TransportBody::Fragment(m) => {
            m.ext_qos =
                zenoh_protocol::transport::fragment::ext::QoSType::new(m.ext_qos.priority());
        }
        TransportBody::OAM(m) => cap_number(&mut m.body),
        _ => {}
    }
}

fn network(body: &mut NetworkBody) {
    use zenoh_protocol::network::{declare, interest, push, request};
    match body {
        NetworkBody::Push(m) => {
            (m.ext_tstamp, m.ext_ts_stack) = (None, None);
            m.ext_nodeid = push::ext::NodeIdType::DEFAULT;
            sample(&mut m.payload);
        }
        NetworkBody::Request(m) => {
            (m.ext_tstamp, m.ext_ts_stack) = (None, None);
            m.ext_nodeid = request::ext::NodeIdType::DEFAULT;
            if let Some(timeout) = &mut m.ext_timeout {
                cap(timeout);
            }
            let RequestBody::Query(query) = &mut m.payload;
            query.ext_unknown.clear();
            if let Some(body) = &mut query.ext_body {
                schema(&mut body.encoding);
            }
        }
        NetworkBody::Response(m) => {
            (m.ext_tstamp, m.ext_ts_stack) = (None, None);
            match &mut m.payload {
                ResponseBody::Reply(reply) => {
                    reply.ext_unknown.clear();
                    sample(&mut reply.payload);
                }
                ResponseBody::Err(error) => {
                    error.ext_unknown.clear();
                    schema(&mut error.encoding);
                }
            }
        }
        NetworkBody::ResponseFinal(m) => m.ext_tstamp = None,
        NetworkBody::Interest(m) => {
            m.ext_tstamp = None;
            m.ext_nodeid = interest::ext::NodeIdType::DEFAULT;
            // The flags of a key that there is not.
            m.options = (m.options() & 0x8f).into();
        }
        NetworkBody::Declare(m) => {
            m.ext_tstamp = None;
            m.ext_nodeid = declare::ext::NodeIdType::DEFAULT;
            if let DeclareBody::DeclareKeyExpr(key) = &mut m.body {
                key.wire_expr.mapping = Default::default();
            }
        }
        NetworkBody::OAM(m) => {
            m.ext_tstamp = None;
            cap_number(&mut m.body);
        }
    }
}

/// Above 32 bits we do not count.
fn cap_number(body: &mut ZExtBody) {
    if let ZExtBody::Z64(number) = body {
        *number = (*number).min(u32::MAX.into());
    }
}

/// Above 49 days we do not count.
fn cap(time: &mut Duration) {
    *time = (*time).min(Duration::from_millis(u32::MAX.into()));
}

fn sample(body: &mut PushBody) {
    match body {
        PushBody::Put(put) => {
            put.ext_unknown.clear();
            schema(&mut put.encoding);
        }
        PushBody::Del(del) => del.ext_unknown.clear(),
    }
}

/// A schema of no bytes is none.
fn schema(encoding: &mut Encoding) {
    encoding.schema = encoding.schema.take().filter(|schema| !schema.is_empty());
}

/// A datagram of scouting, and how many bytes it has; `None` if it is refused.
pub fn read_datagram(bytes: &[u8]) -> Option<(ScoutingMessage, usize)> {
    let mut reader = bytes.reader();
    let message = Zenoh080.read(&mut reader).ok()?;
    Some((message, bytes.len() - reader.remaining()))
}

/// Its bytes.
pub fn write_datagram(message: &ScoutingMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    Zenoh080
        .write(&mut bytes.writer(), message)
        .expect("a Vec grows");
    bytes
}

/// Our message, with no key at the end of a subscriber where there is the empty one, and the empty one
/// at the end of anything else where there is none: theirs cannot tell them apart.
pub fn as_theirs(mut message: Message<'_>) -> Message<'_> {
    if let Message::Declare(declare) = &mut message
        && let Declaration::NoEntity { kind, key, .. } = &mut declare.declaration
    {
        let said = key.unwrap_or_default();
        let nothing = *kind == EntityKind::Subscriber && said == WireExpr::default();
        *key = if nothing { None } else { Some(said) };
    }
    message
}

//! What has arrived, kept while the lock of the session is let go, so that handlers can publish.
//!
//! Payloads stay in the packet; only what borrows from the session (keys put together, messages put
//! together from fragments) is copied.

use std::ops::Range;

use sinew::pubsub::codec::{
    Body, Consolidation, Encoding, Entity, Kind, Payloads, Qos, Query, Reply as Answer, SourceInfo,
    Timestamp,
};
use sinew::pubsub::session::{
    Ended, Event, QueryId, QueryableId, Question, Reply, RequestId, Run, Sample, SubscriberId,
};

use super::tables::Host;

/// Where bytes are that are looked at later.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Held {
    /// In the packet.
    Packet(Range<usize>),
    /// In the copies.
    Copy(Range<usize>),
    /// In a message that was put together from fragments.
    Message(Range<usize>),
}

/// A sample, without its bytes.
#[derive(Debug)]
struct HeldBody {
    kind: Kind,
    timestamp: Option<Timestamp>,
    encoding: u16,
    schema: Held,
    source: Option<SourceInfo>,
    attachment: Option<Held>,
    payload: Held,
}

#[derive(Debug)]
enum HeldAnswer {
    Sample(Consolidation, HeldBody),
    Error(u16, Held, Option<SourceInfo>, Held),
}

/// A sample with everything that can come along.
#[derive(Debug)]
struct HeldSample {
    subscriber: SubscriberId,
    key: Held,
    qos: Qos,
    reliable: bool,
    body: HeldBody,
}

#[derive(Debug)]
struct HeldQuery {
    queryable: QueryableId,
    request: RequestId,
    key: Held,
    parameters: Held,
    consolidation: Consolidation,
    source: Option<SourceInfo>,
    body: Option<(u16, Held, Held)>,
    attachment: Option<Held>,
}

#[derive(Debug)]
struct HeldReply {
    query: QueryId,
    key: Held,
    qos: Qos,
    responder: Option<Entity>,
    answer: HeldAnswer,
}

/// Small, because there are many: what is rare is elsewhere.
#[derive(Debug)]
enum Arrival {
    /// A value without options, as nearly all are.
    Plain(SubscriberId, Qos, bool, Held, Held),
    /// Many of these.
    Run(SubscriberId, Qos, bool, Held, Payloads),
    Sample(Box<HeldSample>),
    Query(Box<HeldQuery>),
    Reply(Box<HeldReply>),
    Ended(QueryId, Ended),
}

/// Who takes what has arrived.
pub(super) trait Takes {
    fn sample(&mut self, subscriber: SubscriberId, sample: &Sample<'_>);
    fn query(&mut self, queryable: QueryableId, request: RequestId, question: &Question<'_>);
    fn reply(&mut self, query: QueryId, reply: &Reply<'_>);
    fn ended(&mut self, query: QueryId, how: Ended);
}

/// Arrivals of one packet.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    list: Vec<Arrival>,
    copies: Vec<u8>,
    /// Where the last key was, and where it is kept: mostly the next one is the same.
    last_key: Option<(usize, usize, Held)>,
    /// Where the session puts fragments together: address and length.
    assembly: (usize, usize),
    /// Something is kept that lies there.
    lies_there: bool,
    /// The memory with the message, while it is handed out; another one for the next message.
    message: Vec<u8>,
}

/// More are handed out before the packet goes on, so that they stay in the processor's cache; so are
/// copies of more bytes than this. A few bytes of a packet can name a long key that was declared.
const MOST: usize = 256;
const COPIED: usize = 1 << 20;

impl Arrivals {
    pub(super) fn has_any(&self) -> bool {
        !self.list.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MOST || self.copies.len() >= COPIED
    }

    /// Keeps an event that was made of `packet`; others than arrivals are given back.
    pub(super) fn keep<'e>(&mut self, packet: &[u8], event: Event<'e>) -> Option<Event<'e>> {
        let arrival = match event {
            Event::Sample { subscriber, sample } => self.sample(packet, subscriber, &sample),
            Event::Query {
                queryable,
                request,
                question,
            } => self.query(packet, queryable, request, &question),
            Event::Reply { query, reply } => self.reply(packet, query, &reply),
            Event::Ended { query, how } => Arrival::Ended(query, how),
            other => return Some(other),
        };
        self.list.push(arrival);
        None
    }

    /// Keeps samples of `packet`.
    pub(super) fn keep_run(&mut self, packet: &[u8], run: &Run<'_>) {
        let key = self.key(packet, run.key);
        let run = Arrival::Run(run.subscriber, run.qos, run.reliable, key, run.payloads);
        self.list.push(run);
    }

    fn sample(&mut self, packet: &[u8], subscriber: SubscriberId, sample: &Sample<'_>) -> Arrival {
        let key = self.key(packet, sample.key);
        let Sample { qos, reliable, .. } = *sample;
        if sample.body == Body::put(sample.body.payload) {
            let payload = self.hold(packet, sample.body.payload);
            return Arrival::Plain(subscriber, qos, reliable, key, payload);
        }
        Arrival::Sample(Box::new(HeldSample {
            subscriber,
            key,
            qos,
            reliable,
            body: self.body(packet, &sample.body),
        }))
    }

    fn query(
        &mut self,
        packet: &[u8],
        queryable: QueryableId,
        request: RequestId,
        question: &Question<'_>,
    ) -> Arrival {
        let query = &question.query;
        Arrival::Query(Box::new(HeldQuery {
            queryable,
            request,
            key: self.hold(packet, question.key.as_bytes()),
            parameters: self.hold(packet, query.parameters.as_bytes()),
            consolidation: query.consolidation,
            source: query.source,
            body: query.body.map(|(encoding, payload)| {
                let schema = self.hold(packet, encoding.schema);
                (encoding.id, schema, self.hold(packet, payload))
            }),
            attachment: query.attachment.map(|bytes| self.hold(packet, bytes)),
        }))
    }

    fn reply(&mut self, packet: &[u8], query: QueryId, reply: &Reply<'_>) -> Arrival {
        let answer = match &reply.answer {
            Answer::Sample {
                consolidation,
                body,
            } => HeldAnswer::Sample(*consolidation, self.body(packet, body)),
            Answer::Error {
                encoding,
                source,
                payload,
            } => {
                let schema = self.hold(packet, encoding.schema);
                let payload = self.hold(packet, payload);
                HeldAnswer::Error(encoding.id, schema, *source, payload)
            }
        };
        Arrival::Reply(Box::new(HeldReply {
            query,
            key: self.hold(packet, reply.key.as_bytes()),
            qos: reply.qos,
            responder: reply.responder,
            answer,
        }))
    }

    /// Keys that the session knows stay where they are while one packet is taken in.
    fn key(&mut self, packet: &[u8], key: &str) -> Held {
        let at = (key.as_ptr() as usize, key.len());
        if let Some((start, len, held)) = &self.last_key
            && (*start, *len) == at
            && let Held::Copy(range) = held
            && self.copies.get(range.clone()) == Some(key.as_bytes())
        {
            return held.clone();
        }
        let held = self.hold(packet, key.as_bytes());
        self.last_key = Some((at.0, at.1, held.clone()));
        held
    }

    /// Tells where the session puts fragments together.
    pub(super) fn watch(&mut self, assembly: &[u8]) {
        self.assembly = address(assembly);
    }

    /// Whether the message in the session's memory is to be taken over before it goes on.
    pub(super) fn lies_in_session(&self) -> bool {
        self.lies_there
    }

    /// Takes the message over, with its memory; where the session needs that for others, a copy of so
    /// many bytes.
    pub(super) fn take_over(&mut self, tables: &mut Host, needed: Option<usize>) {
        match needed {
            None => tables.exchange_fragments(&mut self.message),
            Some(len) => {
                self.message.clear();
                let message = tables.fragments().get(..len).unwrap_or_default();
                self.message.extend_from_slice(message);
            }
        }
        self.lies_there = false;
    }

    fn hold(&mut self, packet: &[u8], bytes: &[u8]) -> Held {
        if let Some(range) = within(address(packet), bytes) {
            return Held::Packet(range);
        }
        if let Some(range) = within(self.assembly, bytes).filter(|range| !range.is_empty()) {
            self.lies_there = true;
            return Held::Message(range);
        }
        let start = self.copies.len();
        self.copies.extend_from_slice(bytes);
        Held::Copy(start..self.copies.len())
    }

    fn body(&mut self, packet: &[u8], body: &Body<'_>) -> HeldBody {
        HeldBody {
            kind: body.kind,
            timestamp: body.timestamp,
            encoding: body.encoding.id,
            schema: self.hold(packet, body.encoding.schema),
            source: body.source,
            attachment: body.attachment.map(|bytes| self.hold(packet, bytes)),
            payload: self.hold(packet, body.payload),
        }
    }

    /// Hands out everything that was kept of `packet`.
    pub(super) fn hand_out(&mut self, packet: &[u8], to: &mut impl Takes) {
        let held = Bytes {
            packet,
            copies: &self.copies,
            message: &self.message,
        };
        let mut last = (Held::Copy(0..0), "");
        for arrival in &self.list {
            match arrival {
                Arrival::Plain(subscriber, qos, reliable, key, payload) => {
                    if *key != last.0 {
                        last = (key.clone(), held.text(key));
                    }
                    let sample = Sample {
                        key: last.1,
                        qos: *qos,
                        reliable: *reliable,
                        body: Body::put(held.bytes(payload)),
                    };
                    to.sample(*subscriber, &sample);
                }
                Arrival::Run(subscriber, qos, reliable, key, payloads) => {
                    let mut sample = Sample {
                        key: held.text(key),
                        qos: *qos,
                        reliable: *reliable,
                        body: Body::put(&[]),
                    };
                    for payload in payloads.of(packet) {
                        sample.body.payload = payload;
                        to.sample(*subscriber, &sample);
                    }
                }
                Arrival::Sample(sample) => {
                    let HeldSample {
                        subscriber,
                        key,
                        qos,
                        reliable,
                        body,
                    } = &**sample;
                    let sample = Sample {
                        key: held.text(key),
                        qos: *qos,
                        reliable: *reliable,
                        body: held.body(body),
                    };
                    to.sample(*subscriber, &sample);
                }
                Arrival::Query(query) => {
                    let question = Question {
                        key: held.text(&query.key),
                        query: Query {
                            consolidation: query.consolidation,
                            parameters: held.text(&query.parameters),
                            source: query.source,
                            body: query.body.as_ref().map(|(id, schema, payload)| {
                                (held.encoding(*id, schema), held.bytes(payload))
                            }),
                            attachment: query.attachment.as_ref().map(|at| held.bytes(at)),
                        },
                    };
                    to.query(query.queryable, query.request, &question);
                }
                Arrival::Reply(reply) => {
                    let answer = match &reply.answer {
                        HeldAnswer::Sample(consolidation, body) => Answer::Sample {
                            consolidation: *consolidation,
                            body: held.body(body),
                        },
                        HeldAnswer::Error(id, schema, source, payload) => Answer::Error {
                            encoding: held.encoding(*id, schema),
                            source: *source,
                            payload: held.bytes(payload),
                        },
                    };
                    let (key, responder) = (held.text(&reply.key), reply.responder);
                    let query = reply.query;
                    let reply = Reply {
                        key,
                        qos: reply.qos,
                        responder,
                        answer,
                    };
                    to.reply(query, &reply);
                }
                Arrival::Ended(query, how) => to.ended(*query, *how),
            }
        }
        self.list.clear();
        self.copies.clear();
        self.last_key = None;
    }
}

/// Where a piece of memory is, and how long.
fn address(of: &[u8]) -> (usize, usize) {
    (of.as_ptr() as usize, of.len())
}

/// Where `bytes` are in this piece of memory, if they are a part of it.
fn within((start, len): (usize, usize), bytes: &[u8]) -> Option<Range<usize>> {
    let from = (bytes.as_ptr() as usize).wrapping_sub(start);
    let to = from.wrapping_add(bytes.len());
    (from <= to && to <= len).then_some(from..to)
}

struct Bytes<'a> {
    packet: &'a [u8],
    copies: &'a [u8],
    message: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn bytes(&self, held: &Held) -> &'a [u8] {
        let found = match held {
            Held::Packet(range) => self.packet.get(range.clone()),
            Held::Copy(range) => self.copies.get(range.clone()),
            Held::Message(range) => self.message.get(range.clone()),
        };
        found.unwrap_or_default()
    }

    fn text(&self, held: &Held) -> &'a str {
        // It was a string when it was kept.
        std::str::from_utf8(self.bytes(held)).unwrap_or_default()
    }

    fn encoding(&self, id: u16, schema: &Held) -> Encoding<'a> {
        Encoding {
            id,
            schema: self.bytes(schema),
        }
    }

    fn body(&self, body: &HeldBody) -> Body<'a> {
        Body {
            kind: body.kind,
            timestamp: body.timestamp,
            encoding: self.encoding(body.encoding, &body.schema),
            source: body.source,
            attachment: body.attachment.as_ref().map(|at| self.bytes(at)),
            payload: self.bytes(&body.payload),
        }
    }
}

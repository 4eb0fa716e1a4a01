//! What has arrived, kept while the lock of the session is let go, so that handlers can publish.
//!
//! Payloads stay in the packet; only what borrows from the session (keys put together, messages put
//! together from fragments) is copied.

use std::ops::Range;

use sinew::pubsub::codec::{
    Body, Consolidation, Encoding, Entity, Kind, Qos, Query, Reply as Answer, SourceInfo, Timestamp,
};
use sinew::pubsub::session::{
    Ended, Event, QueryId, QueryableId, Question, Reply, RequestId, Sample, SubscriberId,
};

/// Where bytes are that are looked at later.
#[derive(Clone, Debug)]
enum Held {
    /// In the packet.
    Packet(Range<usize>),
    /// In the copies.
    Copy(Range<usize>),
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

#[derive(Debug)]
enum Arrival {
    Sample(SubscriberId, Held, Qos, bool, HeldBody),
    Query {
        queryable: QueryableId,
        request: RequestId,
        key: Held,
        parameters: Held,
        consolidation: Consolidation,
        source: Option<SourceInfo>,
        body: Option<(u16, Held, Held)>,
        attachment: Option<Held>,
    },
    Reply(QueryId, Held, Option<Entity>, HeldAnswer),
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
}

/// More are handed out before the packet goes on, so that they stay in the processor's cache.
const MOST: usize = 256;

impl Arrivals {
    pub(super) fn has_any(&self) -> bool {
        !self.list.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }

    /// Keeps an event that was made of `packet`; others than arrivals are given back.
    pub(super) fn keep<'e>(&mut self, packet: &[u8], event: Event<'e>) -> Option<Event<'e>> {
        let arrival = match event {
            Event::Sample { subscriber, sample } => {
                let key = self.hold(packet, sample.key.as_bytes());
                let body = self.body(packet, &sample.body);
                Arrival::Sample(subscriber, key, sample.qos, sample.reliable, body)
            }
            Event::Query {
                queryable,
                request,
                question,
            } => Arrival::Query {
                queryable,
                request,
                key: self.hold(packet, question.key.as_bytes()),
                parameters: self.hold(packet, question.query.parameters.as_bytes()),
                consolidation: question.query.consolidation,
                source: question.query.source,
                body: question.query.body.map(|(encoding, payload)| {
                    let schema = self.hold(packet, encoding.schema);
                    (encoding.id, schema, self.hold(packet, payload))
                }),
                attachment: question
                    .query
                    .attachment
                    .map(|bytes| self.hold(packet, bytes)),
            },
            Event::Reply { query, reply } => {
                let key = self.hold(packet, reply.key.as_bytes());
                let answer = match &reply.answer {
                    Answer::Sample {
                        consolidation,
                        body,
                    } => HeldAnswer::Sample(*consolidation, self.body(packet, body)),
                    Answer::Error {
                        encoding,
                        source,
                        payload,
                    } => HeldAnswer::Error(
                        encoding.id,
                        self.hold(packet, encoding.schema),
                        *source,
                        self.hold(packet, payload),
                    ),
                };
                Arrival::Reply(query, key, reply.responder, answer)
            }
            Event::Ended { query, how } => Arrival::Ended(query, how),
            other => return Some(other),
        };
        self.list.push(arrival);
        None
    }

    fn hold(&mut self, packet: &[u8], bytes: &[u8]) -> Held {
        let start = (bytes.as_ptr() as usize).wrapping_sub(packet.as_ptr() as usize);
        let end = start.wrapping_add(bytes.len());
        if start <= end && end <= packet.len() {
            return Held::Packet(start..end);
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
        };
        for arrival in &self.list {
            match arrival {
                Arrival::Sample(subscriber, key, qos, reliable, body) => {
                    let sample = Sample {
                        key: held.text(key),
                        qos: *qos,
                        reliable: *reliable,
                        body: held.body(body),
                    };
                    to.sample(*subscriber, &sample);
                }
                Arrival::Query {
                    queryable,
                    request,
                    key,
                    parameters,
                    consolidation,
                    source,
                    body,
                    attachment,
                } => {
                    let query = Query {
                        consolidation: *consolidation,
                        parameters: held.text(parameters),
                        source: *source,
                        body: body.as_ref().map(|(id, schema, payload)| {
                            (held.encoding(*id, schema), held.bytes(payload))
                        }),
                        attachment: attachment.as_ref().map(|at| held.bytes(at)),
                    };
                    let key = held.text(key);
                    to.query(*queryable, *request, &Question { key, query });
                }
                Arrival::Reply(query, key, responder, answer) => {
                    let answer = match answer {
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
                    let (key, responder) = (held.text(key), *responder);
                    let reply = Reply {
                        key,
                        responder,
                        answer,
                    };
                    to.reply(*query, &reply);
                }
                Arrival::Ended(query, how) => to.ended(*query, *how),
            }
        }
        self.list.clear();
        self.copies.clear();
    }
}

struct Bytes<'a> {
    packet: &'a [u8],
    copies: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn bytes(&self, held: &Held) -> &'a [u8] {
        let found = match held {
            Held::Packet(range) => self.packet.get(range.clone()),
            Held::Copy(range) => self.copies.get(range.clone()),
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

//! Messages made up, of every kind and with every option. What they borrow is leaked: it is little.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use sinew::pubsub::codec::scouting::{Hello, Locators, Scout};
use sinew::pubsub::codec::transport::{
    Close, Fragment, Frame, Init, Join, KeepAlive, NextSn, Open,
};
use sinew::pubsub::codec::*;

use crate::any::{Datagram, Message};

fn bytes() -> BoxedStrategy<&'static [u8]> {
    let len = prop_oneof![3 => 0..20usize, 1 => 120..140usize, 1 => 300..301usize];
    len.prop_flat_map(|len| vec(any::<u8>(), len))
        .prop_map(|bytes| &*bytes.leak())
        .boxed()
}

fn text() -> BoxedStrategy<&'static str> {
    "[a-z*/é]{0,12}|[a-z/]{130,140}"
        .prop_map(|text| &*text.leak())
        .boxed()
}

fn zid() -> BoxedStrategy<Zid> {
    vec(any::<u8>(), 1..=16)
        .prop_filter_map("all zero", |bytes| Zid::new(&bytes))
        .boxed()
}

/// Numbers of every length on the wire.
fn number() -> BoxedStrategy<u32> {
    (any::<u32>(), 0..32u32)
        .prop_map(|(number, shift)| number >> shift)
        .boxed()
}

fn long_number() -> BoxedStrategy<u64> {
    (any::<u64>(), 0..64u32)
        .prop_map(|(number, shift)| number >> shift)
        .boxed()
}

fn short_number() -> BoxedStrategy<u16> {
    (any::<u16>(), 0..16u32)
        .prop_map(|(number, shift)| number >> shift)
        .boxed()
}

fn whatami() -> BoxedStrategy<WhatAmI> {
    prop_oneof![
        Just(WhatAmI::Router),
        Just(WhatAmI::Peer),
        Just(WhatAmI::Client)
    ]
    .boxed()
}

fn priority() -> BoxedStrategy<Priority> {
    (0..8u8).prop_map(Priority::of).boxed()
}

fn qos() -> BoxedStrategy<Qos> {
    prop_oneof![Just(Qos::DEFAULT), any::<u8>().prop_map(Qos)].boxed()
}

fn key() -> BoxedStrategy<WireExpr<'static>> {
    let scope = prop_oneof![0..0x80u16, short_number()];
    (scope, any::<bool>(), prop_oneof![Just(""), text()])
        .prop_map(|(scope, of_sender, suffix)| WireExpr {
            scope,
            of_sender,
            suffix,
        })
        .boxed()
}

fn encoding() -> BoxedStrategy<Encoding<'static>> {
    let schema = bytes().prop_map(|schema| &schema[..schema.len().min(255)]);
    prop_oneof![
        Just(Encoding::default()),
        (short_number(), schema).prop_map(|(id, schema)| Encoding { id, schema })
    ]
    .boxed()
}

fn source() -> BoxedStrategy<SourceInfo> {
    (zid(), number(), number())
        .prop_map(|(zid, entity, sn)| SourceInfo { zid, entity, sn })
        .boxed()
}

fn body() -> BoxedStrategy<Body<'static>> {
    let timestamp = (long_number(), zid()).prop_map(|(time, id)| Timestamp { time, id });
    let options = (
        of(timestamp),
        encoding(),
        of(source()),
        of(bytes()),
        bytes(),
    );
    prop_oneof![
        bytes().prop_map(Body::put),
        (any::<bool>(), options).prop_map(
            |(put, (timestamp, encoding, source, attachment, payload))| {
                // A deletion has neither encoding nor payload.
                let (kind, encoding, payload) = match put {
                    true => (Kind::Put, encoding, payload),
                    false => (Kind::Del, Encoding::default(), &[][..]),
                };
                Body {
                    kind,
                    timestamp,
                    encoding,
                    source,
                    attachment,
                    payload,
                }
            }
        )
    ]
    .boxed()
}

fn consolidation() -> BoxedStrategy<Consolidation> {
    use Consolidation::{Auto, Latest, Monotonic, None};
    prop_oneof![Just(Auto), Just(None), Just(Monotonic), Just(Latest)].boxed()
}

fn query() -> BoxedStrategy<Query<'static>> {
    let body = (encoding(), bytes());
    (consolidation(), text(), of(source()), of(body), of(bytes()))
        .prop_map(
            |(consolidation, parameters, source, body, attachment)| Query {
                consolidation,
                parameters,
                source,
                body,
                attachment,
            },
        )
        .boxed()
}

fn request() -> BoxedStrategy<Request<'static>> {
    let target = prop_oneof![
        Just(Target::BestMatching),
        Just(Target::All),
        Just(Target::AllComplete)
    ];
    let budget = of(number().prop_map(|budget| budget.max(1)));
    (
        number(),
        key(),
        qos(),
        target,
        budget,
        of(number()),
        query(),
    )
        .prop_map(
            |(id, key, qos, target, budget, timeout_ms, query)| Request {
                id,
                key,
                qos,
                target,
                budget,
                timeout_ms,
                query,
            },
        )
        .boxed()
}

fn reply() -> BoxedStrategy<Reply<'static>> {
    prop_oneof![
        (consolidation(), body()).prop_map(|(consolidation, body)| Reply::Sample {
            consolidation,
            body
        }),
        (encoding(), of(source()), bytes()).prop_map(|(encoding, source, payload)| Reply::Error {
            encoding,
            source,
            payload
        })
    ]
    .boxed()
}

fn response() -> BoxedStrategy<Response<'static>> {
    let responder = (zid(), number()).prop_map(|(zid, id)| Entity { zid, id });
    (number(), key(), qos(), of(responder), reply())
        .prop_map(|(id, key, qos, responder, reply)| Response {
            id,
            key,
            qos,
            responder,
            reply,
        })
        .boxed()
}

fn interest() -> BoxedStrategy<Interest<'static>> {
    (
        number(),
        any::<bool>(),
        any::<bool>(),
        any::<u8>(),
        of(key()),
        qos(),
    )
        .prop_map(|(id, current, future, options, key, qos)| {
            let more = current || future;
            let (options, key) = if more {
                (options & 0x8f, key)
            } else {
                (0, None)
            };
            Interest {
                id,
                current,
                future,
                options,
                key,
                qos,
            }
        })
        .boxed()
}

fn declaration() -> BoxedStrategy<Declaration<'static>> {
    let kind = prop_oneof![
        Just(EntityKind::Subscriber),
        Just(EntityKind::Queryable),
        Just(EntityKind::Token)
    ];
    let info = number().prop_map(|info| info & 0xff_ff01);
    prop_oneof![
        (short_number(), key()).prop_map(|(id, key)| Declaration::Key {
            id,
            key: WireExpr {
                of_sender: true,
                ..key
            }
        }),
        short_number().prop_map(|id| Declaration::NoKey { id }),
        (kind.clone(), number(), key(), info).prop_map(|(kind, id, key, info)| {
            let info = if kind == EntityKind::Queryable {
                info
            } else {
                0
            };
            Declaration::Entity {
                kind,
                id,
                key,
                info,
            }
        }),
        (kind, number(), of(key())).prop_map(|(kind, id, key)| Declaration::NoEntity {
            kind,
            id,
            key
        }),
        Just(Declaration::Final)
    ]
    .boxed()
}

/// A lease of whole seconds, or of some milliseconds.
fn lease() -> BoxedStrategy<u32> {
    prop_oneof![
        number(),
        (0..4_000_000u32).prop_map(|seconds| seconds * 1000)
    ]
    .boxed()
}

/// Six bits, and the usual one often.
fn resolution() -> BoxedStrategy<u8> {
    prop_oneof![Just(transport::RESOLUTION), 0..64u8].boxed()
}

fn patch() -> BoxedStrategy<u8> {
    prop_oneof![Just(0), Just(1), any::<u8>()].boxed()
}

fn next_sn() -> BoxedStrategy<NextSn> {
    (number(), number())
        .prop_map(|(reliable, best_effort)| NextSn {
            reliable,
            best_effort,
        })
        .boxed()
}

fn handshake() -> BoxedStrategy<Message<'static>> {
    let batch_size = prop_oneof![Just(65_535), Just(8192), any::<u16>()].boxed();
    let node = (
        any::<u8>(),
        whatami(),
        zid(),
        resolution(),
        batch_size,
        patch(),
    )
        .boxed();
    let priorities = of(proptest::array::uniform8(next_sn()));
    prop_oneof![
        (any::<bool>(), node.clone(), bytes()).prop_map(|(ack, node, cookie)| {
            let (version, whatami, zid, resolution, batch_size, patch) = node;
            let cookie = if ack { cookie } else { &[] };
            Message::Init(Init {
                ack,
                version,
                whatami,
                zid,
                resolution,
                batch_size,
                cookie,
                patch,
            })
        }),
        (any::<bool>(), lease(), number(), bytes()).prop_map(
            |(ack, lease_ms, initial_sn, cookie)| {
                let cookie = if ack { &[] } else { cookie };
                Message::Open(Open {
                    ack,
                    lease_ms,
                    initial_sn,
                    cookie,
                })
            }
        ),
        (node, lease(), next_sn(), priorities).prop_map(|(node, lease_ms, next, priorities)| {
            let (version, whatami, zid, resolution, batch_size, patch) = node;
            Message::Join(Join {
                version,
                whatami,
                zid,
                resolution,
                batch_size,
                lease_ms,
                next,
                priorities,
                patch,
            })
        })
    ]
    .boxed()
}

fn oam() -> BoxedStrategy<Oam<'static>> {
    let body = prop_oneof![
        Just(OamBody::None),
        number().prop_map(OamBody::Number),
        bytes().prop_map(OamBody::Bytes)
    ];
    (any::<bool>(), short_number(), qos(), body)
        .prop_map(|(network, id, qos, body)| Oam {
            network,
            id,
            qos,
            body,
        })
        .boxed()
}

fn transport() -> BoxedStrategy<Message<'static>> {
    let frame = (any::<bool>(), number(), priority()).boxed();
    let marks = (any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        handshake(),
        (any::<bool>(), any::<u8>())
            .prop_map(|(session, reason)| Message::Close(Close { session, reason })),
        Just(Message::KeepAlive(KeepAlive)),
        frame
            .clone()
            .prop_map(|(reliable, sn, priority)| Message::Frame(Frame {
                reliable,
                sn,
                priority
            })),
        (frame, marks, bytes()).prop_map(|(frame, (more, first, drop), payload)| {
            let (reliable, sn, priority) = frame;
            Message::Fragment(Fragment {
                reliable,
                more,
                sn,
                priority,
                first,
                drop,
                payload,
            })
        }),
    ]
    .boxed()
}

/// Any message that can stand in a batch.
pub fn message() -> BoxedStrategy<Message<'static>> {
    let push = (key(), qos(), body()).prop_map(|(key, qos, body)| Push { key, qos, body });
    let declare =
        (of(number()), qos(), declaration()).prop_map(|(interest, qos, declaration)| Declare {
            interest,
            qos,
            declaration,
        });
    prop_oneof![
        3 => transport(),
        2 => push.prop_map(Message::Push),
        1 => request().prop_map(Message::Request),
        1 => response().prop_map(Message::Response),
        1 => (number(), qos())
            .prop_map(|(id, qos)| Message::ResponseFinal(ResponseFinal { id, qos })),
        1 => interest().prop_map(Message::Interest),
        2 => declare.prop_map(Message::Declare),
        1 => oam().prop_map(Message::Oam)
    ]
    .boxed()
}

/// Any datagram of scouting.
pub fn datagram() -> BoxedStrategy<Datagram<'static>> {
    let locator = "[a-z]{1,5}/[a-z0-9.:]{1,20}|[a-z]{1,3}/[a-z]{130,140}";
    let locators = vec(locator, 0..4).prop_map(|list| {
        let place = Box::leak(Box::new([0; 1024]));
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        Locators::new(&list, place).unwrap()
    });
    prop_oneof![
        (any::<u8>(), 0..8u8, of(zid())).prop_map(|(version, what, zid)| Datagram::Scout(Scout {
            version,
            what,
            zid
        })),
        (any::<u8>(), whatami(), zid(), locators).prop_map(|(version, whatami, zid, locators)| {
            Datagram::Hello(Hello {
                version,
                whatami,
                zid,
                locators,
            })
        })
    ]
    .boxed()
}

//! The worked examples: captured from sessions between Zenoh's router 1.10.2, its Rust client and
//! Zenoh-Pico 1.9. Node ids, cookies, sequence numbers and payloads that the captures do not give in
//! full are filled in.

use sinew::pubsub::codec::scouting::{Hello, Locators, Scout};
use sinew::pubsub::codec::transport::{
    Close, Fragment, Frame, Init, Join, KeepAlive, NextSn, Open, RESOLUTION,
};
use sinew::pubsub::codec::*;

use crate::any::{Datagram, Message};

/// Bytes, and what they say.
pub struct Vector {
    /// Where it is from: a row of the examples, or a step of the session.
    pub name: &'static str,
    /// The batch.
    pub bytes: Vec<u8>,
    /// Its messages.
    pub messages: Vec<Message<'static>>,
    /// It has extensions that we do not write.
    pub read_only: bool,
}

/// Bytes from hexadecimal digits, `"text"`, and names: `client` and `router` are node ids, `cookie` is one of
/// 49 bytes, `sn` a number, `time` a time, `zeros(n)` n zeros. Spaces separate.
pub fn wire(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, part) in text.split('"').enumerate() {
        if i % 2 == 1 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        for word in part.split_whitespace() {
            match word {
                "client" => bytes.extend_from_slice(CLIENT),
                "router" => bytes.extend_from_slice(ROUTER),
                "cookie" => bytes.extend_from_slice(&COOKIE),
                "sn" => bytes.extend_from_slice(&wire("b2b6ec4d")),
                "time" => bytes.extend_from_slice(&wire("b094fd8cc38c9a806b")),
                _ => match word.strip_prefix("zeros(") {
                    Some(count) => {
                        let count: usize = count.trim_end_matches(')').parse().unwrap();
                        bytes.resize(bytes.len() + count, 0);
                    }
                    None => bytes.extend(
                        (0..word.len())
                            .step_by(2)
                            .map(|at| u8::from_str_radix(&word[at..at + 2], 16).expect(word)),
                    ),
                },
            }
        }
    }
    bytes
}

const CLIENT: &[u8] = b"\xf5\xa3\x6f\x4b\x15\xba\x6f\xf7\xfc\x67\x54\x4b\x08\x98\x72\x17";
const ROUTER: &[u8] = b"\x2b\x76\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x9a\x77";
const COOKIE: [u8; 49] = [0xc0; 49];
/// What `sn` says.
const SN: u32 = 0x32 | 0x36 << 7 | 0x6c << 14 | 0x4d << 21;
/// What `time` says.
const TIME: u64 =
    0x30 | 0x14 << 7 | 0x7d << 14 | 0x0c << 21 | 0x43 << 28 | 0x0c << 35 | 0x1a << 42 | 0x6b << 56;

fn client() -> Zid {
    Zid::new(CLIENT).unwrap()
}

fn router() -> Zid {
    Zid::new(ROUTER).unwrap()
}

fn init(whatami: WhatAmI, zid: Zid, batch_size: u16) -> Init<'static> {
    let resolution = RESOLUTION;
    Init {
        ack: false,
        version: 9,
        whatami,
        zid,
        resolution,
        batch_size,
        cookie: &[],
        patch: 1,
    }
}

fn frame(reliable: bool, sn: u32) -> Message<'static> {
    Message::Frame(Frame {
        reliable,
        sn,
        priority: Priority::Data,
    })
}

fn frame_of(priority: Priority) -> Message<'static> {
    Message::Frame(Frame {
        reliable: true,
        sn: SN,
        priority,
    })
}

const fn key(scope: u16, of_sender: bool, suffix: &str) -> WireExpr<'_> {
    WireExpr {
        scope,
        of_sender,
        suffix,
    }
}

/// As Zenoh-Pico writes declarations.
fn plain(declaration: Declaration<'static>) -> Message<'static> {
    Message::Declare(Declare {
        interest: None,
        qos: Qos::DEFAULT,
        declaration,
    })
}

/// As Zenoh's Rust nodes write them.
fn declare(declaration: Declaration<'static>) -> Message<'static> {
    Message::Declare(Declare {
        interest: None,
        qos: Qos::DECLARATION,
        declaration,
    })
}

fn answer(interest: u32, declaration: Declaration<'static>) -> Message<'static> {
    Message::Declare(Declare {
        interest: Some(interest),
        qos: Qos::DECLARATION,
        declaration,
    })
}

fn key_is(id: u16, scope: u16, suffix: &'static str) -> Declaration<'static> {
    Declaration::Key {
        id,
        key: key(scope, true, suffix),
    }
}

fn entity(kind: EntityKind, id: u32, key: WireExpr<'static>) -> Declaration<'static> {
    Declaration::Entity {
        kind,
        id,
        key,
        info: 0,
    }
}

fn gone(kind: EntityKind, id: u32, key: Option<WireExpr<'static>>) -> Declaration<'static> {
    Declaration::NoEntity { kind, id, key }
}

fn interest(
    id: u32,
    future: bool,
    options: u8,
    key: WireExpr<'static>,
    qos: Qos,
) -> Message<'static> {
    Message::Interest(Interest {
        id,
        current: true,
        future,
        options,
        key: Some(key),
        qos,
    })
}

fn put(key: WireExpr<'static>, payload: &'static [u8]) -> Message<'static> {
    Message::Push(Push::put(key, payload))
}

fn query(id: u32, target: Target, query: Query<'static>) -> Message<'static> {
    let (key, timeout_ms) = (
        WireExpr {
            of_sender: true,
            ..key(0, true, "q/x")
        },
        Some(2000),
    );
    Message::Request(Request {
        id,
        key,
        qos: Qos::REQUEST,
        target,
        budget: None,
        timeout_ms,
        query,
    })
}

fn response(reply: Reply<'static>) -> Message<'static> {
    let responder = Some(Entity {
        zid: router(),
        id: 7,
    });
    let key = WireExpr::text("q/x");
    Message::Response(Response {
        id: 1,
        key,
        qos: Qos::REQUEST,
        responder,
        reply,
    })
}

fn sample(body: Body<'static>) -> Reply<'static> {
    Reply::Sample {
        consolidation: Consolidation::Auto,
        body,
    }
}

fn fragment(sn: u32, more: bool, first: bool, payload: &'static [u8]) -> Message<'static> {
    let (reliable, priority, drop) = (true, Priority::Data, false);
    Message::Fragment(Fragment {
        reliable,
        more,
        sn,
        priority,
        first,
        drop,
        payload,
    })
}

/// With the length that a stream puts before a batch, which is checked.
fn stream(name: &'static str, text: &str, messages: Vec<Message<'static>>) -> Vector {
    let bytes = wire(text);
    let (len, bytes) = bytes.split_at(2);
    assert_eq!(
        usize::from(u16::from_le_bytes([len[0], len[1]])),
        bytes.len(),
        "{name}"
    );
    Vector {
        name,
        bytes: bytes.to_vec(),
        messages,
        read_only: false,
    }
}

/// Without it.
fn batch(name: &'static str, text: &str, messages: Vec<Message<'static>>) -> Vector {
    Vector {
        name,
        bytes: wire(text),
        messages,
        read_only: false,
    }
}

fn read_only(vector: Vector) -> Vector {
    Vector {
        read_only: true,
        ..vector
    }
}

/// A session of Zenoh-Pico's client with the router, one step after another.
pub fn session() -> Vec<Vector> {
    let hello = b"[   0] 12345678";
    let ack = Init {
        ack: true,
        cookie: &COOKIE,
        ..init(WhatAmI::Router, router(), 2048)
    };
    let open = Open {
        ack: false,
        lease_ms: 10_000,
        initial_sn: 0,
        cookie: &COOKIE,
    };
    let router_sn = 0x0c | 0x36 << 7 | 0x46 << 14 | 0x72 << 21; // 8cb6c672
    assert_eq!(router_sn, 240_229_132);
    vec![
        stream(
            "the client offers",
            "1800 c1 09 f2 client 0a 0008 27 01",
            vec![Message::Init(init(WhatAmI::Client, client(), 2048))],
        ),
        stream(
            "the router takes it up",
            "4a00 e1 09 f0 router 0a 0008 31 cookie 27 01",
            vec![Message::Init(ack)],
        ),
        stream(
            "the client opens",
            "3500 42 0a 00 31 cookie",
            vec![Message::Open(open)],
        ),
        stream(
            "the router opens",
            "0600 62 0a 8cb6c672",
            vec![Message::Open(Open {
                ack: true,
                initial_sn: router_sn,
                cookie: &[],
                ..open
            })],
        ),
        stream(
            "a sign of life",
            "0100 04",
            vec![Message::KeepAlive(KeepAlive)],
        ),
        stream(
            "a key",
            "0b00 25 00 1e 20 01 00 04 64656d6f",
            vec![frame(true, 0), plain(key_is(1, 0, "demo"))],
        ),
        stream(
            "a subscriber",
            "0e00 25 01 1e 62 01 00 07 64656d6f2f2a2a",
            vec![
                frame(true, 1),
                plain(entity(EntityKind::Subscriber, 1, key(0, true, "demo/**"))),
            ],
        ),
        stream(
            "a publisher asks for subscribers",
            "0600 25 01 79 02 d3 01",
            vec![
                frame(true, 1),
                interest(
                    2,
                    true,
                    Interest::KEYS | Interest::SUBSCRIBERS | Interest::AGGREGATE,
                    key(1, true, ""),
                    Qos::DEFAULT,
                ),
            ],
        ),
        stream(
            "there is one, and no more",
            "1100 25 f8a1ee15 be 02 21 08 02 02 01 be 02 21 08 1a",
            vec![
                frame(true, 0x78 | 0x21 << 7 | 0x6e << 14 | 0x15 << 21),
                answer(2, entity(EntityKind::Subscriber, 2, key(1, false, ""))),
                answer(2, Declaration::Final),
            ],
        ),
        stream(
            "a sample",
            "1500 25 02 5d 01 01 0f \"[   0] 12345678\"",
            vec![frame(true, 2), put(key(1, true, ""), hello)],
        ),
        stream(
            "it comes down, with a time stamp",
            "3600 25 8cb6c672 3d 01 03 \"/ex\" 21 time 10 router 0f \"[   0] 12345678\"",
            vec![
                frame(true, router_sn),
                Message::Push(Push {
                    key: key(1, false, "/ex"),
                    qos: Qos::DEFAULT,
                    body: Body {
                        timestamp: Some(Timestamp {
                            time: TIME,
                            id: router(),
                        }),
                        ..Body::put(hello)
                    },
                }),
            ],
        ),
        stream(
            "the interest ends",
            "0400 25 05 19 02",
            vec![
                frame(true, 5),
                Message::Interest(Interest {
                    id: 2,
                    ..Interest::default()
                }),
            ],
        ),
        stream(
            "the key ends",
            "0500 25 06 1e 01 01",
            vec![frame(true, 6), plain(Declaration::NoKey { id: 1 })],
        ),
        stream(
            "the link ends",
            "0200 03 00",
            vec![Message::Close(Close {
                session: false,
                reason: Close::GENERIC,
            })],
        ),
    ]
}

/// The numbered examples.
pub fn examples() -> Vec<Vector> {
    let text = Encoding::TEXT_PLAIN.with_schema(b"utf8");
    let of_q = |suffix| key(3, true, suffix);
    let declared = |scope| key(scope, true, "");
    let urgent = Qos::DEFAULT
        .with_priority(Priority::RealTime)
        .with_blocking(true)
        .with_express(true);
    let open = Open {
        ack: true,
        lease_ms: 10_000,
        initial_sn: SN,
        cookie: &[],
    };
    let ack = Init {
        ack: true,
        cookie: &COOKIE,
        ..init(WhatAmI::Router, router(), 2048)
    };
    use EntityKind::{Queryable, Subscriber, Token};
    let mut rows = vec![
        stream(
            "1 INIT of Zenoh-Pico",
            "1800 c1 09 f2 client 0a 0008 27 01",
            vec![Message::Init(init(WhatAmI::Client, client(), 2048))],
        ),
        stream(
            "2 INIT of the router",
            "4a00 e1 09 f0 router 0a 0008 31 cookie 27 01",
            vec![Message::Init(ack)],
        ),
        read_only(stream(
            "3 INIT of the Rust client",
            "2000 c1 09 f2 client 0a c8ff 81 c2 05 0102030405 27 01",
            vec![Message::Init(init(WhatAmI::Client, client(), 65_480))],
        )),
        stream(
            "4 OPEN",
            "3500 42 0a 00 31 cookie",
            vec![Message::Open(Open {
                ack: false,
                initial_sn: 0,
                cookie: &COOKIE,
                ..open
            })],
        ),
        stream(
            "4 OPEN, the answer",
            "0600 62 0a sn",
            vec![Message::Open(open)],
        ),
        read_only(stream(
            "5 OPEN with shared memory",
            "1100 e2 0a sn 42 09 010203040506070809",
            vec![Message::Open(open)],
        )),
        stream(
            "6 a key",
            "0b00 25 00 1e 20 01 00 04 \"demo\"",
            vec![frame(true, 0), plain(key_is(1, 0, "demo"))],
        ),
        stream(
            "6 a subscriber",
            "0e00 25 01 1e 62 01 00 07 \"demo/**\"",
            vec![
                frame(true, 1),
                plain(entity(Subscriber, 1, key(0, true, "demo/**"))),
            ],
        ),
        stream(
            "7 a key, from Rust",
            "0f00 a5 sn 31 00 9e 21 08 20 01 00 01 \"d\"",
            vec![frame_of(Priority::Control), declare(key_is(1, 0, "d"))],
        ),
        stream(
            "7 a subscriber, from Rust",
            "1000 a5 sn 31 00 9e 21 08 62 01 01 02 \"/*\"",
            vec![
                frame_of(Priority::Control),
                declare(entity(Subscriber, 1, key(1, true, "/*"))),
            ],
        ),
        stream(
            "8 a complete queryable",
            "1200 a5 sn 31 00 9e 21 08 e4 02 02 02 \"/*\" 21 01",
            vec![
                frame_of(Priority::Control),
                declare(Declaration::Entity {
                    kind: Queryable,
                    id: 2,
                    key: key(2, true, "/*"),
                    info: EntityKind::COMPLETE,
                }),
            ],
        ),
        stream(
            "9 a key and a token",
            "1a00 a5 sn 31 00 9e 21 08 20 03 00 06 \"live/a\" 9e 21 08 46 03 03",
            vec![
                frame_of(Priority::Control),
                declare(key_is(3, 0, "live/a")),
                declare(entity(Token, 3, declared(3))),
            ],
        ),
        stream(
            "10 an interest in one subscriber",
            "0600 25 01 79 02 d3 01",
            vec![
                frame(true, 1),
                interest(
                    2,
                    true,
                    Interest::KEYS | Interest::SUBSCRIBERS | Interest::AGGREGATE,
                    declared(1),
                    Qos::DEFAULT,
                ),
            ],
        ),
        stream(
            "10 the answer",
            "1100 25 sn be 02 21 08 02 02 01 be 02 21 08 1a",
            vec![
                frame(true, SN),
                answer(2, entity(Subscriber, 2, key(1, false, ""))),
                answer(2, Declaration::Final),
            ],
        ),
        batch(
            "11 who is alive",
            "b9 03 79 03 03 \"/**\" 21 08",
            vec![interest(
                3,
                false,
                Interest::KEYS | Interest::TOKENS,
                of_q("/**"),
                Qos::DECLARATION,
            )],
        ),
        batch(
            "11 the answer",
            "be 03 21 08 66 00 00 06 \"live/a\" be 03 21 08 1a",
            vec![
                answer(3, entity(Token, 0, WireExpr::text("live/a"))),
                answer(3, Declaration::Final),
            ],
        ),
        stream(
            "12 an interest ends",
            "0400 25 05 19 02",
            vec![
                frame(true, 5),
                Message::Interest(Interest {
                    id: 2,
                    ..Interest::default()
                }),
            ],
        ),
        stream(
            "13 PUT, best effort",
            "1100 05 sn 5d 02 01 08 \"ABCDEFGH\"",
            vec![frame(false, SN), put(declared(2), b"ABCDEFGH")],
        ),
        stream(
            "14 PUT on a key that is not declared",
            "1500 25 sn 7d 00 03 \"d/1\" 01 08 \"ABCDEFGH\"",
            vec![frame(true, SN), put(WireExpr::text("d/1"), b"ABCDEFGH")],
        ),
        stream(
            "15 PUT with all options",
            "3b00 a5 sn 31 01 dd 01 21 19 e1 time 10 client 09 04 \"utf8\" 43 04 \"meta\" 08 \"ABCDEFGH\"",
            vec![
                frame_of(Priority::RealTime),
                Message::Push(Push {
                    key: declared(1),
                    qos: urgent,
                    body: Body {
                        timestamp: Some(Timestamp {
                            time: TIME,
                            id: client(),
                        }),
                        encoding: text,
                        attachment: Some(b"meta"),
                        ..Body::put(b"ABCDEFGH")
                    },
                }),
            ],
        ),
        stream(
            "16 PUT with its source",
            "2900 a5 sn 31 01 dd 01 21 19 c1 09 04 \"utf8\" 41 13 f0 client 01 07 01 \"S\"",
            vec![
                frame_of(Priority::RealTime),
                Message::Push(Push {
                    key: declared(1),
                    qos: urgent,
                    body: Body {
                        encoding: text,
                        source: Some(SourceInfo {
                            zid: client(),
                            entity: 1,
                            sn: 7,
                        }),
                        ..Body::put(b"S")
                    },
                }),
            ],
        ),
        stream(
            "17 DEL",
            "0c00 25 sn 7d 00 03 \"d/1\" 02",
            vec![
                frame(true, SN),
                Message::Push(Push::del(WireExpr::text("d/1"))),
            ],
        ),
    ];
    rows.extend(queries());
    rows.extend(ends());
    rows
}

fn queries() -> Vec<Vector> {
    vec![
        stream(
            "18 QUERY",
            "1300 25 sn fc 01 00 03 \"q/x\" a1 0d 26 d00f 23 03",
            vec![
                frame(true, SN),
                query(
                    1,
                    Target::BestMatching,
                    Query {
                        consolidation: Consolidation::Latest,
                        ..Query::default()
                    },
                ),
            ],
        ),
        stream(
            "19 QUERY with all options",
            "2800 25 sn fc 02 00 03 \"q/x\" a1 0d b4 01 26 d00f e3 01 07 \"k=1;v=2\" c3 05 00 \"body\" 45 02 \"qa\"",
            vec![
                frame(true, SN),
                query(
                    2,
                    Target::All,
                    Query {
                        consolidation: Consolidation::None,
                        parameters: "k=1;v=2",
                        source: None,
                        body: Some((Encoding::ZENOH_BYTES, b"body")),
                        attachment: Some(b"qa"),
                    },
                ),
            ],
        ),
        stream(
            "20 REPLY",
            "3000 25 sn fb 01 00 03 \"q/x\" a1 0d 43 12 f0 router 07 04 c1 0a 43 02 \"at\" 06 \"answer\"",
            vec![
                frame(true, SN),
                response(sample(Body {
                    encoding: Encoding::APPLICATION_JSON,
                    attachment: Some(b"at"),
                    ..Body::put(b"answer")
                })),
            ],
        ),
        batch(
            "21 REPLY, a deletion",
            "fb 01 00 03 \"q/x\" a1 0d 43 12 f0 router 07 04 02",
            vec![response(sample(Body::del()))],
        ),
        batch(
            "21 ERR",
            "fb 01 00 03 \"q/x\" a1 0d 43 12 f0 router 07 45 08 03 \"bad\"",
            vec![response(Reply::Error {
                encoding: Encoding::TEXT_PLAIN,
                source: None,
                payload: b"bad",
            })],
        ),
        stream(
            "22 no more replies",
            "0900 25 sn 9a 01 21 0d",
            vec![
                frame(true, SN),
                Message::ResponseFinal(ResponseFinal {
                    id: 1,
                    qos: Qos::REQUEST,
                }),
            ],
        ),
    ]
}

fn ends() -> Vec<Vector> {
    static ZEROS: [u8; 49_145] = [0; 49_145];
    use EntityKind::{Queryable, Subscriber, Token};
    let nothing = Some(WireExpr::default());
    let sample = || put(key(1, true, ""), b"ABCDEFGH");
    vec![
        batch(
            "23 no subscriber",
            "9e 21 08 03 01",
            vec![declare(gone(Subscriber, 1, None))],
        ),
        batch(
            "23 no queryable",
            "9e 21 08 85 02 5f 02 0000",
            vec![declare(gone(Queryable, 2, nothing))],
        ),
        batch(
            "23 no token",
            "9e 21 08 87 03 5f 02 0000",
            vec![declare(gone(Token, 3, nothing))],
        ),
        stream(
            "24 the first piece",
            "febf e6 sn 02 zeros(49144)",
            vec![fragment(SN, true, true, &ZEROS[..49_144])],
        ),
        stream(
            "24 the next",
            "febf 66 sn zeros(49145)",
            vec![fragment(SN, true, false, &ZEROS)],
        ),
        stream(
            "24 the last",
            "6e0d 26 sn zeros(3433)",
            vec![fragment(SN, false, false, &ZEROS[..3433])],
        ),
        stream(
            "25 CLOSE",
            "0200 03 00",
            vec![Message::Close(Close {
                session: false,
                reason: Close::GENERIC,
            })],
        ),
        stream(
            "25 a sign of life",
            "0100 04",
            vec![Message::KeepAlive(KeepAlive)],
        ),
        batch(
            "26 a datagram",
            "25 02 5d 01 01 0f \"[   0] 12345678\"",
            vec![frame(true, 2), put(key(1, true, ""), b"[   0] 12345678")],
        ),
        batch(
            "27 JOIN",
            "e7 09 f1 client 0a 0008 0a 00 00 27 01",
            vec![Message::Join(Join {
                version: 9,
                whatami: WhatAmI::Peer,
                zid: client(),
                resolution: RESOLUTION,
                batch_size: 2048,
                lease_ms: 10_000,
                next: NextSn::default(),
                priorities: None,
                patch: 1,
            })],
        ),
        batch(
            "28 no subscriber, in a group",
            "25 01 1e 83 01 5f 09 03 00 \"demo/ex\"",
            vec![
                frame(true, 1),
                plain(gone(Subscriber, 1, Some(WireExpr::text("demo/ex")))),
            ],
        ),
        stream(
            "31 a peer has said all",
            "0a00 25 cafeb346 be 00 21 08 1a",
            vec![
                frame(true, 0x4a | 0x7e << 7 | 0x33 << 14 | 0x46 << 21),
                answer(0, Declaration::Final),
            ],
        ),
        stream(
            "32 gossip",
            "3a00 a5 sn 31 00 df 01 21 08 2e zeros(46)",
            vec![
                frame_of(Priority::Control),
                Message::Oam(Oam {
                    network: true,
                    id: 1,
                    qos: Qos::DECLARATION,
                    body: OamBody::Bytes(&ZEROS[..46]),
                }),
            ],
        ),
        batch(
            "33 two frames in one batch",
            "25 sn 5d 01 01 08 \"ABCDEFGH\" 05 sn 5d 01 01 08 \"ABCDEFGH\"",
            vec![frame(true, SN), sample(), frame(false, SN), sample()],
        ),
        batch(
            "a sign of life behind a frame",
            "25 sn 5d 01 01 08 \"ABCDEFGH\" 04",
            vec![frame(true, SN), sample(), Message::KeepAlive(KeepAlive)],
        ),
    ]
}

/// The examples of scouting.
pub fn scouting() -> Vec<(&'static str, Vec<u8>, Datagram<'static>)> {
    let place = Box::leak(Box::new([0; 64]));
    let locators = Locators::new(&["tcp/127.0.0.1:17444"], place).unwrap();
    let hello = Hello {
        version: 9,
        whatami: WhatAmI::Router,
        zid: router(),
        locators,
    };
    let scout = Scout {
        version: 9,
        what: 3,
        zid: None,
    };
    vec![
        ("29 SCOUT", wire("01 09 03"), Datagram::Scout(scout)),
        (
            "29 HELLO",
            wire("22 09 f0 router 01 13 \"tcp/127.0.0.1:17444\""),
            Datagram::Hello(hello),
        ),
        (
            "30 SCOUT with an id",
            wire("01 09 3b 01020304"),
            Datagram::Scout(Scout {
                zid: Zid::new(&[1, 2, 3, 4]),
                ..scout
            }),
        ),
    ]
}

//! One session, and a script of bytes that plays its link, its peer, its application and the time.
//!
//! Whatever the script is, this holds:
//! * a packet is finished within a number of steps that its length bounds, a poll within few;
//! * after a poll that is done, nothing is due before time passes;
//! * what is sent can be read, and fits the link; a place is asked for before it is committed;
//! * a session opens, then ends, in turns; each query ends once;
//! * on a fresh link, the session comes about again.

use std::collections::{HashSet, VecDeque};
use std::task::Waker;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::transport::{self, Close, Fragment, Frame, Init, KeepAlive, Open};
use sinew::pubsub::codec::{
    self, Body, Declare, Decode, Encoding, Interest, Priority, Push, Qos, Reader, Request,
    Response, ResponseFinal, WhatAmI, WireExpr, Writer, Zid, id_of, network,
};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{
    Ask, Config, Event, Fixed, PublisherId, PublisherOptions, QueryId, QueryableId, RequestId,
    Session, State, Step, SubscriberId,
};
use sinew::time::Instant;

type Tables = Fixed<3, 3, 2, 2, 8, 300>;

/// A link that holds a few packets.
struct Link {
    place: Vec<u8>,
    mtu: usize,
    taken: bool,
    room: usize,
    sent: VecDeque<Vec<u8>>,
}

/// Behind the place.
const GUARD: u8 = 0x5a;

impl Tx for Link {
    fn mtu(&self) -> usize {
        self.mtu
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if min > self.mtu {
            return Err(SendError::TooLarge);
        }
        if !self.taken && self.sent.len() >= self.room {
            return Err(SendError::Full);
        }
        self.taken = true;
        Ok(self.place.get_mut(..self.mtu).expect("its size"))
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        assert!(std::mem::replace(&mut self.taken, false), "no place");
        if len > 0 {
            self.sent.push_back(self.place[..len].to_vec());
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

pub struct Play {
    session: Session<Tables>,
    link: Link,
    now: u64,
    accepts: bool,
    /// Of the peer: the next numbers, and the cookie that it was given.
    sn: [u32; 2],
    mask: u32,
    cookie: Vec<u8>,
    open: bool,
    packet: Option<Vec<u8>>,
    publishers: Vec<PublisherId>,
    subscribers: Vec<SubscriberId>,
    queryables: Vec<QueryableId>,
    requests: Vec<RequestId>,
    queries: HashSet<QueryId>,
}

const KEYS: [&str; 8] = [
    "a",
    "a/b",
    "a/*",
    "**",
    "a/$*b",
    "@x/**",
    "a/rather/long/key/so/that/it/does/not/fit/a/batch/of/64/bytes",
    "b",
];

fn bytes(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut place = vec![0; 1000];
    let mut writer = Writer::new(&mut place);
    write(&mut writer);
    let len = writer.finish().expect("room");
    place.truncate(len);
    place
}

impl Play {
    /// Plays a script.
    pub fn run(script: &[u8]) {
        let Some((&first, rest)) = script.split_first() else {
            return;
        };
        let mut play = Play::new(first);
        let mut script = rest;
        while play.step(&mut script).is_some() {}
        play.comes_back();
    }

    fn new(first: u8) -> Play {
        let zid = Zid::new(b"node").expect("bytes");
        let mut config = match first & 1 {
            0 => Config::client(zid),
            _ => Config::peer(zid),
        };
        let mtu = [64, 100, 256, 1500][usize::from(first >> 1 & 3)];
        config.batching = core::time::Duration::from_millis(u64::from(first >> 3 & 1));
        config.resend = u64::from(first >> 4 & 1) * 50_000;
        config.largest = if first & 0x20 == 0 { 700 } else { 1 << 20 };
        let mut play = Play {
            session: Session::new(config, Tables::new()),
            link: Link {
                place: vec![GUARD; mtu + 16],
                mtu,
                taken: false,
                room: 4,
                sent: VecDeque::new(),
            },
            now: 1_000_000,
            accepts: first & 0x40 != 0,
            sn: [0; 2],
            mask: 0,
            cookie: Vec::new(),
            open: false,
            packet: None,
            publishers: Vec::new(),
            subscribers: Vec::new(),
            queryables: Vec::new(),
            requests: Vec::new(),
            queries: HashSet::new(),
        };
        play.renew(first & 0x80 != 0);
        play
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.now)
    }

    /// A fresh link; the handshake is done or left to the script.
    fn renew(&mut self, whole: bool) {
        self.session.link_lost();
        self.open = false;
        self.link.taken = false;
        self.link.sent.clear();
        self.packet = None;
        match self.accepts {
            true => self.session.accept(),
            false => self.session.open(self.now()),
        }
        self.turn();
        if whole {
            self.handshake(0x0a, 1);
        }
    }

    fn handshake(&mut self, resolution: u8, patch: u8) {
        self.give(self.init(resolution, patch));
        self.take();
        let opening = self.opening();
        self.give(opening);
    }

    fn init(&self, resolution: u8, patch: u8) -> Vec<u8> {
        let init = Init {
            ack: !self.accepts,
            version: codec::VERSION,
            whatami: [WhatAmI::Router, WhatAmI::Peer][usize::from(patch & 2 != 0)],
            zid: Zid::new(b"peer").expect("bytes"),
            resolution,
            batch_size: 64,
            cookie: b"cookie",
            patch: patch & 1,
        };
        bytes(|w| init.encode(w))
    }

    fn opening(&mut self) -> Vec<u8> {
        self.sn = [0; 2];
        self.mask = 0x0fff_ffff;
        let open = Open {
            ack: !self.accepts,
            lease_ms: 10_000,
            initial_sn: 0,
            cookie: &self.cookie,
        };
        bytes(|w| open.encode(w))
    }

    /// The link carries away what was sent, and it is read.
    fn take(&mut self) {
        while let Some(packet) = self.link.sent.pop_front() {
            assert!(packet.len() <= self.link.mtu);
            self.read(&packet);
        }
        assert!(
            self.link.place[self.link.mtu..]
                .iter()
                .all(|&byte| byte == GUARD)
        );
    }

    fn read(&mut self, packet: &[u8]) {
        let mut r = Reader::new(packet);
        while !r.is_empty() {
            let header = r.byte().expect("a byte");
            let read = match id_of(header) {
                transport::INIT => Init::decode(header, &mut r).map(|init| {
                    if init.ack {
                        self.cookie = init.cookie.to_vec();
                    }
                }),
                transport::OPEN => Open::decode(header, &mut r).map(drop),
                transport::CLOSE => Close::decode(header, &mut r).map(drop),
                transport::KEEP_ALIVE => KeepAlive::decode(header, &mut r).map(drop),
                transport::FRAME => Frame::decode(header, &mut r).map(drop),
                transport::FRAGMENT => Fragment::decode(header, &mut r).map(drop),
                network::PUSH => Push::decode(header, &mut r).map(drop),
                network::DECLARE => Declare::decode(header, &mut r).map(drop),
                network::INTEREST => Interest::decode(header, &mut r).map(drop),
                network::REQUEST => Request::decode(header, &mut r).map(drop),
                network::RESPONSE => Response::decode(header, &mut r).map(drop),
                network::RESPONSE_FINAL => ResponseFinal::decode(header, &mut r).map(drop),
                id => panic!("{id:#x} is sent: {packet:02x?}"),
            };
            assert_eq!(read, Ok(()), "{packet:02x?}");
        }
    }

    /// A packet arrives; one before that waits for a place is dropped with its link.
    fn give(&mut self, packet: Vec<u8>) {
        if self.packet.is_some() {
            self.link.room = usize::MAX;
            self.turn();
        }
        if self.packet.is_some() {
            // Only a message that is cut holds it up now: the application's turn.
            self.session.abandon();
            self.turn();
            assert!(self.packet.is_none(), "it waits for nothing");
        }
        self.packet = Some(packet);
        self.turn();
    }

    fn turn(&mut self) {
        let now = self.now();
        let mut steps = 0;
        while let Some(packet) = self.packet.take() {
            steps += 1;
            assert!(steps <= 8 * packet.len() + 8, "endless: {packet:02x?}");
            // Every other packet as nodes of hosts take it in.
            if packet.len() % 2 == 0
                && let Some(run) = self.session.run(&packet)
            {
                let payloads = run.payloads.of(&packet).count();
                assert_eq!(payloads, run.payloads.count() as usize);
                self.packet = Some(packet);
                continue;
            }
            let was = self.open;
            let step = self.session.receive(&packet, &mut self.link, now);
            match step {
                Step::Done => break,
                Step::Full => {
                    self.packet = Some(packet);
                    break;
                }
                Step::More => {}
                Step::Event(event) => {
                    let told = note(&event, &mut self.queries, &mut self.requests);
                    self.turned(was, told);
                }
            }
            self.packet = Some(packet);
        }
        for steps in 0.. {
            assert!(steps < 100, "endless");
            let was = self.open;
            match self.session.poll(&mut self.link, now) {
                Step::Done => {
                    assert!(self.session.deadline() > now, "due already");
                    break;
                }
                Step::Full => break,
                Step::More => {}
                Step::Event(event) => {
                    let told = note(&event, &mut self.queries, &mut self.requests);
                    self.turned(was, told);
                }
            }
        }
        assert_eq!(self.open, self.session.state() == State::Open);
    }

    fn turned(&mut self, was: bool, told: Option<bool>) {
        match told {
            Some(true) => assert!(!was, "it opens once"),
            Some(false) => self.requests.clear(),
            None => return,
        }
        self.open = told == Some(true);
    }

    fn step(&mut self, script: &mut &[u8]) -> Option<()> {
        let &kind = take(script, 1)?.first()?;
        match kind % 16 {
            0 => {
                let len = usize::from(*take(script, 1)?.first()?);
                let packet = take(script, len.min(120))?.to_vec();
                self.give(packet);
            }
            1..=3 => {
                // A frame, or two, with the number that is due, and what the script says.
                let len = usize::from(*take(script, 1)?.first()?);
                let body = take(script, len.min(120))?;
                let packet = self.frame(kind & 16 == 0, body);
                self.give(packet);
            }
            4 | 5 => {
                let fields = take(script, 4)?;
                let message = message(fields);
                let packet = self.frame(kind & 16 == 0, &message);
                self.give(packet);
            }
            6 => {
                let fields = take(script, 4)?;
                let body = message(fields);
                let at = usize::from(fields[3]) % body.len().max(1);
                let (front, back) = body.split_at(at);
                let packet = self.fragment(front, kind & 32 != 0, kind & 16 == 0);
                self.give(packet);
                let packet = self.fragment(back, false, kind & 64 != 0);
                self.give(packet);
            }
            7 => {
                let by = u64::from(*take(script, 1)?.first()?);
                self.now += by * by * 100;
                self.turn();
            }
            8 => {
                let room = usize::from(kind >> 4);
                self.link.room = room;
                if kind & 16 == 0 {
                    self.take();
                }
                self.turn();
            }
            9 => match kind >> 4 {
                0 => self.renew(false),
                1 => self.renew(true),
                2 => self.handshake(0x0a, 1),
                3 => self.handshake(0, 0),
                4 => self.handshake(5, 3),
                5 => {
                    let close = Close {
                        session: true,
                        reason: kind,
                    };
                    self.give(bytes(|w| close.encode(w)));
                }
                6 => self.give(bytes(|w| KeepAlive.encode(w))),
                7 => {
                    let now = self.now();
                    self.session.close(&mut self.link, now);
                    self.open = false;
                    self.requests.clear();
                    self.turn();
                }
                8 => {
                    self.accepts = !self.accepts;
                    self.renew(true);
                }
                9 => self.give(self.init(0x0a, 1)),
                _ => {
                    let packet = self.opening();
                    self.give(packet);
                }
            },
            10..=12 => {
                let fields = take(script, 2)?;
                self.declare(fields[0], fields[1]);
                self.turn();
            }
            _ => {
                let fields = take(script, 2)?;
                self.act(fields[0], fields[1]);
                self.turn();
            }
        }
        Some(())
    }

    fn frame(&mut self, reliable: bool, body: &[u8]) -> Vec<u8> {
        let sn = self.number(reliable);
        let frame = Frame {
            reliable,
            sn,
            priority: Priority::Data,
        };
        bytes(|w| {
            frame.encode(w);
            w.bytes(body);
        })
    }

    fn fragment(&mut self, payload: &[u8], first: bool, more: bool) -> Vec<u8> {
        let sn = self.number(true);
        let fragment = Fragment {
            reliable: true,
            more,
            sn,
            priority: Priority::Data,
            first,
            drop: false,
            payload,
        };
        bytes(|w| fragment.encode(w))
    }

    fn number(&mut self, reliable: bool) -> u32 {
        let sn = &mut self.sn[usize::from(reliable)];
        let number = *sn;
        *sn = (*sn + 1) & self.mask;
        number
    }

    fn declare(&mut self, what: u8, which: u8) {
        let key = KEYS[usize::from(which % 8)];
        let at = usize::from(which >> 3);
        match what % 6 {
            0 => {
                let options = PublisherOptions {
                    qos: Qos(what >> 1 & 0x1f),
                    reliable: what & 0x80 == 0,
                    filter: what & 0x40 != 0,
                };
                self.publishers.extend(self.session.publisher(key, options));
            }
            1 => self.subscribers.extend(self.session.subscriber(key)),
            2 => self
                .queryables
                .extend(self.session.queryable(key, which & 8 != 0)),
            3 => {
                if let Some(&id) = self.publishers.get(at) {
                    self.session.withdraw_publisher(id);
                }
            }
            4 => {
                if let Some(&id) = self.subscribers.get(at) {
                    self.session.withdraw_subscriber(id);
                }
            }
            _ => {
                if let Some(&id) = self.queryables.get(at) {
                    self.session.withdraw_queryable(id);
                }
            }
        }
    }

    fn act(&mut self, what: u8, which: u8) {
        let now = self.now();
        let (session, link) = (&mut self.session, &mut self.link);
        let payload = &[which; 800][..usize::from(which) * 3];
        let key = KeyExpr::new(KEYS[usize::from(which % 8)]).expect("a key");
        let publisher = self.publishers.get(usize::from(which % 8)).copied();
        let request = self.requests.get(usize::from(which % 4)).copied();
        match (what % 9, publisher, request) {
            (0 | 1, Some(id), _) => {
                session.put(link, id, payload, now).ok();
            }
            (2, Some(id), _) => {
                let fill = |room: &mut [u8]| room.fill(which);
                session.put_with(link, id, 20, now, fill).ok();
            }
            (3, ..) => {
                let body = Body::put(payload);
                let options = PublisherOptions::DEFAULT;
                session.publish_on(link, key, options, &body, now).ok();
            }
            (4, ..) => {
                let mut ask = Ask::new(key);
                ask.timeout = core::time::Duration::from_millis(u64::from(which) * 10);
                if let Ok(query) = session.ask(link, &ask, now) {
                    assert!(self.queries.insert(query), "an id in flight");
                }
            }
            (5, _, Some(request)) => {
                session
                    .reply(link, request, Some(key), &Body::put(payload), now)
                    .ok();
            }
            (6, _, Some(request)) => {
                let encoding = Encoding::default();
                session
                    .reply_error(link, request, encoding, payload, now)
                    .ok();
                session.finish(link, request, now).ok();
            }
            (7, ..) => {
                session.flush(link, now).ok();
            }
            (8, ..) => session.abandon(),
            _ => {}
        }
    }

    /// Whatever was before, a fresh link works, within the places that it has.
    fn comes_back(mut self) {
        self.link.room = 4;
        self.renew(true);
        assert!(self.open, "on a fresh link");
        self.link.room = usize::MAX;
        self.turn();
        self.take();
        let sub = self.session.subscriber("b");
        self.now += 60_000;
        self.turn();
        if let Ok(sub) = sub {
            let push = Push::put(WireExpr::text("b"), b"on");
            let packet = self.frame(true, &bytes(|w| push.encode(w)));
            let now = self.now();
            let mut arrived = 0;
            loop {
                match self.session.receive(&packet, &mut self.link, now) {
                    Step::Done => break,
                    Step::Event(Event::Sample { subscriber, .. }) if subscriber == sub => {
                        arrived += 1;
                    }
                    _ => {}
                }
            }
            assert_eq!(arrived, 1);
        }
        self.now += 400_000_000;
        self.session.link_lost();
        self.open = false;
        self.turn();
        assert!(self.queries.is_empty(), "each query ends");
    }
}

/// Keeps what an event says; whether a session has opened, or ended.
fn note(
    event: &Event<'_>,
    queries: &mut HashSet<QueryId>,
    requests: &mut Vec<RequestId>,
) -> Option<bool> {
    match event {
        Event::Opened => return Some(true),
        Event::Closed(_) => return Some(false),
        Event::Query { request, .. } => {
            requests.push(*request);
            if requests.len() > 8 {
                requests.remove(0);
            }
        }
        Event::Ended { query, .. } => assert!(queries.remove(query), "a query ends once"),
        Event::Reply { query, .. } => assert!(queries.contains(query)),
        Event::Sample { .. } | Event::Heard => {}
    }
    None
}

/// A message of the network, from its fields.
fn message(fields: &[u8]) -> Vec<u8> {
    use sinew::pubsub::codec::{Declaration, EntityKind};
    let [kind, id, which, more] = fields else {
        return Vec::new();
    };
    let (id, which, more) = (u32::from(*id), *which, *more);
    let key = match more % 4 {
        0 => WireExpr::declared(u16::from(more / 4), which & 8 != 0),
        1 => WireExpr {
            scope: u16::from(more / 4),
            of_sender: which & 8 != 0,
            suffix: "/b",
        },
        _ => WireExpr::text(KEYS[usize::from(which % 8)]),
    };
    let declare = |declaration| Declare {
        interest: (more & 0x80 != 0).then_some(id),
        qos: Qos(more & 0x3f),
        declaration,
    };
    let entity = [
        EntityKind::Subscriber,
        EntityKind::Queryable,
        EntityKind::Token,
    ];
    let entity = entity[usize::from(which % 3)];
    bytes(|w| match kind % 11 {
        0 | 1 => Push::put(key, &[which; 30][..usize::from(which % 30)]).encode(w),
        2 => declare(Declaration::Key { id: id as u16, key }).encode(w),
        3 => declare(Declaration::NoKey { id: id as u16 }).encode(w),
        4 => {
            let info = u32::from(which);
            let kind = entity;
            declare(Declaration::Entity {
                kind,
                id,
                key,
                info,
            })
            .encode(w);
        }
        5 => {
            let kind = entity;
            let key = None;
            declare(Declaration::NoEntity { kind, id, key }).encode(w);
        }
        6 => declare(Declaration::Final).encode(w),
        7 => Interest {
            id,
            current: which & 1 != 0,
            future: which & 2 != 0,
            options: which & 0x8f,
            key: (which & 4 != 0).then_some(key),
            qos: Qos::DEFAULT,
        }
        .encode(w),
        8 => Request {
            id,
            key,
            timeout_ms: (which & 1 != 0).then_some(u32::from(which)),
            ..Request::default()
        }
        .encode(w),
        9 => Response {
            id,
            key,
            qos: Qos::DEFAULT,
            responder: None,
            reply: codec::Reply::Sample {
                consolidation: codec::Consolidation::Auto,
                body: Body::put(&[which; 5]),
            },
        }
        .encode(w),
        _ => ResponseFinal {
            id,
            qos: Qos::DEFAULT,
        }
        .encode(w),
    })
}

fn take<'s>(script: &mut &'s [u8], len: usize) -> Option<&'s [u8]> {
    let (taken, rest) = script.split_at_checked(len)?;
    *script = rest;
    Some(taken)
}

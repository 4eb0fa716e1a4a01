//! What Zenoh's router does with input at the edges, seen from a bare socket: what our engine
//! follows, and the reason where it differs, is measured here.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::node::{At, Event, Failure, Happened, Kind, Maker};
use crate::peer::{Peer, Real};

/// A batch with its length.
fn batch(message: &[u8]) -> Vec<u8> {
    let mut bytes = (message.len() as u16).to_le_bytes().to_vec();
    bytes.extend(message);
    bytes
}

/// What became of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    /// It goes on: a query is answered.
    Stays,
    /// The connection ends without a word.
    Drops,
    /// A CLOSE came, with this flag for the whole session and this reason.
    Closes { session: bool, reason: u8 },
    /// Neither within the time.
    Silent,
}
use Outcome::*;

struct Raw {
    stream: TcpStream,
    /// Of the next frame.
    sn: u32,
    /// Received, and not yet looked at.
    pending: Vec<u8>,
}

impl Raw {
    fn connect(at: &At) -> Result<Self, Failure> {
        let stream = TcpStream::connect(&at.address).map_err(|error| error.to_string())?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            stream,
            sn: 0,
            pending: Vec::new(),
        })
    }

    /// INIT with this zid, and what is said besides; returns the answer.
    fn init(&mut self, version: u8, zid: &[u8], sizes: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut message = vec![if sizes.is_empty() { 0x01 } else { 0x41 }, version];
        message.push((zid.len() as u8 - 1) << 4 | 2);
        message.extend(zid);
        message.extend(sizes);
        self.send(&message)?;
        self.receive(Duration::from_secs(2))
    }

    /// OPEN with a lease in milliseconds (up to 16,383) and the cookie of an INIT's answer.
    fn open(&mut self, lease: u16, init: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        // Header, version, zid with its length, resolution and size; the router's cookie is short.
        let zid = usize::from(init.get(2).ok_or("no answer")? >> 4) + 1;
        let cookie = init.get(3 + zid + 3..).ok_or("no cookie")?;
        let len = usize::from(*cookie.first().ok_or("no cookie")?) + 1;
        let mut message = vec![0x02, lease as u8 | 0x80, (lease >> 7) as u8, 0];
        message.extend(cookie.get(..len).ok_or("no cookie")?);
        self.send(&message)?;
        self.receive(Duration::from_secs(2))
    }

    /// Opens, with the extension that offers marks of fragments (patch 1), or without (0).
    fn handshake(&mut self, zid: &[u8], patch: u8) -> Result<(), Failure> {
        let mut message = vec![0xc1, 9, (zid.len() as u8 - 1) << 4 | 2];
        message.extend(zid);
        message.extend([0x0a, 0x00, 0x08, 0x27, patch]);
        self.send(&message)?;
        let init = self.receive(SOON)?.ok_or("no INIT")?;
        let open = self.open(10_000, &init)?.ok_or("no OPEN")?;
        match open.first() {
            Some(header) if header & 0x3f == 0x22 => Ok(()),
            _ => Err(format!("{open:02x?} instead of OPEN")),
        }
    }

    /// An open session with initial SN 0.
    fn opened(at: &At, zid: &[u8]) -> Result<Self, Failure> {
        let mut raw = Self::connect(at)?;
        let init = raw.init(9, zid, &[0x0a, 0x00, 0x08])?.ok_or("no INIT")?;
        if init.first().map(|header| header & 0x3f) != Some(0x21) {
            return Err(format!("{init:02x?} instead of INIT"));
        }
        let open = raw.open(10_000, &init)?.ok_or("no OPEN")?;
        if open.first().map(|header| header & 0x3f) != Some(0x22) {
            return Err(format!("{open:02x?} instead of OPEN"));
        }
        Ok(raw)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.write(&batch(message))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self.stream.write_all(bytes) {
            // The end is seen by who reads.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
            done => done.map_err(|error| error.to_string()),
        }
    }

    /// A frame of the next SN.
    fn frame(&mut self, messages: &[u8]) -> Result<(), Failure> {
        let mut message = vec![0x25];
        vle(&mut message, self.sn);
        self.sn = self.sn.wrapping_add(1) & 0x0fff_ffff;
        message.extend(messages);
        self.send(&message)
    }

    /// The next batch, without its length; empty at the end of the connection.
    fn receive(&mut self, within: Duration) -> Result<Option<Vec<u8>>, Failure> {
        let end = Instant::now() + within;
        loop {
            if let Some((len, rest)) = self.pending.split_at_checked(2) {
                let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
                if let Some((batch, rest)) = rest.split_at_checked(len) {
                    let batch = batch.to_vec();
                    self.pending = rest.to_vec();
                    return Ok(Some(batch));
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let mut bytes = [0; 65_536];
            self.stream
                .set_read_timeout(Some(left))
                .map_err(|error| error.to_string())?;
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Some(Vec::new())),
                Ok(len) => self.pending.extend(bytes.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(Some(Vec::new()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Asks for what nobody serves: a session that stays says that there is no answer.
    fn outcome(&mut self, within: Duration) -> Result<Outcome, Failure> {
        let mut ask = vec![0x7c, 0x01, 0x00, 0x05];
        ask.extend(b"probe");
        ask.push(0x03);
        self.frame(&ask)?;
        let end = Instant::now() + within;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Some(batch) = self.receive(left)? else {
                return Ok(Silent);
            };
            match batch.as_slice() {
                [] => return Ok(Drops),
                [header, reason, ..] if header & 0x1f == 0x03 => {
                    return Ok(Closes {
                        session: header & 0x20 != 0,
                        reason: *reason,
                    });
                }
                // RESPONSE_FINAL of request 1 somewhere in a frame.
                [0x25 | 0xa5, ..] if batch.ends_with(&[0x1a, 0x01]) => {
                    return Ok(Stays);
                }
                _ => {}
            }
        }
    }
}

fn vle(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

const SOON: Duration = Duration::from_secs(3);

/// A PUSH of "x" to a key that is said in full.
fn push(key: &str) -> Vec<u8> {
    let mut message = vec![0x7d, 0x00, key.len() as u8];
    message.extend(key.as_bytes());
    message.extend([0x01, 0x01, b'x']);
    message
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn router() -> Peer {
    Peer::router(&At::any(Kind::Tcp, "".as_ref())).expect("a router")
}

/// Each row in a session of its own: what is written to it, and what becomes of it.
#[test]
fn what_a_router_does_with_bad_input() {
    let router = router();
    let at = &router.at()[0];
    let frame = |sn: u8, messages: &[u8]| batch(&joined(&[&[0x25, sn], messages]));
    let rows: Vec<(&str, Vec<u8>, Outcome)> = vec![
        ("nothing", vec![], Stays),
        ("a key said in full", frame(0, &push("a/b")), Stays),
        ("an empty batch", batch(&[]), Stays),
        ("KEEP_ALIVE", batch(&[0x04]), Stays),
        ("two of them in a batch", batch(&[0x04, 0x04]), Stays),
        (
            "a KEEP_ALIVE behind a frame",
            frame(0, &joined(&[&push("a"), &[0x04]])),
            Stays,
        ),
        ("an empty frame", frame(0, &[]), Stays),
        ("an unknown transport message", batch(&[0x0f]), Drops),
        ("an unknown network message id", frame(0, &[0x18]), Drops),
        (
            "INIT in an open session",
            batch(&[0x01, 0x09, 0x02, 0x77]),
            Stays,
        ),
        (
            "OPEN in an open session",
            batch(&[0x02, 0x0a, 0x00, 0x00]),
            Stays,
        ),
        (
            "JOIN",
            batch(&[0x07, 0x09, 0x01, 0x77, 0x0a, 0x00, 0x00]),
            Stays,
        ),
        ("a transport OAM", batch(&[0x00, 0x07]), Stays),
        ("a truncated frame header", batch(&[0x25, 0x80]), Drops),
        (
            "a truncated PUSH",
            frame(0, &[0x7d, 0x00, 0x05, b'a']),
            Drops,
        ),
        (
            "a payload that ends behind the batch",
            frame(0, &[0x7d, 0x00, 0x01, b'a', 0x01, 0x7f, b'x']),
            Drops,
        ),
        (
            "an unknown body",
            frame(0, &[0x7d, 0x00, 0x01, b'a', 0x1f]),
            Drops,
        ),
        (
            "an unknown extension",
            frame(0, &[0xfd, 0x00, 0x01, b'a', 0x2e, 0x00, 0x01, 0x00]),
            Stays,
        ),
        (
            "an unknown mandatory extension",
            frame(0, &[0xfd, 0x00, 0x01, b'a', 0x3e, 0x00, 0x01, 0x00]),
            Drops,
        ),
        (
            "an extension of the reserved kind",
            frame(0, &[0xfd, 0x00, 0x01, b'a', 0x6e, 0x00, 0x01, 0x00]),
            Drops,
        ),
        (
            "a priority that was not agreed",
            batch(&joined(&[&[0xa5, 0x00, 0x31, 0x01], &push("a")])),
            Drops,
        ),
        (
            "the priority that is so anyway",
            batch(&joined(&[&[0xa5, 0x00, 0x31, 0x05], &push("a")])),
            Stays,
        ),
        (
            "an unknown key id",
            frame(0, &[0x5d, 0x63, 0x01, 0x01, b'x']),
            Stays,
        ),
        (
            "an unknown key id of its own",
            frame(0, &[0x1d, 0x63, 0x01, 0x01, b'x']),
            Stays,
        ),
        (
            "a key that is not canonical",
            frame(0, &push("a/**/*")),
            Stays,
        ),
        ("a key that is none", frame(0, &push("/a//")), Stays),
        ("an empty key", frame(0, &push("")), Stays),
        ("a key with a wildcard", frame(0, &push("a/*")), Stays),
        (
            "a key that is not UTF-8",
            frame(0, &[0x7d, 0x00, 0x01, 0xff, 0x01, 0x00]),
            Drops,
        ),
        (
            "a padded number",
            frame(0, &[0x7d, 0x80, 0x00, 0x01, b'a', 0x01, 0x00]),
            Stays,
        ),
        (
            "a key id above 16 bits",
            frame(0, &[0x5d, 0x80, 0x80, 0x04, 0x01, 0x00]),
            Drops,
        ),
        (
            "an SN above what was agreed",
            batch(&joined(&[
                &[0x25, 0x80, 0x80, 0x80, 0x80, 0x01],
                &push("a"),
            ])),
            Drops,
        ),
        (
            "an SN above 32 bits, whose upper bits are lost",
            batch(&joined(&[
                &[0x25, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
                &push("a"),
            ])),
            Stays,
        ),
        (
            "a fragment from the middle",
            batch(&[0x66, 0x00, 0x7d]),
            Stays,
        ),
        (
            "a whole message as fragments that is none",
            joined(&[
                &batch(&[0xe6, 0x00, 0x02, 0x7d]),
                &batch(&[0x26, 0x01, 0x00]),
            ]),
            Stays,
        ),
        (
            "key id 0 declared",
            frame(0, &[0x3e & 0x1e, 0x20, 0x00, 0x00, 0x01, b'a']),
            Stays,
        ),
        (
            "a key id declared twice alike",
            frame(
                0,
                &[
                    0x1e, 0x20, 0x01, 0x00, 0x01, b'a', 0x1e, 0x20, 0x01, 0x00, 0x01, b'a',
                ],
            ),
            Stays,
        ),
        (
            "a key id declared anew",
            frame(
                0,
                &[
                    0x1e, 0x20, 0x01, 0x00, 0x01, b'a', 0x1e, 0x20, 0x01, 0x00, 0x01, b'b',
                ],
            ),
            Stays,
        ),
        (
            "an unknown key id withdrawn",
            frame(0, &[0x1e, 0x01, 0x63]),
            Stays,
        ),
        (
            "a subscriber on an unknown key id",
            frame(0, &[0x1e, 0x42, 0x01, 0x63]),
            Stays,
        ),
        (
            "a subscriber declared twice",
            frame(
                0,
                &[
                    0x1e, 0x62, 0x01, 0x00, 0x01, b'a', 0x1e, 0x62, 0x01, 0x00, 0x01, b'b',
                ],
            ),
            Stays,
        ),
        (
            "an unknown subscriber withdrawn",
            frame(0, &[0x1e, 0x03, 0x63]),
            Stays,
        ),
        (
            "an unknown declaration",
            frame(0, &[0x1e, 0x1f, 0x00]),
            Drops,
        ),
        (
            "an interest that ends without a beginning",
            frame(0, &[0x19, 0x63]),
            Stays,
        ),
        (
            "a reply to no query",
            frame(0, &[0x7b, 0x63, 0x00, 0x01, b'a', 0x04, 0x01, 0x00]),
            Stays,
        ),
        ("the end of no query", frame(0, &[0x1a, 0x63]), Stays),
        ("CLOSE of the link", batch(&[0x03, 0x00]), Drops),
        ("CLOSE of the session", batch(&[0x23, 0x00]), Drops),
    ];
    let mut wrong = 0;
    for (n, (name, bytes, expected)) in rows.into_iter().enumerate() {
        let mut raw = Raw::opened(at, &[0x51, n as u8 + 1]).expect("a session");
        raw.write(&bytes).expect("a socket");
        raw.sn = 10; // a gap is taken
        let mut seen = raw.outcome(SOON).expect("a socket");
        // A router may still answer for a moment after a CLOSE.
        let started = Instant::now();
        while seen == Stays && expected == Drops && started.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(10));
            seen = raw.outcome(SOON).expect("a socket");
        }
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen:?}");
        wrong += usize::from(seen != expected);
    }
    assert_eq!(wrong, 0);
}

/// Each row: batches as they are written, and which keys a subscriber of the router then sees.
#[test]
fn what_a_router_takes_of_sequence_numbers_and_fragments() {
    let router = router();
    let at = &router.at()[0];
    let mut taker = Real.client(at).expect("a client");
    taker.subscribe("all", "t/**").expect("a subscriber");
    let mut first = Raw::opened(at, &[0x53, 0xff]).expect("a session");
    while taker
        .event(Duration::from_millis(50))
        .expect("events")
        .is_none()
    {
        first.frame(&push("t/first")).expect("a socket");
    }
    // Those that were on their way when the first one arrived.
    while taker
        .event(Duration::from_millis(50))
        .expect("events")
        .is_some()
    {}
    let frame = |header: u8, sn: u32, messages: &[u8]| {
        let mut message = vec![header];
        vle(&mut message, sn);
        message.extend(messages);
        batch(&message)
    };
    let reliable = |sn: u32, key: &str| frame(0x25, sn, &push(&format!("t/{key}")));
    let best_effort = |sn: u32, key: &str| frame(0x05, sn, &push(&format!("t/{key}")));
    // Parts of the PUSH of key "t/f": `First` in front where it is said.
    let whole = push("t/f");
    let (one, rest) = whole.split_at(4);
    let (two, three) = rest.split_at(3);
    let first = |sn: u32, part: &[u8]| {
        let mut message = vec![0xe6];
        vle(&mut message, sn);
        message.push(0x02);
        message.extend(part);
        batch(&message)
    };
    let more = |sn: u32, part: &[u8]| frame(0x66, sn, part);
    let last = |sn: u32, part: &[u8]| frame(0x26, sn, part);
    const HALF: u32 = 1 << 27;
    let rows: Vec<(&str, u8, Vec<Vec<u8>>, &str)> = vec![
        (
            "in order",
            0,
            vec![reliable(0, "a"), reliable(1, "b")],
            "a b",
        ),
        (
            "one twice",
            0,
            vec![reliable(0, "a"), reliable(0, "b"), reliable(1, "c")],
            "a c",
        ),
        (
            "a gap, and what is before it",
            0,
            vec![reliable(100, "a"), reliable(50, "b"), reliable(101, "c")],
            "a c",
        ),
        (
            "a gap of best effort",
            0,
            vec![
                best_effort(100, "a"),
                best_effort(50, "b"),
                best_effort(101, "c"),
            ],
            "a c",
        ),
        (
            "two channels of their own",
            0,
            vec![
                reliable(0, "a"),
                best_effort(0, "b"),
                best_effort(7, "c"),
                reliable(1, "d"),
            ],
            "a b c d",
        ),
        (
            "the largest gap",
            0,
            vec![reliable(0, "a"), reliable(HALF - 1, "b")],
            "a b",
        ),
        (
            "one more",
            0,
            vec![reliable(0, "a"), reliable(HALF, "b"), reliable(1, "c")],
            "a c",
        ),
        (
            "the one before the initial one",
            0,
            vec![reliable(2 * HALF - 1, "a"), reliable(0, "b")],
            "a b",
        ),
        (
            "two before",
            0,
            vec![reliable(2 * HALF - 2, "a"), reliable(0, "b")],
            "b",
        ),
        (
            "not the initial one first",
            0,
            vec![reliable(3, "a"), reliable(0, "b")],
            "a",
        ),
        (
            "a wrap",
            0,
            vec![
                reliable(HALF - 3, "a"),
                reliable(2 * HALF - 4, "b"),
                reliable(2 * HALF - 1, "c"),
                reliable(0, "d"),
            ],
            "a b c d",
        ),
        (
            "two frames in a batch",
            0,
            vec![batch(
                &[&reliable(0, "a")[2..], &best_effort(0, "b")[2..]].concat(),
            )],
            "a b",
        ),
        (
            "two messages in a frame",
            0,
            vec![frame(0x25, 0, &[push("t/a"), push("t/b")].concat())],
            "a b",
        ),
        (
            "a key that is not canonical",
            0,
            vec![reliable(0, "a/**/*"), reliable(1, "b")],
            "b",
        ),
        (
            "a key that is none",
            0,
            vec![reliable(0, "/"), reliable(1, "b")],
            "b",
        ),
        (
            "a key with a wildcard",
            0,
            vec![reliable(0, "*"), reliable(1, "b")],
            "* b",
        ),
        (
            "what is before a mistake",
            0,
            vec![frame(
                0x25,
                0,
                &[push("t/a"), push("t/b"), vec![0x18]].concat(),
            )],
            "a b",
        ),
        (
            "fragments, no marks agreed",
            0,
            vec![more(0, one), more(1, two), last(2, three)],
            "f",
        ),
        (
            "fragments with marks",
            1,
            vec![first(0, one), more(1, two), last(2, three)],
            "f",
        ),
        (
            "fragments without the agreed mark",
            1,
            vec![more(0, one), more(1, two), last(2, three)],
            "",
        ),
        (
            "a mark that was not agreed",
            0,
            vec![first(0, one), more(1, two), last(2, three)],
            "f",
        ),
        (
            "one of three fragments lost",
            1,
            vec![first(0, one), last(2, three), reliable(3, "b")],
            "b",
        ),
        (
            "one lost, with no marks",
            0,
            vec![more(0, one), last(2, three), reliable(3, "b")],
            "b",
        ),
        (
            "the first one lost",
            1,
            vec![more(1, two), last(2, three), reliable(3, "b")],
            "b",
        ),
        (
            "a frame between fragments",
            1,
            vec![
                first(0, one),
                reliable(1, "b"),
                more(2, two),
                last(3, three),
            ],
            "b",
        ),
        (
            "a frame of the other channel between",
            1,
            vec![
                first(0, one),
                best_effort(0, "b"),
                more(1, two),
                last(2, three),
            ],
            "b f",
        ),
        (
            "a new first one",
            1,
            vec![first(0, one), first(1, one), more(2, two), last(3, three)],
            "f",
        ),
        (
            "a drop mark",
            1,
            vec![first(0, one), batch(&[0xe6, 0x01, 0x03]), reliable(2, "b")],
            "b",
        ),
        (
            "one fragment that is all",
            1,
            vec![batch(&[&[0xa6, 0x00, 0x02], whole.as_slice()].concat())],
            "f",
        ),
        (
            "a fragment behind a frame",
            1,
            vec![batch(
                &[
                    &reliable(0, "a")[2..],
                    &[0xa6, 0x01, 0x02],
                    whole.as_slice(),
                ]
                .concat(),
            )],
            "a f",
        ),
    ];
    let mut wrong = 0;
    for (n, (name, patch, batches, expected)) in rows.into_iter().enumerate() {
        let mut raw = Raw::connect(at).expect("a socket");
        raw.handshake(&[0x52, n as u8 + 1], patch)
            .expect("a session");
        for batch in &batches {
            raw.write(batch).expect("a socket");
        }
        // The end is said in a session of its own, to which nothing of this row matters; it must
        // not overtake.
        std::thread::sleep(Duration::from_millis(100));
        let mut after = Raw::opened(at, &[0x53, n as u8 + 1]).expect("a session");
        after.frame(&push("t/end")).expect("a socket");
        let mut seen = Vec::new();
        while let Some(Event {
            what: Happened::Sample(sample),
            ..
        }) = taker.event(SOON).expect("events")
        {
            match sample.key.strip_prefix("t/") {
                None | Some("end") => break,
                Some(key) => seen.push(key.to_owned()),
            }
        }
        let seen = seen.join(" ");
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen:?}, expected {expected:?}");
        wrong += usize::from(seen != expected);
    }
    assert_eq!(wrong, 0);
}

/// How sessions begin, or do not: what is sent, and what comes back first.
#[test]
fn what_a_router_does_with_handshakes() {
    let router = router();
    let at = &router.at()[0];
    let mut wrong = 0;
    let mut row = |name: &str, seen: String, expected: &str| {
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen}");
        wrong += usize::from(seen != expected);
    };
    let answer = |raw: &mut Raw| -> String {
        match raw.receive(SOON).expect("a socket").as_deref() {
            None => "silence".into(),
            Some([]) => "dropped".into(),
            Some([header, reason, ..]) if header & 0x1f == 3 => {
                let what = if header & 0x20 == 0 {
                    "link"
                } else {
                    "session"
                };
                format!("CLOSE of the {what}, reason {reason}")
            }
            Some([0x21 | 0x61 | 0xa1 | 0xe1, rest @ ..]) => {
                let zid = usize::from(rest.get(1).copied().unwrap_or_default() >> 4) + 1;
                format!(
                    "INIT {:02x?}",
                    rest.get(2 + zid..5 + zid).unwrap_or_default()
                )
            }
            Some([header, ..]) if header & 0x1f == 2 => "OPEN".into(),
            Some(other) => format!("{other:02x?}"),
        }
    };
    let starts: [(&str, &[u8], &str); 17] = [
        (
            "INIT",
            &[0x41, 9, 0x02, 0x61, 0x0a, 0, 8],
            "INIT [0a, 00, 08]",
        ),
        (
            "INIT without sizes",
            &[0x01, 9, 0x02, 0x62],
            "INIT [0a, 00, c0]",
        ),
        (
            "sizes of 8 bits",
            &[0x41, 9, 0x02, 0x63, 0x00, 0, 8],
            "INIT [00, 00, 08]",
        ),
        (
            "sizes of 64 bits",
            &[0x41, 9, 0x02, 0x64, 0x0f, 0, 8],
            "INIT [0a, 00, 08]",
        ),
        (
            "batches of 16 bytes",
            &[0x41, 9, 0x02, 0x65, 0x0a, 16, 0],
            "INIT [0a, 10, 00]",
        ),
        (
            "batches of no byte",
            &[0x41, 9, 0x02, 0x66, 0x0a, 0, 0],
            "INIT [0a, 00, 00]",
        ),
        (
            "version 8",
            &[0x41, 8, 0x02, 0x67, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "version 10",
            &[0x41, 10, 0x02, 0x68, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "a zid of nothing but zeros",
            &[0x41, 9, 0x02, 0x00, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "a zid that ends with a zero",
            &[0x41, 9, 0x12, 0x69, 0x00, 0x0a, 0, 8],
            "INIT [0a, 00, 08]",
        ),
        (
            "what it is not",
            &[0x41, 9, 0x03, 0x6a, 0x0a, 0, 8],
            "CLOSE of the link, reason 2",
        ),
        (
            "an unknown extension",
            &[0xc1, 9, 0x02, 0x6b, 0x0a, 0, 8, 0x2e, 1],
            "INIT [0a, 00, 08]",
        ),
        (
            "an unknown mandatory extension",
            &[0xc1, 9, 0x02, 0x6c, 0x0a, 0, 8, 0x3e, 1],
            "CLOSE of the link, reason 2",
        ),
        (
            "a truncated INIT",
            &[0x41, 9, 0x12, 0x6d],
            "CLOSE of the link, reason 2",
        ),
        (
            "OPEN without INIT",
            &[0x02, 10, 0, 0],
            "CLOSE of the link, reason 2",
        ),
        (
            "a frame without INIT",
            &[0x25, 0],
            "CLOSE of the link, reason 2",
        ),
        (
            "KEEP_ALIVE without INIT",
            &[0x04],
            "CLOSE of the link, reason 2",
        ),
    ];
    for (name, message, expected) in starts {
        let mut raw = Raw::connect(at).expect("a socket");
        raw.send(message).expect("a socket");
        row(name, answer(&mut raw), expected);
    }

    let mut raw = Raw::connect(at).expect("a socket");
    raw.init(9, &[0x71], &[0x0a, 0, 8]).expect("INIT");
    raw.send(&[0x02, 0x0a, 0x00, 0x03, 1, 2, 3])
        .expect("a socket");
    row(
        "OPEN with another cookie",
        answer(&mut raw),
        "CLOSE of the link, reason 2",
    );

    let live = Raw::opened(at, &[0x72]).expect("a session");
    let mut second = Raw::connect(at).expect("a socket");
    let init = second
        .init(9, &[0x72], &[0x0a, 0, 8])
        .expect("INIT")
        .unwrap_or_default();
    let open = second
        .open(10_000, &init)
        .expect("OPEN")
        .unwrap_or_default();
    row(
        "a second session of a zid that lives",
        format!("{open:02x?}"),
        "[03, 04]",
    );
    drop(live);
    std::thread::sleep(Duration::from_millis(50));
    let again = Raw::opened(at, &[0x72]).map(|_| "OPEN".to_owned());
    row(
        "again, when the first connection is gone",
        again.unwrap_or_else(|error| error),
        "OPEN",
    );

    // Nothing is said for longer than the lease.
    let mut raw = Raw::connect(at).expect("a socket");
    let init = raw
        .init(9, &[0x73], &[0x0a, 0, 8])
        .expect("INIT")
        .unwrap_or_default();
    raw.open(1_000, &init).expect("OPEN");
    let started = Instant::now();
    let end = loop {
        match raw.receive(Duration::from_secs(5)).expect("a socket") {
            Some(batch) if batch.first() == Some(&0x04) => {}
            other => break other,
        }
    };
    let took = started.elapsed();
    row(
        "silence beyond a lease of a second",
        format!("{end:02x?}"),
        "Some([])",
    );
    assert!(took > Duration::from_millis(900), "too early: {took:?}");
    println!("      after {took:?}");
    assert_eq!(wrong, 0);
}

/// The declarations of a frame's messages: `sub`, `queryable` and `final`; keys are left out.
fn declarations(mut bytes: &[u8]) -> Option<Vec<&'static str>> {
    fn byte(bytes: &mut &[u8]) -> Option<u8> {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(*first)
    }
    // All numbers of these tests have a byte or two.
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let low = byte(bytes)?;
        let high = if low & 0x80 == 0 { 0 } else { byte(bytes)? };
        Some(usize::from(low & 0x7f) | usize::from(high) << 7)
    }
    fn extensions(header: u8, bytes: &mut &[u8]) -> Option<()> {
        let mut more = header & 0x80 != 0;
        while more {
            more = byte(bytes)? & 0x80 != 0;
            number(bytes)?;
        }
        Some(())
    }
    let mut seen = Vec::new();
    while !bytes.is_empty() {
        let header = byte(&mut bytes)?;
        if header & 0x1f != 0x1e {
            return None;
        }
        if header & 0x20 != 0 {
            number(&mut bytes)?;
        }
        extensions(header, &mut bytes)?;
        let kind = byte(&mut bytes)?;
        match kind & 0x1f {
            0x00 => {}
            0x02 => seen.push("sub"),
            0x04 => seen.push("queryable"),
            0x1a => {
                seen.push("final");
                continue;
            }
            _ => return None,
        }
        number(&mut bytes)?;
        number(&mut bytes)?;
        if kind & 0x20 != 0 {
            let len = number(&mut bytes)?;
            bytes = bytes.get(len..)?;
        }
        extensions(kind, &mut bytes)?;
    }
    Some(seen)
}

/// Each row in a session of its own: an INTEREST, and what is declared for it.
#[test]
fn what_a_router_declares_for_an_interest() {
    let router = router();
    let at = &router.at()[0];
    let mut other = Real.client(at).expect("a client");
    for key in ["i/a", "i/b", "i/*"] {
        other.subscribe(key, key).expect("a subscriber");
    }
    other
        .queryable("q", "q/**", true, &[], false)
        .expect("a queryable");
    std::thread::sleep(Duration::from_millis(100));
    // Options: A 0x80, M 0x40, N 0x20, R 0x10, Q 0x04, S 0x02, K 0x01.
    let interest = |mode: u8, options: u8, key: &str| {
        let mut message = vec![0x19 | mode, 0x02, options];
        if options & 0x10 != 0 {
            message.extend([0x00, key.len() as u8]);
            message.extend(key.as_bytes());
        }
        message
    };
    const CURRENT: u8 = 0x20;
    const FUTURE: u8 = 0x40;
    const BOTH: u8 = 0x60;
    let rows: [(&str, Vec<u8>, &str); 10] = [
        (
            "subscribers",
            interest(BOTH, 0x33, "i/**"),
            "sub sub sub final",
        ),
        ("aggregated", interest(BOTH, 0xb3, "i/**"), "sub final"),
        (
            "aggregated, on a key",
            interest(BOTH, 0xb3, "i/a"),
            "sub final",
        ),
        (
            "subscribers of a key",
            interest(BOTH, 0x33, "i/a"),
            "sub sub final",
        ),
        ("nobody", interest(BOTH, 0xb3, "z/z"), "final"),
        ("queryables", interest(BOTH, 0x35, "q/x"), "queryable final"),
        (
            "all subscribers",
            interest(BOTH, 0x03, ""),
            "sub sub sub final",
        ),
        // Not as one would think: these two have no answer at all.
        (
            "current subscribers only",
            interest(CURRENT, 0x33, "i/**"),
            "",
        ),
        (
            "current queryables only",
            interest(CURRENT, 0x35, "q/x"),
            "",
        ),
        ("future ones only", interest(FUTURE, 0x33, "i/**"), "final"),
    ];
    let mut wrong = 0;
    for (n, (name, message, expected)) in rows.into_iter().enumerate() {
        let mut raw = Raw::opened(at, &[0x54, n as u8 + 1]).expect("a session");
        raw.frame(&message).expect("a socket");
        let mut seen = Vec::new();
        while let Some(batch) = raw.receive(Duration::from_millis(150)).expect("a socket") {
            // Header and an SN of four bytes or fewer.
            let sn = batch
                .iter()
                .skip(1)
                .take_while(|byte| **byte >= 0x80)
                .count();
            if batch.first() == Some(&0x25) {
                let messages = batch.get(sn + 2..).expect("a frame");
                seen.extend(declarations(messages).expect("declarations"));
            }
        }
        let seen = seen.join(" ");
        let mark = if seen == expected { "     " } else { "WRONG" };
        println!("{mark} {name}: {seen:?}, expected {expected:?}");
        wrong += usize::from(seen != expected);
    }
    assert_eq!(wrong, 0);
}

/// A session that agreed on small batches: none is longer, lengths included, and a sample comes
/// whole.
#[test]
fn a_router_cuts_samples_to_the_batches_agreed() {
    let router = router();
    let at = &router.at()[0];
    let mut giver = Real.client(at).expect("a client");
    let payload = crate::node::pattern(300, 5);
    for size in [16_u8, 32, 64, 128, 255] {
        let mut raw = Raw::connect(at).expect("a socket");
        let init = raw.init(9, &[0x55, size], &[0x0a, size, 0x00]);
        let init = init.expect("a socket").expect("INIT");
        raw.open(10_000, &init).expect("a socket").expect("OPEN");
        let id = format!("{size}");
        let key = format!("c/{size}");
        let mut declare = vec![0x1e, 0x62, 0x01, 0x00, key.len() as u8];
        declare.extend(key.as_bytes());
        raw.frame(&declare).expect("a socket");
        giver
            .publisher(&id, &key, &Default::default(), true)
            .expect("a publisher");
        while !giver.matching(&id).expect("a publisher") {
            std::thread::sleep(Duration::from_millis(2));
        }
        giver
            .put(&id, &payload, &Default::default())
            .expect("a put");
        let (mut whole, mut pieces) = (Vec::new(), 0);
        while let Some(batch) = raw.receive(SOON).expect("a socket") {
            assert!(
                batch.len() + 2 <= usize::from(size),
                "{} bytes",
                batch.len()
            );
            let Some(header) = batch.first().filter(|header| **header & 0x1f == 6) else {
                continue; // KEEP_ALIVE
            };
            let sn = batch
                .iter()
                .skip(1)
                .take_while(|byte| **byte >= 0x80)
                .count();
            // The mark of the first piece is there though it was not agreed.
            let mark = usize::from(header & 0x80 != 0);
            assert_eq!(mark, usize::from(pieces == 0));
            whole.extend(batch.get(sn + 2 + mark..).expect("a piece"));
            pieces += 1;
            if header & 0x40 == 0 {
                break;
            }
        }
        assert!(whole.ends_with(&payload), "batches of {size}");
        println!("      batches of {size}: {pieces} pieces");
    }
}

/// A queryable whose session ends, one way or the other, ends the queries it has.
#[test]
fn a_router_ends_the_queries_of_a_queryable_that_is_gone() {
    let router = router();
    let at = &router.at()[0];
    let mut taker = Real.client(at).expect("a client");
    for (n, close) in [false, true].into_iter().enumerate() {
        let mut raw = Raw::opened(at, &[0x56, n as u8 + 1]).expect("a session");
        raw.frame(&[0x1e, 0x64, 0x01, 0x00, 0x03, b'g', b'/', b'x'])
            .expect("a socket");
        std::thread::sleep(Duration::from_millis(100));
        let id = format!("get {n}");
        let started = Instant::now();
        taker
            .get(&id, &crate::node::Get::new("g/x"))
            .expect("a query");
        let request = loop {
            let batch = raw.receive(SOON).expect("a socket").expect("a request");
            if batch.first() == Some(&0x25) {
                break batch;
            }
        };
        assert!(request.windows(3).any(|key| key == b"g/x"));
        if close {
            raw.send(&[0x23, 0x00]).expect("a socket");
        }
        drop(raw);
        let event = taker.event(SOON).expect("events").expect("an end");
        assert_eq!((event.id, event.what), (id, Happened::End));
        println!("      ended after {:?}", started.elapsed());
    }
}

/// A socket of datagrams to a router: what is sent, and the one answer to it, if there is any.
struct Datagrams(std::net::UdpSocket);

impl Datagrams {
    fn new(at: &At) -> Self {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(&at.address).expect("an address");
        let patience = Some(Duration::from_millis(300));
        socket.set_read_timeout(patience).expect("a socket");
        Self(socket)
    }

    fn ask(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.0.send(message).expect("a socket");
        let mut bytes = [0; 2048];
        let len = self.0.recv(&mut bytes).ok()?;
        bytes.get(..len).map(<[u8]>::to_vec)
    }

    fn init(&self, zid: u8) -> Option<Vec<u8>> {
        self.ask(&[0x41, 9, 0x12, 0x57, zid, 0x0a, 0, 8])
    }

    /// OPEN for the answer to an INIT: its cookie is behind header, version, zid and sizes.
    fn open(init: &[u8]) -> Vec<u8> {
        let zid = usize::from(init.get(2).expect("INIT") >> 4) + 1;
        let cookie = init.get(3 + zid + 3..).expect("a cookie");
        joined(&[&[0x02, 0x90, 0x4e, 0x00], cookie])
    }

    fn opened(at: &At, zid: u8) -> Self {
        let socket = Self::new(at);
        let init = socket.init(zid).expect("INIT");
        assert_eq!(kind(&socket.ask(&Self::open(&init))), "OPEN");
        socket
    }

    fn probe(&self, sn: u8) -> &'static str {
        kind(&self.ask(&[0x25, sn, 0x7c, 1, 0, 5, b'p', b'r', b'o', b'b', b'e', 3]))
    }
}

fn kind(answer: &Option<Vec<u8>>) -> &'static str {
    match answer.as_deref() {
        None => "silence",
        Some([0x21 | 0x61 | 0xa1 | 0xe1, ..]) => "INIT",
        Some([0x22 | 0x62 | 0xa2 | 0xe2, ..]) => "OPEN",
        Some([0x03, 2]) => "CLOSE 2",
        Some([0x25, ..]) => "frame",
        Some(_) => "something else",
    }
}

/// What may be lost on the way is sent again; this is what that meets.
#[test]
fn what_a_router_does_with_repeated_handshakes_over_udp() {
    let router = Peer::router(&At::any(Kind::Udp, "".as_ref())).expect("a router");
    let at = &router.at()[0];

    // INIT again before OPEN ends the handshake; the same socket can begin anew then.
    let socket = Datagrams::new(at);
    let first = socket.init(1);
    assert_eq!(kind(&first), "INIT");
    assert_eq!(kind(&socket.init(1)), "CLOSE 2");
    let open = Datagrams::open(&first.expect("INIT"));
    assert_eq!(kind(&socket.ask(&open)), "CLOSE 2");
    let third = socket.init(1);
    assert_eq!(kind(&third), "INIT");
    let open = Datagrams::open(&third.expect("INIT"));
    assert_eq!(kind(&socket.ask(&open)), "OPEN");

    // OPEN again is not answered, and the session lives.
    assert_eq!(kind(&socket.ask(&open)), "silence");
    assert_eq!(socket.probe(0), "frame");

    // Nor is INIT, also of another zid: who restarts with the same port waits for the lease to end,
    // or sends CLOSE first.
    assert_eq!(kind(&socket.init(1)), "silence");
    assert_eq!(kind(&socket.init(2)), "silence");
    assert_eq!(kind(&socket.ask(&[0x23, 0])), "silence");
    assert_eq!(kind(&socket.init(1)), "INIT");

    // What belongs to no session is answered with CLOSE.
    assert_eq!(Datagrams::new(at).probe(0), "CLOSE 2");

    // Nonsense ends a session without a word; the next datagram meets no session.
    let socket = Datagrams::opened(at, 3);
    assert_eq!(socket.probe(0), "frame");
    assert_eq!(kind(&socket.ask(&[0x0f])), "silence");
    assert_eq!(socket.probe(1), "CLOSE 2");
}

//! Samples in batches: what one takes from the call to the bytes, and from the bytes to the subscriber.

use std::task::Waker;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::transport::{Frame, Init, Open, RESOLUTION};
use sinew::pubsub::codec::{
    Declaration, Declare, Priority, Push, Qos, VERSION, WhatAmI, WireExpr, Writer, Zid,
};
use sinew::pubsub::session::{Config, Fixed, PublisherOptions, Put, Session, Step};
use sinew::time::Instant;

use crate::Result;

/// A link that takes everything.
struct Sink(Vec<u8>);

impl Tx for Sink {
    fn mtu(&self) -> usize {
        self.0.len()
    }

    fn place(&mut self, min: usize) -> std::result::Result<&mut [u8], SendError> {
        match min > self.0.len() {
            true => Err(SendError::TooLarge),
            false => Ok(&mut self.0),
        }
    }

    fn commit(&mut self, _: usize) -> std::result::Result<(), SendError> {
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, _: &Waker) {}
}

const BATCH: u16 = 64_000;
const NOW: Instant = Instant::START;
const KEY: &str = "demo/lamp";

type Node = Session<Fixed<4, 4, 2, 2, 16, 1024>>;

fn node() -> Result<Node> {
    let mut config = Config::client(zid(b"one")?);
    config.batching = std::time::Duration::from_millis(1);
    Ok(Session::new(config, Fixed::new()))
}

/// Opens a session with a router, whose first frame has the number 0.
fn open(session: &mut Node) -> Result<Sink> {
    let mut link = Sink(vec![0; usize::from(BATCH)]);
    session.open(NOW);
    session.poll(&mut link, NOW);
    let init = Init {
        ack: true,
        version: VERSION,
        whatami: WhatAmI::Router,
        zid: zid(b"router")?,
        resolution: RESOLUTION,
        batch_size: BATCH,
        cookie: &[],
        patch: 1,
    };
    let open = Open {
        ack: true,
        lease_ms: 10_000,
        initial_sn: 0,
        cookie: &[],
    };
    let answers: [&dyn Fn(&mut Writer<'_>); 2] = [&|w| init.encode(w), &|w| open.encode(w)];
    for answer in answers {
        take(session, &packet(64, answer)?, &mut link);
    }
    while !matches!(session.poll(&mut link, NOW), Step::Done) {}
    Ok(link)
}

/// The bytes of some messages; at most so many.
fn packet(most: u16, write: &dyn Fn(&mut Writer<'_>)) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(most)];
    let mut writer = Writer::new(&mut bytes);
    write(&mut writer);
    let len = writer.finish().ok_or("more than there is room for")?;
    bytes.truncate(len);
    Ok(bytes)
}

fn take(session: &mut Node, packet: &[u8], link: &mut Sink) {
    while !matches!(session.receive(packet, link, NOW), Step::Done) {}
}

/// Publishes `n` samples of 8 bytes, in full batches.
pub fn publish(n: u64) -> Result<()> {
    let mut session = node()?;
    let lamp = session.publisher(KEY, PublisherOptions::DEFAULT)?;
    let mut link = open(&mut session)?;
    for number in 0..n {
        let became = session.put(&mut link, lamp, &number.to_le_bytes(), NOW);
        if std::hint::black_box(became) != Ok(Put::Sent) {
            return Err(format!("{became:?}").into());
        }
    }
    Ok(())
}

/// Takes in `n` samples of 8 bytes, in batches of 1,000, as a node does for its subscriber.
pub fn subscribe(n: u64) -> Result<()> {
    const SAMPLES: u64 = 1_000;
    let mut session = node()?;
    session.subscriber(KEY)?;
    let mut link = open(&mut session)?;
    let frame = |sn, w: &mut Writer<'_>| {
        let (reliable, priority) = (true, Priority::Data);
        let frame = Frame {
            reliable,
            sn,
            priority,
        };
        frame.encode(w);
    };
    let declare = Declare {
        interest: None,
        qos: Qos::DEFAULT,
        declaration: Declaration::Key {
            id: 1,
            key: WireExpr::text(KEY),
        },
    };
    let declared = packet(64, &|w| {
        frame(0, w);
        declare.encode(w);
    })?;
    take(&mut session, &declared, &mut link);
    let push = Push::put(WireExpr::declared(1, true), &[7; 8]);
    let samples = packet(BATCH, &|w| (0..SAMPLES).for_each(|_| push.encode(w)))?;
    let (mut batch, mut sum) = (Vec::new(), 0);
    for number in 0..n / SAMPLES {
        batch.clear();
        batch.extend(packet(64, &|w| frame(1 + number as u32, w))?);
        batch.extend_from_slice(&samples);
        session.receive(&batch, &mut link, NOW);
        let run = session.run(&batch).ok_or("no run of samples")?;
        for payload in run.payloads.of(&batch) {
            sum += u64::from(std::hint::black_box(payload)[0]);
        }
        take(&mut session, &batch, &mut link);
    }
    match sum == 7 * n {
        true => Ok(()),
        false => Err("samples are missing".into()),
    }
}

fn zid(name: &[u8]) -> Result<Zid> {
    Ok(Zid::new(name).ok_or("a name that is no id")?)
}

//! Samples that are published into a batch: what one takes from the call to the bytes.

use std::task::Waker;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::transport::{Init, Open, RESOLUTION};
use sinew::pubsub::codec::{VERSION, WhatAmI, Writer, Zid};
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

/// Publishes `n` samples of 8 bytes, in batches of 64,000 bytes, on a session with a router.
pub fn publish(n: u64) -> Result<()> {
    const BATCH: u16 = 64_000;
    let now = Instant::START;
    let mut config = Config::client(zid(b"one")?);
    config.batching = std::time::Duration::from_millis(1);
    let mut session = Session::new(config, Fixed::<4, 4, 2, 2, 16, 1024>::new());
    let lamp = session.publisher("demo/lamp", PublisherOptions::DEFAULT)?;
    let mut link = Sink(vec![0; usize::from(BATCH)]);
    session.open(now);
    session.poll(&mut link, now);
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
        initial_sn: 1,
        cookie: &[],
    };
    let answers: [&dyn Fn(&mut Writer<'_>); 2] = [&|w| init.encode(w), &|w| open.encode(w)];
    for answer in answers {
        let mut packet = [0; 64];
        let mut writer = Writer::new(&mut packet);
        answer(&mut writer);
        let len = writer.finish().ok_or("an answer that is too long")?;
        let packet = packet.get(..len).unwrap_or_default();
        while !matches!(session.receive(packet, &mut link, now), Step::Done) {}
    }
    while !matches!(session.poll(&mut link, now), Step::Done) {}
    for number in 0..n {
        let became = session.put(&mut link, lamp, &number.to_le_bytes(), now);
        if std::hint::black_box(became) != Ok(Put::Sent) {
            return Err(format!("{became:?}").into());
        }
    }
    Ok(())
}

fn zid(name: &[u8]) -> Result<Zid> {
    Ok(Zid::new(name).ok_or("a name that is no id")?)
}

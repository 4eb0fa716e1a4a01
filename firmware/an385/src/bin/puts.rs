//! Prints instructions per sample of 8 bytes, as `name value` lines on the UART: two sessions of one
//! image, with a packet between them.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ops::Range;
use core::task::Waker;
use core::time::Duration;

use an385::board;
use an385::count::{An385, Meter, print};
use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::{Qos, Zid};
use sinew::pubsub::session::{
    Config, Event, Fixed, PublisherOptions, Session, State, Step, Tables,
};
use sinew::time::Instant;

/// Bytes of the largest batch: 84 samples.
const BATCH: usize = 1024;
const SAMPLE: [u8; 8] = *b"8 bytes!";
const RUNS: Range<u32> = 0..512;
/// Samples that fit one batch.
const SHARING: Range<u32> = 0..80;
const NOW: Instant = Instant::from_micros(1);

/// A link that keeps the last packet.
struct Packet {
    place: [u8; BATCH],
    len: usize,
}

impl Packet {
    const fn new() -> Packet {
        Packet {
            place: [0; BATCH],
            len: 0,
        }
    }

    fn take(&mut self) -> &[u8] {
        let len = core::mem::take(&mut self.len);
        self.place.get(..len).unwrap_or_default()
    }
}

impl Tx for Packet {
    fn mtu(&self) -> usize {
        BATCH
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        match min > BATCH {
            true => Err(SendError::TooLarge),
            false => Ok(&mut self.place),
        }
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        self.len = len;
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

/// Handles a packet; how many samples were in it.
fn receive<T: Tables>(session: &mut Session<T>, packet: &[u8], tx: &mut Packet) -> u32 {
    let mut samples = 0;
    loop {
        match session.receive(packet, tx, NOW) {
            Step::Done => return samples,
            Step::Event(Event::Sample { sample, .. }) if sample.body.payload == SAMPLE => {
                samples += 1;
            }
            _ => {}
        }
    }
}

fn config(name: &[u8]) -> Option<Config> {
    Some(Config {
        batching: Duration::from_millis(10),
        ..Config::peer(Zid::new(name)?)
    })
}

fn run() -> Option<()> {
    let (mut there, mut back) = (Packet::new(), Packet::new());
    let mut from = Session::new(config(b"from")?, Fixed::<2>::new());
    let mut to = Session::new(config(b"to")?, Fixed::<0, 1, 0, 0, 6>::new());
    let shared = from.publisher("a/key", PublisherOptions::DEFAULT).ok()?;
    let alone = PublisherOptions {
        qos: Qos::DEFAULT.with_express(true),
        ..PublisherOptions::DEFAULT
    };
    let alone = from.publisher("a/key", alone).ok()?;
    to.subscriber("a/key").ok()?;
    from.open(NOW);
    to.accept();
    // The handshake and what is declared take six packets. A packet is taken before the next is sent.
    for _ in 0..8 {
        receive(&mut to, there.take(), &mut back);
        receive(&mut from, back.take(), &mut there);
        if there.len == 0 {
            from.poll(&mut there, NOW);
        }
        if back.len == 0 {
            to.poll(&mut back, NOW);
        }
    }
    if from.state() != State::Open || to.state() != State::Open {
        return None;
    }

    let (mut meter, sample) = (Meter::new(), black_box(SAMPLE));
    from.put(&mut there, shared, &sample, NOW).ok()?; // begins the batch
    meter.runs(SHARING, |_| {
        from.put(&mut there, shared, &sample, NOW).ok().map(drop)
    })?;
    print("", "put", meter.per_run());
    from.flush(&mut there, NOW).ok()?;

    let (mut meter, packet) = (Meter::new(), there.take());
    let mut samples = 0;
    meter.part(|| samples = receive(&mut to, packet, &mut back));
    for _ in 0..samples {
        meter.end_run();
    }
    if samples != SHARING.end + 1 {
        return None;
    }
    print("", "received", meter.per_run());

    let mut meter = Meter::new();
    meter.runs(RUNS, |_| {
        from.put(&mut there, alone, &sample, NOW).ok().map(drop)
    })?;
    print("", "put_alone", meter.per_run());
    Some(())
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    if !counted::is_exact::<An385>() {
        sinew_rt::exit(4);
    }
    match run() {
        Some(()) => sinew_rt::exit(0),
        None => sinew_rt::exit(3),
    }
}

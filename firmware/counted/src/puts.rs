//! Two sessions of Zenoh in one image, with a packet between them: one publishes samples of 8 bytes, the
//! other subscribes to them.

use core::task::Waker;
use core::time::Duration;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::{Qos, Zid};
use sinew::pubsub::session::{
    Config, Event, Fixed, PublisherId, PublisherOptions, Session, State, Step, Tables,
};
use sinew::time::Instant;

/// Bytes of the largest batch: 84 samples.
const BATCH: usize = 1024;
/// What is published.
pub const SAMPLE: [u8; 8] = *b"8 bytes!";
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

/// The two sessions, open, and what lies between them.
pub struct Pair {
    there: Packet,
    back: Packet,
    from: Session<Fixed<2>>,
    to: Session<Fixed<0, 1, 0, 0, 6>>,
    /// Of samples that share a batch, and of those that have one each.
    shared: PublisherId,
    alone: PublisherId,
}

impl Pair {
    /// `None` where the sessions do not open.
    pub fn open() -> Option<Pair> {
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
        let is_open = from.state() == State::Open && to.state() == State::Open;
        is_open.then_some(Pair {
            there,
            back,
            from,
            to,
            shared,
            alone,
        })
    }

    /// Publishes a sample into the batch under way, or begins one. A batch has room for 84.
    #[inline(always)]
    pub fn put(&mut self, sample: &[u8; 8]) -> Option<()> {
        let put = self.from.put(&mut self.there, self.shared, sample, NOW);
        put.ok().map(drop)
    }

    /// Publishes a sample with a batch of its own.
    #[inline(always)]
    pub fn put_alone(&mut self, sample: &[u8; 8]) -> Option<()> {
        let put = self.from.put(&mut self.there, self.alone, sample, NOW);
        put.ok().map(drop)
    }

    /// Ends the batch under way.
    pub fn flush(&mut self) -> Option<()> {
        self.from.flush(&mut self.there, NOW).ok().map(drop)
    }

    /// Takes in what was sent last; how many samples that were.
    #[inline(always)]
    pub fn receive(&mut self) -> u32 {
        receive(&mut self.to, self.there.take(), &mut self.back)
    }
}

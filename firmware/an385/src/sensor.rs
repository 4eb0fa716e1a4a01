//! A sensor: a node of Zenoh that publishes a count and a temperature, as text.
//!
//! It knows nothing of its link: the images `sensor` and `sensor_uart` give it packets, and a way to send.
//! Where the session ends, it opens the next one.

use core::time::Duration;

use sinew::link::Tx;
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{
    Config, Fixed, Opens, PublisherId, PublisherOptions, Session, State, Step,
};
use sinew::time::Instant;

use crate::zenoh;

// Checked by the compiler, so that nothing in the image does.
const COUNT: KeyExpr<'_> = KeyExpr::from_static("sensor/count");
const TEMPERATURE: KeyExpr<'_> = KeyExpr::from_static("sensor/temperature");

/// Between two samples, or until the core wakes next.
const PERIOD: Duration = Duration::from_millis(200);

/// The core wakes every so many ticks, 20 ms: so late comes what is due.
pub const WAKE: u32 = 25 * 20_000;

/// The application, with its session.
pub struct Sensor {
    session: Session<Opens<Fixed<2>>>,
    count: PublisherId,
    temperature: PublisherId,
    /// Samples so far.
    samples: u32,
    next: Instant,
}

impl Sensor {
    /// A sensor without a session yet.
    pub fn new() -> Option<Sensor> {
        let config = Config {
            // Each sample leaves at once.
            batching: Duration::ZERO,
            ..zenoh::config(b"sensor")?
        };
        let mut session = Session::new(config, Opens(Fixed::new()));
        Some(Sensor {
            count: session.publisher(COUNT, PublisherOptions::DEFAULT).ok()?,
            temperature: session
                .publisher(TEMPERATURE, PublisherOptions::DEFAULT)
                .ok()?,
            session,
            samples: 0,
            next: Instant::START,
        })
    }

    /// Takes up a packet of the other side; `false`: not yet, for want of a place for an answer.
    pub fn receive(&mut self, packet: &[u8], tx: &mut impl Tx, now: Instant) -> bool {
        loop {
            match self.session.receive(packet, tx, now) {
                Step::Done => return true,
                Step::Full => return false,
                _ => {}
            }
        }
    }

    /// Does what is due, and publishes.
    pub fn turn(&mut self, tx: &mut impl Tx, now: Instant) {
        if self.session.state() == State::Closed {
            self.session.open(now);
        }
        if self.session.state() == State::Open && self.next <= now {
            // What the link has no place for is not published: the next one is newer.
            let mut text = [0; 12];
            let count = decimal(self.samples, 0, &mut text);
            let _ = self.session.put(tx, self.count, count, now);
            let tenths = decimal(measure(self.samples), 1, &mut text);
            let _ = self.session.put(tx, self.temperature, tenths, now);
            self.samples = self.samples.wrapping_add(1);
            self.next = now.after(PERIOD);
        }
        while !matches!(self.session.poll(tx, now), Step::Done | Step::Full) {}
    }

    /// The link has ended, and another one begins.
    pub fn link_lost(&mut self) {
        self.session.link_lost();
    }
}

/// A room that warms up and cools down, in tenths of a degree Celsius.
fn measure(n: u32) -> u32 {
    let step = n % 100;
    200 + step.min(100 - step)
}

/// The number in decimal digits, of which so many stand behind a point.
fn decimal(mut number: u32, behind: usize, text: &mut [u8; 12]) -> &[u8] {
    let (mut start, mut digits) = (text.len(), 0);
    for byte in text.iter_mut().rev() {
        start -= 1;
        if behind > 0 && digits == behind {
            *byte = b'.';
        } else {
            *byte = b'0' + (number % 10) as u8;
            number /= 10;
        }
        digits += 1;
        if number == 0 && (behind == 0 || digits > behind + 1) {
            break;
        }
    }
    text.get(start..).unwrap_or_default()
}

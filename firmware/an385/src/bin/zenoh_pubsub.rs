//! A node of Zenoh that publishes and subscribes: it publishes what it is told, also what comes and
//! leaves in fragments.
#![no_std]
#![no_main]

use an385::{board, zenoh};
use sinew::link::Rx;
use sinew::pubsub::session::{Event, Fixed, Opens, PublisherOptions, Session, State, Step};
use sinew::time::Instant;

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", an385::BATCH);

/// The largest sample, in bytes.
const LARGEST: usize = 256;

/// A publisher, a subscriber, six keys of the peer, and a message in fragments.
type Tables = Fixed<1, 1, 0, 0, 8, 512>;

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    let (mut tx, mut rx) = zenoh::link();
    let mut session = Session::new(zenoh::config(b"board-sub")?, Opens(Tables::new()));
    let said = session.publisher("board/said", PublisherOptions::DEFAULT);
    let said = said.ok()?;
    session.subscriber("board/say/*").ok()?;
    let mut heard = [0; LARGEST];
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        if session.state() == State::Closed {
            session.open(now);
        }
        while let Some(packet) = rx.packet() {
            loop {
                let mut len = 0;
                match session.receive(packet, &mut tx, now) {
                    Step::Done => break,
                    Step::Event(Event::Sample { sample, .. }) => {
                        let payload = sample.body.payload;
                        if let Some(place) = heard.get_mut(..payload.len()) {
                            place.copy_from_slice(payload);
                            len = payload.len();
                        }
                    }
                    _ => {}
                }
                if let Some(payload @ [_, ..]) = heard.get(..len) {
                    // Where nobody listens any more, nobody misses it.
                    let _ = session.put(&mut tx, said, payload, now);
                }
            }
            rx.release();
        }
        while !matches!(session.poll(&mut tx, now), Step::Done) {}
        sinew_rt::sleep();
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    run();
    sinew_rt::exit(3)
}

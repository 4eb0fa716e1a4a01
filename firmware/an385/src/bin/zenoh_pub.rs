//! A node of Zenoh that publishes and holds nothing else: a counter of 8 bytes, in bursts that share a
//! batch. Where the session ends, it opens the next one.
#![no_std]
#![no_main]

use an385::{board, zenoh};
use sinew::link::Rx;
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Fixed, Opens, PublisherOptions, Session, State, Step};
use sinew::time::Instant;

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", an385::BATCH);

/// Checked by the compiler, so that nothing in the image does.
const COUNT: KeyExpr<'_> = KeyExpr::from_static("board/count");
/// Samples of one burst.
const BURST: u32 = 8;

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    let (mut tx, mut rx) = zenoh::link();
    let mut session = Session::new(zenoh::config(b"board-pub")?, Opens(Fixed::<1>::new()));
    let count = session.publisher(COUNT, PublisherOptions::DEFAULT);
    let count = count.ok()?;
    let (mut samples, mut next) = (0u64, Instant::START);
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        if session.state() == State::Closed {
            session.open(now);
        }
        while let Some(packet) = rx.packet() {
            while !matches!(session.receive(packet, &mut tx, now), Step::Done) {}
            rx.release();
        }
        if session.state() == State::Open && next <= now {
            for _ in 0..BURST {
                if session
                    .put(&mut tx, count, &samples.to_le_bytes(), now)
                    .is_ok()
                {
                    samples += 1;
                }
            }
            next = now.after(zenoh::PERIOD);
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

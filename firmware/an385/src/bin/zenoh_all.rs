//! A node of Zenoh with all there is: it publishes what it is told, unless nobody listens; answers
//! queries with how many samples were heard and how many were not; and asks when it is told to.
#![no_std]
#![no_main]

use an385::{board, zenoh};
use sinew::link::Rx;
use sinew::pubsub::codec::{Body, Reply};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{
    Ask, Event, Fixed, Opens, PublisherOptions, Put, RequestId, Session, State, Step,
};
use sinew::time::Instant;

sinew_rt::board!("machine=mps2-an385 link=uart mtu={}", an385::BATCH);

/// The largest sample, in bytes.
const LARGEST: usize = 256;
/// A sample with this value makes the board ask.
const ASK: &[u8] = b"ask";
const QUESTION: KeyExpr<'_> = KeyExpr::from_static("host/*");

/// A publisher, a subscriber, a queryable, a query, six keys of the peer, and a message in fragments.
type Tables = Fixed<1, 1, 1, 1, 8, 512>;

/// What an event asks for, once the packet's bytes are copied out.
enum Todo {
    Say(usize),
    Ask,
    Answer(RequestId),
}

fn run() -> Option<()> {
    let mut clock = board::Clock::start();
    let (mut tx, mut rx) = zenoh::link();
    let mut session = Session::new(zenoh::config(b"board-all")?, Opens(Tables::new()));
    let filtered = PublisherOptions {
        filter: true,
        ..PublisherOptions::DEFAULT
    };
    let said = session.publisher("board/said", filtered).ok()?;
    session.subscriber("board/say/*").ok()?;
    session.queryable("board/counts", true).ok()?;
    let mut heard = [0; LARGEST];
    let mut counts = [0u8; 2];
    loop {
        board::acknowledge();
        let now = Instant::from_micros(clock.micros());
        if session.state() == State::Closed {
            session.open(now);
        }
        while let Some(packet) = rx.packet() {
            loop {
                let todo = match session.receive(packet, &mut tx, now) {
                    Step::Done => break,
                    Step::Event(Event::Sample { sample, .. }) => match sample.body.payload {
                        ASK => Todo::Ask,
                        payload => keep(&mut heard, payload),
                    },
                    Step::Event(Event::Reply { reply, .. }) => match reply.answer {
                        Reply::Sample { body, .. } => keep(&mut heard, body.payload),
                        Reply::Error { payload, .. } => keep(&mut heard, payload),
                    },
                    Step::Event(Event::Query { request, .. }) => Todo::Answer(request),
                    _ => continue,
                };
                // What fails has met the end of the session, and the next one begins anew.
                match todo {
                    Todo::Say(len) => {
                        let payload = heard.get(..len).unwrap_or_default();
                        let [to_some, to_none] = &mut counts;
                        match session.put(&mut tx, said, payload, now) {
                            Ok(Put::Unheard) => *to_none = to_none.wrapping_add(1),
                            Ok(_) => *to_some = to_some.wrapping_add(1),
                            Err(_) => {}
                        }
                    }
                    Todo::Ask => {
                        let _ = session.ask(&mut tx, &Ask::new(QUESTION), now);
                    }
                    Todo::Answer(request) => {
                        let _ = session.reply(&mut tx, request, None, &Body::put(&counts), now);
                        let _ = session.finish(&mut tx, request, now);
                    }
                }
            }
            rx.release();
        }
        while !matches!(session.poll(&mut tx, now), Step::Done) {}
        sinew_rt::sleep();
    }
}

fn keep(heard: &mut [u8], payload: &[u8]) -> Todo {
    match heard.get_mut(..payload.len()) {
        Some(place) => {
            place.copy_from_slice(payload);
            Todo::Say(payload.len())
        }
        None => Todo::Say(0),
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    board::start();
    run();
    sinew_rt::exit(3)
}

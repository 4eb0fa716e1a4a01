//! A session allocates nothing, whatever it does: handshake, declarations, samples, fragments, queries,
//! the end of a link, and all of it once more.

use std::cell::RefCell;
use std::task::Waker;

use sinew::link::{SendError, Tx};
use sinew::pubsub::codec::{Body, Zid};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{
    Ask, Config, Event, Fixed, PublisherOptions, Put, RequestId, Session, State, Step,
};
use sinew::time::Instant;

const MTU: usize = 128;
const PLACES: usize = 32;
const NOW: Instant = Instant::START;

type Node = Session<Fixed<2, 2, 1, 1, 10, 2048>>;

/// One direction, in an array.
struct Way {
    packets: [([u8; MTU], usize); PLACES],
    /// Packets that were put, and taken.
    put: usize,
    taken: usize,
}

struct Half<'w>(&'w RefCell<Way>, [u8; MTU]);

impl Tx for Half<'_> {
    fn mtu(&self) -> usize {
        MTU
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        let way = self.0.borrow();
        match min {
            MTU.. if min > MTU => Err(SendError::TooLarge),
            _ if way.put - way.taken == PLACES => Err(SendError::Full),
            _ => Ok(&mut self.1),
        }
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let way = &mut *self.0.borrow_mut();
        if len > 0 {
            way.packets[way.put % PLACES] = (self.1, len);
            way.put += 1;
        }
        Ok(())
    }

    fn flush(&mut self) {}

    fn arm(&mut self, _: &Waker) {}
}

#[derive(Default)]
struct Seen {
    bytes: usize,
    samples: u32,
    replies: u32,
    ended: u32,
    request: Option<RequestId>,
}

impl Seen {
    fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Sample { sample, .. } => {
                self.samples += 1;
                self.bytes += sample.body.payload.len();
            }
            Event::Query { request, .. } => self.request = Some(*request),
            Event::Reply { .. } => self.replies += 1,
            Event::Ended { .. } => self.ended += 1,
            Event::Opened | Event::Closed(_) | Event::Heard => {}
        }
    }
}

/// Lets a side do all there is to do.
fn turn(node: &mut Node, rx: &RefCell<Way>, tx: &mut Half<'_>, seen: &mut Seen) {
    loop {
        let packet = {
            let way = rx.borrow();
            if way.taken == way.put {
                break;
            }
            way.packets[way.taken % PLACES]
        };
        rx.borrow_mut().taken += 1;
        loop {
            match node.receive(&packet.0[..packet.1], tx, NOW) {
                Step::Done => break,
                Step::Event(event) => seen.note(&event),
                Step::More => {}
                Step::Full => panic!("there is room for all of it"),
            }
        }
    }
    while let Step::Event(event) = node.poll(tx, NOW) {
        seen.note(&event);
    }
}

#[test]
fn session_allocates_nothing_from_handshake_to_reconnect() {
    let way = || {
        RefCell::new(Way {
            packets: [([0; MTU], 0); PLACES],
            put: 0,
            taken: 0,
        })
    };
    let (to, back) = (way(), way());
    let (mut seen, mut other_seen) = (Seen::default(), Seen::default());
    let counted = allocation_counter::measure(|| {
        let mut one: Node = Session::new(Config::peer(Zid::new(b"one").unwrap()), Fixed::new());
        let zid = Zid::new(b"other").unwrap();
        let mut other: Node = Session::new(Config::peer(zid), Fixed::new());
        let (mut tx, mut other_tx) = (Half(&to, [0; MTU]), Half(&back, [0; MTU]));
        let lamp = one
            .publisher("demo/lamp", PublisherOptions::DEFAULT)
            .unwrap();
        other.subscriber("demo/**").unwrap();
        other.subscriber("demo/lamp").unwrap();
        other.queryable("demo/*", true).unwrap();
        for _ in 0..3 {
            other.accept();
            one.open(NOW);
            let mut settle = |one: &mut Node, other: &mut Node, tx: &mut Half<'_>| {
                for _ in 0..8 {
                    turn(one, &back, tx, &mut seen);
                    turn(other, &to, &mut other_tx, &mut other_seen);
                    if let Some(request) = other_seen.request.take() {
                        let key = KeyExpr::new("demo/lamp").ok();
                        let body = Body::put(b"it is on");
                        other
                            .reply(&mut other_tx, request, key, &body, NOW)
                            .unwrap();
                        other.finish(&mut other_tx, request, NOW).unwrap();
                    }
                }
            };
            settle(&mut one, &mut other, &mut tx);
            assert_eq!(one.state(), State::Open);
            for payload in [&b"on"[..], &[7; 1500]] {
                assert_eq!(one.put(&mut tx, lamp, payload, NOW), Ok(Put::Heard));
                settle(&mut one, &mut other, &mut tx);
            }
            let ask = Ask::new(KeyExpr::new("demo/lamp").unwrap());
            one.ask(&mut tx, &ask, NOW).unwrap();
            settle(&mut one, &mut other, &mut tx);
            one.link_lost();
            other.link_lost();
        }
    });
    assert_eq!((other_seen.samples, other_seen.bytes), (12, 3 * 2 * 1502));
    assert_eq!((seen.replies, seen.ended), (3, 3));
    assert_eq!(counted.count_total, 0);
}

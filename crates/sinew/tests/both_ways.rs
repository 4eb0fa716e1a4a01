//! A client and a server on both ends of one link: the header is decoded once and split by parity,
//! and two sides that fill the link with requests go on for ever.
#![cfg(feature = "shm")]

mod support;

use std::time::Duration;

use sinew::link::queue::{QueuePort, QueueRx, QueueTx, pair};
use sinew::link::{Port, Rx, SendError, Tx};
use sinew::rpc::packet::Packet;
use sinew::rpc::{Channels, Client, ClientCall, Decode, Received, Server, Via};
use sinew::time::Instant;
use sinew_shm::{Bell, Queue, StdLock};

use support::client::UNARY;
use support::kinds::Kinds;
use support::slots;
use support::wire::Num;

const BLOCKS: usize = 4;
const SIZE: usize = 64;
const IN_FLIGHT: usize = 8;

/// One domain: it serves, and it calls the other one.
struct Side {
    tx: QueueTx<StdLock, BLOCKS, SIZE>,
    rx: QueueRx<StdLock, BLOCKS, SIZE>,
    port: &'static QueuePort<StdLock, BLOCKS, SIZE>,
    server: Server<4>,
    client: Client<IN_FLIGHT>,
    kinds: Kinds,
    /// What was asked for, by call index.
    asked: [Option<(ClientCall, u32)>; IN_FLIGHT],
    next: u32,
    answered: u32,
    was_full: bool,
}

impl Side {
    fn new(
        (tx, rx): (
            QueueTx<StdLock, BLOCKS, SIZE>,
            QueueRx<StdLock, BLOCKS, SIZE>,
        ),
    ) -> Self {
        let bell: &'static Bell<StdLock> = Box::leak(Box::new(Bell::new()));
        Side {
            port: Box::leak(Box::new(tx.port(1, bell))),
            tx,
            rx,
            server: Server::new(slots()),
            client: Client::new(1, 7),
            kinds: Kinds::default(),
            asked: [None; IN_FLIGHT],
            next: 1_000, // clear of the numbers with a meaning
            answered: 0,
            was_full: false,
        }
    }

    /// Sends one more request where there is a call and a place; the last place is not for it.
    fn ask(&mut self) {
        let Ok(call) = self
            .client
            .open(UNARY, Duration::from_secs(1), Instant::START)
        else {
            return;
        };
        let n = self.next;
        let port: &dyn Port = self.port;
        let sent = port.send_with(SIZE, |place| {
            (call.request(place, &Num(n)).expect("it fits"), ())
        });
        match sent {
            Ok(()) => {
                self.asked[call.index()] = Some((call, n));
                self.next += 1;
            }
            Err(SendError::Full) => {
                self.was_full = true;
                self.client.abandon(&call, &mut []);
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    /// One receive step, with a place for the answer in hand; whether it took a packet up.
    fn step(&mut self) -> bool {
        let place = match self.tx.place(SIZE) {
            Ok(place) => place,
            Err(SendError::Full) => return false,
            Err(error) => panic!("{error:?}"),
        };
        let Some(bytes) = self.rx.peek().expect("an open link") else {
            self.tx.commit(0).expect("a place in hand");
            return false;
        };
        let packet = Packet::decode(bytes).expect("a packet");
        let len = if packet.packet_type.is_for_server() {
            let via = Via {
                link: 0,
                channels: Channels::Only(1),
                port: Some(self.port),
                bulk: None,
            };
            let (server, kinds) = (&mut self.server, &mut self.kinds);
            server.handle_packet(&packet, &via, place, kinds, Instant::START)
        } else {
            let (len, event) = self.client.handle_packet(&packet, place, Instant::START);
            let event = event.expect("every answer here belongs to a call");
            let asked = self.asked[event.call.index()].take();
            let (call, n) = asked.expect("a call that was made");
            assert_eq!(call, event.call);
            match event.received {
                Received::Completed(status, payload) if status.is_ok() => {
                    assert_eq!(Num::decode(payload), Some(Num(2 * n)));
                }
                other => panic!("{other:?}"),
            }
            self.answered += 1;
            len
        };
        self.tx.commit(len).expect("a place in hand");
        self.rx.release();
        true
    }
}

#[test]
fn two_sides_that_fill_the_link_with_requests_never_stand_still() {
    for seed in 1..200u32 {
        let queue = || -> &'static Queue<StdLock, BLOCKS, SIZE> { Box::leak(Box::default()) };
        let (near, far) = pair(queue(), queue()).expect("fresh queues");
        let mut sides = [Side::new(near), Side::new(far)];
        let mut random = seed;
        for _ in 0..2_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let side = &mut sides[(random >> 30) as usize & 1];
            // More requests than steps, so that both directions are full most of the time.
            match random >> 24 & 3 {
                0 => drop(side.step()),
                _ => side.ask(),
            }
        }
        assert!(sides.iter().all(|side| side.was_full), "seed {seed}");
        // Whatever was on its way arrives.
        loop {
            let [a, b] = &mut sides;
            if !(a.step() | b.step()) {
                break;
            }
        }
        for side in &sides {
            assert_eq!(side.answered, side.next - 1_000, "seed {seed}");
            assert!(side.answered > 50, "seed {seed}: {}", side.answered);
        }
    }
}

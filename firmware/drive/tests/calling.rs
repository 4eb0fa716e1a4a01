//! A handle keeps its call: however that has ended and whatever is called meanwhile, what came for it is there until
//! it is read, and its end is its own.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use sinew::link::queue::{self, QueueRx, QueueTx};
use sinew::link::{Rx, Tx};
use sinew::rpc::packet::{Packet, PacketType, Route, encode};
use sinew::rpc::streams::*;
use sinew::rpc::{CallError, Status};
use sinew::time::Instant;
use sinew_demo::{Num, kinds};
use sinew_drive::calling::{Caller, Handle, Pace};
use sinew_shm::{Queue, StdLock};

const BLOCKS: usize = 8;
const SIZE: usize = 64;

/// Takes 4 items of 2 bytes, each with its length.
const INBOX: usize = 16;

type Out = QueueTx<StdLock, BLOCKS, SIZE>;
type In = QueueRx<StdLock, BLOCKS, SIZE>;

/// Its sleep is a second of nothing.
struct Clock(Rc<Cell<u64>>);

impl Pace for Clock {
    fn look(&mut self) -> Instant {
        Instant::from_micros(self.0.get())
    }

    fn sleep(&mut self) {
        self.0.set(self.0.get() + 1_000_000);
    }
}

/// The other end of the link: it reads what the caller sends, and says what the test wants.
struct Peer(Out, In);

impl Peer {
    /// What the caller has sent next.
    fn told(&mut self) -> Option<(PacketType, Status, Route)> {
        let packet = Packet::decode(self.1.peek().unwrap()?).unwrap();
        let told = (packet.packet_type, packet.status, packet.route);
        self.1.release();
        Some(told)
    }

    /// The call whose request comes next.
    fn asked(&mut self) -> Route {
        let (packet_type, _, route) = self.told().unwrap();
        assert_eq!(packet_type, PacketType::REQUEST);
        route
    }

    fn say(&mut self, packet_type: PacketType, call: &Route, message: &Num) {
        let place = self.0.place(SIZE).unwrap();
        let len = encode(place, packet_type, call, message, Status::OK).unwrap();
        self.0.commit(len).unwrap();
    }

    fn send(&mut self, call: &Route, items: Range<u32>) {
        for n in items {
            self.say(PacketType::SERVER_STREAM, call, &Num { n });
        }
    }

    fn complete(&mut self, call: &Route) {
        self.say(PacketType::RESPONSE, call, &Num { n: 0 });
    }
}

type Calls = Caller<Out, In, Clock, 3, INBOX>;

fn caller() -> (Calls, Peer) {
    let queue = || &*Box::leak(Box::new(Queue::new()));
    let ((tx, rx), (peer_tx, peer_rx)) = queue::pair(queue(), queue()).unwrap();
    let clock = Clock(Rc::default());
    let caller = Caller::new(tx, rx, clock, 1, 7);
    (caller, Peer(peer_tx, peer_rx))
}

type Counting<'c> = Handle<'c, Calls, kinds::method::Count>;

const ANY: Num = Num { n: 1 };

/// A call with three items in its inbox that was completed, and one that is open.
fn completed_and_open<'c>(
    kinds: &mut kinds::Client<&'c Calls>,
    peer: &mut Peer,
) -> [Counting<'c>; 2] {
    let completed = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 0..3);
    peer.complete(&call);
    let mut open = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 7..8);
    assert_eq!(open.next(), Ok(Some(Num { n: 7 })));
    [completed, open]
}

/// What is there for a call, and how it has ended.
fn read(call: &mut impl ItemReader<Num>) -> (Vec<u32>, Result<(), CallError>) {
    let mut items = Vec::new();
    loop {
        match call.next() {
            Ok(Some(Num { n })) => items.push(n),
            Ok(None) => return (items, Ok(())),
            Err(error) => return (items, Err(error)),
        }
    }
}

#[test]
fn completed_call_keeps_what_came_and_leaves_the_next_one_alone() {
    let (caller, mut peer) = caller();
    let mut kinds = kinds::Client(&caller);
    let [mut held, _open] = completed_and_open(&mut kinds, &mut peer);
    let mut next = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 10..15);
    peer.complete(&call);
    assert_eq!(read(&mut held), (vec![0, 1, 2], Ok(())));
    drop(held);
    assert_eq!(read(&mut next), ((10..15).collect(), Ok(())));
}

#[test]
fn call_that_met_its_deadline_keeps_what_came() {
    let (caller, mut peer) = caller();
    let mut kinds = kinds::Client(&caller);
    let mut held = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 0..3);
    let mut other = kinds.count(&ANY).unwrap();
    let late = Err(CallError::DeadlineExceeded);
    assert_eq!(read(&mut other), (vec![], late));

    let _next = kinds.count(&ANY).unwrap();
    assert_eq!(read(&mut held), (vec![0, 1, 2], late));
}

#[test]
fn call_of_a_lost_link_keeps_what_came() {
    let (caller, mut peer) = caller();
    let mut kinds = kinds::Client(&caller);
    let mut held = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 0..3);
    let mut other = kinds.count(&ANY).unwrap();
    drop(peer);
    let closed = Err(CallError::Closed);
    assert_eq!(read(&mut other), (vec![], closed));

    assert_eq!(kinds.count(&ANY).err(), Some(CallError::Closed));
    assert_eq!(read(&mut held), (vec![0, 1, 2], closed));
}

#[test]
fn deadline_ends_the_call_that_missed_it_and_no_other() {
    let (caller, mut peer) = caller();
    let mut kinds = kinds::Client(&caller);
    let [mut held, _open] = completed_and_open(&mut kinds, &mut peer);
    let mut next = kinds.count(&ANY).unwrap();
    let late = Err(CallError::DeadlineExceeded);
    assert_eq!(read(&mut next), (vec![], late));
    assert_eq!(read(&mut held), (vec![0, 1, 2], Ok(())));
}

#[test]
fn full_inbox_ends_the_call_that_it_belongs_to_and_no_other() {
    let (caller, mut peer) = caller();
    let mut kinds = kinds::Client(&caller);
    let [mut held, mut open] = completed_and_open(&mut kinds, &mut peer);
    let mut next = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 10..15);
    assert_eq!(read(&mut open).0, []);

    let exhausted = (PacketType::CLIENT_ERROR, Status::RESOURCE_EXHAUSTED, call);
    assert_eq!(peer.told(), Some(exhausted));
    let overrun = Err(CallError::Overrun);
    assert_eq!(read(&mut next), ((10..14).collect(), overrun));
    assert_eq!(read(&mut held), (vec![0, 1, 2], Ok(())));
}

#[test]
fn call_that_has_ended_counts_until_its_handle_is_dropped() {
    let (caller, mut peer) = caller();
    let mut kinds = kinds::Client(&caller);
    let [held, _open] = completed_and_open(&mut kinds, &mut peer);
    let _third = kinds.count(&ANY).unwrap();
    peer.asked();
    assert_eq!(kinds.count(&ANY).err(), Some(CallError::TooManyCalls));
    assert_eq!(peer.told(), None, "nothing is sent for it");

    drop(held);
    let mut next = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 10..11);
    assert_eq!(next.next(), Ok(Some(Num { n: 10 })));
}

//! A link that is brought to its end in order: what is under way still arrives, and a restart of
//! either side meanwhile is told as one.
#![cfg(not(loom))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use raw::Pair;
use sinew_shm::domain::{
    Channel, Config, End, Lost, Options, Pool, Receiver, Refused, Role, Sender, Status,
};
use support::{Solo, parts};

const ONE: Config = Config::new(&[Channel::new(1, "one", Pool::new(4, 100))]);

/// An end on memory of two programs: the peer is not trusted.
fn open(pair: &Pair, role: Role) -> Rc<End<Solo>> {
    // SAFETY: the tests drop or forget one end of a role before they open the next.
    let memory = unsafe { pair.memory(role) };
    let parts = parts(Solo, &ONE);
    Rc::new(End::open(memory, ONE, role, parts, Options::default()).unwrap())
}

fn up() -> (Pair, Rc<End<Solo>>, Rc<End<Solo>>) {
    let pair = Pair::new(&[ONE]);
    let (first, second) = (open(&pair, Role::First), open(&pair, Role::Second));
    for end in [&first, &second, &first] {
        end.look(0);
    }
    assert_eq!(first.status(), Status::Up);
    (pair, first, second)
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_was_sent_before_the_drain_can_be_copied_out_after_it() {
    let (_, first, second) = up();
    let sender = Sender::new(&first, 1).unwrap();
    let receiver = Receiver::new(&second, 1).unwrap();
    sender.send(b"one").unwrap();
    sender.send(b"two").unwrap();
    let early = receiver.receive().unwrap().unwrap();
    first.drain();
    let late = receiver.receive().unwrap().unwrap();
    for (packet, expected) in [(early, b"one"), (late, b"two")] {
        let mut copy = [0; 3];
        assert_eq!(packet.copy_to(&mut copy), Ok(3));
        assert_eq!(&copy, expected);
    }
    assert!(first.is_drained());
}

#[test]
fn who_waits_on_a_draining_peer_is_not_woken_for_nothing() {
    let (_, first, second) = up();
    let receiver = Receiver::new(&second, 1).unwrap();
    first.drain();
    second.look(0);
    let count = Arc::new(Count(AtomicUsize::new(0)));
    receiver.arm(&Waker::from(count.clone()));
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    first.close();
    second.look(0);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
}

#[test]
fn nothing_is_sent_to_a_draining_peer() {
    let (_, first, second) = up();
    first.drain();
    second.look(0);
    let sender = Sender::new(&second, 1).unwrap();
    assert_eq!(sender.send(b"no"), Err(Refused::Lost(Lost::Closed)));
    assert!(second.is_drained() && first.is_drained());
}

#[test]
fn a_restart_of_the_peer_while_draining_is_a_restart_and_no_fault() {
    let (pair, first, second) = up();
    let sender = Sender::new(&first, 1).unwrap();
    for _ in 0..3 {
        sender.send(b"x").unwrap();
    }
    let receiver = Receiver::new(&second, 1).unwrap();
    drop(receiver.receive().unwrap());
    first.drain();
    drop(receiver.receive().unwrap());
    drop(receiver);
    std::mem::forget(second);
    let second = open(&pair, Role::Second);
    // Nothing is under way to a peer that knows nothing of it.
    assert!(first.is_drained());
    assert!(!matches!(first.status(), Status::Fault(_)));
    second.look(0);
    assert!(first.is_drained());
    first.look(0);
    assert_eq!(sender.send(b"x"), Err(Refused::Lost(Lost::Restarted)));
}

#[test]
fn a_side_that_drained_comes_up_with_a_restarted_peer() {
    let (pair, first, second) = up();
    first.drain();
    std::mem::forget(second);
    let second = open(&pair, Role::Second);
    for _ in 0..3 {
        first.look(0);
        second.look(0);
    }
    assert_eq!(first.status(), Status::Up);
    assert_eq!(second.status(), Status::Up);
    let sender = Sender::new(&first, 1).unwrap();
    let receiver = Receiver::new(&second, 1).unwrap();
    assert_eq!(sender.send(b"again"), Ok(true));
    assert_eq!(receiver.receive().unwrap().unwrap().len(), 5);
}

#[test]
fn a_bad_return_found_while_draining_stops_the_link_and_wakes_who_waits() {
    let (pair, first, second) = up();
    let sender = Sender::new(&first, 1).unwrap();
    sender.send(b"x").unwrap();
    let receiver = Receiver::new(&first, 1).unwrap();
    let count = Arc::new(Count(AtomicUsize::new(0)));
    receiver.arm(&Waker::from(count.clone()));
    let returns = pair.second.places(0).returns;
    pair.second.set(returns + raw::SEQUENCE, 0x5555);
    assert!(!first.is_drained());
    assert!(matches!(first.status(), Status::Fault(_)));
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    drop(second);
}

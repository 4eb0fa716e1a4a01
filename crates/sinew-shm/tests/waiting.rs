//! Who waits is rung for what comes next, also where another thread has taken what it was rung for.
#![cfg(not(loom))]

mod support;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sinew_shm::Unshared;
use sinew_shm::domain::{
    Block, Channel, Config, Doorbell, End, Memory, Messages, Options, Parts, Platform, Pool,
    Receiver, Role, Sender, Slot,
};
use support::{Fetching, Flag, memory};

const QUEUE: u16 = 1;
const MOTOR: u16 = 2;
const LINK: Config = Config::new(&[
    Channel::new(QUEUE, "queue", Pool::new(2, 64)),
    Channel::messages(MOTOR, "motor", 2, 2),
]);

/// An end whose doorbell counts.
struct Counting;

impl Platform for Counting {
    type Lock = Unshared;
    type Doorbell = Bell;
    type Cache = Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

#[derive(Clone, Default)]
struct Bell(Arc<AtomicU32>);

impl Doorbell for Bell {
    fn ring(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

type Side = Rc<End<Counting>>;

fn rings(side: &Side) -> u32 {
    side.doorbell().0.load(Ordering::Relaxed)
}

fn up() -> (Side, Side) {
    let (first, second) = memory(&LINK);
    let open = |memory: Memory, role: Role| {
        let parts = Parts {
            doorbell: Bell::default(),
            cache: Fetching,
            platform: Counting,
            slots: LINK.channels.iter().map(|_| Slot::EMPTY).collect(),
            blocks: vec![Block::NEW; LINK.blocks()],
        };
        Rc::new(End::open(memory, LINK, role, parts, Options::default()).unwrap())
    };
    let (first, second) = (open(first, Role::First), open(second, Role::Second));
    for end in [&first, &second, &first] {
        end.look(0);
    }
    (first, second)
}

#[test]
fn bulk_sender_is_rung_for_a_second_place_when_the_first_is_not_enough() {
    let (near, far) = up();
    let urgent = Sender::new(&near, QUEUE).unwrap();
    let bulk = urgent.clone().with_reserve(1);
    let rx = Receiver::new(&far, QUEUE).unwrap();
    urgent.send(b"one").unwrap();
    urgent.send(b"two").unwrap();
    let flag = Flag::new();
    bulk.arm(&flag.waker());

    drop(rx.receive().unwrap().unwrap());
    // Another thread takes the place up, and goes without.
    drop(urgent.place(1).unwrap());
    near.look(0);
    assert!(!flag.is_set());
    let before = rings(&far);
    drop(rx.receive().unwrap().unwrap());
    assert_eq!(rings(&far), before + 1);
    near.look(0);
    assert!(flag.is_set());
    assert!(bulk.place(1).is_ok());
}

#[test]
fn receiver_is_rung_for_the_next_packet_when_another_took_the_first() {
    let (near, far) = up();
    let tx = Sender::new(&near, QUEUE).unwrap();
    let rx = Receiver::new(&far, QUEUE).unwrap();
    let flag = Flag::new();
    rx.arm(&flag.waker());

    tx.send(b"one").unwrap();
    assert!(rx.receive().unwrap().is_some());
    far.look(0);
    assert!(!flag.is_set());
    let before = rings(&near);
    tx.send(b"two").unwrap();
    assert_eq!(rings(&near), before + 1);
    far.look(0);
    assert!(flag.is_set());
}

#[test]
fn caller_is_rung_for_its_answer_when_another_took_an_earlier_one() {
    let (near, far) = up();
    let (near_end, far_end) = (&near, &far);
    let (near, far) = (
        Messages::new(near_end, MOTOR).unwrap(),
        Messages::new(far_end, MOTOR).unwrap(),
    );
    let mut first = near.call(1, [0; 5]).unwrap();
    let second = near.call(2, [0; 5]).unwrap();
    let [one, two] = [(); 2].map(|()| far.receive().unwrap().unwrap().answer.unwrap());
    let flag = Flag::new();
    second.arm(&flag.waker());

    one.give([1]);
    assert!(first.poll().unwrap().is_some());
    near_end.look(0);
    assert!(!flag.is_set());
    let before = rings(far_end);
    two.give([2]);
    assert_eq!(rings(far_end), before + 1);
    near_end.look(0);
    assert!(flag.is_set());
}

#[test]
fn message_sender_is_rung_for_the_next_room_when_another_took_the_first() {
    let (near, far) = up();
    let (near_end, far_end) = (&near, &far);
    let (near, far) = (
        Messages::new(near_end, MOTOR).unwrap(),
        Messages::new(far_end, MOTOR).unwrap(),
    );
    near.send(1, [0; 5]).unwrap();
    near.send(2, [0; 5]).unwrap();
    let flag = Flag::new();
    near.arm_room(&flag.waker());

    assert!(far.receive().unwrap().is_some());
    near.send(3, [0; 5]).unwrap();
    near_end.look(0);
    assert!(!flag.is_set());
    let before = rings(far_end);
    assert!(far.receive().unwrap().is_some());
    assert_eq!(rings(far_end), before + 1);
    near_end.look(0);
    assert!(flag.is_set());
}

#[test]
fn caller_waits_for_a_place_of_a_call_and_not_only_for_room() {
    let (near_end, far_end) = &up();
    let (near, far) = (
        Messages::new(near_end, MOTOR).unwrap(),
        Messages::new(far_end, MOTOR).unwrap(),
    );
    let mut first = near.call(1, [0; 5]).unwrap();
    let second = near.call(2, [0; 5]).unwrap();
    let [one, two] = [(); 2].map(|()| far.receive().unwrap().unwrap().answer.unwrap());
    let (room, call) = (Flag::new(), Flag::new());
    near.arm_room(&room.waker());
    near.arm_call(&call.waker());
    assert!(room.is_set() && !call.is_set());

    // Its answer is there, but its place is not free before somebody has taken it up.
    one.give([1]);
    near_end.look(0);
    assert!(!call.is_set());
    assert!(first.poll().unwrap().is_some());
    assert!(call.is_set());
    let third = near.call(3, [0; 5]).unwrap();

    // The place of a call that nobody wants the answer of is free when that comes.
    let call = Flag::new();
    drop(second);
    near.arm_call(&call.waker());
    assert!(!call.is_set());
    let before = rings(far_end);
    two.give([2]);
    assert_eq!(rings(far_end), before + 1);
    near_end.look(0);
    assert!(call.is_set());
    assert!(near.call(4, [0; 5]).is_ok());
    drop(third);
}

//! An end whose layout the compiler has worked out is like one that does it when it opens.
#![cfg(not(loom))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;

use raw::Pair;
use sinew_shm::Unshared;
use sinew_shm::domain::{
    Block, Channel, ChannelPlan, Coherent, Config, Difference, End, Field, Options, Parts, Plan,
    Platform, Pool, Receiver, Role, Sender, Silent, Slot, Status,
};
use support::{Solo, parts};

const LINK: Config = Config::new(&[
    Channel::new(1, "bulk", Pool::new(3, 300)).priority(200),
    Channel {
        uuid: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
        type_hash: 0xcafe_f00d,
        ..Channel::new(2, "calls", Pool::new(4, 64)).with_replies()
    },
    Channel::new(3, "log", Pool::new(0, 0))
        .pools(Pool::new(0, 0), Pool::new(5, 100))
        .priority(0),
])
.mutual();

const CHANNELS: [ChannelPlan; LINK.channels.len()] = ChannelPlan::all(&LINK, Role::Second);

struct Planned;

impl Platform for Planned {
    type Lock = Unshared;
    type Doorbell = Silent;
    type Cache = Coherent;
    type Slots = [Slot; LINK.channels.len()];
    type Blocks = [Block; LINK.blocks()];
    const PLAN: Option<Plan<'static>> = Some(Plan::new(LINK, Role::Second, &CHANNELS));
}

fn planned(pair: &Pair) -> Rc<End<Planned>> {
    // SAFETY: the tests open one end of each role.
    let memory = unsafe { pair.memory(Role::Second) };
    let parts = Parts {
        doorbell: Silent,
        cache: Coherent,
        platform: Planned,
        slots: [const { Slot::EMPTY }; LINK.channels.len()],
        blocks: [Block::NEW; LINK.blocks()],
    };
    Rc::new(End::open_planned(memory, parts, Options::default()).unwrap())
}

fn unplanned(pair: &Pair, role: Role, config: Config<'static>) -> Rc<End<Solo>> {
    // SAFETY: the tests open one end of each role.
    let memory = unsafe { pair.memory(role) };
    let parts = parts(Solo, &config);
    Rc::new(End::open(memory, config, role, parts, Options::default()).unwrap())
}

#[test]
fn a_planned_end_writes_what_any_other_writes() {
    let (one, other) = (Pair::new(&[LINK]), Pair::new(&[LINK]));
    let (_planned, _unplanned) = (planned(&one), unplanned(&other, Role::Second, LINK));
    let mut words = Vec::new();
    other.second.copy_into(&mut words);
    assert!(words.iter().any(|&word| word != 0));
    assert!(one.second.is_like(&words));
}

#[test]
fn a_planned_end_works_with_any_other() {
    let pair = Pair::new(&[LINK]);
    let (first, second) = (unplanned(&pair, Role::First, LINK), planned(&pair));
    first.look(0);
    assert_eq!(second.look(0), Status::Up);
    assert_eq!(first.look(0), Status::Up);
    assert_eq!((second.role(), second.config()), (Role::Second, LINK));
    for id in [1, 2] {
        let (tx, rx) = (
            Sender::new(&first, id).unwrap(),
            Receiver::new(&second, id).unwrap(),
        );
        tx.send(b"there").unwrap();
        assert_eq!(
            rx.receive().unwrap().unwrap().trusted(),
            Some(&b"there"[..])
        );
    }
    let (tx, rx) = (
        Sender::new(&second, 3).unwrap(),
        Receiver::new(&first, 3).unwrap(),
    );
    tx.send(b"and back").unwrap();
    assert_eq!(rx.receive().unwrap().unwrap().len(), 8);
}

#[test]
fn a_planned_end_says_that_a_peer_differs_and_the_peer_says_in_what() {
    const OTHER: Config = Config {
        channels: &[
            Channel::new(1, "bulk", Pool::new(3, 300)).priority(201),
            LINK.channels[1],
            LINK.channels[2],
        ],
        ..LINK
    };
    let pair = Pair::new(&[LINK, OTHER]);
    let (first, second) = (unplanned(&pair, Role::First, OTHER), planned(&pair));
    let difference = |field, channel, ours, theirs| {
        Status::Refused(Difference {
            field,
            channel,
            ours,
            theirs,
        })
    };
    let by_hash = difference(Field::Hash, None, LINK.hash(), OTHER.hash());
    assert_eq!(second.look(0), by_hash);
    let by_name = difference(Field::Priority, Some(1), 201, 200);
    assert_eq!(first.look(0), by_name);
}

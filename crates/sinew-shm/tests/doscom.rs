//! What the ancestor of MDCOM got wrong (specification of domain links, section 2), line by line, and
//! what a domain link does instead.
//!
//! Two lines are about processes of an operating system and are tested where those are: "Linux wait
//! ignores its timeout" in `tests/linux/links.rs`, `wait_ends_with_its_time_limit_and_polling_at_once`;
//! "one synchronous notify for all processes" also there, `doorbell_is_for_the_process_of_its_link_alone`.
#![cfg(not(loom))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::cell::Cell;
use std::rc::Rc;

use raw::{BLOCK, Pair, SEQUENCE};
use sinew_shm::domain::{
    Block, Channel, Config, Doorbell, End, Field, Options, Parts, Platform, Pool, Predicate,
    Receiver, Refused, Role, Sender, Slot, Status, Violation,
};
use sinew_shm::{StdLock, Unshared};
use support::{Solo, memory, open, parts, up};

const ONE: Config = Config::new(&[Channel::new(1, "one", Pool::new(4, 64))]);

/// An end whose peer's memory the test writes.
fn with_raw_peer(faults: bool) -> (Pair, Rc<End<Solo>>) {
    let pair = Pair::new(&[ONE]);
    let side = |role| {
        // SAFETY: one end for each role.
        let memory = unsafe { pair.memory(role) };
        let options = Options {
            faults,
            ..Options::default()
        };
        Rc::new(End::open(memory, ONE, role, parts(Solo, &ONE), options).unwrap())
    };
    let (first, second) = (side(Role::First), side(Role::Second));
    for _ in 0..2 {
        first.look(0);
        second.look(0);
    }
    assert_eq!(first.status(), Status::Up);
    // Its memory is the test's from here on.
    std::mem::forget(second);
    (pair, first)
}

/// Writes the peer's next packet, of which only the block is wrong.
fn put_block(pair: &Pair, position: u32, block: u32) {
    let at = pair.second.places(0).ring + 4 * position as usize;
    let tag = pair.second.get(raw::SESSION) & 0xFFFF;
    pair.second.set(at + BLOCK, block & 0xFFFF | tag << 16);
    pair.second.set(at + raw::LEN, 1);
    pair.second.set(at + SEQUENCE, position + 1);
}

#[test]
fn no_version_or_config_hash() {
    const OTHER: Config = Config::new(&[Channel::new(1, "one", Pool::new(4, 65))]);
    // The larger of the two, so that it is enough for both.
    let (first, second) = memory(&OTHER);
    let end = |memory, config: Config<'static>, role| {
        End::open(
            memory,
            config,
            role,
            parts(Solo, &config),
            Options::default(),
        )
        .unwrap()
    };
    let first = end(first, ONE, Role::First);
    let second = end(second, OTHER, Role::Second);
    for (end, ours) in [(&first, 64), (&second, 65)] {
        let Status::Refused(found) = end.look(0) else {
            panic!("{:?}", end.status());
        };
        assert_eq!((found.field, found.channel), (Field::Size, Some(1)));
        assert_eq!((found.ours, found.theirs), (ours, 64 + 65 - ours));
    }
    // The version: see refusals.rs, which goes through every field.
}

#[test]
fn cas_scan_for_a_block() {
    // A block is the first of a private line: the one that is free longest.
    let (first, _second) = up(ONE);
    let sender = Sender::new(&first, 1).unwrap();
    let take_all = || [(); 4].map(|()| sender.place(1).unwrap());
    let mut places = take_all();
    places.swap(1, 2);
    let given_back = places.each_ref().map(|place| place.as_ptr());
    places.into_iter().for_each(drop);
    assert_eq!(
        take_all().each_ref().map(|place| place.as_ptr()),
        given_back
    );
    // That there is no compare-and-swap anywhere: no_rmw.rs.
}

#[test]
fn no_barriers() {
    // That each barrier is there and needed: loom_domain.rs. Here, that data follows its entry.
    let (first, second) = memory(&ONE);
    let rounds = if cfg!(miri) { 50 } else { 100_000u32 };
    let open = |memory, role| {
        let parts = Parts {
            doorbell: Ringless,
            cache: support::Fetching,
            platform: Threads,
            slots: vec![Slot::EMPTY],
            blocks: vec![Block::NEW; ONE.blocks()],
        };
        End::open(memory, ONE, role, parts, Options::default()).unwrap()
    };
    let (first, second) = (open(first, Role::First), open(second, Role::Second));
    let second = &second;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while second.look(0) != Status::Up {
                std::thread::yield_now();
            }
            let receiver = Receiver::new(&second, 1).unwrap();
            for round in 0..rounds {
                let packet = loop {
                    match receiver.receive().unwrap() {
                        Some(packet) => break packet,
                        None => std::thread::yield_now(),
                    }
                };
                let mut bytes = [0; 64];
                assert_eq!(packet.copy_to(&mut bytes), Ok(64));
                assert_eq!(bytes, [round as u8; 64]);
            }
        });
        while first.look(0) != Status::Up {
            std::thread::yield_now();
        }
        let sender = Sender::new(&&first, 1).unwrap();
        for round in 0..rounds {
            while sender.send(&[round as u8; 64]) == Err(Refused::Full) {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn ids_checked_only_by_an_assert_that_release_builds_drop() {
    for block in [4, 5, 100, 0x7FFF] {
        let (pair, side) = with_raw_peer(true);
        let receiver = Receiver::new(&side, 1).unwrap();
        put_block(&pair, 0, block);
        assert!(receiver.receive().is_err());
        assert_eq!(side.status(), Status::Fault(Violation::Block));
    }
}

#[test]
fn negative_ids() {
    for block in [-1i16, -2, i16::MIN] {
        let (pair, side) = with_raw_peer(false);
        let receiver = Receiver::new(&side, 1).unwrap();
        put_block(&pair, 0, u32::from(block as u16));
        // Counted and passed over, as the policy says; what comes after it arrives.
        assert!(receiver.receive().unwrap().is_none());
        put_block(&pair, 1, 0);
        assert_eq!(receiver.receive().unwrap().unwrap().len(), 1);
        let violations = pair.first.places(0).statistics + raw::VIOLATIONS;
        assert_eq!(pair.first.get(violations), 1);
    }
}

#[test]
fn double_free_accepted() {
    let (pair, side) = with_raw_peer(true);
    let sender = Sender::new(&side, 1).unwrap();
    sender.send(b"once").unwrap();
    let tag = pair.first.get(raw::SESSION) & 0xFFFF;
    let sent = pair.first.get(pair.first.places(0).ring + BLOCK) & 0xFFFF;
    let returns = pair.second.places(0).returns;
    for position in 0..2 {
        pair.second
            .set(returns + 4 * position + BLOCK, sent | tag << 16);
        pair.second
            .set(returns + 4 * position + SEQUENCE, position as u32 + 1);
    }
    // All four are taken, with the one that came back; the second return of it is none.
    let places: Vec<_> = (0..4).map_while(|_| sender.place(1).ok()).collect();
    assert_eq!(places.len(), 4);
    assert!(sender.place(1).is_err());
    assert_eq!(side.status(), Status::Fault(Violation::NotLent));
    drop(places);
    assert!(side.check_books());
}

#[test]
fn a_filter_index_chosen_by_the_peer() {
    // A filter is a predicate over words, whatever they hold: nothing of it is an index.
    let (pair, side) = with_raw_peer(true);
    let sender = Sender::new(&side, 1).unwrap();
    let filter = pair.second.places(0).control + raw::FILTER;
    for kind in [0, 1, 2, 3, 0x8000_0000, u32::MAX] {
        pair.second.set(filter + 1, kind);
        for word in 2..5 {
            pair.second.set(filter + word, u32::MAX);
        }
        pair.second
            .set(filter, kind.wrapping_mul(2).wrapping_add(2));
        for _ in 0..2 {
            if let Ok(place) = sender.place(1) {
                let _ = place.send(1);
            }
        }
        assert!(side.check_books());
    }
    // What the receiver may wish, the receiver's own side checks as well.
    let receiver = Receiver::new(&side, 1).unwrap();
    receiver.set_filter(Predicate::Matches {
        offset: u32::MAX,
        mask: u32::MAX,
        value: 0,
    });
    put_block(&pair, 0, 0);
    assert!(receiver.receive().unwrap().is_none());
}

/// Counts.
struct Counting(Rc<Cell<u32>>);

impl Doorbell for Counting {
    fn ring(&self) {
        self.0.set(self.0.get() + 1);
    }
}

struct Rung;

impl Platform for Rung {
    type Lock = Unshared;
    type Doorbell = Counting;
    type Cache = support::Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

struct Ringless;

impl Doorbell for Ringless {
    fn ring(&self) {}
}

struct Threads;

impl Platform for Threads {
    type Lock = StdLock;
    type Doorbell = Ringless;
    type Cache = support::Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;
}

#[test]
fn one_synchronous_notify_for_all_processes() {
    // Each link has its own doorbell, rung only where its peer waits, and nobody waits for it.
    let rings = Rc::new(Cell::new(0));
    let (near, far) = memory(&ONE);
    let open = |memory, role, rings: &Rc<Cell<u32>>| {
        let parts = Parts {
            doorbell: Counting(rings.clone()),
            cache: support::Fetching,
            platform: Rung,
            slots: vec![Slot::EMPTY],
            blocks: vec![Block::NEW; ONE.blocks()],
        };
        Rc::new(End::open(memory, ONE, role, parts, Options::default()).unwrap())
    };
    let first = open(near, Role::First, &rings);
    let second = open(far, Role::Second, &Rc::default());
    for _ in 0..2 {
        first.look(0);
        second.look(0);
    }
    let (sender, receiver) = (
        Sender::new(&first, 1).unwrap(),
        Receiver::new(&second, 1).unwrap(),
    );
    let before = rings.get();
    sender.send(b"nobody waits").unwrap();
    assert_eq!(rings.get(), before);
    drop(receiver.receive().unwrap().unwrap());
    receiver.arm(std::task::Waker::noop());
    sender.send(b"somebody waits").unwrap();
    assert_eq!(rings.get(), before + 1);
    sender.send(b"and has been rung").unwrap();
    assert_eq!(rings.get(), before + 1);
}

#[test]
fn an_unknown_request_halts_the_rtos() {
    // An entry has no request in it; bits that this version does not know change nothing.
    let (pair, side) = with_raw_peer(true);
    let receiver = Receiver::new(&side, 1).unwrap();
    pair.second
        .set(pair.second.places(0).ring + raw::FLAGS, u32::MAX);
    put_block(&pair, 0, 0);
    assert_eq!(receiver.receive().unwrap().unwrap().len(), 1);
    assert_eq!(side.look(0), Status::Up);
}

#[test]
fn blocks_of_a_dead_process_not_reclaimed() {
    let (first, second) = open(ONE);
    for _ in 0..2 {
        first.look(0);
        second.look(0);
    }
    let mut sender = Sender::new(&first, 1).unwrap();
    for _ in 0..4 {
        sender.send(b"lent").unwrap();
    }
    assert_eq!(sender.send(b"more"), Err(Refused::Full));
    first.peer_is_gone();
    assert!(first.check_books());
    // All of them can be taken, as soon as somebody is there again.
    second.look(0);
    first.look(0);
    second.look(0);
    first.look(0);
    sender.renew();
    let places: Vec<_> = (0..4).map(|_| sender.place(1).unwrap()).collect();
    assert!(matches!(sender.place(1), Err(Refused::Full)));
    drop(places);
}

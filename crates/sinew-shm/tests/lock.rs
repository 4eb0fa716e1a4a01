//! What a lock channel promises: one owner at a time, the newest copy, and to be told when an owner did
//! not end its work.
#![cfg(not(loom))]

#[path = "support/random.rs"]
mod random;
#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use random::Random;
use raw::Raw;
use sinew_shm::Unshared;
use sinew_shm::domain::observe::{Link, LockInfo};
use sinew_shm::domain::{
    AccessError, Area, Block, Channel, Config, ConfigError, End, HardwareLock, LockError, Lost,
    Memory, OpenError, Options, Platform, Pool, Role, Sender, Slot, Status, Violation,
};
use support::{Fetching, Flag, Lean, Solo, Threads, memory, parts};

const AREA: u16 = 3;
const SIZE: usize = 150;
const LINK: Config = Config::new(&[
    Channel::new(1, "orders", Pool::new(2, 64)),
    Channel::lock(AREA, "area", SIZE as u32),
]);
/// Words of the control line of the lock channel; written down once more, as in the wire reference.
const CONTROL: usize = (0x100 + 2 * 128 + 64 * (1 + 1 + 1 + 1 + 2)) / 4;
const WANT: usize = CONTROL;
const VERSION: usize = CONTROL + 4;
const POISON: usize = CONTROL + 6;
const SEAL: usize = CONTROL + 8;

type Ended = Rc<End<Solo>>;
const ROLES: [Role; 2] = [Role::First, Role::Second];

/// Both sides' memory, which outlives the ends.
struct Board([Raw; 2]);

impl Board {
    fn new() -> Board {
        Board([Role::First, Role::Second].map(|role| Raw::new(LINK.segment_len(role))))
    }

    fn open(&self, role: Role) -> Ended {
        let [first, second] = [self.0[0].segment(), self.0[1].segment()];
        let (mine, peer) = match role {
            Role::First => (first, second),
            Role::Second => (second, first),
        };
        // SAFETY: the memory lives on, and is reached as words only.
        let memory = unsafe { Memory::new(mine, peer, None) };
        let parts = parts(Solo, &LINK);
        Rc::new(End::open(memory, LINK, role, parts, Options::default()).unwrap())
    }

    fn up(&self) -> Vec<Ended> {
        let ends = ROLES.map(|role| self.open(role)).to_vec();
        settle(&ends);
        ends
    }

    /// The next life of a side.
    fn open_again(&self, ends: &mut Vec<Ended>, side: usize) {
        ends.insert(side, self.open(ROLES[side]));
        settle(ends);
    }

    fn look(&self) -> LockInfo {
        let link = Link::new(self.0[0].segment(), self.0[1].segment());
        let channel = link.channels().find(|one| one.id() == AREA).unwrap();
        channel.lock().unwrap()
    }
}

fn settle(ends: &[Ended]) {
    for _ in 0..5 {
        ends.iter().for_each(|end| _ = end.look(0));
    }
    assert!(ends.iter().all(|end| end.status() == Status::Up));
}

fn area(end: &Ended) -> Area<Ended> {
    Area::new(end, AREA).unwrap()
}

/// As a process that is killed: nothing is closed or given back.
fn kill(end: Ended) {
    std::mem::forget(end);
}

/// Ends the life of one who has the lock and has written some.
fn die_as_owner(end: Ended, byte: u8) {
    let area = area(&end);
    let mut guard = area.try_lock().unwrap();
    guard.write(0, &[byte; 5]).unwrap();
    std::mem::forget(guard);
    std::mem::forget(area);
    kill(end);
}

fn first_byte(end: &Ended) -> Result<u8, &'static str> {
    let area = area(end);
    match area.try_lock() {
        Ok(guard) => Ok(guard.get(0).unwrap()),
        Err(LockError::Busy) => Err("busy"),
        Err(LockError::Poisoned(_)) => Err("poisoned"),
        Err(LockError::Lost(_)) => Err("lost"),
    }
}

/// Takes the poisoned lock, and writes.
fn repair(end: &Ended, byte: u8) {
    match area(end).try_lock() {
        Err(LockError::Poisoned(poisoned)) => poisoned.accept().write(0, &[byte; 5]).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_an_owner_wrote_is_what_the_next_one_finds() {
    let ends = Board::new().up();
    let areas = [area(&ends[0]), area(&ends[1])];
    let mut random = Random(7);
    let mut expected = [0; SIZE];
    for _ in 0..if cfg!(miri) { 30 } else { 2000 } {
        let mut guard = areas[random.index(2)].try_lock().unwrap();
        let mut found = [0; SIZE];
        guard.read(0, &mut found).unwrap();
        assert_eq!(found, expected);
        for _ in 0..random.index(3) {
            let at = random.index(SIZE);
            let bytes = vec![random.byte(); random.index(SIZE - at + 1)];
            guard.write(at, &bytes).unwrap();
            expected[at..at + bytes.len()].copy_from_slice(&bytes);
            let mut part = vec![0; bytes.len()];
            guard.read(at, &mut part).unwrap();
            assert_eq!(part, bytes);
        }
    }
}

#[test]
fn only_one_has_the_lock_and_only_it_gives_it_back() {
    let board = Board::new();
    let ends = board.up();
    for (owner, other) in [(0, 1), (1, 0)] {
        let (near, far) = (area(&ends[owner]), area(&ends[other]));
        let guard = near.try_lock().unwrap();
        assert!(matches!(near.try_lock(), Err(LockError::Busy)));
        assert!(matches!(far.try_lock(), Err(LockError::Busy)));
        assert_eq!(board.look().owner, Some(ROLES[owner]));
        drop(guard);
        assert_eq!(board.look().owner, None);
        assert_eq!(far.try_lock().unwrap().unlock(), Ok(()));
    }
}

#[test]
fn bytes_outside_are_neither_read_nor_written() {
    let ends = Board::new().up();
    let area = area(&ends[0]);
    let mut guard = area.try_lock().unwrap();
    assert_eq!((area.len(), guard.len()), (SIZE, SIZE));
    for (at, len) in [
        (0, SIZE + 1),
        (SIZE, 1),
        (SIZE + 1, 0),
        (usize::MAX, 1),
        (SIZE - 1, 2),
    ] {
        let mut bytes = vec![7; len];
        assert_eq!(guard.write(at, &bytes), Err(AccessError::Outside));
        assert_eq!(guard.read(at, &mut bytes), Err(AccessError::Outside));
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
    let mut all = [1; SIZE];
    guard.read(0, &mut all).unwrap();
    assert_eq!(all, [0; SIZE]);
    assert_eq!(guard.write(SIZE, &[]), Ok(()));
    guard.set(SIZE - 8, &0x0102_0304_0506_0708_u64).unwrap();
    assert_eq!(guard.get::<u32>(SIZE - 8), Ok(0x0506_0708));
    assert_eq!(guard.get::<u64>(SIZE - 7), Err(AccessError::Outside));
}

#[test]
fn a_version_is_made_by_who_writes_only() {
    let board = Board::new();
    let ends = board.up();
    area(&ends[0]).try_lock().unwrap().write(0, &[1]).unwrap();
    assert_eq!(board.look().versions, [Some(1), Some(0)]);
    drop(area(&ends[1]).try_lock().unwrap());
    assert_eq!(board.look().versions, [Some(1), Some(1)]);
    area(&ends[1]).try_lock().unwrap().write(0, &[1]).unwrap();
    assert_eq!(board.look().versions, [Some(1), Some(2)]);
}

#[test]
fn versions_go_on_beyond_32_bits() {
    let board = Board::new();
    let mut ends = board.up();
    area(&ends[0]).try_lock().unwrap().write(0, &[1]).unwrap();
    kill(ends.remove(0));
    board.0[0].set(VERSION, u32::MAX);
    board.open_again(&mut ends, 0);
    assert_eq!(first_byte(&ends[1]), Ok(1));
    area(&ends[1]).try_lock().unwrap().write(0, &[2]).unwrap();
    assert_eq!(board.look().versions[1], Some(1 << 32));
    assert_eq!(first_byte(&ends[0]), Ok(2));
    assert_eq!(board.look().versions[0], Some(1 << 32));
}

#[test]
fn who_waits_is_woken_when_the_other_side_unlocks() {
    let ends = Board::new().up();
    for (owner, other) in [(0, 1), (1, 0)] {
        let (near, far) = (area(&ends[owner]), area(&ends[other]));
        let guard = near.try_lock().unwrap();
        assert!(matches!(far.try_lock(), Err(LockError::Busy)));
        let flag = Flag::new();
        far.arm(&flag.waker());
        ends[other].look(0);
        assert!(!flag.is_set());
        drop(guard);
        ends[other].look(0);
        assert!(flag.is_set());
    }
}

#[test]
fn who_waits_is_woken_when_its_own_side_unlocks() {
    let ends = Board::new().up();
    let area = area(&ends[0]);
    let guard = area.try_lock().unwrap();
    let flags = [Flag::new(), Flag::new()];
    flags.iter().for_each(|flag| area.arm(&flag.waker()));
    assert!(flags.iter().all(|flag| !flag.is_set()));
    drop(guard);
    assert!(flags.iter().all(|flag| flag.is_set()));
}

#[test]
fn who_waits_is_woken_at_once_where_the_lock_is_free_or_the_pairing_over() {
    let ends = Board::new().up();
    let area = area(&ends[0]);
    let [free, over] = [Flag::new(), Flag::new()];
    area.arm(&free.waker());
    assert!(free.is_set());
    ends[1].close();
    area.arm(&over.waker());
    assert!(over.is_set());
    assert!(matches!(
        area.try_lock(),
        Err(LockError::Lost(Lost::Closed))
    ));
}

#[test]
fn an_owner_that_dies_leaves_the_area_poisoned_for_both() {
    for (dead, takes_first) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let board = Board::new();
        let mut ends = board.up();
        area(&ends[0])
            .try_lock()
            .unwrap()
            .write(0, &[1; 5])
            .unwrap();
        die_as_owner(ends.remove(dead), 9);
        board.open_again(&mut ends, dead);
        assert!(board.look().is_poisoned);
        let (near, far) = (&ends[takes_first], &ends[1 - takes_first]);
        // Who does not accept it changes nothing.
        assert_eq!(first_byte(near), Err("poisoned"));
        assert_eq!(first_byte(far), Err("poisoned"));
        repair(near, 3);
        assert!(!board.look().is_poisoned);
        assert_eq!((first_byte(far), first_byte(near)), (Ok(3), Ok(3)));
    }
}

#[test]
fn what_a_dead_owner_wrote_is_no_version() {
    for dead in [0, 1] {
        let board = Board::new();
        let mut ends = board.up();
        for (side, byte) in [(0, 1), (1, 2), (dead, 3)] {
            let area = area(&ends[side]);
            area.try_lock().unwrap().write(0, &[byte; 5]).unwrap();
        }
        let before = board.look().versions[dead];
        die_as_owner(ends.remove(dead), 9);
        board.open_again(&mut ends, dead);
        assert_eq!(board.look().versions[dead], before);
        // The other side never had the third version whole: what there is of it, with what came after.
        match area(&ends[0]).try_lock() {
            Err(LockError::Poisoned(poisoned)) => assert_eq!(poisoned.get(0), Ok(9_u8)),
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn both_sides_dead_leave_it_poisoned_too() {
    for owner in [0, 1] {
        let board = Board::new();
        let mut ends = board.up();
        let other = ends.remove(1 - owner);
        die_as_owner(ends.remove(0), 9);
        kill(other);
        let ends = board.up();
        assert_eq!(first_byte(&ends[1]), Err("poisoned"));
        repair(&ends[0], 4);
        assert_eq!(first_byte(&ends[1]), Ok(4));
    }
}

#[test]
fn an_area_whose_memory_is_kept_outlives_both_sides() {
    let board = Board::new();
    let ends = board.up();
    area(&ends[1]).try_lock().unwrap().write(0, &[5]).unwrap();
    ends.into_iter().for_each(kill);
    let ends = board.up();
    assert_eq!(first_byte(&ends[0]), Ok(5));
    drop(ends);
    let ends = board.up();
    assert_eq!(first_byte(&ends[1]), Ok(5));
}

#[test]
fn a_hold_ends_with_its_pairing_and_says_so() {
    for owner in [0, 1] {
        let board = Board::new();
        let mut ends = board.up();
        let near = area(&ends[owner]);
        let mut guard = near.try_lock().unwrap();
        guard.write(0, &[7; 5]).unwrap();
        kill(ends.remove(1 - owner));
        board.open_again(&mut ends, 1 - owner);
        assert_eq!(
            guard.write(1, &[8]),
            Err(AccessError::Lost(Lost::Restarted))
        );
        assert_eq!(guard.get::<u8>(0), Err(AccessError::Lost(Lost::Restarted)));
        // Nobody has it now, and it is the other side's as well as the own one's.
        assert_eq!(first_byte(&ends[1 - owner]), Err("poisoned"));
        repair(&ends[1 - owner], 3);
        assert_eq!(guard.unlock(), Err(Lost::Restarted));
        assert!(matches!(
            near.try_lock(),
            Err(LockError::Lost(Lost::Restarted))
        ));
        assert_eq!(first_byte(&ends[owner]), Ok(3));
    }
}

#[test]
fn a_hold_of_one_that_is_taken_for_dead_is_over_too() {
    let board = Board::new();
    let ends = board.up();
    let area = area(&ends[0]);
    let guard = area.try_lock().unwrap();
    ends[0].peer_is_gone();
    settle(&ends);
    assert_eq!(first_byte(&ends[1]), Err("poisoned"));
    assert_eq!(guard.unlock(), Err(Lost::Closed));
    assert_eq!(first_byte(&ends[0]), Err("poisoned"));
}

#[test]
fn a_hold_that_goes_on_while_the_peer_is_started_again_is_no_reason_for_poison() {
    for owner in [0, 1] {
        let board = Board::new();
        let mut ends = board.up();
        let near = area(&ends[owner]);
        let mut guard = near.try_lock().unwrap();
        guard.write(0, &[6]).unwrap();
        kill(ends.remove(1 - owner));
        // The new one acknowledges a side that has the lock and has not noticed anything.
        let new = board.open(ROLES[1 - owner]);
        new.look(0);
        assert_eq!(guard.unlock(), Ok(()));
        ends.insert(1 - owner, new);
        settle(&ends);
        assert_eq!(first_byte(&ends[1 - owner]), Ok(6));
    }
}

#[test]
fn a_side_that_lost_its_memory_finds_the_others_copy_poisoned() {
    let board = Board::new();
    let mut ends = board.up();
    for (side, byte) in [(0, 1), (1, 2)] {
        let area = area(&ends[side]);
        area.try_lock().unwrap().write(0, &[byte; 5]).unwrap();
    }
    kill(ends.remove(1));
    board.0[1].fill(|| 0);
    board.open_again(&mut ends, 1);
    // The second version is lost: there is only the first.
    assert!(board.look().is_poisoned);
    match area(&ends[1]).try_lock() {
        Err(LockError::Poisoned(poisoned)) => assert_eq!(poisoned.get(0), Ok(1_u8)),
        other => panic!("{other:?}"),
    }
    repair(&ends[0], 4);
    assert_eq!(first_byte(&ends[1]), Ok(4));
    // And once only.
    kill(ends.remove(0));
    board.open_again(&mut ends, 0);
    assert_eq!(first_byte(&ends[0]), Ok(4));
}

#[test]
fn memory_in_which_there_is_anything_is_an_area_of_zeros() {
    let board = Board::new();
    let mut random = Random(5);
    for raw in &board.0 {
        raw.fill(|| random.word());
    }
    let ends = board.up();
    assert_eq!(first_byte(&ends[0]), Ok(0));
    assert_eq!(board.look().versions, [Some(0); 2]);
}

#[test]
fn an_owner_that_panics_poisons_the_area() {
    let board = Board::new();
    let ends = board.up();
    let near = area(&ends[0]);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut guard = near.try_lock().unwrap();
        guard.write(0, &[6]).unwrap();
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(caught.is_err());
    match area(&ends[1]).try_lock() {
        Err(LockError::Poisoned(poisoned)) => assert_eq!(poisoned.get(0), Ok(6_u8)),
        other => panic!("{other:?}"),
    }
    repair(&ends[1], 4);
    assert_eq!(first_byte(&ends[0]), Ok(4));
}

#[test]
fn a_link_is_drained_when_nobody_has_the_lock_and_nobody_takes_it_then() {
    let ends = Board::new().up();
    let (near, far) = (area(&ends[0]), area(&ends[1]));
    let mut guard = near.try_lock().unwrap();
    ends[0].drain();
    ends[1].look(0);
    assert!(!ends[0].is_drained());
    guard.write(0, &[6]).unwrap();
    assert_eq!(guard.unlock(), Ok(()));
    assert!(ends[0].is_drained());
    for area in [near, far] {
        assert!(matches!(
            area.try_lock(),
            Err(LockError::Lost(Lost::Closed))
        ));
    }
}

#[test]
fn a_peer_that_never_gives_back_is_busy_and_nothing_else() {
    for side in [0, 1] {
        let board = Board::new();
        let ends = board.up();
        board.0[1 - side].set(WANT, 0xDEAD_BEEF);
        assert_eq!(first_byte(&ends[side]), Err("busy"));
        board.0[1 - side].set(WANT, 0);
        assert_eq!(first_byte(&ends[side]), Ok(0));
    }
}

#[test]
fn an_impossible_version_is_a_violation() {
    for word in [VERSION + 1, POISON + 1] {
        let board = Board::new();
        let ends = board.up();
        board.0[1].set(word, 1 << 30);
        assert_eq!(first_byte(&ends[0]), Err("lost"));
        assert_eq!(ends[0].status(), Status::Fault(Violation::Version));
        // It was given back all the same.
        assert_eq!(board.0[0].get(WANT), 0);
    }
}

/// Whatever stands in the peer's line: no panic, nothing outside the area, an end in bounded time; and
/// an honest peer finds a usable area afterwards.
#[test]
fn any_words_of_the_peer_do_no_more_than_spoil_the_area() {
    let mut random = Random(11);
    for round in 0..if cfg!(miri) { 2 } else { 300 } {
        let board = Board::new();
        let mut ends = board.up();
        let side = random.index(2);
        for _ in 0..40 {
            let word = CONTROL + random.index(16);
            let value = match random.index(4) {
                0 => 0,
                1 => random.word() >> (random.index(32)),
                2 => board.0[side].get(raw::SESSION),
                _ => random.word(),
            };
            board.0[1 - side].set(word, value);
            let area = Area::new(&ends[side], AREA).unwrap();
            area.arm(&Flag::new().waker());
            let mut guard = match area.try_lock() {
                Ok(guard) => guard,
                Err(LockError::Poisoned(poisoned)) => poisoned.accept(),
                Err(LockError::Busy) => continue,
                Err(LockError::Lost(_)) => {
                    ends[side].recover();
                    settle(&ends);
                    continue;
                }
            };
            let at = random.index(SIZE);
            guard.write(at, &[1; 3][..(SIZE - at).min(3)]).unwrap();
            let mut all = [0; SIZE];
            guard.read(0, &mut all).unwrap();
            board.look();
        }
        // A peer that begins anew, with whatever is there, or with nothing.
        kill(ends.remove(1 - side));
        if round % 2 == 0 || board.0[1 - side].get(SEAL) != board.0[side].get(SEAL) {
            board.0[1 - side].fill(|| 0);
            board.open_again(&mut ends, 1 - side);
            for at in [1 - side, side] {
                if first_byte(&ends[at]) == Err("poisoned") {
                    repair(&ends[at], 4);
                }
                assert!(first_byte(&ends[at]).is_ok());
            }
        }
    }
}

#[test]
fn a_lock_channel_has_one_area_for_both_sides() {
    let check = |channel: Channel| Config::new(&[channel]).mutual().check();
    let lock = Channel::lock(7, "lock", 8);
    assert_eq!(check(lock), Ok(()));
    assert_eq!(check(lock.with_semaphore(0)), Ok(()));
    let refused = Err(ConfigError::Lock(7));
    let unlike = lock.pools(Pool::new(1, 8), Pool::new(1, 9));
    assert_eq!(check(unlike), refused);
    assert_eq!(check(lock.pools(Pool::new(2, 8), Pool::new(2, 8))), refused);
    assert_eq!(check(lock.pools(Pool::new(1, 8), Pool::new(0, 0))), refused);
    assert_eq!(check(lock.with_replies()), refused);
    let queue = Channel::new(7, "lock", Pool::new(1, 8));
    assert_eq!(check(queue.with_semaphore(1)), refused);
    assert_eq!(
        check(Channel::lock(7, "lock", 0)),
        Err(ConfigError::Pool(7))
    );
    const ALL: [Config; 4] = [
        Config::new(&[Channel::lock(7, "lock", 8)]),
        Config::new(&[Channel::lock(7, "lock", 8).with_semaphore(0)]),
        Config::new(&[Channel::lock(7, "lock", 8).with_semaphore(1)]),
        Config::new(&[Channel::state(7, "lock", 8)]),
    ];
    let hashes = ALL.map(|config| config.hash());
    for (at, hash) in hashes.iter().enumerate() {
        assert_eq!(hashes.iter().position(|other| other == hash), Some(at));
    }
    assert_eq!(ALL[0].blocks(), 0);
}

#[test]
fn a_handle_is_found_of_a_lock_channel_only() {
    let ends = Board::new().up();
    assert!(Area::new(&ends[0], 1).is_none());
    assert!(Area::new(&ends[0], 4).is_none());
    assert!(Sender::new(&ends[0], AREA).is_none());
}

#[test]
fn an_end_without_lock_channels_says_so() {
    let (first, _) = memory(&LINK);
    let parts = parts(Lean, &LINK);
    let opened = End::open(first, LINK, Role::First, parts, Options::default());
    assert_eq!(opened.err(), Some(OpenError::Locks));
}

/// A semaphore of the test's own: who has it, 0 for nobody; and what a side sees of it.
struct Chip(Mutex<u8>);
struct Gate(&'static Chip, u8);

// SAFETY: it is words of its own.
unsafe impl HardwareLock for Gate {
    fn try_lock(&self) -> bool {
        let mut owner = self.0.0.lock().unwrap();
        let is_free = *owner == 0;
        if is_free {
            *owner = self.1;
        }
        is_free
    }
    fn unlock(&self) {
        let mut owner = self.0.0.lock().unwrap();
        if *owner == self.1 {
            *owner = 0;
        }
    }
    fn is_held_by_peer(&self) -> bool {
        ![0, self.1].contains(&self.0.0.lock().unwrap())
    }
    fn force_unlock(&self) -> bool {
        *self.0.0.lock().unwrap() = 0;
        true
    }
}

/// A core that has a semaphore, with the number 5.
struct Core(&'static Gate);

impl Platform for Core {
    type Lock = Unshared;
    type Doorbell = sinew_shm::domain::Silent;
    type Cache = Fetching;
    type Slots = Vec<Slot>;
    type Blocks = Vec<Block>;

    fn hardware_lock(&self, number: u16) -> Option<&'static (dyn HardwareLock + Sync)> {
        (number == 5).then_some(self.0)
    }
}

const GUARDED: Config = Config::new(&[Channel::lock(AREA, "area", 8).with_semaphore(5)]);

struct Cores {
    memory: [Raw; 2],
    gates: [&'static Gate; 2],
}

impl Cores {
    fn new() -> Cores {
        let chip = Box::leak(Box::new(Chip(Mutex::new(0))));
        let gates = [1, 2].map(|side| &*Box::leak(Box::new(Gate(chip, side))));
        let memory = ROLES.map(|role| Raw::new(GUARDED.segment_len(role)));
        Cores { memory, gates }
    }

    fn open(&self, side: usize) -> Rc<End<Core>> {
        let [mine, peer] = [side, 1 - side].map(|side| self.memory[side].segment());
        // SAFETY: as in `Board`.
        let memory = unsafe { Memory::new(mine, peer, None) };
        let parts = parts(Core(self.gates[side]), &GUARDED);
        Rc::new(End::open(memory, GUARDED, ROLES[side], parts, Options::default()).unwrap())
    }
}

#[test]
fn a_semaphore_of_the_chip_is_the_lock_where_one_is_named() {
    let cores = Cores::new();
    let ends = [cores.open(0), cores.open(1)];
    (0..4).for_each(|round| _ = ends[round % 2].look(0));
    for (owner, other) in [(0, 1), (1, 0)] {
        let [near, far] = [owner, other].map(|side| Area::new(&ends[side], AREA).unwrap());
        let mut guard = near.try_lock().unwrap();
        assert!(cores.gates[other].is_held_by_peer());
        assert!(matches!(far.try_lock(), Err(LockError::Busy)));
        guard.set(0, &(owner as u64 + 3)).unwrap();
        let flag = Flag::new();
        far.arm(&flag.waker());
        assert!(!flag.is_set());
        drop(guard);
        ends[other].look(0);
        assert!(flag.is_set());
        let guard = far.try_lock().unwrap();
        assert_eq!(guard.get::<u64>(0), Ok(owner as u64 + 3));
    }
    // The application has it beside the link.
    assert!(cores.gates[1].try_lock());
    let area = Area::new(&ends[0], AREA).unwrap();
    assert!(matches!(area.try_lock(), Err(LockError::Busy)));
    cores.gates[1].unlock();
    assert!(area.try_lock().is_ok());
}

#[test]
fn a_semaphore_of_a_dead_owner_is_taken_back() {
    for dead in [0, 1] {
        let cores = Cores::new();
        let mut ends = vec![cores.open(0), cores.open(1)];
        (0..4).for_each(|round| _ = ends[round % 2].look(0));
        let old = ends.remove(dead);
        let area = Area::new(&old, AREA).unwrap();
        std::mem::forget(area.try_lock().unwrap());
        [old, area.end().clone()]
            .into_iter()
            .for_each(std::mem::forget);
        drop(area);
        assert!(cores.gates[1 - dead].is_held_by_peer());
        ends.insert(dead, cores.open(dead));
        (0..6).for_each(|round| _ = ends[round % 2].look(0));
        for at in [dead, 1 - dead] {
            let area = Area::new(&ends[at], AREA).unwrap();
            assert!(matches!(area.try_lock(), Err(LockError::Poisoned(_))));
        }
    }
}

#[test]
fn an_end_without_the_semaphore_says_so() {
    let (first, _) = memory(&GUARDED);
    let parts = parts(Solo, &GUARDED);
    let opened = End::open(first, GUARDED, Role::First, parts, Options::default());
    assert_eq!(opened.err(), Some(OpenError::Semaphore(5)));
}

#[test]
fn threads_of_both_sides_never_meet_in_the_area() {
    const ROUNDS: u32 = if cfg!(miri) { 5 } else { 3000 };
    let (first, second) = memory(&LINK);
    let open = |memory, role| {
        let parts = parts(Threads, &LINK);
        Arc::new(End::open(memory, LINK, role, parts, Options::default()).unwrap())
    };
    let ends = [open(first, Role::First), open(second, Role::Second)];
    (0..4).for_each(|round| _ = ends[round % 2].look(0));
    std::thread::scope(|scope| {
        for at in 0..4 {
            let area = Area::new(&ends[at % 2], AREA).unwrap();
            scope.spawn(move || {
                let mut done = 0;
                while done < ROUNDS {
                    let Ok(mut guard) = area.try_lock() else {
                        std::thread::yield_now();
                        continue;
                    };
                    let counts = (guard.get::<u32>(0).unwrap(), guard.get::<u32>(100).unwrap());
                    assert_eq!(counts.0, counts.1);
                    guard.set(0, &(counts.0 + 1)).unwrap();
                    guard.set(100, &(counts.0 + 1)).unwrap();
                    done += 1;
                }
            });
        }
    });
    for end in &ends {
        let area = Area::new(end, AREA).unwrap();
        assert_eq!(area.try_lock().unwrap().get(0), Ok(4 * ROUNDS));
    }
}

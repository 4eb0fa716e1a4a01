//! The same for a lock channel: every order of a few calls of two sides, with a death after every store,
//! and with a call of the other side before every access.
//!
//! What must hold: of the two sides, one at most has the lock; who has it finds what the last owner left,
//! whole; after an owner that died or lost its pairing, and only then, it is told that the area is
//! poisoned; and two sides that live on and look a few times can both take it, one after the other.
//!
//! The number of deaths, of pairings given up, of holds and of interruptions is bounded, and with that the
//! number of states.

use std::boxed::Box;
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::format;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::string::String;
use std::vec::Vec;

use super::super::config::{Channel, Config};
use super::super::end::Tried;
use super::super::layout::{self, lock};
use super::super::{End, Role, Status};
use super::world::{Arena, Image, Model, Mutant, Solo};
use crate::word::trial::{Trial, under};

/// Two counters, which are the same whenever nobody has the lock.
const LOCK: Config = Config::new(&[Channel::lock(1, "lock", 8)]);

/// What is left of each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Budget {
    deaths: u8,
    losses: u8,
    holds: u8,
    interruptions: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    Open,
    Crash,
    Look,
    /// The peer is taken for dead.
    Gone,
    Take,
    /// Counts both counters up.
    Change,
    /// Makes a poisoned area good.
    Repair,
    Unlock,
}

#[derive(Clone, Copy, Debug)]
#[allow(dead_code)]
enum Fate {
    Whole,
    Dies(u32),
    Interrupted(u32, Op),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Hold {
    number: u32,
    pairing: u32,
    is_poisoned: bool,
    was_poisoned: bool,
    /// What both counters are when it ends.
    will_be: u32,
}

/// What an onlooker knows who sees everything.
#[derive(Clone, Copy, Hash)]
struct Truth {
    counters: u32,
    /// Somebody died or gave up while it wanted the lock, or had it.
    may_be_poisoned: bool,
    /// An owner did.
    is_poisoned: bool,
    /// A side died before both had come up for the first time: the new area may be taken for a lost one.
    was_new: bool,
    /// Who is unlocking now; its hold ends when its word says so.
    ending: [Option<Hold>; 2],
}

#[derive(Clone)]
struct World {
    words: [Box<[u32]>; 2],
    sides: [Option<Image>; 2],
    holds: [Option<Hold>; 2],
    truth: Truth,
    budget: Budget,
    wrong: Option<&'static str>,
}

std::thread_local! {
    static LEFT_OUT: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
    /// The world in which a call is under way, and what the other side does before the next access.
    static SCENE: Cell<Option<(*const Arena, *mut World, usize, Op)>> = const { Cell::new(None) };
}

impl World {
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.words.hash(&mut hasher);
        (self.holds, self.truth, self.budget).hash(&mut hasher);
        for side in &self.sides {
            side.as_ref()
                .map(|side| side.end().lock_private())
                .hash(&mut hasher);
        }
        hasher.finish()
    }

    fn enabled(&self, side: usize) -> Vec<Op> {
        let Some(image) = &self.sides[side] else {
            return [Op::Open].into();
        };
        let mut ops = Vec::from([Op::Look]);
        if self.budget.deaths > 0 {
            ops.push(Op::Crash);
        }
        if self.budget.losses > 0 && image.end().status() == Status::Up {
            ops.push(Op::Gone);
        }
        match self.holds[side] {
            Some(hold) if hold.is_poisoned => ops.extend([Op::Repair, Op::Unlock]),
            Some(hold) if hold.will_be == self.truth.counters => {
                ops.extend([Op::Change, Op::Unlock]);
            }
            Some(_) => ops.push(Op::Unlock),
            None if self.budget.holds > 0 => ops.push(Op::Take),
            None => {}
        }
        ops
    }
}

/// Makes a call of a side, in the arena's memory, while `SCENE` may interrupt it.
///
/// # Safety
/// The world lives, and nobody has a reference into it.
unsafe fn run(arena: &Arena, world: *mut World, side: usize, op: Op) {
    // SAFETY: as the caller says; each reference ends before the next call into an end, in which the
    // other side may run, and which reaches its own end alone.
    let world = || unsafe { &mut *world };
    if op == Op::Open {
        let image = Image::of(arena.open(side));
        world().sides[side] = Some(image);
        return;
    }
    let Some(image) = &world().sides[side] else {
        return;
    };
    // SAFETY: the image stays where it is while a call of its side is under way.
    let end: &End<Solo> = unsafe { &*core::ptr::from_ref(image.end()) };
    let budget = &mut world().budget;
    match op {
        Op::Open => {}
        Op::Look => _ = end.look(0),
        Op::Gone => {
            budget.losses -= 1;
            end.peer_is_gone();
        }
        Op::Crash => {
            budget.deaths -= 1;
            die(arena, world(), side);
        }
        Op::Take => {
            budget.holds -= 1;
            let pairing = end.pairing();
            if let Ok(Tried::Held(number, is_poisoned)) = end.try_lock(0, pairing) {
                taken((arena, end), world(), side, (number, pairing, is_poisoned));
            }
        }
        Op::Change | Op::Repair => {
            let Some(mut hold) = world().holds[side] else {
                return;
            };
            let (at, next) = ((0, hold.pairing), world().truth.counters + 1);
            if hold.is_poisoned {
                end.accept_locked(0, hold.pairing, hold.number);
            }
            for offset in [0, 4] {
                let _ = end.write_locked(at, hold.number, offset, &next.to_le_bytes());
            }
            (hold.is_poisoned, hold.will_be) = (false, next);
            if let Some(known) = &mut world().holds[side] {
                *known = hold;
            }
        }
        Op::Unlock => {
            let hold = world().holds[side].take();
            let Some(hold) = hold else {
                return;
            };
            world().truth.ending[side] = Some(hold);
            match end.unlock((0, hold.pairing), hold.number, false) {
                Ok(()) => ended(arena, world(), side),
                Err(_) => abandoned(world(), side),
            }
        }
    }
    check(world());
}

/// A side has the lock.
fn taken(
    (arena, end): (&Arena, &End<Solo>),
    world: &mut World,
    side: usize,
    (number, pairing, is_poisoned): (u32, u32, bool),
) {
    // It could only be had when the other one's hold was over.
    ended(arena, world, 1 - side);
    let mut found = [0; 8];
    let read = end.read_locked((0, pairing), number, 0, &mut found);
    let [first, second] =
        [0, 4].map(|at| u32::from_le_bytes(found[at..at + 4].try_into().unwrap()));
    let truth = &world.truth;
    world.wrong = match is_poisoned {
        _ if read != Ok(true) => Some("a hold that cannot read"),
        true if !truth.may_be_poisoned && !truth.was_new => Some("poisoned by nobody"),
        false if truth.is_poisoned => Some("an owner's death is not told"),
        false if [first, second] != [truth.counters; 2] => Some("not what the last owner left"),
        _ => world.wrong,
    };
    world.holds[side] = Some(Hold {
        number,
        pairing,
        is_poisoned,
        was_poisoned: is_poisoned,
        will_be: truth.counters,
    });
}

/// If a side is unlocking, its hold is over.
fn ended(arena: &Arena, world: &mut World, side: usize) {
    if let Some(hold) = world.truth.ending[side].take() {
        world.truth.counters = hold.will_be;
        if hold.was_poisoned && !hold.is_poisoned {
            // Of a side that died and is not back the next life is told.
            let is_left = arena.plain(1 - side)[control() + lock::WANT] != 0;
            (world.truth.is_poisoned, world.truth.may_be_poisoned) = (false, is_left);
        }
    }
}

/// A side's hold, if it has one, is over, and its work is not.
fn abandoned(world: &mut World, side: usize) {
    let hold = world.holds[side].take().or(world.truth.ending[side].take());
    if hold.is_some() {
        (world.truth.is_poisoned, world.truth.may_be_poisoned) = (true, true);
    }
}

fn die(arena: &Arena, world: &mut World, side: usize) {
    world.truth.was_new |= is_new(arena);
    world.sides[side] = None;
    abandoned(world, side);
}

/// A side has died in the middle of a call.
fn died(arena: &Arena, world: &mut World, side: usize, op: Op) {
    let wants = arena.plain(side)[control() + lock::WANT] != 0;
    world.truth.was_new |= is_new(arena);
    world.sides[side] = None;
    if op == Op::Unlock && !wants {
        // It was over before.
        ended(arena, world, side);
    }
    // One that tries is taken for an owner.
    world.truth.may_be_poisoned |= wants;
    abandoned(world, side);
}

/// Whether a side's area is new, and that side has not come up yet.
fn is_new(arena: &Arena) -> bool {
    (0..2).any(|side| arena.plain(side)[control() + lock::FRESH] != 0)
}

/// Of the control line, in words.
fn control() -> usize {
    layout::parts(&LOCK, Role::First, 0).control as usize / 4
}

/// Holds that ended with their pairing are over; of the others there is one at most.
fn check(world: &mut World) {
    let holds = [0, 1].map(|side| {
        let (Some(hold), Some(image)) = (world.holds[side], &world.sides[side]) else {
            return false;
        };
        let is_valid = image.end().has_lock(hold.pairing, hold.number);
        if !is_valid {
            abandoned(world, side);
        }
        is_valid
    });
    if holds == [true; 2] {
        world.wrong = Some("both sides have the lock");
    }
}

/// For mutants: stores that are never made, to these addresses.
fn keep(at: usize, _: u32) -> bool {
    !LEFT_OUT.get().contains(&at)
}

fn interrupt() {
    let Some((arena, world, side, op)) = SCENE.get() else {
        return;
    };
    // SAFETY: both live until the call is over, and `run` keeps no reference over a call.
    unsafe {
        if (*world).enabled(side).contains(&op) {
            (*world).budget.interruptions -= 1;
            run(&*arena, world, side, op);
        }
    }
}

/// Makes a call in a copy of a world; and how many stores and accesses it made.
fn step(arena: &Arena, world: &World, side: usize, op: Op, fate: Fate) -> (World, (u32, u32)) {
    let mut next = world.clone();
    (0..2).for_each(|at| arena.plain(at).copy_from_slice(&world.words[at]));
    let mut trial = Trial {
        keep: Some(keep),
        ..Trial::NONE
    };
    let at = &raw mut next;
    match fate {
        Fate::Whole => {}
        Fate::Dies(stores) => trial.stores = stores,
        Fate::Interrupted(accesses, other) => {
            trial.accesses = accesses;
            trial.interrupt = Some(interrupt);
            SCENE.set(Some((arena, at, 1 - side, other)));
        }
    }
    // SAFETY: the world lives, and is reached through `at` alone until the call is over.
    let left = under(trial, || unsafe { run(arena, at, side, op) });
    SCENE.set(None);
    if let Fate::Dies(_) = fate {
        // What the call came to nobody knows.
        (next.holds, next.truth, next.wrong) = (world.holds, world.truth, None);
        next.budget.deaths -= 1;
        if op == Op::Unlock {
            next.truth.ending[side] = next.holds[side].take();
        }
        died(arena, &mut next, side, op);
        check(&mut next);
    }
    (0..2).for_each(|at| next.words[at].copy_from_slice(arena.plain(at)));
    let made = (u32::MAX - left.stores, u32::MAX - left.accesses);
    (next, made)
}

/// Both sides live on: each takes the lock and changes something.
fn goes_on(arena: &Arena, world: &World) -> Option<&'static str> {
    let mut world = world.clone();
    world.budget.holds = 2;
    let mut all = Vec::new();
    for side in [0, 1] {
        if world.sides[side].is_none() {
            all.push((side, Op::Open));
        } else if world.holds[side].is_some() {
            all.push((side, Op::Unlock));
        }
    }
    all.extend((0..8).map(|round| (round % 2, Op::Look)));
    for side in [0, 1] {
        all.extend([Op::Take, Op::Repair, Op::Unlock].map(|op| (side, op)));
    }
    for (side, op) in all {
        if op == Op::Repair && world.holds[side].is_none() {
            return Some("two sides that live on, and no lock to be had");
        }
        (world, _) = step(arena, &world, side, op, Fate::Whole);
        if world.wrong.is_some() {
            return world.wrong;
        }
    }
    let is_good = !world.truth.is_poisoned && world.sides.iter().flatten().count() == 2;
    (!is_good).then_some("it stays poisoned")
}

fn search(
    is_up: bool,
    budget: Budget,
    left_out: Option<usize>,
    limit: usize,
) -> Result<(usize, usize, bool), String> {
    let arena = Arena::new(Model {
        config: LOCK,
        sends: 0,
        drains: false,
        interrupting: 0,
        forgets: false,
        mutant: Mutant::None,
    });
    LEFT_OUT.set(left_out.map_or([0; 2], |word| {
        let at = 4 * (control() + word);
        arena
            .segments
            .map(|segment| segment.base().addr().get() + at)
    }));
    let start = World {
        words: arena.start().words,
        sides: [None, None],
        holds: [None, None],
        truth: Truth {
            counters: 0,
            may_be_poisoned: false,
            is_poisoned: false,
            was_new: false,
            ending: [None, None],
        },
        budget,
        wrong: None,
    };
    let opened = [(0, Op::Open), (1, Op::Open)];
    let looks = [0, 1, 0, 1].map(|side| (side, Op::Look));
    let calls = opened.into_iter().chain(looks);
    let start = match is_up {
        true => calls.fold(start, |world, (side, op)| {
            step(&arena, &world, side, op, Fate::Whole).0
        }),
        false => start,
    };
    let mut known = HashSet::from([start.key()]);
    let mut origins = Vec::from([(0, (0, Op::Look, Fate::Whole))]);
    let mut queue = VecDeque::from([(0, start)]);
    let mut steps = 0;
    while let Some((at, world)) = queue.pop_front() {
        if known.len() >= limit {
            return Ok((known.len(), steps, false));
        }
        let path = |last| {
            let (mut path, mut at) = (Vec::from([last]), at);
            while at != 0 {
                let (before, step) = origins[at];
                path.push(step);
                at = before;
            }
            path.reverse();
            path
        };
        let mut found = Vec::new();
        for side in [0, 1] {
            for op in world.enabled(side) {
                let (whole, (stores, accesses)) = step(&arena, &world, side, op, Fate::Whole);
                found.push((whole, (side, op, Fate::Whole)));
                if world.budget.deaths > 0 {
                    found.extend((0..stores).map(|stores| {
                        let fate = Fate::Dies(stores);
                        (step(&arena, &world, side, op, fate).0, (side, op, fate))
                    }));
                }
                if world.budget.interruptions == 0 {
                    continue;
                }
                for other in world.enabled(1 - side) {
                    found.extend((0..accesses).map(|accesses| {
                        let fate = Fate::Interrupted(accesses, other);
                        (step(&arena, &world, side, op, fate).0, (side, op, fate))
                    }));
                }
            }
        }
        steps += found.len();
        let mut next = Vec::new();
        for (world, last) in found {
            if let Some(wrong) = world.wrong {
                return Err(format!("{wrong}, by {:?}", path(last)));
            }
            if known.insert(world.key()) {
                if let Some(wrong) = goes_on(&arena, &world) {
                    return Err(format!("{wrong}, after {:?}", path(last)));
                }
                next.push((world, last));
            }
        }
        for (world, last) in next {
            origins.push((at, last));
            queue.push_back((origins.len() - 1, world));
        }
    }
    Ok((known.len(), steps, true))
}

fn closes(name: &str, is_up: bool, budget: Budget) {
    let limit = if cfg!(debug_assertions) {
        300
    } else {
        usize::MAX
    };
    match search(is_up, budget, None, limit) {
        Ok((states, steps, is_closed)) => {
            let end = if is_closed { "all" } else { "the first" };
            std::println!("{name}: {end} {states} states, {steps} steps");
            assert!(is_closed || cfg!(debug_assertions));
        }
        Err(found) => panic!("{name}: {found}"),
    }
}

const BUDGET: Budget = Budget {
    deaths: 2,
    losses: 0,
    holds: 3,
    interruptions: 0,
};

#[test]
fn owners_that_die() {
    closes("a lock, deaths", true, BUDGET);
}

#[test]
fn sides_that_die_before_they_met() {
    let holds = 2;
    closes(
        "a lock, deaths from the start",
        false,
        Budget { holds, ..BUDGET },
    );
}

#[test]
fn owners_that_are_taken_for_dead() {
    let (deaths, losses) = (1, 2);
    let budget = Budget {
        deaths,
        losses,
        ..BUDGET
    };
    closes("a lock, pairings given up", true, budget);
}

#[test]
fn both_sides_at_once() {
    let (deaths, interruptions, holds) = (1, 1, 3);
    let budget = Budget {
        deaths,
        interruptions,
        holds,
        ..BUDGET
    };
    closes("a lock, interrupted", true, budget);
}

#[test]
fn both_sides_at_once_and_given_up() {
    let (deaths, losses, interruptions, holds) = (0, 1, 2, 2);
    let budget = Budget {
        deaths,
        losses,
        interruptions,
        holds,
    };
    closes("a lock, interrupted twice, given up", true, budget);
}

#[test]
fn a_word_that_is_never_written_is_missed() {
    for (what, word) in [
        ("want", lock::WANT),
        ("version", lock::VERSION),
        ("poison", lock::POISON),
    ] {
        let found = search(true, BUDGET, Some(word), usize::MAX);
        let Err(found) = found else {
            panic!("{what} is not missed");
        };
        std::println!("without {what}: {found}");
    }
}

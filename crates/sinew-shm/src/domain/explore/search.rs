//! The search: breadth first, each state once, and what must hold in each.

use std::collections::{HashSet, VecDeque};
use std::string::String;
use std::vec::Vec;

use super::super::Status;
use super::super::config::Role;
use super::super::layout::{SESSION, session};
use super::key::key;
use super::world::{Arena, Fate, Model, Op, Outcome, Side, World};

/// Which side makes which call, and what becomes of it.
pub(super) type Step = (usize, Op, Fate);

pub(super) struct Count {
    pub(super) states: usize,
    pub(super) steps: usize,
    pub(super) depth: u32,
    /// There is no other state.
    pub(super) is_closed: bool,
}

/// What is wrong, and the shortest way there.
pub(super) struct Found {
    pub(super) what: String,
    pub(super) path: Vec<Step>,
}

/// How a state was found first.
type Origin = (u32, Step);

/// Searches until there is no new state, or for so many states.
pub(super) fn search(model: &Model, limit: usize) -> Result<Count, Found> {
    let arena = Arena::new(*model);
    let start = arena.start();
    let mut known = HashSet::from([key(model, &start)]);
    let mut origins: Vec<Origin> = Vec::from([(0, (0, Op::Look, Fate::Whole))]);
    let mut queue = VecDeque::from([(0, 0, start)]);
    let mut count = Count {
        states: 1,
        steps: 0,
        depth: 0,
        is_closed: true,
    };
    while let Some((at, depth, world)) = queue.pop_front() {
        count.depth = depth;
        if known.len() >= limit {
            count.is_closed = false;
            break;
        }
        let found = |what: &str, last: Option<Step>| {
            let mut path: Vec<_> = last.into_iter().collect();
            let mut at = at;
            while at != 0 {
                let (before, step) = origins[at as usize];
                path.push(step);
                at = before;
            }
            path.reverse();
            Found {
                what: what.into(),
                path,
            }
        };
        settles(&arena, &world).map_err(|what| found(what, None))?;
        let mut successors = Vec::new();
        each_step(&arena, &world, |step, next, outcome| {
            count.steps += 1;
            outcome
                .and_then(|()| holds(&next))
                .map_err(|what| found(what, Some(step)))?;
            if known.insert(key(model, &next)) && !is_beyond(model, &next) {
                successors.push((step, next));
            }
            Ok(())
        })?;
        for (step, next) in successors {
            origins.push((at, step));
            queue.push_back(((origins.len() - 1) as u32, depth + 1, next));
        }
    }
    count.states = known.len();
    Ok(count)
}

/// Sides that forget are followed up to a session number, because theirs are not renamed.
fn is_beyond(model: &Model, world: &World) -> bool {
    let session = |words: &[u32]| words[SESSION as usize / 4 + session::SESSION];
    model.forgets && world.words.iter().any(|words| session(words) > 3)
}

/// Every way from a world to a next one.
fn each_step(
    arena: &Arena,
    world: &World,
    mut see: impl FnMut(Step, World, Outcome) -> Result<(), Found>,
) -> Result<(), Found> {
    for index in 0..2 {
        for op in arena.enabled(&world.sides[index]) {
            let mut step = |fate| {
                let (next, outcome, made) = arena.step(world, (index, op), fate);
                see((index, op, fate), next, outcome).map(|()| made)
            };
            let (stores, accesses) = step(Fate::Whole)?;
            if op == Op::Crash {
                continue;
            }
            for stores in 1..stores {
                step(Fate::Dies(stores))?;
            }
            let others = arena.interrupting(&world.sides[1 - index]);
            for accesses in 1..accesses {
                for &(first, second) in &others {
                    step(Fate::Interrupted(accesses, first, second))?;
                }
            }
        }
    }
    Ok(())
}

/// What must hold in every state.
fn holds(world: &World) -> Outcome {
    let mut up = Vec::new();
    for side in world.sides.iter().flatten() {
        let private = side.end().private();
        match private.status {
            Status::Up => up.push((private.session[0], private.session[1])),
            Status::Fault(_) | Status::Refused(_) => return Err("an honest peer is refused"),
            _ => {}
        }
        if !side.end().check_books() {
            return Err("a block is in no place, or in two");
        }
    }
    match up[..] {
        [(first, of_second), (second, of_first)] if (first, second) != (of_first, of_second) => {
            Err("both are up, in different sessions")
        }
        _ => Ok(()),
    }
}

/// Both sides live on: they come up, have every block, and reach each other.
fn settles(arena: &Arena, world: &World) -> Outcome {
    let mut world = world.clone();
    let call = |world: &mut World, index, op| {
        let (next, outcome, _) = arena.step(world, (index, op), Fate::Whole);
        *world = next;
        outcome.and_then(|()| holds(world))
    };
    for index in 0..2 {
        let is_closed = |side: &Side| side.end().status() == Status::Closed;
        if world.sides[index].as_ref().is_none_or(is_closed) {
            call(&mut world, index, Op::Crash)?;
            call(&mut world, index, Op::Open)?;
        }
        // What a peer sent before it ended is read, before the pairing ends.
        for _ in 0..=arena.model.sends {
            receive(&mut world, index, &call)?;
        }
        while has_held(&world, index) {
            call(&mut world, index, Op::Release)?;
        }
    }
    let looks = |world: &mut World| {
        for _ in 0..3 {
            call(world, 0, Op::Look)?;
            call(world, 1, Op::Look)?;
        }
        let is_up = |side: &Side| side.end().status() == Status::Up;
        if world.sides.iter().flatten().all(is_up) {
            Ok(())
        } else {
            Err("two sides that live and look do not come up")
        }
    };
    looks(&mut world)?;
    let is_draining = |side: &Side| side.end().private().is_draining;
    if world.sides.iter().flatten().any(is_draining) {
        call(&mut world, 0, Op::Gone)?;
        looks(&mut world)?;
    }
    // What is under way arrives, and then as many packets as there are blocks, twice.
    let [first, second] = [Role::First, Role::Second].map(|role| arena.blocks(role));
    for (from, blocks) in [(0, first), (1, second)] {
        for _ in 0..blocks {
            receive(&mut world, 1 - from, &call)?;
        }
        for _ in 0..2 {
            for _ in 0..blocks {
                let before = sent(&world, from);
                call(&mut world, from, Op::Send)?;
                if sent(&world, from) != before + 1 {
                    return Err("an own block cannot be taken");
                }
            }
            for _ in 0..blocks {
                if !receive(&mut world, 1 - from, &call)? {
                    return Err("a packet does not arrive");
                }
            }
        }
    }
    Ok(())
}

fn has_held(world: &World, index: usize) -> bool {
    world.sides[index]
        .as_ref()
        .is_some_and(|side| !side.held.is_empty())
}

fn sent(world: &World, index: usize) -> u32 {
    let side = world.sides[index].as_ref();
    side.map_or(0, |side| side.end().private().outbox[1])
}

/// Receives a packet, if there is one, and gives it back.
fn receive(
    world: &mut World,
    index: usize,
    call: &impl Fn(&mut World, usize, Op) -> Outcome,
) -> Result<bool, &'static str> {
    call(world, index, Op::Receive)?;
    let is_there = has_held(world, index);
    if is_there {
        call(world, index, Op::Release)?;
    }
    Ok(is_there)
}

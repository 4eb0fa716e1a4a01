//! Every state that two sides of a link can get into, with a crash at every step.
//!
//! Two ends, the code that ships, over plain memory. From each state every call of either side is
//! made: whole; with the side's death after each of its stores; and, where the model says so, with
//! one or two calls of the other side between any two of its accesses. States that differ only in
//! the names of sessions are the same one. The search ends where there is no new state; the bounds
//! are the packets that a side sends in one pairing, and those in its hands.
//!
//! In each state: both sides up means that each has the session of the other; what is received was
//! sent in this pairing; every block is in one place; an honest peer is never at fault; and two
//! sides that live on, and look a few times, come up, have all of their blocks, and reach each
//! other.
//!
//! `locks` does the same for a lock channel, with calls of its own.
//!
//! Built without optimisation the searches stop after some hundred states.

mod identity;
mod key;
mod locks;
mod mutant;
mod search;
mod world;

use super::config::{Channel, Config, Pool};
use search::{Found, search};
use world::{Model, Mutant};

/// One block from the first side to the second, so that each ring has one place.
const ONE: Config =
    Config::new(&[Channel::new(1, "one", Pool::new(1, 8)).pools(Pool::new(1, 8), Pool::new(0, 0))]);
/// One block each way.
const BOTH: Config = Config::new(&[Channel::new(1, "both", Pool::new(1, 8))]);
/// Two blocks from the first side to the second.
const TWO: Config =
    Config::new(&[Channel::new(1, "two", Pool::new(2, 8)).pools(Pool::new(2, 8), Pool::new(0, 0))]);

const MODEL: Model = Model {
    config: ONE,
    sends: 2,
    drains: false,
    interrupting: 0,
    forgets: false,
    mutant: Mutant::None,
};

/// Searches to the end, and says how far that was.
fn closes(name: &str, model: Model) {
    let limit = if cfg!(debug_assertions) {
        150
    } else {
        usize::MAX
    };
    match search(&model, limit) {
        Ok(count) => {
            let end = if count.is_closed { "all" } else { "the first" };
            let (states, steps, depth) = (count.states, count.steps, count.depth);
            std::println!("{name}: {end} {states} states, {steps} steps, depth {depth}");
            assert!(count.is_closed || cfg!(debug_assertions));
        }
        Err(Found { what, path }) => panic!("{name}: {what}, by {path:?}"),
    }
}

#[test]
fn one_block() {
    closes("one block", MODEL);
}

#[test]
fn one_block_of_a_trusted_peer() {
    let config = ONE.mutual();
    closes("one block, trusted", Model { config, ..MODEL });
}

#[test]
fn two_blocks() {
    let (config, sends) = (TWO, 3);
    let model = Model {
        config,
        sends,
        ..MODEL
    };
    closes("two blocks", model);
}

#[test]
fn a_block_each_way() {
    let (config, sends) = (BOTH, 1);
    let model = Model {
        config,
        sends,
        ..MODEL
    };
    closes("a block each way", model);
}

#[test]
fn sides_that_drain() {
    let drains = true;
    closes("draining", Model { drains, ..MODEL });
}

#[test]
fn the_other_side_in_between() {
    let interrupting = 1;
    let model = Model {
        interrupting,
        ..MODEL
    };
    closes("interrupted by one call", model);
}

#[test]
fn a_trusted_side_in_between() {
    let (config, interrupting) = (ONE.mutual(), 1);
    let model = Model {
        config,
        interrupting,
        ..MODEL
    };
    closes("trusted, interrupted by one call", model);
}

#[test]
fn a_restart_in_between() {
    let (interrupting, sends) = (2, 1);
    let model = Model {
        interrupting,
        sends,
        ..MODEL
    };
    closes("interrupted by two calls", model);
}

#[test]
fn sides_whose_memory_is_cleared() {
    let (forgets, sends) = (true, 1);
    let model = Model {
        forgets,
        sends,
        ..MODEL
    };
    closes("cleared memory", model);
}

#[test]
fn a_side_whose_memory_is_cleared_in_between() {
    let (forgets, interrupting, sends) = (true, 1, 1);
    let model = Model {
        forgets,
        interrupting,
        sends,
        ..MODEL
    };
    closes("cleared memory, interrupted by one call", model);
}

#[test]
fn what_is_left_out_of_the_protocol_is_found() {
    for (mutant, config) in [
        (Mutant::Rings, ONE),
        (Mutant::Session, ONE),
        // Without trust the peer's view ends with its pairing, whatever this side says.
        (Mutant::Acknowledgement, ONE.mutual()),
    ] {
        let model = Model {
            config,
            mutant,
            ..MODEL
        };
        let Err(found) = search(&model, usize::MAX) else {
            panic!("{mutant:?} is not found");
        };
        std::println!("{mutant:?}: {}, after {}", found.what, found.path.len());
    }
}

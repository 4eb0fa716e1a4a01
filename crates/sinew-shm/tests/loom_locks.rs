//! Every interleaving of small programs over a lock channel, and the proof that each synchronisation point
//! is needed.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sinew-shm --release --test loom_locks`
#![cfg(loom)]

#[path = "support/loom.rs"]
mod support;
#[path = "support/two.rs"]
#[allow(dead_code)]
mod two;

use loom::thread;
use sinew_shm::LOCK_MUTANTS;
use sinew_shm::domain::{Area, Channel, Config, Guard, LockError};
use support::{explore, passes_without};
use two::{Ended, Side, up};

const LINK: Config = Config::new(&[Channel::lock(1, "lock", 8)]);

fn area(side: &Side) -> Area<Ended> {
    Area::new(&side.end, 1).unwrap()
}

/// One attempt.
fn attempt(area: &Area<Ended>) -> Option<Guard<'_, Ended>> {
    match area.try_lock() {
        Ok(guard) => Some(guard),
        Err(LockError::Busy) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// The two counters, which are the same; then both are one more.
fn count(mut guard: Guard<'_, Ended>) -> u32 {
    let found = [0, 4].map(|at| guard.get::<u32>(at).unwrap());
    assert_eq!(found[0], found[1], "half of what an owner wrote");
    guard.set(0, &(found[0] + 1)).unwrap();
    guard.set(4, &(found[0] + 1)).unwrap();
    found[0]
}

/// Waits for the lock, and counts.
fn wait(side: &Side, area: &Area<Ended>) -> u32 {
    side.until(|| attempt(area).map(count), |waker| area.arm(waker))
}

/// What each side does, in a thread of its own; it says how often it counted.
fn between(
    preemptions: usize,
    near: fn(&Side, &Area<Ended>) -> u32,
    far: fn(&Side, &Area<Ended>) -> u32,
) {
    explore(preemptions, move || {
        let (first, second) = up(LINK);
        let thread = thread::spawn(move || {
            let counted = near(&first, &area(&first));
            (first, counted)
        });
        let counted = far(&second, &area(&second));
        let (first, others) = thread.join().unwrap();
        assert_eq!(count(attempt(&area(&first)).unwrap()), counted + others);
        first.stop();
        second.stop();
    });
}

/// Whether it had the lock, as a number.
fn once(_: &Side, area: &Area<Ended>) -> u32 {
    attempt(area).map(count).is_some().into()
}

fn twice(side: &Side, area: &Area<Ended>) -> u32 {
    once(side, area) + once(side, area)
}

#[test]
fn never_both_have_the_lock_and_the_next_owner_finds_what_the_last_one_left() {
    between(4, twice, twice);
}

#[test]
fn who_waits_gets_the_lock() {
    between(
        3,
        |side, area| {
            wait(side, area);
            1
        },
        |side, area| {
            wait(side, area);
            wait(side, area);
            2
        },
    );
}

#[test]
fn of_two_that_try_again_and_again_both_get_it() {
    between(
        2,
        |side, area| {
            wait(side, area);
            wait(side, area);
            2
        },
        |side, area| {
            wait(side, area);
            1
        },
    );
}

#[test]
fn who_waits_goes_on_when_the_owner_closes() {
    explore(3, || {
        let (first, second) = up(LINK);
        let thread = thread::spawn(move || {
            let area = area(&second);
            let guard = attempt(&area);
            second.end.close();
            drop(guard);
            drop(area);
            second.stop();
        });
        let there = area(&first);
        // It has it, before or after, or is told.
        let step = || match there.try_lock() {
            Err(LockError::Busy) => None,
            Ok(guard) => Some(guard.unlock().is_ok()),
            Err(LockError::Lost(_)) => Some(true),
            Err(error) => panic!("{error:?}"),
        };
        let _: bool = first.until(step, |waker| there.arm(waker));
        drop(there);
        thread.join().unwrap();
        first.stop();
    });
}

/// The point, and the test that does not pass without it.
const FOUND_BY: [(&str, &str); 5] = {
    let one = "never_both_have_the_lock_and_the_next_owner_finds_what_the_last_one_left";
    let waiting = "who_waits_gets_the_lock";
    [
        ("lock_fence", one),
        ("lock_store", one),
        ("lock_load", one),
        ("lock_look_fence", waiting),
        ("sleep_fence", waiting),
    ]
};

/// Runs one test for each synchronisation point, weakened: it must fail.
#[test]
fn each_weakened_point_is_found() {
    assert_eq!(FOUND_BY.map(|(point, _)| point), LOCK_MUTANTS);
    let unfound: Vec<_> = FOUND_BY
        .into_iter()
        .filter(|(point, test)| passes_without(point, &["--exact", test]))
        .collect();
    assert!(unfound.is_empty(), "nobody noticed: {unfound:?}");
}

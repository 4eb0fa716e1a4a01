//! A peer of another configuration, looked at while it opens.

use std::boxed::Box;
use std::cell::{Cell, RefCell};

use super::super::books::Block;
use super::super::config::{Channel, Config, Pool, Role};
use super::super::layout::{IDENTITY, SESSION, identity, session};
use super::super::port::{Coherent, Silent};
use super::super::session::state;
use super::super::{Difference, End, Field, Memory, Options, Parts, Slot, Status};
use super::world::Solo;
use crate::word::trial::{Trial, under};
use crate::word::{Line, Segment};

const OURS: Config = Config::new(&[Channel::new(1, "one", Pool::new(1, 8))]);
const THEIRS: Config = Config::new(&[Channel::new(1, "one", Pool::new(1, 8)).priority(0)]);

std::thread_local! {
    /// Where the segment of the side that opens is.
    static OPENING: Cell<usize> = const { Cell::new(0) };
    static LOOKING: RefCell<Option<End<Solo>>> = const { RefCell::new(None) };
}

fn look() {
    LOOKING.with_borrow(|end| {
        if let Some(end) = end {
            end.look(0);
        }
    });
}

fn status() -> Status {
    LOOKING.with_borrow(|end| end.as_ref().expect("it is open").status())
}

/// Opens a side whose memory nobody else writes.
fn open(segments: [Segment; 2], role: Role, config: Config<'static>) -> End<Solo> {
    let [first, second] = segments;
    let (mine, peer) = match role {
        Role::First => (first, second),
        Role::Second => (second, first),
    };
    let parts = Parts {
        doorbell: Silent,
        cache: Coherent,
        platform: Solo,
        slots: [Slot::EMPTY; 1],
        blocks: [Block::NEW; 4],
    };
    // SAFETY: the memory lives for ever, and one end of each role lives at a time.
    let memory = unsafe { Memory::new(mine, peer, None) };
    let end = End::open(memory, config, role, parts, Options::default());
    end.unwrap_or_else(|error| panic!("{error}"))
}

/// What this side says of a peer that opens with another configuration, where it looks before the
/// access with this number as well. `None` where there are not so many.
fn said(access: u32, keep: Option<fn(usize, u32) -> bool>) -> Option<Status> {
    let segment = |role| {
        let lines = std::vec![Line::ZERO; Line::count(OURS.segment_len(role))];
        Segment::from_lines(Box::leak(lines.into_boxed_slice()))
    };
    let segments = [Role::First, Role::Second].map(segment);
    LOOKING.set(Some(open(segments, Role::First, OURS)));
    let fitting = open(segments, Role::Second, OURS);
    look();
    fitting.look(0);
    look();
    assert_eq!(status(), Status::Up);
    core::mem::forget(fitting);
    let trial = Trial {
        accesses: access,
        interrupt: Some(look),
        keep,
        ..Trial::NONE
    };
    OPENING.set(segments[1].base().addr().get());
    let mut misfit = None;
    let left = under(trial, || {
        misfit = Some(open(segments, Role::Second, THEIRS))
    });
    look();
    let said = status();
    core::mem::forget(misfit);
    LOOKING.set(None);
    left.interrupt.is_none().then_some(said)
}

/// The first access after which the look leaves this side with anything but the right answer.
fn first_wrong(keep: Option<fn(usize, u32) -> bool>) -> Option<u32> {
    let right = Status::Refused(Difference {
        field: Field::Priority,
        channel: Some(1),
        ours: 128,
        theirs: 0,
    });
    for access in 0.. {
        match said(access, keep) {
            Some(said) if said == right => {}
            Some(_) => return Some(access),
            None => {
                assert!(access > 50);
                break;
            }
        }
    }
    None
}

#[test]
fn a_misfit_is_refused_whenever_it_is_looked_at() {
    assert_eq!(first_wrong(None), None);
}

#[test]
fn a_misfit_that_does_not_say_that_it_opens_is_found() {
    let neither = |at: usize, value: u32| {
        let word = |line: u32, word: usize| OPENING.get() + line as usize + 4 * word;
        let is_state = at == word(SESSION, session::STATE) && value == state::OPENING;
        let is_magic = at == word(IDENTITY, identity::MAGIC) && value == 0;
        !(is_state || is_magic)
    };
    assert!(first_wrong(Some(neither)).is_some());
}

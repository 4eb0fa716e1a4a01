//! What a side does about a peer that writes nonsense into a message channel: it counts it, and stops
//! or not as its options say; it never panics, waits, or loses a place of its own.
#![cfg(not(any(loom, miri)))]

#[path = "support/random.rs"]
mod random;
#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;

use random::Random;
use raw::{Pair, Places, Raw};
use sinew_shm::domain::{
    Answer, Call, CallError, Channel, Config, End, Lost, Messages, Options, Refused, Role, Status,
    Violation,
};
use support::{Solo, parts};

const REQUESTS: u16 = 4;
const CALLS: u16 = 3;
const LINK: Config = Config::new(&[Channel::messages(5, "five", REQUESTS, CALLS)]);

/// Words of a line.
const SEQUENCE: usize = 0;
const KIND: usize = 1;
const TOKEN: usize = 3;
const LINE: usize = 16;
/// Words of the control line.
const TAKEN: usize = 2;
const CALL: u32 = 2;

type Side = Rc<End<Solo>>;

struct Scene {
    pair: Pair,
    side: Side,
    peer: Side,
    /// Where the peer's parts lie.
    theirs: Places,
}

impl Scene {
    fn new(faults: bool) -> Scene {
        let pair = Pair::new(&[LINK]);
        let open = |role, faults| {
            // SAFETY: one end for each role.
            let memory = unsafe { pair.memory(role) };
            let options = Options {
                faults,
                ..Options::default()
            };
            Rc::new(End::open(memory, LINK, role, parts(Solo, &LINK), options).unwrap())
        };
        let (side, peer) = (open(Role::First, faults), open(Role::Second, false));
        for _ in 0..3 {
            side.look(0);
            peer.look(0);
        }
        assert_eq!(side.status(), Status::Up);
        let theirs = pair.second.places(0);
        Scene {
            pair,
            side,
            peer,
            theirs,
        }
    }

    fn messages(&self) -> Messages<Side> {
        Messages::new(&self.side, 5).unwrap()
    }

    fn peer(&self) -> Messages<Side> {
        Messages::new(&self.peer, 5).unwrap()
    }

    fn raw(&self) -> Raw {
        self.pair.second
    }

    fn violations(&self) -> u32 {
        let counts = self.pair.first.places(0).statistics;
        self.pair.first.get(counts + raw::VIOLATIONS)
    }

    /// The peer sends, and then writes something else into its line.
    fn forge(&self, position: u32, asks: bool, change: impl Fn(u32) -> u32, word: usize) {
        let peer = self.peer();
        match asks {
            true => std::mem::forget(peer.call(1, [0; 5]).unwrap()),
            false => peer.send(1, [0; 5]).unwrap(),
        }
        let at = self.theirs.ring + LINE * (position % u32::from(REQUESTS)) as usize + word;
        self.raw().set(at, change(self.raw().get(at)));
    }
}

/// A message that breaks the protocol is counted, and stops the link or is passed over.
#[track_caller]
fn assert_refused(violation: Violation, asks: bool, word: usize, change: impl Fn(u32) -> u32) {
    let scene = Scene::new(false);
    scene.forge(0, asks, &change, word);
    assert!(scene.messages().receive().unwrap().is_none());
    assert_eq!(scene.violations(), 1);
    assert_eq!(scene.side.status(), Status::Up);
    if violation != Violation::Sequence {
        scene.peer().send(7, [1; 5]).unwrap();
        let message = scene.messages().receive().unwrap().unwrap();
        assert_eq!((message.opcode, message.words), (7, [1; 5]));
    }
    assert!(scene.side.check_books());

    let scene = Scene::new(true);
    scene.forge(0, asks, &change, word);
    assert_eq!(scene.messages().receive().err(), Some(Lost::Fault));
    assert_eq!(scene.side.status(), Status::Fault(violation));
    assert_eq!(
        scene.messages().send(1, [0; 5]),
        Err(Refused::Lost(Lost::Fault))
    );
}

#[test]
fn a_message_that_is_ahead_of_its_number() {
    assert_refused(Violation::Sequence, false, SEQUENCE, |word| word + 1);
}

#[test]
fn a_message_of_another_session() {
    assert_refused(Violation::Session, false, KIND, |word| word ^ 0x1_0000);
}

#[test]
fn a_message_of_no_known_kind() {
    assert_refused(Violation::Kind, false, KIND, |word| word & 0xFFFF_0000 | 9);
    assert_refused(Violation::Kind, false, KIND, |word| word & 0xFFFF_0000);
}

#[test]
fn a_call_in_a_place_that_does_not_exist() {
    assert_refused(Violation::Token, true, TOKEN, |token| {
        token + u32::from(CALLS)
    });
    assert_refused(Violation::Token, true, TOKEN, |token| token | 0xFFFF);
    assert_refused(Violation::Token, true, TOKEN, |token| token & 0xFFFF);
}

#[test]
fn a_scalar_that_says_that_it_is_a_call() {
    assert_refused(Violation::Token, false, KIND, |word| {
        word & 0xFFFF_0000 | CALL
    });
}

#[test]
fn a_second_call_in_a_place_that_is_open() {
    let scene = Scene::new(false);
    let first = scene.peer().call(1, [0; 5]).unwrap();
    let kept = scene.messages().receive().unwrap().unwrap();
    let token = scene.raw().get(scene.theirs.ring + TOKEN);
    scene.forge(1, true, |_| token, TOKEN);
    assert!(scene.messages().receive().unwrap().is_none());
    assert_eq!(scene.violations(), 1);
    kept.answer([1]);
    drop(first);
    assert!(scene.side.check_books());
}

#[test]
fn more_taken_than_was_sent() {
    for taken in [1, 5, u32::MAX, 0x8000_0000] {
        let scene = Scene::new(false);
        let messages = scene.messages();
        scene.raw().set(scene.theirs.control + TAKEN, taken);
        // It is looked at only when it is needed.
        for _ in 0..REQUESTS {
            messages.send(1, [0; 5]).unwrap();
        }
        let refused = messages.send(1, [0; 5]);
        if taken <= u32::from(REQUESTS) {
            assert_eq!(refused, Ok(()), "one that could be true is believed");
        } else {
            assert_eq!(refused, Err(Refused::Full));
            assert_eq!(scene.violations(), 1);
        }
        assert!(scene.side.check_books());
    }
}

#[test]
fn an_answer_of_another_session() {
    let scene = Scene::new(false);
    let mut call = scene.messages().call(1, [0; 5]).unwrap();
    scene.peer().receive().unwrap().unwrap().answer([1]);
    let status = scene.theirs.returns + 1;
    scene.raw().set(status, scene.raw().get(status) ^ 0x10_0000);
    assert_eq!(call.poll(), Ok(None));
    assert_eq!(scene.violations(), 1);
    drop(call);
    // The place is used again.
    for _ in 0..2 * CALLS {
        let mut call = scene.messages().call(1, [0; 5]).unwrap();
        scene.peer().receive().unwrap().unwrap().answer([2]);
        assert_eq!(call.poll(), Ok(Some([2, 0, 0, 0, 0])));
    }
    assert!(scene.side.check_books());
}

#[test]
fn whatever_the_peer_writes_every_place_comes_back() {
    for seed in 1..=300 {
        let mut random = Random(seed);
        let faults = seed % 2 == 0;
        let scene = Scene::new(faults);
        let mut messages = scene.messages();
        let mut calls: Vec<Call<Side>> = vec![];
        let mut answers: Vec<Answer<Side>> = vec![];
        for _ in 0..400 {
            match random.index(10) {
                0 | 1 => {
                    // Anywhere, mostly near what is there.
                    let at = random.index(scene.raw().len());
                    let value = scene.raw().get(at);
                    let value = match random.index(4) {
                        0 => value.wrapping_add(1),
                        1 => value ^ 1 << random.index(32),
                        2 => random.index(8) as u32,
                        _ => random.index(usize::MAX) as u32,
                    };
                    scene.raw().set(at, value);
                }
                2 => {
                    let _ = messages.send(random.index(9) as u32, [7; 5]);
                }
                3 => calls.extend(messages.call(3, [8; 5])),
                4 if !calls.is_empty() => {
                    let at = random.index(calls.len());
                    match calls[at].poll() {
                        Ok(None) => {}
                        Ok(Some(_)) | Err(CallError::UnknownOpcode | CallError::Dropped) => {
                            drop(calls.swap_remove(at));
                        }
                        Err(CallError::Lost(_)) => calls.clear(),
                    }
                }
                5 if !calls.is_empty() => drop(calls.swap_remove(random.index(calls.len()))),
                6 => {
                    if let Ok(Some(message)) = messages.receive() {
                        answers.extend(message.answer);
                    }
                }
                7 if !answers.is_empty() => {
                    answers
                        .swap_remove(random.index(answers.len()))
                        .give([1, 2]);
                }
                8 => {
                    // The peer goes on honestly with what it has.
                    let peer = scene.peer();
                    let _ = peer.send(1, [0; 5]);
                    drop(peer.call(2, [0; 5]));
                    drop(peer.receive());
                    scene.peer.look(0);
                }
                _ => {
                    scene.side.look(0);
                    if matches!(scene.side.status(), Status::Fault(_)) {
                        scene.side.recover();
                    }
                    messages.renew();
                }
            }
            assert!(scene.side.check_books());
            assert!(faults || !matches!(scene.side.status(), Status::Fault(_)));
        }
        drop((calls, answers));
        // An honest peer on the same memory: every place is there again.
        let Scene {
            pair, side, peer, ..
        } = scene;
        drop(peer);
        pair.second.fill(|| 0);
        // SAFETY: the end before it is gone.
        let memory = unsafe { pair.memory(Role::Second) };
        let peer = End::open(
            memory,
            LINK,
            Role::Second,
            parts(Solo, &LINK),
            Options::default(),
        );
        let peer = Rc::new(peer.unwrap());
        side.recover();
        for _ in 0..4 {
            side.look(0);
            peer.look(0);
        }
        assert_eq!((side.status(), peer.status()), (Status::Up, Status::Up));
        let (near, far) = (
            Messages::new(&side, 5).unwrap(),
            Messages::new(&peer, 5).unwrap(),
        );
        let mut calls: Vec<_> = (0..CALLS).map(|_| near.call(1, [1; 5]).unwrap()).collect();
        while let Ok(Some(message)) = far.receive() {
            message.answer([5]);
        }
        for call in &mut calls {
            assert_eq!(call.poll(), Ok(Some([5, 0, 0, 0, 0])));
        }
        assert!(side.check_books() && peer.check_books());
    }
}

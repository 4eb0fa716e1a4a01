//! What a side does about a peer that writes nonsense into a message channel: it counts it, and stops
//! or not as its options say; it never panics, waits, or loses a place of its own.
#![cfg(not(any(loom, miri)))]

#[path = "support/hands.rs"]
mod hands;
#[path = "support/random.rs"]
mod random;
#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;

use hands::Hands;
use random::Random;
use raw::{Pair, Places, Raw};
use sinew_shm::domain::{
    CallError, Channel, Config, End, Lost, Messages, Options, Pool, Refused, Role, Status,
    Violation,
};
use support::{Solo, parts};

const REQUESTS: u16 = 4;
const CALLS: u16 = 3;
const BLOCKS: u16 = 2;
const SIZE: u32 = 64;
const FIVE: Channel =
    Channel::messages(5, "five", REQUESTS, CALLS).with_memory(Pool::new(BLOCKS, SIZE));
const LINK: Config = Config::new(&[FIVE]);
const TRUSTED: Config = LINK.mutual();
const SHARED: Config = Config::new(&[FIVE.with_replies()]).mutual();
const ALL: [Config; 3] = [LINK, TRUSTED, SHARED];

/// Words of a line.
const SEQUENCE: usize = 0;
const KIND: usize = 1;
const TOKEN: usize = 3;
/// Of a message with memory, where in its block it begins, and how many bytes it has.
const OFFSET: usize = 4;
const LEN: usize = 5;
const LINE: usize = 16;
/// Words of an answer.
const STATUS: usize = 1;
const ANSWER_OFFSET: usize = 2;
const ANSWER_LEN: usize = 3;
/// Words of the control line.
const TAKEN: usize = 2;
const CALL: u32 = 2;
const MOVE: u32 = 3;

type Side = Rc<End<Solo>>;

/// What the peer sends, before something of it is changed.
#[derive(Clone, Copy, PartialEq)]
enum Sends {
    Words,
    Call,
    Move,
    Lend,
    LendMut,
}
use Sends::{Lend, LendMut, Move, Words};
const WITH_MEMORY: [Sends; 3] = [Move, Lend, LendMut];

struct Scene {
    config: Config<'static>,
    pair: Pair,
    side: Side,
    peer: Side,
    /// Where the peer's parts lie.
    theirs: Places,
}

impl Scene {
    fn new(config: Config<'static>, faults: bool) -> Scene {
        let pair = Pair::new(&[config]);
        let open = |role, faults| {
            // SAFETY: one end for each role.
            let memory = unsafe { pair.memory(role) };
            let options = Options {
                faults,
                ..Options::default()
            };
            Rc::new(End::open(memory, config, role, parts(Solo, &config), options).unwrap())
        };
        let (side, peer) = (open(Role::First, faults), open(Role::Second, false));
        for _ in 0..3 {
            side.look(0);
            peer.look(0);
        }
        assert_eq!(side.status(), Status::Up);
        let theirs = pair.second.places(0);
        Scene {
            config,
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

    /// A word of the peer's answer to the call in a place.
    fn answer(&self, place: u16, word: usize) -> usize {
        self.theirs.returns + LINE * usize::from(place) + word
    }

    /// The same side, and a peer that was opened anew on the same memory.
    fn with_an_honest_peer(self) -> Scene {
        let Scene {
            config, pair, side, ..
        } = self;
        drop(self.peer);
        pair.second.fill(|| 0);
        // SAFETY: the end before it is gone.
        let memory = unsafe { pair.memory(Role::Second) };
        let parts = parts(Solo, &config);
        let peer = End::open(memory, config, Role::Second, parts, Options::default());
        let peer = Rc::new(peer.unwrap());
        side.recover();
        for _ in 0..4 {
            side.look(0);
            peer.look(0);
        }
        assert_eq!((side.status(), peer.status()), (Status::Up, Status::Up));
        Scene {
            config,
            theirs: pair.second.places(0),
            pair,
            side,
            peer,
        }
    }

    /// Every place of the side is there, more than once, and all messages arrive.
    fn assert_whole(&self) {
        let (near, far) = (self.messages(), self.peer());
        while far.receive().unwrap().is_some() {}
        for round in 0..3 {
            let call = || near.call(1, [round; 5]);
            let mut calls: Vec<_> = (0..CALLS).map(|_| call().unwrap()).collect();
            assert_eq!(call().err(), Some(Refused::Full));
            let all: Vec<_> = (0..BLOCKS)
                .map(|_| near.memory(SIZE as usize).unwrap())
                .collect();
            assert_eq!(near.memory(SIZE as usize).err(), Some(Refused::Full));
            while let Some(message) = far.receive().unwrap() {
                message.answer([5]);
            }
            for call in &mut calls {
                assert_eq!(call.poll(), Ok(Some([5, 0, 0, 0, 0])));
            }
            for mut buffer in all {
                buffer.fill(round as u8);
                let mut loan = buffer.lend_mut(2, 0..9, [0; 3]).unwrap();
                let mut given = far.receive().unwrap().unwrap().memory.unwrap();
                assert_eq!(given.in_place().unwrap()[..], [round as u8; 9]);
                assert!(given.answer_with(0..9));
                let returned = loan.poll().unwrap().unwrap();
                let mut bytes = [0xEE; 9];
                assert_eq!(returned.copy_to(&mut bytes), Ok(9));
                assert_eq!(bytes, [round as u8; 9]);
                drop(returned.into_buffer().give(3, 0..1, [0; 3]));
                drop(far.receive());
            }
        }
        assert!(self.side.check_books() && self.peer.check_books());
        assert!(self.side.is_drained() && self.peer.is_drained());
    }

    fn violations(&self) -> u32 {
        let counts = self.pair.first.places(0).statistics;
        self.pair.first.get(counts + raw::VIOLATIONS)
    }

    /// The peer sends, and then writes something else into its line.
    fn forge(&self, position: u32, sends: Sends, change: impl Fn(u32) -> u32, word: usize) {
        let peer = self.peer();
        let buffer = || peer.memory(SIZE as usize).unwrap();
        match sends {
            Words => peer.send(1, [0; 5]).unwrap(),
            Sends::Call => std::mem::forget(peer.call(1, [0; 5]).unwrap()),
            Move => buffer().give(1, 3..9, [0; 3]).unwrap(),
            Lend => std::mem::forget(buffer().lend(1, 3..9, [0; 3]).unwrap()),
            LendMut => std::mem::forget(buffer().lend_mut(1, 3..9, [0; 3]).unwrap()),
        }
        let at = self.theirs.ring + LINE * (position % u32::from(REQUESTS)) as usize + word;
        self.raw().set(at, change(self.raw().get(at)));
    }
}

/// A message that breaks the protocol is counted, and stops the link or is passed over.
#[track_caller]
fn assert_refused(violation: Violation, sends: Sends, word: usize, change: impl Fn(u32) -> u32) {
    for config in ALL {
        assert_refused_by(config, violation, sends, word, &change);
    }
}

#[track_caller]
fn assert_refused_by(
    config: Config<'static>,
    violation: Violation,
    sends: Sends,
    word: usize,
    change: impl Fn(u32) -> u32,
) {
    let scene = Scene::new(config, false);
    scene.forge(0, sends, &change, word);
    assert!(scene.messages().receive().unwrap().is_none());
    assert_eq!(scene.violations(), 1);
    assert_eq!(scene.side.status(), Status::Up);
    if violation != Violation::Sequence {
        scene.peer().send(7, [1; 5]).unwrap();
        let message = scene.messages().receive().unwrap().unwrap();
        assert_eq!((message.opcode, message.words), (7, [1; 5]));
        // What was refused is nothing that this side owes an answer.
        assert!(scene.side.is_drained());
    }
    assert!(scene.side.check_books());

    let scene = Scene::new(config, true);
    scene.forge(0, sends, &change, word);
    assert_eq!(scene.messages().receive().err(), Some(Lost::Fault));
    assert_eq!(scene.side.status(), Status::Fault(violation));
    assert_eq!(
        scene.messages().send(1, [0; 5]),
        Err(Refused::Lost(Lost::Fault))
    );
}

#[test]
fn a_message_that_is_ahead_of_its_number() {
    assert_refused(Violation::Sequence, Words, SEQUENCE, |word| word + 1);
}

#[test]
fn a_message_of_another_session() {
    for sends in [Words, Sends::Call, Move, Lend, LendMut] {
        assert_refused(Violation::Session, sends, KIND, |word| word ^ 0x1_0000);
    }
}

#[test]
fn a_message_of_no_known_kind() {
    for kind in [0, 6, 9, 0xFFFF] {
        assert_refused(Violation::Kind, Words, KIND, |word| {
            word & 0xFFFF_0000 | kind
        });
        assert_refused(Violation::Kind, LendMut, KIND, |word| {
            word & 0xFFFF_0000 | kind
        });
    }
}

#[test]
fn a_call_in_a_place_that_does_not_exist() {
    let asks = Sends::Call;
    assert_refused(Violation::Token, asks, TOKEN, |token| {
        token + u32::from(CALLS)
    });
    assert_refused(Violation::Token, asks, TOKEN, |token| token | 0xFFFF);
    assert_refused(Violation::Token, asks, TOKEN, |token| token & 0xFFFF);
}

#[test]
fn a_scalar_that_says_that_it_is_a_call() {
    for kind in CALL..=5 {
        assert_refused(Violation::Token, Words, KIND, |word| {
            word & 0xFFFF_0000 | kind
        });
    }
}

#[test]
fn a_call_of_words_in_a_place_with_memory() {
    for place in 0..u32::from(BLOCKS) {
        assert_refused(Violation::Token, Sends::Call, TOKEN, |token| {
            token & 0xFFFF_0000 | place
        });
    }
}

#[test]
fn a_message_with_memory_in_a_place_without() {
    for sends in WITH_MEMORY {
        for place in [2, 4, 5, 0x7FFF, 0xFFFF] {
            assert_refused(Violation::Token, sends, TOKEN, |token| {
                token & 0xFFFF_0000 | place
            });
        }
        assert_refused(Violation::Token, sends, TOKEN, |token| token & 0xFFFF);
    }
    // A call of words that says that it has memory.
    assert_refused(Violation::Token, Sends::Call, KIND, |word| {
        word & 0xFFFF_0000 | MOVE
    });
}

#[test]
fn memory_beyond_the_block() {
    for sends in WITH_MEMORY {
        for offset in [SIZE - 5, SIZE, SIZE + 1, u32::MAX - 5, u32::MAX, 1 << 31] {
            assert_refused(Violation::Length, sends, OFFSET, |_| offset);
        }
        for len in [
            SIZE - 2,
            SIZE,
            u32::MAX - 3,
            u32::MAX - 2,
            u32::MAX,
            1 << 31,
        ] {
            assert_refused(Violation::Length, sends, LEN, |_| len);
        }
    }
}

#[test]
fn a_second_message_in_a_place_that_is_open() {
    for config in ALL {
        for sends in [Sends::Call, Move, Lend, LendMut] {
            let scene = Scene::new(config, false);
            scene.forge(0, sends, |token| token, TOKEN);
            let kept = scene.messages().receive().unwrap().unwrap();
            let token = scene.raw().get(scene.theirs.ring + TOKEN);
            // The same token, and another number of the place.
            for (position, number) in [(1, 0), (2, 0x1_0000)] {
                let sends = match sends {
                    Move => Words,
                    other => other,
                };
                let twice = |_| token + number;
                match sends {
                    Words => {
                        scene.forge(position, Words, twice, TOKEN);
                        let kind = scene.theirs.ring + LINE * position as usize + KIND;
                        let word = scene.raw().get(kind);
                        scene.raw().set(kind, word & 0xFFFF_0000 | MOVE);
                    }
                    // One of the two blocks is under way already.
                    _ if position == 2 && sends != Sends::Call => continue,
                    _ => scene.forge(position, sends, twice, TOKEN),
                }
                assert!(scene.messages().receive().unwrap().is_none());
                assert_eq!(scene.violations(), position);
            }
            drop(kept);
            assert!(scene.side.is_drained());
            assert!(scene.side.check_books());
        }
    }
}

#[test]
fn more_taken_than_was_sent() {
    for taken in [1, 5, u32::MAX, 0x8000_0000] {
        let scene = Scene::new(LINK, false);
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
    let scene = Scene::new(LINK, false);
    let mut call = scene.messages().call(1, [0; 5]).unwrap();
    scene.peer().receive().unwrap().unwrap().answer([1]);
    let status = scene.answer(BLOCKS, STATUS);
    scene.raw().set(status, scene.raw().get(status) ^ 0x10_0000);
    // It is none, and there comes no other.
    assert_eq!(call.poll(), Err(CallError::Dropped));
    assert_eq!(call.poll(), Ok(None));
    assert_eq!(scene.violations(), 1);
    drop(call);
    scene.assert_whole();
}

/// An answer to a message with memory is changed, and is then none; its place comes back.
#[track_caller]
fn assert_no_answer(sends: Sends, word: usize, change: impl Fn(u32) -> u32) {
    for config in ALL {
        for faults in [false, true] {
            let scene = Scene::new(config, faults);
            // The place with the last block.
            let other = scene.messages().memory(SIZE as usize).unwrap();
            let buffer = scene.messages().memory(SIZE as usize).unwrap();
            let loan = match sends {
                Lend => buffer.lend(1, 0..9, [0; 3]),
                _ => buffer.lend_mut(1, 0..9, [0; 3]),
            };
            let mut loan = loan.unwrap();
            assert!(loan.poll().unwrap().is_none());
            let message = scene.peer().receive().unwrap().unwrap();
            let given = message.memory.unwrap();
            assert!(match sends {
                Lend => given.answer([1]),
                _ => given.answer_with(0..5),
            });
            let at = scene.answer(BLOCKS - 1, word);
            scene.raw().set(at, change(scene.raw().get(at)));
            let expected = match faults {
                false => CallError::Dropped,
                true => CallError::Lost(Lost::Fault),
            };
            assert_eq!(loan.poll().err(), Some(expected));
            // There comes no other.
            assert!(faults || matches!(loan.poll(), Ok(None)));
            assert_eq!(scene.violations(), 1);
            assert!(scene.side.check_books());
            drop(other);
            if faults {
                scene.side.recover();
                for _ in 0..3 {
                    scene.side.look(0);
                    scene.peer.look(0);
                }
            }
            scene.assert_whole();
        }
    }
}

#[test]
fn an_answer_to_memory_of_another_session() {
    assert_no_answer(Lend, STATUS, |word| word ^ 0x10_0000);
    assert_no_answer(LendMut, STATUS, |word| word ^ 0x10_0000);
}

#[test]
fn an_answer_in_memory_beyond_the_block() {
    for offset in [SIZE - 4, SIZE, SIZE + 1, u32::MAX - 4, u32::MAX] {
        assert_no_answer(LendMut, ANSWER_OFFSET, |_| offset);
    }
    for len in [SIZE + 1, u32::MAX, 1 << 31] {
        assert_no_answer(LendMut, ANSWER_LEN, |_| len);
    }
}

/// The peer goes on honestly with what it has.
fn act_for_peer(random: &mut Random, peer: &Messages<Side>) {
    let _ = peer.send(1, [0; 5]);
    drop(peer.call(2, [0; 5]));
    for _ in 0..2 {
        if let Ok(buffer) = peer.memory(SIZE as usize) {
            let valid = 0..random.index(SIZE as usize);
            match random.index(3) {
                0 => drop(buffer.give(1, valid, [2; 3])),
                1 => drop(buffer.lend(1, valid, [2; 3])),
                _ => drop(buffer.lend_mut(1, valid, [2; 3])),
            }
        }
        if let Ok(Some(message)) = peer.receive()
            && let Some(mut given) = message.memory
        {
            given.in_place();
            match random.index(3) {
                0 => drop(given.answer([1])),
                1 => drop(given.answer_with(0..5)),
                _ => std::mem::forget(given),
            }
        }
    }
}

#[test]
fn whatever_the_peer_writes_every_place_comes_back() {
    for seed in 1..=600 {
        let mut random = Random(seed);
        let faults = seed % 2 == 0;
        let config = ALL[seed as usize % 3];
        let scene = Scene::new(config, faults);
        let mut messages = scene.messages();
        let mut hands = Hands::default();
        for _ in 0..400 {
            match random.index(20) {
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
                2 | 3 => {
                    act_for_peer(&mut random, &scene.peer());
                    scene.peer.look(0);
                }
                4 => {
                    scene.side.look(0);
                    if matches!(scene.side.status(), Status::Fault(_)) {
                        scene.side.recover();
                    }
                    messages.renew();
                }
                _ => hands.act(&mut random, &messages),
            }
            assert!(scene.side.check_books());
            assert!(faults || !matches!(scene.side.status(), Status::Fault(_)));
        }
        drop(hands);
        scene.with_an_honest_peer().assert_whole();
    }
}

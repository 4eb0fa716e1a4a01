//! What one peer was sent is nowhere in the memory that the next one maps, and only what was written is
//! cleared.
#![cfg(not(any(loom, miri)))]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::rc::Rc;

use raw::Pair;
use sinew_shm::domain::{
    Channel, Config, End, Memory, Messages, Options, Pool, Receiver, Role, Sender, State, Status,
};
use support::{Solo, parts};

const QUEUE: u16 = 1;
const STATE: u16 = 2;
const MOTOR: u16 = 3;
const REPLIES: u16 = 4;
const SIZE: u32 = 256;
const REQUESTS: u16 = 4;

const PLAIN: [Channel; 3] = [
    Channel::new(QUEUE, "queue", Pool::new(3, SIZE)),
    Channel::of::<[u8; 32]>(STATE, "state"),
    Channel::messages(MOTOR, "motor", REQUESTS, 2).with_memory(Pool::new(2, SIZE)),
];
const NONE: Config = Config::new(&PLAIN);
const MUTUAL: Config = Config::new(&[
    PLAIN[0],
    PLAIN[1],
    PLAIN[2].with_replies(),
    Channel::new(REPLIES, "replies", Pool::new(2, SIZE)).with_replies(),
])
.mutual();

/// Never in the protocol's own words.
const SECRET: u8 = 0x5E;
const WORD: u32 = u32::from_le_bytes([SECRET; 4]);

type Side = Rc<End<Solo>>;

/// A link of whose second side there are several lives.
struct Scene {
    config: Config<'static>,
    pair: Pair,
    first: Side,
    second: Option<Side>,
}

impl Scene {
    fn new(config: Config<'static>) -> Scene {
        let pair = Pair::new(&[config]);
        let open = |role| {
            // SAFETY: one end for each role.
            Self::open(config, unsafe { pair.memory(role) }.zeroed(), role)
        };
        let scene = Scene {
            config,
            pair,
            first: open(Role::First),
            second: Some(open(Role::Second)),
        };
        scene.come_up();
        scene
    }

    fn open(config: Config<'static>, memory: Memory, role: Role) -> Side {
        let parts = parts(Solo, &config);
        Rc::new(End::open(memory, config, role, parts, Options::default()).unwrap())
    }

    fn second(&self) -> &Side {
        self.second.as_ref().unwrap()
    }

    fn come_up(&self) {
        for _ in 0..3 {
            self.first.look(0);
            self.second().look(0);
        }
        assert_eq!(self.first.status(), Status::Up);
        assert_eq!(self.second().status(), Status::Up);
    }

    /// Another peer on the same memory; it has not looked yet.
    fn next_peer(&mut self) {
        self.second = None;
        self.first.look(0);
        // SAFETY: the one before is gone.
        let memory = unsafe { self.pair.memory(Role::Second) };
        self.second = Some(Self::open(self.config, memory, Role::Second));
    }

    /// Where in what the first side writes the secret stands.
    fn leaks(&self) -> Vec<(&'static str, usize)> {
        let segments = [
            ("first", Some(self.pair.first)),
            ("exchange", self.pair.exchange),
        ];
        let mut leaks = vec![];
        for (name, raw) in segments {
            let Some(raw) = raw else { continue };
            let words = (0..raw.len()).filter(|&word| raw.get(word) == WORD);
            leaks.extend(words.map(|word| (name, 4 * word)));
        }
        leaks
    }

    /// Bytes that the first side has cleared on the channel at this place of the configuration.
    fn cleared(&self, index: usize) -> u32 {
        let statistics = self.pair.first.places(index).statistics;
        self.pair.first.get(statistics + 10)
    }

    fn messages(&self) -> [Messages<Side>; 2] {
        [&self.first, self.second()].map(|side| Messages::new(side, MOTOR).unwrap())
    }
}

/// Sends secrets in all ways, and lets the peer go with and without having read and answered them.
fn tell(scene: &Scene) {
    let (first, second) = (&scene.first, scene.second());
    let tx = Sender::new(first, QUEUE).unwrap();
    let rx = Receiver::new(second, QUEUE).unwrap();
    tx.send(&[SECRET; 100]).unwrap();
    drop(rx.receive().unwrap());
    tx.send(&[SECRET; 40]).unwrap();

    let state = State::<Side, [u8; 32]>::new(first, STATE).unwrap();
    state.set(&[SECRET; 32]).unwrap();
    state.set(&[SECRET; 32]).unwrap();

    let [near, far] = scene.messages();
    near.send(WORD, [WORD; 5]).unwrap();
    let call = near.call(WORD, [WORD; 5]).unwrap();
    drop(far.receive().unwrap());
    far.receive().unwrap().unwrap().answer([WORD; 5]);
    drop(call);
    let mut memory = near.memory(80).unwrap();
    memory.fill(SECRET);
    memory.give(WORD, 0..80, [WORD; 3]).unwrap();
    drop(far.receive().unwrap());

    // And what this side answers.
    let call = far.call(1, [0; 5]).unwrap();
    near.receive().unwrap().unwrap().answer([WORD; 5]);
    drop(call);
    let loan = far.memory(8).unwrap().lend_mut(1, 0..8, [0; 3]).unwrap();
    let mut given = near.receive().unwrap().unwrap().memory.unwrap();
    given.blank(53).unwrap().fill(SECRET);
    assert!(given.answer_with(0..53));
    drop(loan);
}

#[test]
fn the_next_peer_finds_nothing_of_what_the_last_one_was_sent() {
    for config in [NONE, MUTUAL] {
        let mut scene = Scene::new(config);
        for _ in 0..10 {
            tell(&scene);
            assert!(!scene.leaks().is_empty());
            scene.next_peer();
            scene.come_up();
            assert_eq!(scene.leaks(), []);
        }
    }
}

#[test]
fn nobody_who_is_not_trusted_finds_it_even_before_the_link_is_up() {
    let mut scene = Scene::new(NONE);
    tell(&scene);
    scene.second = None;
    scene.first.look(0);
    assert_eq!(scene.leaks(), []);
}

#[test]
fn only_what_was_written_is_cleared() {
    let mut scene = Scene::new(NONE);
    // New memory is clean.
    assert_eq!([0, 1, 2].map(|index| scene.cleared(index)), [0; 3]);
    tell(&scene);
    assert_eq!([0, 1, 2].map(|index| scene.cleared(index)), [0; 3]);
    scene.next_peer();
    scene.come_up();
    // Of three blocks of 256 bytes two were written.
    let queue = 100 + 40;
    // Of four copies two.
    let state = 2 * 32;
    // Three of four lines went out, and one of two blocks; one line and one block were an answer's, and
    // one line gave the peer's block back.
    let messages = 3 * 28 + 80 + 2 * 20 + 53;
    assert_eq!(
        [0, 1, 2].map(|index| scene.cleared(index)),
        [queue, state, messages]
    );

    // Nothing is done twice.
    scene.next_peer();
    scene.come_up();
    assert_eq!(
        [0, 1, 2].map(|index| scene.cleared(index)),
        [queue, state, messages]
    );
    // A short packet, where a long one was before.
    Sender::new(&scene.first, QUEUE)
        .unwrap()
        .send(b"x")
        .unwrap();
    scene.next_peer();
    scene.come_up();
    assert_eq!(scene.cleared(0), queue + 1);
}

#[test]
fn all_of_memory_that_another_may_have_had_is_cleared_when_a_side_opens() {
    for config in [NONE, MUTUAL] {
        let mut scene = Scene::new(config);
        tell(&scene);
        // A crash: nothing is closed, and nobody remembers what was written where.
        let crashed = Rc::try_unwrap(std::mem::replace(&mut scene.first, {
            // SAFETY: the end before is not used any more, and never dropped.
            let memory = unsafe { scene.pair.memory(Role::First) };
            Scene::open(config, memory, Role::First)
        }));
        std::mem::forget(crashed);
        scene.come_up();
        assert_eq!(scene.leaks(), []);
    }
}

#[test]
fn block_in_somebodys_hands_is_cleared_when_he_drops_it() {
    for config in [NONE, MUTUAL] {
        let mut scene = Scene::new(config);
        let first = scene.first.clone();
        let tx = Sender::new(&first, QUEUE).unwrap();
        let mut place = tx.place(1).unwrap();
        let [near, far] = scene.messages();
        let mut buffer = near.memory(100).unwrap();
        let loan = far.memory(8).unwrap().lend_mut(1, 0..8, [0; 3]).unwrap();
        let mut given = near.receive().unwrap().unwrap().memory.unwrap();
        let answer = given.blank(100).unwrap();
        answer.fill(SECRET);
        drop((loan, far, near));
        scene.second = None;
        scene.first.look(0);
        // He writes on, to nobody.
        place.fill(SECRET);
        buffer.fill(SECRET);
        drop((place, buffer, given));
        scene.next_peer();
        scene.come_up();
        assert_eq!(scene.leaks(), []);

        let tx = Sender::new(&first, QUEUE).unwrap();
        let all: Vec<_> = (0..3).map(|_| tx.place(1).unwrap()).collect();
        assert!(tx.place(1).is_err());
        drop(all);
        assert!(scene.first.check_books());
    }
}

#[test]
fn answer_that_is_still_being_written_for_the_last_peer_is_not_given_to_the_next() {
    let mut scene = Scene::new(NONE);
    let [near, far] = scene.messages();
    let loan = far.memory(8).unwrap().lend_mut(1, 0..8, [0; 3]).unwrap();
    let mut old = near.receive().unwrap().unwrap().memory.unwrap();
    assert!(old.blank(100).is_some());
    drop((loan, far));
    scene.next_peer();
    scene.come_up();

    let [near, far] = scene.messages();
    let mut loan = far.memory(8).unwrap().lend_mut(1, 0..8, [0; 3]).unwrap();
    let mut new = near.receive().unwrap().unwrap().memory.unwrap();
    assert!(old.blank(100).is_none(), "its pairing is over");
    assert!(new.blank(100).is_none(), "another still writes there");
    drop(old);
    new.blank(100).unwrap().fill(1);
    assert!(new.answer_with(0..100));
    let returned = loan.poll().unwrap().unwrap();
    let mut bytes = [0; 100];
    assert_eq!(returned.copy_to(&mut bytes), Ok(100));
    assert_eq!(bytes, [1; 100]);
}

#[test]
fn answer_in_the_lent_block_is_cleared_as_well() {
    let mut scene = Scene::new(MUTUAL);
    let tx = Sender::new(&scene.first, REPLIES).unwrap();
    let rx = Receiver::new(scene.second(), REPLIES).unwrap();
    tx.send(&[1; 4]).unwrap();
    let mut packet = rx.receive().unwrap().unwrap();
    packet.place().unwrap().fill(SECRET);
    assert!(packet.reply(200));
    let [near, far] = scene.messages();
    let loan = near.memory(4).unwrap().lend_mut(1, 0..4, [0; 3]).unwrap();
    let mut given = far.receive().unwrap().unwrap().memory.unwrap();
    given.blank(SIZE as usize).unwrap().fill(SECRET);
    assert!(given.answer_with(0..200));
    drop((loan, far, rx));
    assert!(!scene.leaks().is_empty());
    scene.next_peer();
    scene.come_up();
    assert_eq!(scene.leaks(), []);
}

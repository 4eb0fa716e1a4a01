//! What a message channel promises, call by call.
#![cfg(not(loom))]

mod support;

use std::rc::Rc;

use sinew_shm::domain::{
    CallError, Channel, Config, ConfigError, End, Lost, MAX_CALLS, Messages, Pool, Receiver,
    Refused,
};
use support::{Flag, Solo, up};

const MOTOR: u16 = 5;
const REQUESTS: u16 = 4;
const CALLS: u16 = 3;
const ROUNDS: u32 = if cfg!(miri) { 10 } else { 100 };
const LINK: Config = Config::new(&[
    Channel::messages(MOTOR, "motor", REQUESTS, CALLS).with_uuid(0x1234),
    Channel::messages(6, "lamp", 1, 0).priority(0),
    Channel::new(1, "bulk", Pool::new(2, 64)),
]);

type Side = Messages<Rc<End<Solo>>>;

fn both() -> (Side, Side) {
    let (first, second) = up(LINK);
    (
        Messages::new(&first, MOTOR).unwrap(),
        Messages::new(&second, MOTOR).unwrap(),
    )
}

fn whole(sides: &(Side, Side)) {
    assert!(sides.0.end().check_books() && sides.1.end().check_books());
}

#[test]
fn messages_cross_both_ways_in_order() {
    let sides = both();
    for round in 0..ROUNDS {
        for (from, to) in [(&sides.0, &sides.1), (&sides.1, &sides.0)] {
            for number in 0..3 {
                from.send(round, [number, 2, 3, 4, round]).unwrap();
            }
            for number in 0..3 {
                let message = to.receive().unwrap().unwrap();
                assert_eq!(message.opcode, round);
                assert_eq!(message.words, [number, 2, 3, 4, round]);
                assert!(message.answer.is_none());
            }
            assert!(to.receive().unwrap().is_none());
        }
    }
    whole(&sides);
}

#[test]
fn calls_are_answered_with_one_two_or_five_words() {
    let sides = both();
    for round in 0..ROUNDS {
        let mut calls = [1, 2, 5].map(|opcode| sides.0.call(opcode, [round; 5]).unwrap());
        for call in &mut calls {
            assert_eq!(call.poll(), Ok(None));
        }
        while let Some(message) = sides.1.receive().unwrap() {
            let word = message.words[0];
            match message.opcode {
                1 => message.answer([word]),
                2 => message.answer([word, 8]),
                _ => message.answer([word, 7, 6, 5, 4]),
            }
        }
        let [mut one, mut two, mut five] = calls;
        assert_eq!(five.poll(), Ok(Some([round, 7, 6, 5, 4])));
        assert_eq!(two.poll(), Ok(Some([round, 8, 0, 0, 0])));
        assert_eq!(one.poll(), Ok(Some([round, 0, 0, 0, 0])));
        assert_eq!(one.poll(), Ok(None), "the call is over");
        whole(&sides);
    }
}

#[test]
fn answers_are_kept_and_given_in_any_order_and_passed_on() {
    let sides = both();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let mut calls = [0, 1, 2].map(|number| sides.0.call(9, [number; 5]).unwrap());
        let mut kept: Vec<_> = (0..3)
            .map(|_| Some(sides.1.receive().unwrap().unwrap().answer.unwrap()))
            .collect();
        for number in order {
            let answer = kept[number].take().unwrap();
            // To another owner in this domain.
            let owner = move || assert!(answer.give([number as u32 + 10]));
            assert_eq!(calls[number].poll(), Ok(None));
            owner();
            assert_eq!(
                calls[number].poll(),
                Ok(Some([number as u32 + 10, 0, 0, 0, 0]))
            );
        }
    }
    whole(&sides);
}

#[test]
fn a_message_that_does_not_fit_moves_nothing() {
    let sides = both();
    for _ in 0..REQUESTS {
        sides.0.send(1, [0; 5]).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(sides.0.send(1, [9; 5]), Err(Refused::Full));
        assert_eq!(sides.0.call(1, [9; 5]).err(), Some(Refused::Full));
    }
    sides.1.receive().unwrap().unwrap();
    sides.0.send(2, [1; 5]).unwrap();
    assert_eq!(sides.0.send(2, [1; 5]), Err(Refused::Full));
    let mut opcodes = vec![];
    while let Some(message) = sides.1.receive().unwrap() {
        opcodes.push(message.opcode);
    }
    assert_eq!(opcodes, [1, 1, 1, 2]);
    // Calls that are open are places as well.
    let calls = [(); CALLS as usize].map(|()| sides.0.call(1, [0; 5]).unwrap());
    assert_eq!(sides.0.call(1, [0; 5]).err(), Some(Refused::Full));
    sides.0.send(3, [0; 5]).unwrap();
    drop(calls);
    whole(&sides);
}

#[test]
fn two_sides_full_of_requests_do_not_stand_still() {
    let sides = both();
    let fill = |side: &Side| -> Vec<_> {
        let calls: Vec<_> = (0..CALLS).map(|_| side.call(1, [7; 5]).unwrap()).collect();
        while side.send(2, [0; 5]).is_ok() {}
        calls
    };
    let (mut near, mut far) = (fill(&sides.0), fill(&sides.1));
    // Nobody can send anything, and still everybody answers.
    for side in [&sides.0, &sides.1] {
        assert_eq!(side.send(2, [0; 5]), Err(Refused::Full));
    }
    for side in [&sides.0, &sides.1] {
        for _ in 0..CALLS {
            side.receive().unwrap().unwrap().answer([1]);
        }
    }
    for call in near.iter_mut().chain(&mut far) {
        assert_eq!(call.poll(), Ok(Some([1, 0, 0, 0, 0])));
    }
    whole(&sides);
}

#[test]
fn what_is_not_known_or_dropped_answers_by_itself() {
    let sides = both();
    let (mut unknown, mut dropped) = (
        sides.0.call(77, [0; 5]).unwrap(),
        sides.0.call(78, [0; 5]).unwrap(),
    );
    sides.1.receive().unwrap().unwrap().unknown();
    drop(sides.1.receive().unwrap());
    assert_eq!(unknown.poll(), Err(CallError::UnknownOpcode));
    assert_eq!(dropped.poll(), Err(CallError::Dropped));
    // Without an answer there is nobody to tell.
    sides.0.send(77, [0; 5]).unwrap();
    sides.1.receive().unwrap().unwrap().unknown();
    whole(&sides);
}

#[test]
fn a_call_given_up_is_no_place_until_its_answer_came() {
    let sides = both();
    for round in 0..20 {
        let calls = [(); CALLS as usize].map(|()| sides.0.call(1, [round; 5]).unwrap());
        drop(calls);
        assert_eq!(sides.0.call(2, [0; 5]).err(), Some(Refused::Full));
        let kept = sides.1.receive().unwrap().unwrap();
        while let Some(message) = sides.1.receive().unwrap() {
            message.answer([99]);
        }
        // Two places are free again; the third call's answer is still to come.
        let mut call = sides.0.call(2, [round; 5]).unwrap();
        assert_eq!(
            call.poll(),
            Ok(None),
            "an old answer is not taken for the new one"
        );
        sides.1.receive().unwrap().unwrap().answer([round]);
        assert_eq!(call.poll(), Ok(Some([round, 0, 0, 0, 0])));
        kept.answer([1]);
        whole(&sides);
    }
}

#[test]
fn a_stale_answer_is_refused() {
    let sides = both();
    let mut call = sides.0.call(1, [0; 5]).unwrap();
    let kept = sides.1.receive().unwrap().unwrap().answer.unwrap();
    let (first, second) = (sides.0.end().clone(), sides.1.end().clone());
    first.peer_is_gone();
    for _ in 0..3 {
        first.look(0);
        second.look(0);
    }
    assert_eq!(call.poll(), Err(CallError::Lost(Lost::Closed)));
    // The same place, in the new session.
    let (mut near, mut far) = (sides.0.clone(), sides.1.clone());
    near.renew();
    far.renew();
    let mut anew = near.call(1, [1; 5]).unwrap();
    let message = far.receive().unwrap().unwrap();
    assert!(!kept.give([13]));
    assert_eq!(anew.poll(), Ok(None));
    message.answer([14]);
    assert_eq!(anew.poll(), Ok(Some([14, 0, 0, 0, 0])));
    assert!(first.check_books() && second.check_books());
}

#[test]
fn channels_are_found_by_number_name_and_id() {
    let (first, second) = up(LINK);
    let far = Messages::new(&second, MOTOR).unwrap();
    for near in [
        Messages::new(&first, MOTOR),
        Messages::by_name(&first, "motor"),
        Messages::by_uuid(&first, 0x1234),
    ] {
        near.unwrap().send(1, [2; 5]).unwrap();
        assert!(far.receive().unwrap().is_some());
    }
    assert!(Messages::new(&first, 1).is_none());
    assert!(Messages::by_name(&first, "bulk").is_none());
    assert!(Messages::by_uuid(&first, 0).is_none());
    assert!(Receiver::new(&first, MOTOR).is_none());
}

#[test]
fn who_waits_is_woken_by_what_it_waits_for() {
    let (near, far) = both();
    let (message, answer, room) = (Flag::new(), Flag::new(), Flag::new());
    far.arm(&message.waker());
    assert!(!message.is_set());
    let mut call = near.call(1, [0; 5]).unwrap();
    far.end().look(0);
    assert!(message.is_set());
    call.arm(&answer.waker());
    while near.send(2, [0; 5]).is_ok() {}
    near.arm_room(&room.waker());
    near.end().look(0);
    assert!(!answer.is_set() && !room.is_set());
    let asked = far.receive().unwrap().unwrap();
    near.end().look(0);
    assert!(room.is_set() && !answer.is_set());
    asked.answer([3]);
    near.end().look(0);
    assert!(answer.is_set());
    assert_eq!(call.poll(), Ok(Some([3, 0, 0, 0, 0])));
    // What is there already wakes at once.
    let again = Flag::new();
    far.arm(&again.waker());
    assert!(again.is_set());
}

#[test]
fn a_call_that_was_answered_before_it_was_given_up_wakes_who_waits_for_its_place() {
    let sides = both();
    let mut calls: Vec<_> = (0..CALLS)
        .map(|_| sides.0.call(1, [0; 5]).unwrap())
        .collect();
    while let Some(message) = sides.1.receive().unwrap() {
        message.answer([1]);
    }
    let flag = Flag::new();
    sides.0.arm_call(&flag.waker());
    assert!(!flag.is_set(), "the answers are still wanted");
    drop(calls.pop());
    assert!(flag.is_set());
    assert!(sides.0.call(1, [0; 5]).is_ok());
}

#[test]
fn waiting_calls_end_with_the_pairing() {
    let (near, far) = both();
    let mut call = near.call(1, [0; 5]).unwrap();
    let flag = Flag::new();
    call.arm(&flag.waker());
    far.end().close();
    near.end().look(0);
    assert!(flag.is_set());
    assert!(matches!(call.poll(), Err(CallError::Lost(_))));
}

#[test]
fn the_most_urgent_message_comes_first() {
    let (first, second) = up(LINK);
    let (motor, lamp) = (
        Messages::new(&first, MOTOR).unwrap(),
        Messages::new(&first, 6).unwrap(),
    );
    assert_eq!(second.next(), None);
    motor.send(1, [0; 5]).unwrap();
    assert_eq!(second.next(), Some(MOTOR));
    lamp.send(1, [0; 5]).unwrap();
    assert_eq!(second.next(), Some(6));
    // A channel without calls has none.
    assert_eq!(lamp.call(1, [0; 5]).err(), Some(Refused::Full));
}

#[test]
fn a_message_channel_is_checked() {
    let check = |channel: Channel| Config::new(&[channel]).mutual().check();
    let good = Channel::messages(5, "motor", 1, 0);
    assert_eq!(check(good), Ok(()));
    for bad in [
        Channel::messages(5, "motor", 0, 1),
        Channel::messages(5, "motor", MAX_CALLS + 1, 1),
        Channel::messages(5, "motor", 1, MAX_CALLS + 1),
        good.with_replies(),
        Channel {
            requests: 1,
            ..Channel::new(5, "motor", Pool::new(1, 1))
        },
        Channel {
            calls: 1,
            ..Channel::state(5, "motor", 1)
        },
    ] {
        assert_eq!(check(bad), Err(ConfigError::Messages(5)));
    }
    let memory = Channel::with_memory;
    assert_eq!(check(memory(good, Pool::new(MAX_CALLS, 1))), Ok(()));
    assert_eq!(check(memory(good, Pool::new(1, 1)).with_replies()), Ok(()));
    assert_eq!(
        check(memory(good, Pool::new(MAX_CALLS + 1, 1))),
        Err(ConfigError::Messages(5))
    );
    assert_eq!(
        check(memory(good, Pool::new(1, 0))),
        Err(ConfigError::Pool(5))
    );
    let untrusting = [memory(good, Pool::new(1, 1)).with_replies()];
    assert_eq!(
        Config::new(&untrusting).check(),
        Err(ConfigError::RepliesNeedTrust(5))
    );
}

sinew_shm::opcodes! {
    /// A lamp.
    mod lamp {
        1 => fn switch(on: bool);
        /// Up to which it then goes.
        2 => fn dim(level: u16, speed: f32) -> f32;
        3 => fn state() -> (bool, i32, u8, u16, f32);
        4 => fn many(a: u8, b: i8, c: u16, d: i16, e: i32) -> i32;
    }
}

#[derive(Default)]
struct Lamp {
    on: bool,
    level: u16,
}

impl lamp::Service for Lamp {
    fn switch(&mut self, on: bool) {
        self.on = on;
    }

    fn dim(&mut self, level: u16, speed: f32) -> f32 {
        self.level = level;
        speed / 2.0
    }

    fn state(&mut self) -> (bool, i32, u8, u16, f32) {
        (self.on, -7, 250, self.level, -0.25)
    }

    fn many(&mut self, a: u8, b: i8, c: u16, d: i16, e: i32) -> i32 {
        i32::from(a) + i32::from(b) + i32::from(c) + i32::from(d) + e
    }
}

#[test]
fn typed_opcodes_reach_their_service_and_come_back() {
    let (near, far) = both();
    let client = lamp::Client::new(near);
    let mut lamp = Lamp::default();
    let mut serve = || {
        while let Some(message) = far.receive().unwrap() {
            lamp::serve(&mut lamp, message);
        }
    };
    client.switch(true).unwrap();
    let (mut dim, mut state) = (client.dim(300, 3.0).unwrap(), client.state().unwrap());
    serve();
    assert_eq!(dim.poll(), Ok(Some(1.5)));
    assert_eq!(state.poll(), Ok(Some((true, -7, 250, 300, -0.25))));
    let mut many = client.many(200, -100, 60_000, -30_000, -1).unwrap();
    serve();
    assert_eq!(many.poll(), Ok(Some(30_099)));
    // Of another version.
    let mut unknown = client.messages().call(99, [0; 5]).unwrap();
    serve();
    assert_eq!(unknown.poll(), Err(CallError::UnknownOpcode));
}

/// A module with names of its own for what the prelude has.
mod shadowed {
    #[allow(dead_code)]
    pub type Result<T> = std::result::Result<T, ()>;
    sinew_shm::opcodes! {
        pub mod door {
            1 => fn open(angle: u16) -> u16;
            2 => fn paint[move]();
            3 => fn look[lend]() -> u8;
            4 => fn photo[lend_mut]();
        }
    }
}

#[test]
fn opcodes_have_no_need_of_the_prelude() {
    assert_ne!(shadowed::door::HASH, lamp::HASH);
}

#[test]
fn opcodes_that_differ_do_not_fit() {
    sinew_shm::opcodes! {
        mod other { 1 => fn switch(on: u8); }
    }
    sinew_shm::opcodes! {
        mod fewer { 1 => fn switch(on: bool); }
    }
    sinew_shm::opcodes! {
        mod answers { 1 => fn switch(on: bool) -> bool; }
    }
    let hashes = [lamp::HASH, other::HASH, fewer::HASH, answers::HASH];
    for (at, hash) in hashes.iter().enumerate() {
        assert_eq!(hashes.iter().position(|other| other == hash), Some(at));
    }
    let typed = Channel::messages(1, "lamp", 1, 1).typed(lamp::HASH);
    assert_ne!(
        Config::new(&[typed]).hash(),
        Config::new(&[typed.typed(0)]).hash()
    );
}

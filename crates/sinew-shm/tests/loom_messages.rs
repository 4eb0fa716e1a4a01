//! Every interleaving of small programs over a message channel, and the proof that each synchronisation
//! point is needed.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sinew-shm --release --test loom_messages`
#![cfg(loom)]

#[path = "support/loom.rs"]
mod support;
#[path = "support/two.rs"]
#[allow(dead_code)]
mod two;

use loom::thread;
use sinew_shm::MESSAGE_MUTANTS;
use sinew_shm::domain::{CallError, Channel, Config, Messages, Pool, Refused};
use support::{explore, passes_without};
use two::{Ended, Side, settle, sites, up, up_on};

const ONE: Config = Config::new(&[Channel::messages(1, "one", 1, 1)]).mutual();
const TWO: Config = Config::new(&[Channel::messages(1, "two", 2, 1)]).mutual();

fn messages(side: &Side) -> Messages<Ended> {
    Messages::new(&side.end, 1).unwrap()
}

/// Waits for room, and sends five words.
fn send(side: &Side, messages: &Messages<Ended>, word: u32) {
    let step = || match messages.send(word, [word; 5]) {
        Err(Refused::Full) => None,
        sent => Some(sent),
    };
    let sent = side.until(step, |waker| messages.arm_room(waker));
    assert_eq!(sent, Ok(()));
}

/// Waits for a message, and looks that it is whole.
fn receive(side: &Side, messages: &Messages<Ended>) -> u32 {
    let step = || messages.receive().unwrap();
    let message = side.until(step, |waker| messages.arm(waker));
    assert_eq!(message.words, [message.opcode; 5]);
    let word = message.opcode;
    message.answer([word + 1, word + 2, word + 3, word + 4, word + 5]);
    word
}

/// Calls, and waits for the answer.
fn call(side: &Side, messages: &Messages<Ended>, word: u32) -> [u32; 5] {
    let mut call = messages.call(word, [word; 5]).unwrap();
    loop {
        // The call is armed between two looks, so it cannot be in both closures.
        if let Some(words) = call.poll().unwrap() {
            return words;
        }
        side.sleep_after(|waker| call.arm(waker));
    }
}

/// What each side does with the channel, in a thread of its own.
fn between(
    config: Config<'static>,
    near: fn(&Side, &Messages<Ended>),
    far: fn(&Side, &Messages<Ended>),
) {
    explore(3, move || {
        let (first, second) = up(config);
        let thread = thread::spawn(move || {
            near(&first, &messages(&first));
            first
        });
        far(&second, &messages(&second));
        thread.join().unwrap().stop();
        second.stop();
    });
}

fn send_two(side: &Side, there: &Messages<Ended>) {
    send(side, there, 1);
    send(side, there, 2);
}

fn receive_two(side: &Side, here: &Messages<Ended>) {
    assert_eq!(receive(side, here), 1);
    assert_eq!(receive(side, here), 2);
}

#[test]
fn messages_cross_whole_and_in_order() {
    between(TWO, send_two, receive_two);
}

#[test]
fn full_channel_goes_on_when_a_message_is_taken_up() {
    between(ONE, send_two, receive_two);
}

#[test]
fn calls_are_answered_whole() {
    between(
        ONE,
        |side, there| {
            assert_eq!(call(side, there, 10), [11, 12, 13, 14, 15]);
            assert_eq!(call(side, there, 20), [21, 22, 23, 24, 25]);
        },
        |side, here| {
            assert_eq!(receive(side, here), 10);
            assert_eq!(receive(side, here), 20);
        },
    );
}

/// One block, which is lent twice.
const MEMORY: Channel = Channel::messages(1, "memory", 1, 0).with_memory(Pool::new(1, 8));
const IN_OWN: Config = Config::new(&[MEMORY]).mutual();
const IN_LENT: Config = Config::new(&[MEMORY.with_replies()]).mutual();

/// Lends eight bytes, and waits for the answer in memory: each one more.
fn lend(side: &Side, messages: &Messages<Ended>, byte: u8) {
    let mut buffer = messages.memory(8).unwrap();
    buffer.fill(byte);
    let mut loan = buffer.lend_mut(1, 0..8, [0; 3]).unwrap();
    let returned = loop {
        if let Some(returned) = loan.poll().unwrap() {
            break returned;
        }
        side.sleep_after(|waker| loan.arm(waker));
    };
    let mut answer = [0; 8];
    assert_eq!(returned.copy_to(&mut answer), Ok(8));
    assert_eq!(answer, [byte + 1; 8]);
}

fn add_one(side: &Side, messages: &Messages<Ended>) {
    let step = || messages.receive().unwrap();
    let message = side.until(step, |waker| messages.arm(waker));
    let mut memory = message.memory.unwrap();
    for byte in memory.in_place().unwrap() {
        *byte += 1;
    }
    assert!(memory.answer_with(0..8));
}

fn lend_two(side: &Side, there: &Messages<Ended>) {
    lend(side, there, 10);
    lend(side, there, 20);
}

fn add_two(side: &Side, here: &Messages<Ended>) {
    add_one(side, here);
    add_one(side, here);
}

#[test]
fn lent_memory_comes_back_whole_in_a_block_of_the_answerer() {
    between(IN_OWN, lend_two, add_two);
}

#[test]
fn lent_memory_comes_back_whole_in_its_own_block() {
    between(IN_LENT, lend_two, add_two);
}

/// Gives the one block away twice: the second time when it has come back.
#[test]
fn moved_memory_is_written_again_only_when_it_has_come_back() {
    between(
        IN_OWN,
        |side, there| {
            for byte in [1, 2] {
                let step = || match there.memory(8) {
                    Err(Refused::Full) => None,
                    memory => Some(memory),
                };
                let memory = side.until(step, |waker| there.arm_memory(waker));
                let mut memory = memory.unwrap();
                memory.fill(byte);
                memory.give(1, 0..8, [0; 3]).unwrap();
            }
        },
        |side, here| {
            for byte in [1, 2] {
                let step = || here.receive().unwrap();
                let message = side.until(step, |waker| here.arm(waker));
                let mut bytes = [0; 8];
                let memory = message.memory.unwrap();
                assert_eq!(memory.copy_to(&mut bytes), Ok(8));
                assert_eq!(bytes, [byte; 8]);
            }
        },
    );
}

/// A side that asks and answers, and begins another life while the other one takes it up: what that
/// finds is whole, or nothing, or the news.
#[test]
fn what_a_side_said_before_it_began_anew_is_whole_or_gone() {
    explore(2, || {
        let (site, second) = sites(TWO);
        let (first, second) = up_on(&site, &second);
        let mut call = messages(&second).call(1, [1; 5]).unwrap();
        let there = messages(&first);
        assert!(there.send(7, [7; 5]).is_ok());
        there.receive().unwrap().unwrap().answer([2; 5]);
        drop(there);
        let thread = thread::spawn(move || {
            match call.poll() {
                Ok(answer) => assert!(answer.is_none_or(|words| words == [2; 5])),
                Err(error) => assert!(matches!(error, CallError::Lost(_)), "{error:?}"),
            }
            if let Ok(Some(message)) = messages(&second).receive() {
                assert_eq!((message.opcode, message.words), (7, [7; 5]));
            }
            drop(call);
            second
        });
        first.stop();
        let first = site.open();
        let second = thread.join().unwrap();
        settle(&first, &second);
        assert_eq!(messages(&first).send(1, [1; 5]), Ok(()));
        assert!(messages(&second).receive().unwrap().is_some());
        first.stop();
        second.stop();
    });
}

#[test]
fn a_call_ends_when_the_peer_closes() {
    explore(2, || {
        let (first, second) = up(ONE);
        let thread = thread::spawn(move || {
            second.stop();
        });
        let there = messages(&first);
        let ended = match there.call(1, [1; 5]) {
            Ok(mut call) => loop {
                match call.poll() {
                    Ok(None) => first.sleep_after(|waker| call.arm(waker)),
                    ended => break ended,
                }
            },
            Err(Refused::Lost(lost)) => Err(CallError::Lost(lost)),
            Err(refused) => panic!("{refused:?}"),
        };
        assert!(matches!(ended, Err(CallError::Lost(_))), "{ended:?}");
        drop(there);
        thread.join().unwrap();
        first.stop();
    });
}

/// The point, and the test that does not pass without it.
const FOUND_BY: [(&str, &str); 10] = [
    ("entry_store", "messages_cross_whole_and_in_order"),
    ("entry_load", "messages_cross_whole_and_in_order"),
    (
        "taken_store",
        "full_channel_goes_on_when_a_message_is_taken_up",
    ),
    (
        "taken_load",
        "full_channel_goes_on_when_a_message_is_taken_up",
    ),
    ("answer_store", "calls_are_answered_whole"),
    ("answer_load", "calls_are_answered_whole"),
    ("publish_fence", "messages_cross_whole_and_in_order"),
    ("return_look_fence", "calls_are_answered_whole"),
    (
        "clear_fence",
        "what_a_side_said_before_it_began_anew_is_whole_or_gone",
    ),
    (
        "clear_look",
        "what_a_side_said_before_it_began_anew_is_whole_or_gone",
    ),
];

/// Runs one test for each synchronisation point, weakened: it must fail.
#[test]
fn each_weakened_point_is_found() {
    assert_eq!(FOUND_BY.map(|(point, _)| point), MESSAGE_MUTANTS);
    let unfound: Vec<_> = FOUND_BY
        .into_iter()
        .filter(|(point, test)| passes_without(point, &["--exact", test]))
        .collect();
    assert!(unfound.is_empty(), "nobody noticed: {unfound:?}");
}

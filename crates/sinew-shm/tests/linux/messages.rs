//! Message channels of a link, with calls that wait.

use std::thread;
use std::time::Duration;

use sinew_shm::domain::{CallError, Channel, Config, Lost, Passing, Pool};
use sinew_shm::linux::link::{Link, Messages, Options, WaitError};

const MOTOR: u16 = 5;
const SIZE: usize = 4096;
const LINK: Config = Config::new(&[
    Channel::messages(MOTOR, "motor", 2, 2).with_memory(Pool::new(2, SIZE as u32)),
    Channel::new(1, "bulk", Pool::new(2, 64)),
]);
/// Only somebody who is never woken waits this long.
const LONG: Option<Duration> = Some(Duration::from_secs(60));
const SHORT: Option<Duration> = Some(Duration::from_millis(20));

fn both() -> (Messages, Messages) {
    let mut options = Options::default();
    // Nothing is found by looking every now and then.
    options.end.heartbeat = 3_600_000;
    let (first, second): (Link, Link) = Link::pair(LINK, options).unwrap();
    let second_up = thread::spawn(move || {
        second.up_within(LONG).unwrap();
        second
    });
    first.up_within(LONG).unwrap();
    let second = second_up.join().unwrap();
    (
        first.messages(MOTOR).unwrap(),
        second.messages(MOTOR).unwrap(),
    )
}

/// Adds one to whatever comes, until an opcode 0.
fn serve(here: &Messages) {
    loop {
        let message = here.receive_within(LONG).unwrap();
        match (message.opcode, message.memory) {
            (0, _) => return,
            (9, _) => {}
            (_, None) => {
                if let Some(answer) = message.answer {
                    answer.give([message.words[0] + 1, message.words[1]]);
                }
            }
            (_, Some(mut memory)) => match memory.passing() {
                Passing::LendMut => {
                    let valid = memory.valid();
                    let place = memory.in_place().unwrap();
                    place[valid.clone()]
                        .iter_mut()
                        .for_each(|byte| *byte ^= 0xFF);
                    assert!(memory.answer_with(valid));
                }
                Passing::Lend => {
                    let len = memory.len() as u32;
                    assert!(memory.answer([len]));
                }
                Passing::Move => drop(memory),
            },
        }
    }
}

#[test]
fn threads_that_call_at_the_same_time_all_have_their_answers() {
    const CALLERS: u32 = 5;
    const ROUNDS: u32 = 400;
    let (near, far) = both();
    let server = thread::spawn(move || serve(&far));
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let near = near.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let answer = near.call_within(1, [round, caller, 0, 0, 0], LONG);
                    assert_eq!(answer, Ok([round + 1, caller, 0, 0, 0]));
                    let mut memory = near.memory_within(SIZE, LONG).unwrap();
                    memory[7] = caller as u8;
                    let mut loan = loop {
                        match memory.lend_mut(2, 7..8, [0; 3]) {
                            Ok(loan) => break loan,
                            Err(unsent) => memory = unsent.buffer,
                        }
                        near.send_within(3, [0; 5], LONG).unwrap();
                    };
                    let returned = near.answer_within(&mut loan, LONG).unwrap();
                    let mut byte = [0];
                    assert_eq!(returned.copy_to(&mut byte), Ok(1));
                    assert_eq!(byte, [!(caller as u8)]);
                }
            });
        }
    });
    near.send_within(0, [0; 5], LONG).unwrap();
    server.join().unwrap();
}

#[test]
fn call_without_an_answer_ends_at_its_limit_or_when_it_is_dropped() {
    let (near, far) = both();
    assert_eq!(near.call_within(1, [0; 5], SHORT), Err(WaitError::TimedOut));
    let kept = far.receive_within(LONG).unwrap();
    let server = thread::spawn(move || serve(&far));
    assert_eq!(
        near.call_within(9, [0; 5], LONG),
        Err(WaitError::Unanswered(CallError::Dropped))
    );
    kept.answer([1]);
    near.send_within(0, [0; 5], LONG).unwrap();
    server.join().unwrap();
    assert_eq!(
        near.call_within(1, [0; 5], LONG),
        Err(WaitError::Lost(Lost::Closed)),
        "its side is gone"
    );
}

#[test]
fn who_waits_for_room_or_memory_goes_on_when_there_is_some() {
    let (near, far) = both();
    for _ in 0..2 {
        near.send_within(1, [0; 5], LONG).unwrap();
    }
    assert_eq!(near.send_within(1, [0; 5], SHORT), Err(WaitError::TimedOut));
    let held: Vec<_> = (0..2)
        .map(|_| near.memory_within(SIZE, LONG).unwrap())
        .collect();
    assert_eq!(
        near.memory_within(1, SHORT).err(),
        Some(WaitError::TimedOut)
    );
    assert_eq!(
        near.memory_within(SIZE + 1, LONG).err(),
        Some(WaitError::TooLarge)
    );
    thread::scope(|scope| {
        scope.spawn(|| near.send_within(2, [0; 5], LONG).unwrap());
        scope.spawn(|| drop(near.memory_within(1, LONG).unwrap()));
        for opcode in [1, 1, 2] {
            thread::sleep(Duration::from_millis(5));
            assert_eq!(far.receive_within(LONG).unwrap().opcode, opcode);
        }
        drop(held);
    });
}

#[test]
fn waiting_for_anything_ends_with_a_message() {
    let (near, far) = both();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            near.send_within(1, [0; 5], LONG).unwrap();
        });
        assert_eq!(far.link().next_within(LONG), Ok(MOTOR));
    });
}

#[test]
fn link_of_values_alone_comes_up_without_a_heartbeat() {
    const VALUES: Config = Config::new(&[Channel::state(1, "one", 16)]);
    let mut options = Options::default();
    options.end.heartbeat = 3_600_000;
    for _ in 0..20 {
        let (first, second): (Link, Link) = Link::pair(VALUES, options).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| first.up_within(LONG).unwrap());
            thread::sleep(Duration::from_millis(1));
            second.up_within(LONG).unwrap();
        });
    }
}

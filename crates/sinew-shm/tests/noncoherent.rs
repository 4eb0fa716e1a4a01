//! A link between two sides whose caches do not see each other: everything crosses by the calls of
//! [`Cache`](sinew_shm::domain::Cache) alone.
#![cfg(not(loom))]

#[path = "support/caches.rs"]
mod caches;
#[path = "support/random.rs"]
mod random;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};

use caches::{Board, ChipEnd, settle};
use sinew_shm::domain::{
    Area, CallError, Channel, Config, Given, LockError, Lost, Messages, Pool, Predicate, Receiver,
    Refused, Role, Sender, State, Status,
};

const ROUNDS: u32 = if cfg!(miri) { 10 } else { 500 };
const SEEDS: u64 = if cfg!(miri) { 1 } else { 20 };

const CHANNELS: [Channel; 2] = [
    Channel::new(1, "one", Pool::new(3, 200)),
    Channel::new(2, "two", Pool::new(5, 70)),
];
const LINES_OF_64: Config = Config::new(&CHANNELS);
const LINES_OF_256: Config = Config {
    line_log2: 8,
    ..LINES_OF_64
};
const REPLIES: Config =
    Config::new(&[Channel::new(1, "one", Pool::new(3, 200)).with_replies()]).mutual();

/// Runs a scene on boards whose caches go different ways.
fn on_boards(configs: &[Config<'static>], scene: impl Fn(&Board)) {
    for config in configs {
        for seed in 1..=SEEDS {
            scene(&Board::new(*config, seed));
        }
    }
}

fn sender(end: &ChipEnd, channel: u16) -> Sender<ChipEnd> {
    Sender::new(end, channel).unwrap()
}

fn receiver(end: &ChipEnd, channel: u16) -> Receiver<ChipEnd> {
    Receiver::new(end, channel).unwrap()
}

/// The bytes of the packet that is there.
fn take(receiver: &Receiver<ChipEnd>) -> Option<Vec<u8>> {
    let packet = receiver.receive().unwrap()?;
    let mut bytes = vec![0; packet.len()];
    assert_eq!(packet.copy_to(&mut bytes), Ok(bytes.len()));
    Some(bytes)
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn packets_and_returns_cross_both_ways() {
    on_boards(&[LINES_OF_64, LINES_OF_256], |board| {
        let (first, second) = board.up();
        for round in 0..ROUNDS {
            for (from, to) in [(&first, &second), (&second, &first)] {
                for (channel, size) in [(1, 200), (2, 70)] {
                    let packet = vec![round as u8; (round * 7) as usize % (size + 1)];
                    assert_eq!(sender(from, channel).send(&packet), Ok(true));
                    assert_eq!(take(&receiver(to, channel)), Some(packet));
                    assert_eq!(take(&receiver(to, channel)), None);
                }
            }
        }
        assert!(first.check_books() && second.check_books());
    });
}

#[test]
fn full_channel_goes_on_when_a_block_comes_back() {
    on_boards(&[LINES_OF_64, LINES_OF_256], |board| {
        let (first, second) = board.up();
        let (there, here) = (sender(&first, 1), receiver(&second, 1));
        for round in 0..ROUNDS as u8 {
            while there.send(&[round; 9]) == Ok(true) {}
            let held = [(); 3].map(|()| here.receive().unwrap().unwrap());
            assert_eq!(there.send(&[0]), Err(Refused::Full));
            for packet in held {
                let mut bytes = [0; 9];
                assert_eq!(packet.copy_to(&mut bytes), Ok(9));
                assert_eq!(bytes, [round; 9]);
            }
        }
    });
}

#[test]
fn side_that_sleeps_is_rung_and_one_that_does_not_is_not() {
    on_boards(&[LINES_OF_64, LINES_OF_256], |board| {
        let (first, second) = board.up();
        let (there, here) = (sender(&first, 1), receiver(&second, 1));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        for round in 1..=ROUNDS {
            here.arm(&waker);
            assert_eq!(there.send(b"1"), Ok(true));
            assert_eq!(first.doorbell().take(), 1);
            second.look(0);
            assert_eq!(woken.0.load(Ordering::Relaxed), 2 * round - 1);
            assert_eq!(there.send(b"2"), Ok(true));
            assert_eq!(first.doorbell().take(), 0);
            assert_eq!(there.send(b"3"), Ok(true));
            assert_eq!(there.send(b"4"), Err(Refused::Full));
            there.arm(&waker);
            let packets = [(); 3].map(|()| here.receive().unwrap().unwrap());
            assert_eq!(second.doorbell().take(), 0);
            drop(packets);
            assert_eq!(second.doorbell().take(), 1);
            first.look(0);
            assert_eq!(woken.0.load(Ordering::Relaxed), 2 * round);
        }
    });
}

#[test]
fn side_that_asks_without_a_waker_is_rung() {
    on_boards(&[LINES_OF_64, LINES_OF_256], |board| {
        let (first, second) = board.up();
        let (there, here) = (sender(&first, 1), receiver(&second, 1));
        for _ in 0..ROUNDS {
            assert_eq!(here.ring_at(1), Ok(false));
            assert_eq!(there.send(b"1"), Ok(true));
            assert_eq!(first.doorbell().take(), 1);
            assert_eq!(here.ring_at(1), Ok(true));
            assert_eq!(here.ring_at(2), Ok(false));
            assert_eq!(there.ring_at_return(), Ok(true));
            assert_eq!(there.send(b"2"), Ok(true));
            assert_eq!(first.doorbell().take(), 1);
            assert_eq!(there.send(b"3"), Ok(true));
            assert_eq!(there.ring_at_return(), Ok(false));
            assert_eq!(second.doorbell().take(), 0);
            let mut bytes = [0; 4];
            assert_eq!(here.receive_into(&mut bytes), Ok(Some(1)));
            assert_eq!(second.doorbell().take(), 1);
            assert_eq!(there.ring_at_return(), Ok(true));
            assert_eq!(here.receive_into(&mut bytes), Ok(Some(1)));
            assert_eq!(here.receive_into(&mut bytes), Ok(Some(1)));
            assert_eq!(bytes[0], b'3');
            first.doorbell().take();
            second.doorbell().take();
        }
    });
}

#[test]
fn who_waits_for_a_place_is_rung_when_a_packet_was_not_wanted() {
    on_boards(&[LINES_OF_64], |board| {
        let (first, second) = board.up();
        let (there, here) = (sender(&first, 1), receiver(&second, 1));
        for in_one_step in [false, true] {
            while there.send(b"?") == Ok(true) {}
            assert_eq!(there.ring_at_return(), Ok(false));
            here.set_filter(Predicate::Matches {
                offset: 0,
                mask: 1,
                value: 0,
            });
            second.doorbell().take();
            match in_one_step {
                true => assert_eq!(here.receive_into(&mut []), Ok(None)),
                false => assert!(here.receive().unwrap().is_none()),
            }
            assert_eq!(second.doorbell().take(), 1);
            here.set_filter(Predicate::All);
            while there.send(b"!") == Ok(true) {}
            while here.receive().unwrap().is_some() {}
        }
    });
}

#[test]
fn filter_reaches_the_sender() {
    on_boards(&[LINES_OF_64, LINES_OF_256], |board| {
        let (first, second) = board.up();
        let (there, here) = (sender(&first, 1), receiver(&second, 1));
        for value in 0..ROUNDS {
            here.set_filter(Predicate::Matches {
                offset: 4,
                mask: 0xFFFF,
                value,
            });
            let mut packet = [0; 8];
            packet[4..].copy_from_slice(&value.to_le_bytes());
            // The wish is seen with the first flush.
            assert_eq!(there.send(&packet), Ok(true));
            assert_eq!(take(&here), Some(packet.to_vec()));
            assert_eq!(there.send(&[0xFF; 8]), Ok(false));
            here.set_filter(Predicate::All);
            assert_eq!(there.send(&packet), Ok(true));
            assert_eq!(there.send(&[0xFF; 8]), Ok(true));
            assert_eq!(take(&here), Some(packet.to_vec()));
            assert_eq!(take(&here), Some(vec![0xFF; 8]));
        }
    });
}

#[test]
fn restarts_of_either_side_are_told_and_leave_nothing_behind() {
    on_boards(&[LINES_OF_64, LINES_OF_256], |board| {
        let (mut first, mut second) = board.up();
        for round in 0..ROUNDS / 5 {
            let (there, here) = (sender(&first, 1), receiver(&second, 1));
            assert_eq!(there.send(b"read"), Ok(true));
            assert_eq!(there.send(b"never"), Ok(true));
            assert_eq!(take(&here), Some(b"read".to_vec()));
            // One goes without a word, the other in order.
            let goes_silently = round % 4 < 2;
            if round % 2 == 0 {
                drop((there, here));
                first = restart(board, first, Role::First, goes_silently);
            } else {
                drop(here);
                second = restart(board, second, Role::Second, goes_silently);
                first.look(0);
                let refused = there.send(b"lost");
                let is_told = matches!(refused, Err(Refused::Lost(Lost::Restarted | Lost::Closed)));
                assert!(is_told, "{refused:?}");
            }
            settle(&first, &second);
            assert!(first.check_books() && second.check_books());
            assert_eq!(take(&receiver(&second, 1)), None);
            for _ in 0..3 {
                assert_eq!(sender(&first, 1).send(b"all free"), Ok(true));
            }
            for _ in 0..3 {
                assert_eq!(take(&receiver(&second, 1)), Some(b"all free".to_vec()));
            }
        }
    });
}

fn restart(board: &Board, old: ChipEnd, role: Role, silently: bool) -> ChipEnd {
    if silently {
        // Its cache goes with it, unwritten.
        std::mem::forget(old);
    } else {
        drop(old);
    }
    board.open(role)
}

#[test]
fn answers_come_back_whatever_is_left_in_the_caches() {
    on_boards(&[REPLIES], |board| {
        let (first, second) = board.up();
        let (there, here) = (sender(&first, 1), receiver(&second, 1));
        for round in 0..ROUNDS as u8 {
            // Far more is written than is sent, and some of it for nothing.
            there.place(200).unwrap().fill(round);
            let mut place = there.place(200).unwrap();
            place.fill(round);
            assert_eq!(place.send(3), Ok(true));
            let mut packet = here.receive().unwrap().unwrap();
            assert_eq!(packet.trusted(), Some(&[round; 3][..]));
            packet.place().unwrap().fill(!round);
            if round % 3 == 0 {
                drop(packet);
                assert!(there.reply().unwrap().is_none());
                continue;
            }
            let len = if round % 3 == 1 { 200 } else { 2 };
            assert!(packet.reply(len));
            let reply = there.reply().unwrap().unwrap();
            assert_eq!(&*reply, &vec![!round; len][..]);
        }
        assert!(first.check_books() && second.check_books());
    });
}

#[test]
fn silence_is_seen_and_life_as_well() {
    on_boards(&[LINES_OF_64], |board| {
        let (first, second) = board.up();
        for now in 1..ROUNDS {
            assert_eq!(first.look(now * 100), Status::Up);
            assert_eq!(second.look(now * 100), Status::Up);
        }
        drop(second);
        assert_eq!(first.look(0), Status::Waiting);
    });
}

type Value = [u8; 150];
const VALUES: Config = Config::new(&[Channel::of::<Value>(1, "values")]);
const VALUES_OF_256: Config = Config {
    line_log2: 8,
    ..VALUES
};

#[test]
fn the_latest_value_crosses_both_ways_however_often_it_is_set_and_read() {
    on_boards(&[VALUES, VALUES_OF_256], |board| {
        let (first, second) = board.up();
        let near = State::<_, Value>::new(&first, 1).unwrap();
        let far = State::<_, Value>::new(&second, 1).unwrap();
        let mut number = 0_u32;
        for round in 0..ROUNDS {
            for (from, to) in [(&near, &far), (&far, &near)] {
                for _ in 0..=round % 3 {
                    assert_eq!(from.set(&[number as u8 + 1; 150]), Ok(true));
                    number = (number + 1) % 200;
                }
                for _ in 0..=round % 2 {
                    assert_eq!(to.get(), Ok(Some(last(number))));
                }
            }
        }
    });
}

/// The value that was set last.
fn last(number: u32) -> Value {
    [if number == 0 { 200 } else { number as u8 }; 150]
}

const LOCKED: Config = Config::new(&[Channel::lock(1, "area", 150)]);
const LOCKED_256: Config = Config {
    line_log2: 8,
    ..LOCKED
};

#[test]
fn an_area_is_what_its_last_owner_left_and_who_waits_for_it_is_rung() {
    on_boards(&[LOCKED, LOCKED_256], |board| {
        let (first, second) = board.up();
        let areas = [&first, &second].map(|end| Area::new(end, 1).unwrap());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut expected = [0; 150];
        for round in 1..=ROUNDS as usize {
            let (near, far) = (&areas[round % 2], &areas[1 - round % 2]);
            let mut guard = near.try_lock().unwrap();
            let mut found = [0; 150];
            guard.read(0, &mut found).unwrap();
            assert_eq!(found, expected);
            let at = round * 7 % 140;
            expected[at..at + 10].fill(round as u8);
            guard.write(at, &[round as u8; 10]).unwrap();
            assert!(matches!(far.try_lock(), Err(LockError::Busy)));
            far.arm(&waker);
            drop(guard);
            assert_eq!(near.end().doorbell().take(), 1);
            far.end().look(0);
            assert_eq!(woken.0.load(Ordering::Relaxed) as usize, round);
        }
    });
}

#[test]
fn an_owner_that_dies_poisons_the_area_whatever_is_left_in_the_caches() {
    on_boards(&[LOCKED], |board| {
        for (role, silently) in [(Role::First, true), (Role::Second, true)] {
            let (first, second) = board.up();
            let (dead, lives) = match role {
                Role::First => (first, second),
                Role::Second => (second, first),
            };
            let area = Area::new(&dead, 1).unwrap();
            let mut guard = match area.try_lock() {
                Ok(guard) => guard,
                Err(LockError::Poisoned(poisoned)) => poisoned.accept(),
                Err(error) => panic!("{error:?}"),
            };
            guard.write(3, &[7; 9]).unwrap();
            std::mem::forget(guard);
            drop(area);
            let new = restart(board, dead, role, silently);
            settle(&new, &lives);
            for end in [&new, &lives] {
                let area = Area::new(end, 1).unwrap();
                let tried = area.try_lock();
                assert!(matches!(tried, Err(LockError::Poisoned(_))));
            }
        }
    });
}

const MESSAGES: [Channel; 1] = [Channel::messages(1, "one", 4, 2).with_memory(Pool::new(2, 200))];
const MESSAGES_OF_64: Config = Config::new(&MESSAGES);
const MESSAGES_OF_256: Config = Config {
    line_log2: 8,
    ..MESSAGES_OF_64
};
const TRUSTED: Config = MESSAGES_OF_64.mutual();
const ANSWERED_IN_PLACE: Config = Config::new(&[MESSAGES[0].with_replies()]).mutual();
const IN_PLACE_OF_256: Config = Config {
    line_log2: 8,
    ..ANSWERED_IN_PLACE
};
const WITH_MESSAGES: [Config; 5] = [
    MESSAGES_OF_64,
    MESSAGES_OF_256,
    TRUSTED,
    ANSWERED_IN_PLACE,
    IN_PLACE_OF_256,
];

fn messages(end: &ChipEnd) -> Messages<ChipEnd> {
    Messages::new(end, 1).unwrap()
}

/// The message that is there, which has memory.
fn given(messages: &Messages<ChipEnd>) -> Given<ChipEnd> {
    messages.receive().unwrap().unwrap().memory.unwrap()
}

/// The bytes of a message, or of an answer.
fn copied(copy_to: impl Fn(&mut [u8]) -> Result<usize, Lost>) -> Vec<u8> {
    let mut bytes = vec![0; 201];
    let len = copy_to(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// Bytes that are no other round's.
fn bytes(round: u32, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (round as usize * 5 + at * 3) as u8)
        .collect()
}

#[test]
fn messages_and_answers_of_words_cross_both_ways() {
    on_boards(&WITH_MESSAGES, |board| {
        let (first, second) = board.up();
        let (near, far) = (messages(&first), messages(&second));
        for round in 0..ROUNDS {
            for (from, to) in [(&near, &far), (&far, &near)] {
                from.send(round, [round; 5]).unwrap();
                let mut calls = [1, 2].map(|opcode| from.call(opcode, [!round; 5]).unwrap());
                from.send(round, [5; 5]).unwrap();
                assert_eq!(from.send(0, [0; 5]), Err(Refused::Full));
                let mut taken = vec![];
                while let Some(message) = to.receive().unwrap() {
                    taken.push((message.opcode, message.words));
                    message.answer([round, 1, 2]);
                }
                let expected = [
                    (round, [round; 5]),
                    (1, [!round; 5]),
                    (2, [!round; 5]),
                    (round, [5; 5]),
                ];
                assert_eq!(taken, expected);
                for call in &mut calls {
                    assert_eq!(call.poll(), Ok(Some([round, 1, 2, 0, 0])));
                }
            }
        }
        assert!(first.is_drained() && second.is_drained());
        assert!(first.check_books() && second.check_books());
    });
}

#[test]
fn memory_and_answers_in_memory_cross_whatever_is_left_in_the_caches() {
    on_boards(&WITH_MESSAGES, |board| {
        let (first, second) = board.up();
        let (near, far) = (messages(&first), messages(&second));
        for round in 0..ROUNDS {
            for (from, to) in [(&near, &far), (&far, &near)] {
                // Written for nothing.
                from.memory(200).unwrap().fill(round as u8);
                let start = round as usize % 90;
                let valid = start..start + round as usize % 111;
                let sent = bytes(round, 200);
                let fill = || {
                    let mut buffer = from.memory(200).unwrap();
                    buffer.copy_from_slice(&sent);
                    buffer
                };
                fill().give(1, valid.clone(), [0; 3]).unwrap();
                let moved = given(to);
                assert_eq!(copied(|out| moved.copy_to(out)), sent[valid.clone()]);
                drop(moved);

                let mut loan = fill().lend(2, valid.clone(), [0; 3]).unwrap();
                let lent = given(to);
                assert_eq!(copied(|out| lent.copy_to(out)), sent[valid.clone()]);
                assert!(lent.answer([round]));
                let mut buffer = loan.poll().unwrap().unwrap().into_buffer();

                // Answered in place, with more or less than came, or not at all.
                buffer.copy_from_slice(&sent);
                let mut loan = buffer.lend_mut(3, valid.clone(), [0; 3]).unwrap();
                let mut lent = given(to);
                let place = lent.in_place().unwrap();
                assert_eq!(place[valid.clone()], sent[valid.clone()]);
                let place = lent.blank(200).unwrap();
                place.copy_from_slice(&bytes(round + 7, 200));
                let answer = match round % 3 {
                    0 => 0..200,
                    1 => start..start + 1,
                    _ => {
                        drop(lent);
                        assert_eq!(loan.poll().err(), Some(CallError::Dropped));
                        continue;
                    }
                };
                assert!(lent.answer_with(answer.clone()));
                let returned = loan.poll().unwrap().unwrap();
                assert_eq!(returned.valid(), answer);
                let expected = bytes(round + 7, 200);
                assert_eq!(copied(|out| returned.copy_to(out)), expected[answer]);
            }
        }
        assert!(first.is_drained() && second.is_drained());
        assert!(first.check_books() && second.check_books());
    });
}

#[test]
fn who_waits_for_messages_answers_room_and_memory_is_rung() {
    on_boards(&WITH_MESSAGES, |board| {
        let (first, second) = board.up();
        let (near, far) = (messages(&first), messages(&second));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let is_woken_by = |end: &ChipEnd| {
            let before = woken.0.load(Ordering::Relaxed);
            end.look(0);
            woken.0.load(Ordering::Relaxed) - before
        };
        for round in 0..ROUNDS {
            far.arm(&waker);
            let mut call = near.call(1, [round; 5]).unwrap();
            assert_eq!(first.doorbell().take(), 1);
            assert_eq!(is_woken_by(&second), 1);

            call.arm(&waker);
            let message = far.receive().unwrap().unwrap();
            second.doorbell().take();
            message.answer([round]);
            assert_eq!(second.doorbell().take(), 1);
            assert_eq!(is_woken_by(&first), 1);
            assert_eq!(call.poll(), Ok(Some([round, 0, 0, 0, 0])));

            for _ in 0..4 {
                near.send(1, [round; 5]).unwrap();
            }
            near.arm_room(&waker);
            second.doorbell().take();
            assert!(far.receive().unwrap().is_some());
            assert_eq!(second.doorbell().take(), 1);
            assert_eq!(is_woken_by(&first), 1);
            while far.receive().unwrap().is_some() {}

            for _ in 0..2 {
                let buffer = near.memory(200).unwrap();
                buffer.give(1, 0..9, [0; 3]).unwrap();
            }
            near.arm_memory(&waker);
            let moved = given(&far);
            second.doorbell().take();
            drop(moved);
            assert_eq!(second.doorbell().take(), 1);
            assert_eq!(is_woken_by(&first), 1);
            assert!(near.memory(200).is_ok());
            while far.receive().unwrap().is_some() {}
            first.doorbell().take();
        }
    });
}

#[test]
fn what_was_written_for_a_message_of_a_pairing_that_ended_reaches_no_later_one() {
    on_boards(&WITH_MESSAGES, |board| {
        let (first, second) = board.up();
        for round in 0..ROUNDS / 5 {
            let (near, far) = (messages(&first), messages(&second));
            // The sender goes on with what he holds, the receiver answers what is over.
            let held = (round % 3 == 0).then(|| near.memory(200).unwrap());
            let loan = near
                .memory(200)
                .unwrap()
                .lend_mut(1, 0..200, [0; 3])
                .unwrap();
            let mut lent = given(&far);
            lent.in_place().unwrap().fill(0xEE);
            first.peer_is_gone();
            if round % 4 < 2 {
                // It knows of it already.
                second.look(0);
            }
            match round % 2 {
                0 => drop(lent.answer_with(0..200)),
                _ => drop(lent),
            }
            drop(loan);
            settle(&first, &second);
            let (near, far) = (messages(&first), messages(&second));
            let sent = bytes(round, 200);
            for _ in 0..4 {
                let mut buffer = near.memory(200).unwrap();
                buffer.copy_from_slice(&sent);
                buffer.give(1, 0..150, [0; 3]).unwrap();
                let moved = given(&far);
                for _ in 0..9 {
                    assert_eq!(copied(|out| moved.copy_to(out)), sent[..150]);
                }
            }
            let mut buffer = near.memory(200).unwrap();
            buffer.copy_from_slice(&sent);
            let mut loan = buffer.lend_mut(1, 0..1, [0; 3]).unwrap();
            let mut lent = given(&far);
            lent.in_place().unwrap()[..1].fill(!sent[0]);
            assert!(lent.answer_with(0..1));
            let returned = loan.poll().unwrap().unwrap();
            assert_eq!(copied(|out| returned.copy_to(out)), [!sent[0]]);
            drop((returned, held));
        }
        assert!(first.check_books() && second.check_books());
    });
}

#[test]
fn caller_that_was_started_anew_takes_no_answer_of_its_last_life_for_its_own() {
    on_boards(&WITH_MESSAGES, |board| {
        let (mut first, second) = board.up();
        for round in 0..ROUNDS.div_ceil(50) {
            let mut call = messages(&first).call(1, [round; 5]).unwrap();
            let memory = messages(&first).memory(200).unwrap();
            let mut loan = memory.lend(2, 0..1, [round; 3]).unwrap();
            // The tokens of a new life are those of the last one, if these are not answered yet.
            assert_eq!(call.poll(), Ok(None));
            assert!(loan.poll().unwrap().is_none(), "nobody has answered");
            let far = messages(&second);
            far.receive().unwrap().unwrap().answer([round]);
            assert!(given(&far).answer([round]));
            assert_eq!(call.poll(), Ok(Some([round, 0, 0, 0, 0])));
            assert!(loan.poll().unwrap().is_some());
            first = restart(board, first, Role::First, round % 2 == 0);
            settle(&first, &second);
        }
    });
}

#[test]
fn what_was_written_for_an_answer_that_is_over_reaches_no_later_packet() {
    on_boards(&[REPLIES], |board| {
        let (first, second) = board.up();
        for round in 0..ROUNDS as u8 / 5 {
            assert_eq!(sender(&first, 1).send(&[round; 200]), Ok(true));
            let here = receiver(&second, 1);
            let mut packet = here.receive().unwrap().unwrap();
            packet.place().unwrap().fill(0xEE);
            first.peer_is_gone();
            second.look(0);
            match round % 2 {
                0 => drop(packet),
                _ => drop(packet.reply(200)),
            }
            settle(&first, &second);
            let (there, here) = (sender(&first, 1), receiver(&second, 1));
            for _ in 0..4 {
                assert_eq!(there.send(&[!round; 150]), Ok(true));
                for _ in 0..9 {
                    first.look(0);
                    second.look(0);
                }
                assert_eq!(take(&here), Some(vec![!round; 150]));
            }
        }
    });
}

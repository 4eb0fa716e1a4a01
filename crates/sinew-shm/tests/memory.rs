//! What messages with memory promise: to a peer in the same program, to one that is not trusted, and to
//! one that answers in the lent block.
#![cfg(all(feature = "std", not(loom)))]

mod support;

use sinew_shm::domain::{
    Buffer, CallError, Channel, Config, EndRef, Given, Loan, Lost, Messages, OpenError, Options,
    Passing, Pool, Refused, Returned, Status, Unsent,
};
use sinew_shm::local::{self, LocalEnd};
use support::Flag;

const FILES: u16 = 5;
const SIZE: usize = if cfg!(miri) { 60 } else { 200 };
const BLOCKS: u16 = 3;
const REQUESTS: u16 = 4;
const ROUNDS: usize = if cfg!(miri) { 5 } else { 100 };
const LINK: Config = Config::new(&[
    Channel::new(1, "bulk", Pool::new(2, 64)),
    Channel::messages(FILES, "files", REQUESTS, 1).with_memory(Pool::new(BLOCKS, SIZE as u32)),
]);
const SHARED: Config = Config::new(&[
    Channel::messages(FILES, "files", REQUESTS, 1)
        .with_memory(Pool::new(BLOCKS, SIZE as u32))
        .with_replies(),
    Channel::new(1, "bulk", Pool::new(2, 64)),
])
.mutual();

type Side = Messages<LocalEnd>;
type Pair = Result<(LocalEnd, LocalEnd), OpenError>;

/// Runs a test in each way in which the sides can stand to each other.
fn each_way(test: impl Fn(&Side, &Side)) {
    let pairs: [Pair; 4] = [
        local::pair(LINK, Options::default()),
        local::pair_untrusted(LINK, Options::default()),
        local::pair_untrusted(LINK.mutual(), Options::default()),
        local::pair_untrusted(SHARED, Options::default()),
    ];
    for pair in pairs {
        let (first, second) = pair.unwrap();
        let mut near = Messages::new(&first, FILES).unwrap();
        let mut far = Messages::new(&second, FILES).unwrap();
        test(&near, &far);
        if !cfg!(miri) {
            // The test may have begun another pairing.
            near.renew();
            far.renew();
            test(&far, &near);
        }
        near.renew();
        assert!(first.check_books() && second.check_books());
        assert!(first.is_drained() && second.is_drained());
        // Everything can be had again.
        let all: Vec<_> = (0..BLOCKS).map(|_| near.memory(SIZE).unwrap()).collect();
        assert_eq!(near.memory(SIZE).err(), Some(Refused::Full));
        drop(all);
    }
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + seed * 31) as u8).collect()
}

fn filled(side: &Side, seed: usize) -> Buffer<LocalEnd> {
    let mut buffer = side.memory(SIZE).unwrap();
    let bytes = pattern(seed, buffer.len());
    buffer.copy_from_slice(&bytes);
    buffer
}

/// The next message, which has memory.
fn given(side: &Side) -> (u32, [u32; 3], Given<LocalEnd>) {
    let message = side.receive().unwrap().unwrap();
    assert!(message.answer.is_none());
    let [first, second, third, 0, 0] = message.words else {
        panic!("five words beside memory");
    };
    (
        message.opcode,
        [first, second, third],
        message.memory.unwrap(),
    )
}

fn copy(given: &Given<LocalEnd>) -> Vec<u8> {
    let mut bytes = vec![0; SIZE + 1];
    let len = given.copy_to(&mut bytes).unwrap();
    bytes.truncate(len);
    if let Some(trusted) = given.trusted() {
        assert_eq!(trusted, bytes);
    }
    bytes
}

fn answer(mut loan: Loan<LocalEnd>) -> Result<Returned<LocalEnd>, CallError> {
    let answered = loan.poll()?.expect("the answer is there");
    assert!(matches!(loan.poll(), Ok(None)));
    Ok(answered)
}

fn answered(returned: &Returned<LocalEnd>) -> Vec<u8> {
    let mut bytes = vec![0; SIZE + 1];
    let len = returned.copy_to(&mut bytes).unwrap();
    bytes.truncate(len);
    if let Some(trusted) = returned.trusted() {
        assert_eq!(trusted, bytes);
    }
    bytes
}

#[test]
fn moved_memory_arrives_and_comes_back_when_it_is_dropped() {
    each_way(|near, far| {
        for round in 0..ROUNDS {
            let valid = round % 17..round % 17 + round % 150;
            let sent = pattern(round, SIZE)[valid.clone()].to_vec();
            filled(near, round)
                .give(9, valid.clone(), [1, 2, 3])
                .unwrap();
            let (opcode, words, given) = given(far);
            assert_eq!((opcode, words), (9, [1, 2, 3]));
            assert_eq!((given.passing(), given.valid()), (Passing::Move, valid));
            assert_eq!(copy(&given), sent);
        }
    });
}

#[test]
fn lent_memory_is_answered_with_words_and_can_be_lent_again() {
    each_way(|near, far| {
        let mut buffer = filled(near, 1);
        for round in 0..ROUNDS as u32 {
            buffer[7] = round as u8;
            let mut loan = buffer.lend(round, 7..8, [round; 3]).unwrap();
            assert!(loan.poll().unwrap().is_none(), "nobody has answered");
            let (opcode, words, mut given) = given(far);
            assert_eq!((opcode, words), (round, [round; 3]));
            assert_eq!(given.passing(), Passing::Lend);
            assert!(given.in_place().is_none() && given.blank(1).is_none());
            assert_eq!(copy(&given), [round as u8]);
            assert!(given.answer([round, 5]));
            let returned = answer(loan).unwrap();
            assert_eq!(returned.words, [round, 5, 0, 0, 0]);
            assert!(returned.valid().is_empty() && answered(&returned).is_empty());
            buffer = returned.into_buffer();
        }
    });
}

#[test]
fn memory_is_answered_in_place_with_offset_and_length() {
    each_way(|near, far| {
        let mut buffer = filled(near, 2);
        for round in 0..ROUNDS {
            let came = round..SIZE - 20;
            let sent = buffer[came.clone()].to_vec();
            let loan = buffer.lend_mut(1, came.clone(), [0; 3]).unwrap();
            let (.., mut given) = given(far);
            assert_eq!(given.passing(), Passing::LendMut);
            let place = given.in_place().unwrap();
            assert_eq!(place.len(), came.end);
            assert_eq!(place[came.clone()], sent);
            place[came.clone()].reverse();
            // One byte that did not come, too.
            given.blank(SIZE).unwrap()[came.end] = 0xA5;
            let valid = came.start..came.end + 1;
            assert!(given.answer_with(valid.clone()));
            let returned = answer(loan).unwrap();
            assert_eq!(returned.valid(), valid);
            assert_eq!(returned.words, [0; 5]);
            let mut expected: Vec<u8> = sent.into_iter().rev().collect();
            expected.push(0xA5);
            assert_eq!(answered(&returned), expected);
            buffer = returned.into_buffer();
            buffer.copy_from_slice(&pattern(round, SIZE));
        }
    });
}

#[test]
fn answer_may_be_empty_or_the_whole_block() {
    each_way(|near, far| {
        for valid in [0..0, SIZE..SIZE, 0..SIZE] {
            let loan = filled(near, 3).lend_mut(1, 0..0, [0; 3]).unwrap();
            let (.., mut given) = given(far);
            assert!(given.is_empty());
            assert!(given.blank(SIZE + 1).is_none());
            given
                .blank(SIZE)
                .unwrap()
                .copy_from_slice(&pattern(4, SIZE));
            assert!(given.answer_with(valid.clone()));
            let returned = answer(loan).unwrap();
            assert_eq!(answered(&returned), pattern(4, SIZE)[valid]);
        }
    });
}

#[test]
fn answer_beyond_the_block_is_none() {
    each_way(|near, far| {
        for valid in [0..SIZE + 1, SIZE + 1..SIZE + 1, usize::MAX..usize::MAX] {
            let loan = filled(near, 3).lend_mut(1, 0..1, [0; 3]).unwrap();
            let (.., given) = given(far);
            assert!(!given.answer_with(valid));
            assert_eq!(answer(loan).err(), Some(CallError::Dropped));
        }
        // Words are no answer in memory, and the reverse.
        let loan = filled(near, 3).lend_mut(1, 0..1, [0; 3]).unwrap();
        assert!(!given(far).2.answer([1]));
        assert_eq!(answer(loan).err(), Some(CallError::Dropped));
        let loan = filled(near, 3).lend(1, 0..1, [0; 3]).unwrap();
        assert!(!given(far).2.answer_with(0..1));
        assert_eq!(answer(loan).err(), Some(CallError::Dropped));
    });
}

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn message_that_cannot_go_is_handed_back_with_its_memory() {
    each_way(|near, far| {
        let untouched = |unsent: Unsent<LocalEnd>, refused| {
            assert_eq!(unsent.refused, refused);
            assert_eq!(unsent.buffer[..], pattern(5, SIZE));
            unsent.buffer
        };
        let mut buffer = filled(near, 5);
        // 0 as a word of a message, where an address has 64 bits.
        let beyond_u32 = (u32::MAX as usize).wrapping_add(1).max(SIZE);
        for valid in [
            0..SIZE + 1,
            5..4,
            usize::MAX - 1..usize::MAX,
            beyond_u32..beyond_u32 + 1,
        ] {
            let unsent = buffer.give(1, valid.clone(), [0; 3]).unwrap_err();
            buffer = untouched(unsent, Refused::TooLarge);
            let unsent = buffer.lend(1, valid.clone(), [0; 3]).err().unwrap();
            buffer = untouched(unsent, Refused::TooLarge);
            let unsent = buffer.lend_mut(1, valid, [0; 3]).err().unwrap();
            buffer = untouched(unsent, Refused::TooLarge);
        }
        for _ in 0..REQUESTS {
            near.send(1, [0; 5]).unwrap();
        }
        let unsent = buffer.give(1, 0..1, [0; 3]).unwrap_err();
        buffer = untouched(unsent, Refused::Full);
        let unsent = buffer.lend(1, 0..1, [0; 3]).err().unwrap();
        buffer = untouched(unsent, Refused::Full);
        let unsent = buffer.lend_mut(1, 0..1, [0; 3]).err().unwrap();
        buffer = untouched(unsent, Refused::Full);
        while far.receive().unwrap().is_some() {}
        buffer.give(1, 0..1, [0; 3]).unwrap();
        assert_eq!(copy(&given(far).2), pattern(5, 1));
    });
}

#[test]
fn answers_come_in_any_order_and_from_any_thread() {
    each_way(|near, far| {
        let loans: Vec<_> = (0..BLOCKS as usize)
            .map(|seed| filled(near, seed).lend_mut(1, 0..SIZE, [0; 3]).unwrap())
            .collect();
        assert_eq!(near.memory(SIZE).err(), Some(Refused::Full));
        let mut kept: Vec<_> = loans.iter().map(|_| given(far).2).collect();
        kept.reverse();
        std::thread::scope(|scope| {
            for mut given in kept {
                scope.spawn(move || {
                    given.in_place().unwrap()[0] ^= 0xFF;
                    assert!(given.answer_with(0..SIZE));
                });
            }
        });
        for (seed, loan) in loans.into_iter().enumerate() {
            let mut expected = pattern(seed, SIZE);
            expected[0] ^= 0xFF;
            assert_eq!(answered(&answer(loan).unwrap()), expected);
        }
    });
}

#[test]
fn dropped_memory_answers_itself_and_so_does_an_unknown_opcode() {
    each_way(|near, far| {
        for unknown in [false, true] {
            let lent = filled(near, 1).lend(77, 0..1, [0; 3]).unwrap();
            let lent_mut = filled(near, 1).lend_mut(77, 0..1, [0; 3]).unwrap();
            filled(near, 1).give(77, 0..1, [0; 3]).unwrap();
            let expected = match unknown {
                true => CallError::UnknownOpcode,
                false => CallError::Dropped,
            };
            while let Some(message) = far.receive().unwrap() {
                if unknown {
                    message.unknown();
                }
            }
            assert_eq!(answer(lent).err(), Some(expected));
            assert_eq!(answer(lent_mut).err(), Some(expected));
        }
    });
}

#[test]
fn memory_of_a_loan_that_nobody_wants_is_free_when_it_is_answered() {
    each_way(|near, far| {
        let loans: Vec<_> = (0..BLOCKS)
            .map(|_| filled(near, 1).lend_mut(1, 0..1, [0; 3]).unwrap())
            .collect();
        drop(loans);
        assert_eq!(near.memory(SIZE).err(), Some(Refused::Full));
        let flag = Flag::new();
        near.arm_memory(&flag.waker());
        assert!(!flag.is_set());
        let (.., given) = given(far);
        assert!(given.answer_with(0..1));
        assert!(flag.is_set());
        assert!(near.memory(SIZE).is_ok());
        while far.receive().unwrap().is_some() {}
    });
}

#[test]
fn who_waits_for_memory_is_woken_when_a_buffer_or_an_answer_is_dropped() {
    each_way(|near, far| {
        let mut all: Vec<_> = (0..BLOCKS).map(|_| filled(near, 1)).collect();
        let flag = Flag::new();
        near.arm_memory(&flag.waker());
        assert!(!flag.is_set());
        let loan = all.pop().unwrap().lend(1, 0..1, [0; 3]).unwrap();
        given(far).2.answer([1]);
        let returned = answer(loan).unwrap();
        assert!(!flag.is_set());
        drop(returned);
        assert!(flag.is_set());

        all.push(filled(near, 2));
        let flag = Flag::new();
        near.arm_memory(&flag.waker());
        assert!(!flag.is_set());
        drop(all);
        assert!(flag.is_set());
    });
}

#[test]
fn calls_of_words_and_messages_with_memory_do_not_take_each_others_places() {
    each_way(|near, far| {
        let call = near.call(1, [0; 5]).unwrap();
        assert_eq!(near.call(1, [0; 5]).err(), Some(Refused::Full));
        let all: Vec<_> = (0..BLOCKS).map(|_| filled(near, 1)).collect();
        assert_eq!(near.memory(SIZE).err(), Some(Refused::Full));
        drop(all);
        assert!(far.receive().unwrap().is_some());
        assert!(near.receive().unwrap().is_none());
        drop(call);
        assert!(near.call(1, [0; 5]).is_ok());
        assert!(far.receive().unwrap().is_some());
    });
}

#[test]
fn channel_without_memory_says_so() {
    const PLAIN: Config = Config::new(&[Channel::messages(FILES, "files", 1, 1)]);
    let (first, _second) = local::pair(PLAIN, Options::default()).unwrap();
    let near = Messages::new(&first, FILES).unwrap();
    assert_eq!(near.memory(0).err(), Some(Refused::TooLarge));
    assert_eq!(near.memory_sizes(), (0, 0));
}

#[test]
fn more_memory_than_a_block_has_is_refused() {
    each_way(|near, _| {
        assert_eq!(near.memory(SIZE + 1).err(), Some(Refused::TooLarge));
        assert_eq!(near.memory(0).unwrap().len(), 0);
        assert_eq!(near.memory(7).unwrap().len(), 7);
    });
}

#[test]
fn one_side_may_have_memory_and_the_other_none() {
    const ONE_WAY: Config =
        Config::new(&[Channel::messages(FILES, "files", 2, 1)
            .pools(Pool::new(0, 0), Pool::new(2, SIZE as u32))]);
    let (first, second) = local::pair_untrusted(ONE_WAY, Options::default()).unwrap();
    let near = Messages::new(&first, FILES).unwrap();
    let far = Messages::new(&second, FILES).unwrap();
    assert_eq!(
        (near.memory_sizes(), far.memory_sizes()),
        ((0, SIZE), (SIZE, 0))
    );
    assert_eq!(near.memory(SIZE).err(), Some(Refused::TooLarge));
    let loan = far
        .memory(SIZE)
        .unwrap()
        .lend_mut(1, 0..SIZE, [0; 3])
        .unwrap();
    let mut given = given(&near).2;
    given.blank(SIZE).unwrap().fill(9);
    assert!(given.answer_with(0..SIZE));
    assert_eq!(answered(&answer(loan).unwrap()), [9; SIZE]);
}

#[test]
fn a_megabyte_and_more_goes_by_move_and_by_lend() {
    // Miri takes minutes for a megabyte.
    const LARGE: usize = if cfg!(miri) { 1234 } else { (1 << 20) + 12345 };
    const LINK: Config = Config::new(&[
        Channel::messages(FILES, "files", 2, 0).with_memory(Pool::new(1, LARGE as u32))
    ]);
    for pair in [local::pair, local::pair_untrusted] {
        let (first, second) = pair(LINK, Options::default()).unwrap();
        let near = Messages::new(&first, FILES).unwrap();
        let far = Messages::new(&second, FILES).unwrap();
        let sent = pattern(1, LARGE);
        let mut bytes = vec![0; LARGE];

        let mut buffer = near.memory(LARGE).unwrap();
        buffer.copy_from_slice(&sent);
        buffer.give(1, 0..LARGE, [0; 3]).unwrap();
        let (.., given_for_good) = given(&far);
        assert_eq!(given_for_good.copy_to(&mut bytes), Ok(LARGE));
        assert!(bytes == sent);
        drop(given_for_good);

        let buffer = near.memory(LARGE).unwrap();
        let loan = buffer.lend_mut(1, 3..LARGE, [0; 3]).unwrap();
        let (.., mut given) = given(&far);
        given.in_place().unwrap().reverse();
        assert!(given.answer_with(0..LARGE - 3));
        let returned = answer(loan).unwrap();
        assert_eq!(returned.copy_to(&mut bytes), Ok(LARGE - 3));
        assert!(bytes[..LARGE - 3].iter().eq(sent[3..].iter().rev()));
        assert!(first.check_books() && second.check_books());
    }
}

#[test]
fn restart_ends_loans_and_leaves_buffers_to_their_holders() {
    each_way(|near, far| {
        let (near_end, far_end) = (near.end(), far.end());
        let mut written = filled(near, 1);
        let loan = filled(near, 2).lend_mut(1, 0..SIZE, [0; 3]).unwrap();
        let (.., mut given) = given(far);
        assert!(given.in_place().is_some());

        near_end.peer_is_gone();
        for _ in 0..3 {
            near_end.look(0);
            far_end.look(0);
        }
        // Whoever is trusted is believed to look at it still.
        assert_eq!(far_end.status() == Status::Up, !far_end.is_trusted());
        assert!(given.in_place().is_none());
        assert_eq!(given.copy_to(&mut [0; 1]), Err(Lost::Restarted));
        assert!(!given.answer_with(0..1));
        for _ in 0..3 {
            far_end.look(0);
            near_end.look(0);
        }
        assert_eq!(answer(loan).err(), Some(CallError::Lost(Lost::Closed)));
        let (mut near, mut far) = (near.clone(), far.clone());
        near.renew();
        far.renew();

        // The buffer of the last pairing is its holder's, but goes nowhere.
        written.fill(3);
        let unsent = written.give(1, 0..1, [0; 3]).unwrap_err();
        assert!(matches!(unsent.refused, Refused::Lost(_)));
        let others: Vec<_> = (1..BLOCKS).map(|_| near.memory(SIZE).unwrap()).collect();
        assert_eq!(near.memory(SIZE).err(), Some(Refused::Full));
        assert_eq!(unsent.buffer[..], [3; SIZE]);
        drop(unsent);
        assert!(near.memory(SIZE).is_ok());
        drop(others);
        near.memory(SIZE).unwrap().give(1, 0..1, [0; 3]).unwrap();
        assert!(far.receive().unwrap().unwrap().memory.is_some());
    });
}

#[test]
fn memory_of_a_loan_that_was_answered_before_it_was_dropped_wakes_who_waits_for_it() {
    each_way(|near, far| {
        let mut loans: Vec<_> = (0..BLOCKS)
            .map(|_| filled(near, 1).lend_mut(1, 0..1, [0; 3]).unwrap())
            .collect();
        while far.receive().unwrap().is_some() {}
        let flag = Flag::new();
        near.arm_memory(&flag.waker());
        assert!(!flag.is_set(), "the answers are still wanted");
        drop(loans.pop());
        assert!(flag.is_set());
        assert!(near.memory(0).is_ok());
    });
}

/// Both ends of an untrusted pair in the next pairing, and their handles.
fn restart(near: &mut Side, far: &mut Side) {
    near.end().peer_is_gone();
    for _ in 0..3 {
        near.end().look(0);
        far.end().look(0);
    }
    near.renew();
    far.renew();
    assert_eq!(far.end().status(), Status::Up);
}

#[test]
fn block_for_an_answer_is_nobody_elses_while_the_answer_of_a_pairing_before_is_written() {
    let (first, second) = local::pair_untrusted(LINK, Options::default()).unwrap();
    let mut near = Messages::new(&first, FILES).unwrap();
    let mut far = Messages::new(&second, FILES).unwrap();
    let lend = |near: &Side| filled(near, 1).lend_mut(1, 0..9, [0; 3]).unwrap();

    let _lost = lend(&near);
    let (.., mut old) = given(&far);
    let place = old.blank(SIZE).unwrap();
    restart(&mut near, &mut far);
    // The same place, as nothing else is under way.
    let loan = lend(&near);
    let (.., mut new) = given(&far);
    assert_eq!(copy(&new), pattern(1, 9));
    assert!(new.blank(SIZE).is_none() && new.in_place().is_none());
    place.fill(7);
    drop(old);
    // Now it is free.
    new.in_place().unwrap().reverse();
    assert!(new.answer_with(0..9));
    let mut expected = pattern(1, 9);
    expected.reverse();
    let returned = answer(loan).unwrap();
    assert_eq!(answered(&returned), expected);
    drop(returned);

    // Who answers gives it back as well, also an answer that nobody takes.
    let _lost = lend(&near);
    let (.., mut old) = given(&far);
    old.blank(SIZE).unwrap().fill(3);
    restart(&mut near, &mut far);
    assert!(!old.answer_with(0..1));
    let loan = lend(&near);
    let (.., mut new) = given(&far);
    assert!(new.blank(SIZE).is_some());
    assert!(new.answer_with(0..0));
    assert!(answer(loan).is_ok());
    assert!(first.check_books() && second.check_books());
}

sinew_shm::opcodes! {
    /// Files.
    mod files {
        1 => fn count() -> u32;
        /// One more.
        2 => fn write[move](number: u32, at: u16);
        3 => fn sum[lend](seed: u32) -> (u32, u16);
        4 => fn read[lend_mut](number: u32);
    }
}

#[derive(Default)]
struct Files(Vec<(u32, u16, Vec<u8>)>);

impl files::Service for Files {
    fn count(&mut self) -> u32 {
        self.0.len() as u32
    }

    fn write<R: EndRef>(&mut self, memory: Given<R>, number: u32, at: u16) {
        let mut bytes = vec![0; memory.len()];
        memory.copy_to(&mut bytes).unwrap();
        self.0.push((number, at, bytes));
    }

    fn sum<R: EndRef>(&mut self, memory: &Given<R>, seed: u32) -> (u32, u16) {
        let mut bytes = vec![0; memory.len()];
        memory.copy_to(&mut bytes).unwrap();
        let sum = bytes.iter().fold(seed, |sum, byte| sum + u32::from(*byte));
        (sum, bytes.len() as u16)
    }

    fn read<R: EndRef>(&mut self, memory: &mut Given<R>, number: u32) -> std::ops::Range<usize> {
        let found = self.0.iter().find(|(other, ..)| *other == number);
        let bytes = found.map_or(&[][..], |(_, _, bytes)| bytes);
        memory.blank(bytes.len()).unwrap().copy_from_slice(bytes);
        0..bytes.len()
    }
}

#[test]
fn typed_opcodes_carry_memory() {
    each_way(|near, far| {
        let client = files::Client::new(near.clone());
        let mut files = Files::default();
        let mut serve = || {
            while let Some(message) = far.receive().unwrap() {
                files::serve(&mut files, message);
            }
        };
        client.write(filled(near, 1), 10..30, 17, 3).unwrap();
        let mut sum = client.sum(filled(near, 2), 0..4, 1000).unwrap();
        assert!(sum.poll().unwrap().is_none(), "nobody has answered");
        let read = client.read(near.memory(0).unwrap(), 0..0, 17).unwrap();
        serve();
        let expected = pattern(2, 4)
            .iter()
            .map(|byte| u32::from(*byte))
            .sum::<u32>();
        let (summed, memory) = sum.poll().unwrap().unwrap();
        assert_eq!(summed, (1000 + expected, 4));
        assert_eq!(memory.len(), SIZE);
        assert_eq!(answered(&answer(read).unwrap()), pattern(1, SIZE)[10..30]);
        drop(memory);

        // Passed in another way than its opcode says, it is none.
        let wrong = [
            filled(near, 1).lend(1, 0..1, [0; 3]).unwrap(),
            filled(near, 1).lend_mut(3, 0..1, [0; 3]).unwrap(),
            filled(near, 1).lend(4, 0..1, [0; 3]).unwrap(),
        ];
        serve();
        for loan in wrong {
            assert_eq!(answer(loan).err(), Some(CallError::UnknownOpcode));
        }
        filled(near, 1).give(4, 0..1, [0; 3]).unwrap();
        let mut call = near.call(3, [0; 5]).unwrap();
        serve();
        assert_eq!(call.poll(), Err(CallError::UnknownOpcode));
        let mut count = client.count().unwrap();
        serve();
        assert_eq!(count.poll(), Ok(Some(1)));
    });
}

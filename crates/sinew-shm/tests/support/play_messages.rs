//! The part of a script that plays with a message channel: see `play.rs`.

use std::ops::Range;
use std::rc::Rc;
use std::task::Waker;

use sinew_shm::domain::{
    Answer, Buffer, Call, Channel, End, Given, Loan, Messages, Platform, Pool, Refused, Returned,
};

use super::super::raw::{self, Places, Raw};
use super::Script;

pub const MESSAGES: u16 = 4;
/// Where it stands in the configuration.
pub const INDEX: usize = 3;
const REQUESTS: u16 = 3;
const CALLS: u16 = 2;
const POOL: Pool = Pool::new(2, 40);
pub const CHANNEL: Channel =
    Channel::messages(MESSAGES, "messages", REQUESTS, CALLS).with_memory(POOL);
/// Books that it needs.
pub const BLOCKS: usize = 8;
/// So many of each in hand.
const HANDS: usize = 4;
/// Words of a message's line, and of an answer's.
const LINE: usize = 16;
const TOKEN: usize = 3;

type End_<P> = Rc<End<P>>;

/// What the user of a side has in hand.
pub struct Hands<P: Platform> {
    calls: Vec<Call<End_<P>>>,
    answers: Vec<Answer<End_<P>>>,
    buffers: Vec<Buffer<End_<P>>>,
    loans: Vec<Loan<End_<P>>>,
    givens: Vec<Given<End_<P>>>,
    returned: Vec<Returned<End_<P>>>,
}

impl<P: Platform> Default for Hands<P> {
    fn default() -> Self {
        Hands {
            calls: Vec::new(),
            answers: Vec::new(),
            buffers: Vec::new(),
            loans: Vec::new(),
            givens: Vec::new(),
            returned: Vec::new(),
        }
    }
}

/// One of them.
fn pick<T>(hand: &mut Vec<T>, at: usize) -> Option<T> {
    let at = at.checked_rem(hand.len())?;
    Some(hand.swap_remove(at))
}

/// Keeps it, where there is room.
fn keep<T>(hand: &mut Vec<T>, one: impl IntoIterator<Item = T>) {
    let room = HANDS.saturating_sub(hand.len());
    hand.extend(one.into_iter().take(room));
}

fn range(script: &mut Script<'_>) -> Range<usize> {
    match (script.arg(), script.arg()) {
        (start @ 0..0xF0, len) => {
            let start = start as usize % 20;
            start..start + len as usize % 22
        }
        _ => script.value() as usize..script.value() as usize,
    }
}

impl<P: Platform> Hands<P> {
    /// One call of a message channel's.
    pub fn act(&mut self, what: u32, script: &mut Script<'_>, messages: &Messages<End_<P>>) {
        let at = script.arg();
        let (which, at) = (at >> 4, at as usize % HANDS);
        match what {
            0 => drop(messages.send(which, [at as u32; 5])),
            1 => keep(&mut self.calls, messages.call(which, [at as u32; 5])),
            2 => {
                if let Some(mut call) = pick(&mut self.calls, at)
                    && which < 12
                    && matches!(call.poll(), Ok(None))
                {
                    call.arm(Waker::noop());
                    self.calls.push(call);
                }
            }
            3 => {
                if let Ok(Some(message)) = messages.receive() {
                    assert!(message.answer.is_none() || message.memory.is_none());
                    match which {
                        0 => message.unknown(),
                        1 => message.answer([1]),
                        _ => {
                            keep(&mut self.answers, message.answer);
                            keep(&mut self.givens, message.memory);
                        }
                    }
                }
            }
            4 => match pick(&mut self.answers, at) {
                Some(answer) if which < 12 => drop(answer.give([1, 2, 3, 4, 5])),
                answer => drop(answer),
            },
            5 => keep(&mut self.buffers, messages.memory(POOL.size as usize)),
            6 => self.send(at, which, script),
            7 => match pick(&mut self.loans, at) {
                Some(mut loan) if which < 12 => match loan.poll() {
                    Ok(None) => self.loans.push(loan),
                    Ok(returned) => keep(&mut self.returned, returned),
                    Err(_) => {}
                },
                loan => drop(loan),
            },
            8 => {
                let Some(returned) = pick(&mut self.returned, at) else {
                    return;
                };
                let len = returned.valid().len();
                assert!(returned.valid().end <= POOL.size as usize);
                let mut copy = [0xEE; 44];
                if let Ok(copied) = returned.copy_to(&mut copy) {
                    assert_eq!(copied, len);
                    assert!(copy.iter().skip(len).all(|byte| *byte == 0xEE));
                }
                assert!(returned.trusted().is_none_or(|bytes| bytes.len() == len));
                if which < 8 {
                    keep(&mut self.buffers, [returned.into_buffer()]);
                }
            }
            9 => self.answer(at, which, script),
            _ => {
                messages.arm(Waker::noop());
                messages.arm_room(Waker::noop());
                messages.arm_call(Waker::noop());
                messages.arm_memory(Waker::noop());
            }
        }
    }

    fn send(&mut self, at: usize, which: u32, script: &mut Script<'_>) {
        let Some(mut buffer) = pick(&mut self.buffers, at) else {
            return;
        };
        assert_eq!(buffer.len(), POOL.size as usize);
        buffer.fill(0x5A);
        let sent = match which {
            0..4 => buffer.give(1, range(script), [0; 3]).map(|()| None),
            4..8 => buffer.lend(2, range(script), [0; 3]).map(Some),
            8..14 => buffer.lend_mut(3, range(script), [0; 3]).map(Some),
            _ => return,
        };
        match sent {
            Ok(loan) => keep(&mut self.loans, loan),
            Err(unsent) => self.buffers.push(unsent.buffer),
        }
    }

    fn answer(&mut self, at: usize, which: u32, script: &mut Script<'_>) {
        let Some(mut given) = pick(&mut self.givens, at) else {
            return;
        };
        assert!(given.valid().end <= POOL.size as usize);
        let mut copy = [0xEE; 44];
        if let Ok(copied) = given.copy_to(&mut copy) {
            assert_eq!(copied, given.len());
            assert!(copy.iter().skip(copied).all(|byte| *byte == 0xEE));
        }
        assert!(given.trusted().is_none_or(|it| it.len() == given.len()));
        let place = match which & 3 {
            0 => None,
            1 => given.in_place(),
            _ => given.blank(copy.len() - 4),
        };
        if let Some(place) = place {
            assert!(place.len() <= POOL.size as usize);
            place.fill(0x3C);
        }
        match which >> 2 {
            0 => drop(given.answer([1, 2])),
            1 => drop(given.answer_with(range(script))),
            2 => self.givens.push(given),
            _ => drop(given),
        }
    }
}

/// A message or an answer that is, but for what the script changes, the next one that the side expects.
pub fn forge(script: &mut Script<'_>, mine: Raw, foreign: Raw, theirs: Places) {
    let own = mine.places(INDEX);
    let kind = script.arg();
    // Now and then of another session.
    let session = foreign.get(raw::SESSION);
    let tag = session.wrapping_add(u32::from(kind & 0x38 == 0x38)) << 16;
    let mut words = [0; 9];
    let line = if kind & 2 == 0 {
        let next = mine.get(own.statistics + raw::RECEIVED);
        let (what, place) = (script.arg(), script.arg());
        let what = if what < 0xF0 { 1 + what % 5 } else { what };
        let number = (script.arg() & 3).max(1);
        words[..6].copy_from_slice(&[
            next.wrapping_add(1),
            what | tag,
            7,
            number << 16 | if place < 0xF0 { place % 4 } else { place },
            script.arg() % 8,
            script.arg() % 33,
        ]);
        theirs.ring + LINE * (next % theirs.capacity) as usize
    } else {
        // To one of the last calls.
        let sent = mine.get(own.statistics + raw::SENT);
        let position = sent.wrapping_sub(1 + script.arg() % 4);
        let line = own.ring + LINE * (position % own.capacity) as usize;
        let token = mine.get(line + TOKEN);
        let said = script.arg() % 3;
        words[..4].copy_from_slice(&[token, said | tag, script.arg() % 8, script.arg() % 33]);
        theirs.returns + LINE * (token % theirs.returns_capacity) as usize
    };
    if kind & 4 != 0 {
        words[script.arg() as usize % 6] = script.value();
    }
    // The first word says that the others are there.
    for word in (0..words.len()).rev() {
        foreign.set(line + word, words[word]);
    }
}

/// Every place of the side can be taken, and messages and answers go both ways.
pub fn assert_whole<P: Platform>(here: &Messages<End_<P>>, there: &Messages<End_<P>>) {
    let mut copy = [0; 44];
    for (near, far) in [(here, there), (there, here), (here, there)] {
        let mut calls: Vec<_> = (0..CALLS).map(|_| near.call(1, [1; 5])).collect();
        assert!(matches!(near.call(1, [0; 5]), Err(Refused::Full)));
        let all: Vec<_> = (0..POOL.blocks)
            .map(|_| near.memory(POOL.size as usize))
            .collect();
        assert!(matches!(
            near.memory(POOL.size as usize),
            Err(Refused::Full)
        ));
        while let Some(message) = far.receive().expect("up") {
            message.answer([5]);
        }
        for call in &mut calls {
            let call = call.as_mut().expect("every place is there");
            assert_eq!(call.poll(), Ok(Some([5, 0, 0, 0, 0])));
        }
        for buffer in all {
            let mut buffer = buffer.expect("every block is there");
            buffer.fill(9);
            let mut loan = buffer.lend_mut(1, 1..40, [0; 3]).expect("room");
            let message = far.receive().expect("up").expect("a message");
            let mut given = message.memory.expect("memory");
            assert_eq!(given.copy_to(&mut copy), Ok(39));
            given.blank(40).expect("nobody else has it").fill(8);
            assert!(given.answer_with(0..40));
            let returned = loan.poll().expect("well").expect("answered");
            assert_eq!(returned.copy_to(&mut copy), Ok(40));
            assert_eq!(copy[..40], [8; 40]);
            let buffer = returned.into_buffer();
            buffer.give(2, 0..1, [0; 3]).expect("room");
            let message = far.receive().expect("up").expect("a message");
            assert_eq!(message.memory.expect("memory").copy_to(&mut copy), Ok(1));
        }
    }
}

//! What the user of a message channel has in hand, and anything that he may do with it.

use std::ops::Range;

use sinew_shm::domain::{Answer, Buffer, Call, EndRef, Given, Loan, Messages, Returned};

use super::random::Random;

/// What somebody has in hand.
pub struct Hands<R: EndRef> {
    calls: Vec<Call<R>>,
    answers: Vec<Answer<R>>,
    buffers: Vec<Buffer<R>>,
    loans: Vec<Loan<R>>,
    givens: Vec<Given<R>>,
    returned: Vec<Returned<R>>,
    /// Messages taken up, and answers in memory.
    pub taken: u64,
    pub answered: u64,
}

/// One of them, at random.
fn any<T>(random: &mut Random, hand: &mut Vec<T>) -> Option<T> {
    match hand.len() {
        0 => None,
        len => Some(hand.swap_remove(random.index(len))),
    }
}

/// Mostly inside of a block.
fn range(random: &mut Random, size: usize) -> Range<usize> {
    random.index(5)..random.index(size + 3)
}

impl<R: EndRef> Default for Hands<R> {
    fn default() -> Self {
        Hands {
            calls: Vec::new(),
            answers: Vec::new(),
            buffers: Vec::new(),
            loans: Vec::new(),
            givens: Vec::new(),
            returned: Vec::new(),
            taken: 0,
            answered: 0,
        }
    }
}

impl<R: EndRef> Hands<R> {
    /// One step of the side's user.
    pub fn act(&mut self, random: &mut Random, messages: &Messages<R>) {
        let (own, foreign) = messages.memory_sizes();
        match random.index(14) {
            0 => drop(messages.send(random.index(9) as u32, [7; 5])),
            1 => self.calls.extend(messages.call(3, [8; 5])),
            2 => {
                if let Some(mut call) = any(random, &mut self.calls)
                    && call.poll() == Ok(None)
                {
                    self.calls.push(call);
                }
            }
            3 => drop(any(random, &mut self.calls)),
            4 | 5 => {
                if let Ok(Some(message)) = messages.receive() {
                    self.taken += 1;
                    assert!(message.answer.is_none() || message.memory.is_none());
                    if random.one_in(9) {
                        message.unknown();
                    } else {
                        self.answers.extend(message.answer);
                        self.givens.extend(message.memory);
                    }
                }
            }
            6 => drop(any(random, &mut self.answers).map(|answer| answer.give([1, 2]))),
            7 => self.buffers.extend(messages.memory(random.index(own + 2))),
            8 => {
                if let Some(mut buffer) = any(random, &mut self.buffers) {
                    assert!(buffer.len() <= own);
                    buffer.fill(0xA5);
                    let valid = range(random, own);
                    let sent = match random.index(4) {
                        0 => buffer.give(4, valid, [1; 3]).map(|()| None),
                        1 => buffer.lend(5, valid, [1; 3]).map(Some),
                        2 => buffer.lend_mut(6, valid, [1; 3]).map(Some),
                        _ => Ok(None),
                    };
                    match sent {
                        Ok(loan) => self.loans.extend(loan),
                        Err(unsent) => self.buffers.push(unsent.buffer),
                    }
                }
            }
            9 | 10 => {
                if let Some(mut loan) = any(random, &mut self.loans) {
                    match loan.poll() {
                        Ok(None) => self.loans.push(loan),
                        Ok(returned) => {
                            self.answered += 1;
                            self.returned.extend(returned);
                        }
                        Err(_) => {}
                    }
                }
            }
            11 => drop(any(random, &mut self.loans)),
            12 => {
                if let Some(returned) = any(random, &mut self.returned) {
                    assert!(returned.valid().end <= own);
                    let mut copy = vec![0xEE; own + 1];
                    if let Ok(copied) = returned.copy_to(&mut copy) {
                        assert_eq!(copied, returned.valid().len());
                    }
                    if let Some(bytes) = returned.trusted() {
                        assert_eq!(bytes.len(), returned.valid().len());
                    }
                    if random.one_in(2) {
                        self.buffers.push(returned.into_buffer());
                    }
                }
            }
            _ => {
                if let Some(mut given) = any(random, &mut self.givens) {
                    assert!(given.valid().end <= foreign);
                    let mut copy = vec![0xEE; foreign + 1];
                    if let Ok(copied) = given.copy_to(&mut copy) {
                        assert_eq!(copied, given.len());
                    }
                    let place = match random.index(3) {
                        0 => None,
                        1 => given.in_place(),
                        _ => given.blank(foreign),
                    };
                    if let Some(place) = place {
                        assert!(place.len() <= foreign);
                        place.fill(0x3C);
                    }
                    match random.index(4) {
                        0 => drop(given.answer([1, 2, 3])),
                        1 => drop(given.answer_with(range(random, foreign))),
                        2 => self.givens.push(given),
                        _ => drop(given),
                    }
                }
            }
        }
    }
}

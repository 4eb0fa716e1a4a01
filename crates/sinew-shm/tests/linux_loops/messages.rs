//! What goes over the message channel, and what must be true of it: words, calls, and memory, all in
//! order, each answered as it was asked.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sinew_shm::domain::{self, Answer, Call, CallError, End, Given, Loan, Passing, Refused};
use sinew_shm::linux::process::Process;

use super::peer::ends;
use super::random::Random;
use super::traffic::{BLOCKS, CALLS, LEAST, Token, is_intact, write};

pub type Messages = domain::Messages<Arc<End<Process>>>;
type Owner = Arc<End<Process>>;

/// Opcodes.
const WORDS: u32 = 1;
const CALL: u32 = 2;
const MEMORY: u32 = 3;
/// Answers to calls, answers in memory, and messages for good by which both directions are known to work.
const MOVING: [u32; 3] = [12; 3];

/// Of which life and pairing of its sender a message is, and its number.
type Mark = [u32; 3];

/// One side's traffic in one pairing.
pub struct Talk<'a> {
    messages: &'a Messages,
    token: Token,
    random: Random,
    sent: u32,
    calls: Vec<(Mark, Call<Owner>)>,
    loans: Vec<(Vec<u8>, Loan<Owner>)>,
    /// The peer's, and the number of its next message.
    peer: Option<[u32; 2]>,
    next: u32,
    answers: Vec<(Mark, Answer<Owner>)>,
    givens: Vec<Given<Owner>>,
    counts: [u32; 3],
    buffer: Vec<u8>,
}

/// The pairing is over.
struct Over;

impl From<domain::Lost> for Over {
    fn from(_: domain::Lost) -> Over {
        Over
    }
}

/// Whether a message went.
fn went<T>(sent: Result<T, impl Into<Refused>>) -> Result<Option<T>, Over> {
    match sent.map_err(Into::into) {
        Ok(sent) => Ok(Some(sent)),
        Err(Refused::Full) => Ok(None),
        Err(Refused::Lost(_)) => Err(Over),
        Err(refused) => panic!("{refused:?}"),
    }
}

/// What is answered; `None` where the peer ends, and so answers nothing.
fn answered<T>(answered: Result<T, CallError>) -> Result<Option<T>, Over> {
    match answered {
        Ok(answered) => Ok(Some(answered)),
        Err(CallError::Dropped) => Ok(None),
        Err(CallError::Lost(_)) => Err(Over),
        Err(error) => panic!("{error:?}"),
    }
}

/// One of them.
fn any<T>(random: &mut Random, of: &mut Vec<T>) -> Option<T> {
    match of.len() {
        0 => None,
        len => Some(of.swap_remove(random.index(len))),
    }
}

impl Talk<'_> {
    pub fn new(messages: &Messages, token: Token, seed: u64) -> Talk<'_> {
        Talk {
            messages,
            token,
            random: Random(seed | 1),
            sent: 0,
            calls: Vec::new(),
            loans: Vec::new(),
            peer: None,
            next: 0,
            answers: Vec::new(),
            givens: Vec::new(),
            counts: [0; 3],
            buffer: Vec::new(),
        }
    }

    /// Until the pairing is over, or this side is to end: whose messages came.
    pub fn run(mut self, is_moving: &AtomicBool) -> Option<[u32; 2]> {
        while !ends() {
            for _ in 0..8 {
                let step = match self.random.index(4) {
                    0 => self.ask(),
                    1 => self.poll(),
                    2 => self.take_up(),
                    _ => {
                        self.answer();
                        Ok(())
                    }
                };
                if step.is_err() {
                    return self.peer;
                }
            }
            let moves = self.counts.iter().zip(MOVING).all(|(&is, want)| is >= want);
            is_moving.store(moves, Ordering::Relaxed);
            thread::sleep(Duration::from_micros(50));
        }
        self.peer
    }

    fn ask(&mut self) -> Result<(), Over> {
        let mark = [self.token.0 as u32, self.token.1 as u32, self.sent];
        let [life, pairing, number] = mark;
        let sent = match self.random.index(4) {
            0 => went(self.messages.send(WORDS, [life, pairing, number, 4, 5]))?,
            1 => {
                let call = self.messages.call(CALL, [life, pairing, number, 4, 5]);
                let call = went(call)?.map(|call| self.calls.push((mark, call)));
                assert!(self.calls.len() <= usize::from(CALLS));
                call
            }
            _ => {
                let Some(mut buffer) = went(self.messages.memory(900))? else {
                    return Ok(());
                };
                let start = self.random.index(buffer.len() - LEAST);
                let room = buffer.len() - start - LEAST;
                let valid = start..start + LEAST + self.random.index(room + 1);
                write(&mut buffer[valid.clone()], self.token, number.into());
                let bytes = buffer[valid.clone()].to_vec();
                let loan = match self.random.index(3) {
                    0 => went(buffer.give(MEMORY, valid, mark))?.map(|()| None),
                    1 => went(buffer.lend(MEMORY, valid, mark))?.map(Some),
                    _ => went(buffer.lend_mut(MEMORY, valid, mark))?.map(Some),
                };
                loan.map(|loan| self.loans.extend(loan.map(|loan| (bytes, loan))))
            }
        };
        assert!(self.loans.len() <= usize::from(BLOCKS));
        self.sent += u32::from(sent.is_some());
        Ok(())
    }

    fn poll(&mut self) -> Result<(), Over> {
        if let Some(([life, pairing, number], mut call)) = any(&mut self.random, &mut self.calls) {
            match answered(call.poll())? {
                Some(None) => self.calls.push(([life, pairing, number], call)),
                Some(Some(words)) => {
                    assert_eq!(words, [!life, !pairing, !number, 0, 0], "an answer");
                    self.counts[0] += 1;
                }
                None => {}
            }
        }
        let Some((bytes, mut loan)) = any(&mut self.random, &mut self.loans) else {
            return Ok(());
        };
        let returned = match answered(loan.poll())? {
            Some(None) => {
                self.loans.push((bytes, loan));
                return Ok(());
            }
            Some(Some(returned)) => returned,
            None => return Ok(()),
        };
        if returned.valid().is_empty() {
            assert_eq!(returned.words[0], bytes.len() as u32, "an answer of words");
            return Ok(());
        }
        self.buffer.resize(returned.valid().len(), 0);
        assert_eq!(returned.copy_to(&mut self.buffer)?, bytes.len());
        let changed = bytes.iter().map(|byte| !byte);
        assert!(
            changed.eq(self.buffer.iter().copied()),
            "an answer in memory"
        );
        self.counts[1] += 1;
        Ok(())
    }

    fn take_up(&mut self) -> Result<(), Over> {
        let Some(message) = self.messages.receive()? else {
            return Ok(());
        };
        let [life, pairing, number, ..] = message.words;
        let peer = [life, pairing];
        assert_eq!(*self.peer.get_or_insert(peer), peer, "another life");
        assert_eq!(number, self.next, "in order, each once");
        self.next += 1;
        let mark = [life, pairing, number];
        match message.opcode {
            WORDS => assert_eq!(message.words, [life, pairing, number, 4, 5]),
            CALL => self.answers.push((mark, message.answer.unwrap())),
            MEMORY => {
                let given = message.memory.unwrap();
                self.buffer.resize(given.len(), 0);
                assert_eq!(given.copy_to(&mut self.buffer)?, self.buffer.len());
                is_intact(&self.buffer);
                let word =
                    |at: usize| u64::from_le_bytes(self.buffer[at..at + 8].try_into().unwrap());
                assert_eq!([0, 8, 16].map(word), mark.map(u64::from));
                match given.passing() {
                    Passing::Move => self.counts[2] += 1,
                    _ => self.givens.push(given),
                }
            }
            opcode => panic!("opcode {opcode}"),
        }
        Ok(())
    }

    fn answer(&mut self) {
        if let Some((mark, answer)) = any(&mut self.random, &mut self.answers) {
            answer.give(mark.map(|word| !word));
        }
        let Some(mut given) = any(&mut self.random, &mut self.givens) else {
            return;
        };
        let valid = given.valid();
        if given.passing() == Passing::Lend {
            given.answer([valid.len() as u32]);
        } else if let Some(place) = given.in_place() {
            place[valid.clone()]
                .iter_mut()
                .for_each(|byte| *byte = !*byte);
            given.answer_with(valid);
        }
    }
}

/// Whether every own block can be had in a new pairing; false where it ended already.
pub fn is_whole(messages: &Messages) -> bool {
    let mut all = Vec::new();
    for taken in 0..BLOCKS {
        match messages.memory(900) {
            Ok(buffer) => all.push(buffer),
            Err(Refused::Lost(_)) => return false,
            Err(_) if messages.end().status() != domain::Status::Up => return false,
            Err(refused) => panic!("{refused:?}: {taken} of {BLOCKS} blocks for messages"),
        }
    }
    assert!(messages.memory(900).is_err(), "more than {BLOCKS} blocks");
    true
}

/// Lives and pairings of the peer's whose messages came.
#[derive(Default)]
pub struct Old(HashSet<[u32; 2]>);

impl Old {
    pub fn add(&mut self, peer: Option<[u32; 2]>) {
        if let Some(peer) = peer {
            assert!(self.0.insert(peer), "messages of {peer:?}, which is over");
        }
    }
}

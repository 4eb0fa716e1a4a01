//! What users hold of a message channel.

use core::task::Waker;

use super::super::books::NONE;
use super::super::handles::EndRef;
use super::super::layout::{CALL, MOVE, SCALAR};
use super::super::{Lost, Refused};
use super::{Asking, Buffer, Given, status};
use crate::waiters::Waits;

/// One side of a message channel: it sends and it is sent to. Clone it for other tasks and threads:
/// each message reaches one.
///
/// ```
/// use sinew_shm::domain::{Channel, Config, EndRef, Lost, Messages};
///
/// const LINK: Config = Config::new(&[Channel::messages(5, "motor", 8, 4)]);
/// const STOP: u32 = 1;
/// const SPEED: u32 = 2;
///
/// /// Takes up one message, if there is one.
/// fn serve<R: EndRef>(motor: &Messages<R>) -> Result<(), Lost> {
///     if let Some(message) = motor.receive()? {
///         match message.opcode {
///             STOP => {}
///             SPEED => message.answer([1200]),
///             _ => message.unknown(),
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct Messages<R: EndRef> {
    pub(super) end: R,
    pub(super) slot: u16,
    pub(super) pairing: u32,
}

impl<R: EndRef> Clone for Messages<R> {
    fn clone(&self) -> Self {
        Messages {
            end: self.end.clone(),
            ..*self
        }
    }
}

/// Why a call has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The server knows no such opcode: the two sides are of different versions.
    UnknownOpcode,
    /// The server dropped the message unanswered, or its answer breaks the protocol: look there.
    Dropped,
    /// The pairing is over, and with it the call.
    Lost(Lost),
}

impl core::fmt::Display for CallError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            CallError::UnknownOpcode => f.write_str(
                "the server knows no such opcode: build both sides from the same opcodes",
            ),
            CallError::Dropped => f.write_str(
                "the server dropped the message without an answer: look there for the reason",
            ),
            CallError::Lost(lost) => lost.fmt(f),
        }
    }
}

impl core::error::Error for CallError {}

impl CallError {
    /// What an answer says.
    #[inline]
    pub(super) fn of(said: u8) -> Result<(), CallError> {
        match said {
            status::DONE => Ok(()),
            status::UNKNOWN_OPCODE => Err(CallError::UnknownOpcode),
            _ => Err(CallError::Dropped),
        }
    }
}

impl From<Lost> for CallError {
    fn from(lost: Lost) -> CallError {
        CallError::Lost(lost)
    }
}

impl<R: EndRef> Messages<R> {
    /// The message channel with this id; `None` where the link has none.
    pub fn new(end: &R, channel: u16) -> Option<Messages<R>> {
        Self::found(end, end.find_messages(|one| one.id == channel))
    }

    /// The message channel with this name.
    pub fn by_name(end: &R, name: &str) -> Option<Messages<R>> {
        let name = super::super::config::Name::new(name)?;
        Self::found(end, end.find_messages(|one| one.name == name.0))
    }

    /// The message channel with this 128-bit id, which is not 0.
    pub fn by_uuid(end: &R, uuid: u128) -> Option<Messages<R>> {
        Self::found(end, end.find_messages(|one| uuid != 0 && one.uuid == uuid))
    }

    fn found(end: &R, found: Option<(u16, u32)>) -> Option<Messages<R>> {
        let (slot, pairing) = found?;
        Some(Messages {
            end: end.clone(),
            slot,
            pairing,
        })
    }

    /// The end of this side.
    pub fn end(&self) -> &R {
        &self.end
    }

    /// Takes the handle over into the present pairing, or the next one.
    pub fn renew(&mut self) {
        self.pairing = self.end.renew();
    }

    /// Sends a message that nobody answers. [`Refused::Full`] where too many wait: nothing has gone.
    #[inline]
    pub fn send(&self, opcode: u32, words: [u32; 5]) -> Result<(), Refused> {
        self.ask(SCALAR, opcode, &words, NONE).map(drop)
    }

    /// Sends a message that is to be answered. [`Refused::Full`] where too many wait, or too many calls
    /// are open: nothing has gone.
    #[inline]
    pub fn call(&self, opcode: u32, words: [u32; 5]) -> Result<Call<R>, Refused> {
        let token = self.ask(CALL, opcode, &words, NONE)?;
        Ok(Call {
            channel: self.clone(),
            token,
        })
    }

    /// Memory for a message of up to `len` bytes, to be written where it leaves from: the beginning of
    /// a block of the channel's, as its last message has left it. [`Refused::Full`] where all are under
    /// way, [`Refused::TooLarge`] where the channel's blocks are smaller, or this side has none.
    #[inline]
    pub fn memory(&self, len: usize) -> Result<Buffer<R>, Refused> {
        let (place, bytes) = self.end.hold_memory(self.slot, self.pairing, len)?;
        Ok(Buffer::new(self.clone(), place, bytes))
    }

    /// Bytes of the memory of a message: of this side's, and of the peer's. 0 where there is none.
    pub fn memory_sizes(&self) -> (usize, usize) {
        let (own, foreign) = self.end.memory_sizes(self.slot);
        (own as usize, foreign as usize)
    }

    #[inline]
    pub(super) fn ask(
        &self,
        kind: u32,
        opcode: u32,
        words: &[u32; 5],
        held: u16,
    ) -> Result<u32, Refused> {
        let asking = Asking {
            kind,
            opcode,
            words,
            held,
        };
        self.end.send_message(self.slot, self.pairing, &asking)
    }

    /// The oldest message of the peer's; `None` where there is none now.
    #[inline]
    pub fn receive(&self) -> Result<Option<Message<R>>, Lost> {
        let asked = self.end.receive_message(self.slot, self.pairing)?;
        Ok(asked.map(|asked| {
            let has_memory = asked.kind >= MOVE;
            let [offset, len, words @ ..] = asked.words;
            Message {
                opcode: asked.opcode,
                words: match has_memory {
                    true => [words[0], words[1], words[2], 0, 0],
                    false => asked.words,
                },
                answer: (asked.kind == CALL).then(|| Answer {
                    channel: self.clone(),
                    token: asked.token,
                }),
                memory: has_memory.then(|| {
                    Given::new(
                        self.clone(),
                        (asked.token, asked.kind),
                        (offset, len),
                        asked.memory,
                    )
                }),
            }
        }))
    }

    /// Wakes `waker` once when a message is there, at once where one is, or when the pairing ends.
    pub fn arm(&self, waker: &Waker) {
        self.end
            .arm_messages(self.slot, self.pairing, (Waits::Incoming, 0), waker);
    }

    /// As [`Messages::arm`], when there is room for a message.
    pub fn arm_room(&self, waker: &Waker) {
        self.end
            .arm_messages(self.slot, self.pairing, (Waits::Room, 0), waker);
    }

    /// As [`Messages::arm`], when there is room for a call.
    pub fn arm_call(&self, waker: &Waker) {
        self.end
            .arm_messages(self.slot, self.pairing, (Waits::Room, 1), waker);
    }

    /// As [`Messages::arm`], when there is memory for a message.
    pub fn arm_memory(&self, waker: &Waker) {
        self.end
            .arm_messages(self.slot, self.pairing, (Waits::Room, 2), waker);
    }
}

/// A message that waits for its answer. Dropping it gives the answer up.
#[must_use = "dropped, it gives the answer up"]
pub struct Call<R: EndRef> {
    channel: Messages<R>,
    token: u32,
}

impl<R: EndRef> Call<R> {
    /// The answer: its words, those that it does not have being 0. `None` while there is none; after
    /// an answer the call is over.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<[u32; 5]>, CallError> {
        let Messages { end, slot, pairing } = &self.channel;
        // What came back is moved once: it is larger than it looks.
        match end.take_message_answer(*slot, *pairing, self.token) {
            Ok(None) => Ok(None),
            Ok(Some(answered)) => {
                self.token = 0;
                CallError::of(answered.status)?;
                Ok(Some(answered.words))
            }
            Err(error) => {
                // Of a link that is lost the call is told again.
                if !matches!(error, CallError::Lost(_)) {
                    self.token = 0;
                }
                Err(error)
            }
        }
    }

    /// Wakes `waker` once when there may be an answer, at once where there is one, or when the pairing
    /// ends.
    pub fn arm(&self, waker: &Waker) {
        let Messages { end, slot, pairing } = &self.channel;
        end.arm_messages(*slot, *pairing, (Waits::Answer, self.token), waker);
    }
}

/// What an answer is awaited of, with words or with memory: for whoever waits in his own way.
pub trait Pending {
    /// What the answer is.
    type Answer;
    /// The answer; `None` while there is none.
    fn poll(&mut self) -> Result<Option<Self::Answer>, CallError>;
    /// Wakes `waker` once when there may be an answer, at once where there is one, or when the pairing
    /// ends.
    fn arm(&self, waker: &Waker);
}

impl<R: EndRef> Pending for Call<R> {
    type Answer = [u32; 5];

    fn poll(&mut self) -> Result<Option<[u32; 5]>, CallError> {
        Call::poll(self)
    }

    fn arm(&self, waker: &Waker) {
        Call::arm(self, waker);
    }
}

impl<R: EndRef> Drop for Call<R> {
    fn drop(&mut self) {
        if self.token != 0 {
            let Messages { end, slot, pairing } = &self.channel;
            end.forget_call(*slot, *pairing, self.token);
        }
    }
}

/// A message that came in.
pub struct Message<R: EndRef> {
    /// What is to be done.
    pub opcode: u32,
    /// With what. Beside memory there are three; the others are 0.
    pub words: [u32; 5],
    /// Where an answer of words is asked for: to be given now, kept, or passed on.
    pub answer: Option<Answer<R>>,
    /// Where the message has memory: to be read, answered, kept, or passed on.
    pub memory: Option<Given<R>>,
}

impl<R: EndRef> Message<R> {
    /// Answers with 1 to 5 words, if an answer is asked for.
    pub fn answer<const N: usize>(self, words: [u32; N]) {
        if let Some(answer) = self.answer {
            answer.give(words);
        }
    }

    /// Says that there is no such opcode, if an answer is asked for.
    pub fn unknown(self) {
        if let Some(answer) = self.answer {
            answer.say(status::UNKNOWN_OPCODE, &[]);
        }
        if let Some(memory) = self.memory {
            memory.unknown();
        }
    }
}

/// The duty to answer a call: kept as long as it takes, in any order, by any task or thread. Dropped, it
/// answers that the message was dropped.
#[must_use = "dropped, it answers that the message was dropped"]
pub struct Answer<R: EndRef> {
    channel: Messages<R>,
    token: u32,
}

impl<R: EndRef> Answer<R> {
    /// Answers with 1 to 5 words. `false` where the caller is gone.
    pub fn give<const N: usize>(self, words: [u32; N]) -> bool {
        const { assert!(N >= 1 && N <= 5, "an answer has 1 to 5 words") };
        self.say(status::DONE, &words)
    }

    fn say(mut self, status: u8, words: &[u32]) -> bool {
        let token = core::mem::take(&mut self.token);
        let Messages { end, slot, pairing } = &self.channel;
        end.answer_message(*slot, *pairing, (token, CALL, false), (status, words))
    }
}

impl<R: EndRef> Drop for Answer<R> {
    fn drop(&mut self) {
        if self.token != 0 {
            let Messages { end, slot, pairing } = &self.channel;
            end.answer_message(
                *slot,
                *pairing,
                (self.token, CALL, false),
                (status::DROPPED, &[]),
            );
        }
    }
}

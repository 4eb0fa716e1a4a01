//! A message of five words, and an answer of five words: one line each way.

use sinew_shm::domain::{Call, Channel, Messages, Refused, Trust};
use sinew_shm::linux::exchange::DoorbellKind;

use super::link::{CHANNEL, Handle, Link, told};
use crate::Result;
use crate::shm::contender::{End, Opening};

const BELL: DoorbellKind = DoorbellKind::Socket;
const OPCODE: u32 = 7;

/// A message channel.
pub struct ScalarCall {
    messages: Messages<Handle>,
    call: Option<Call<Handle>>,
    link: Link,
    /// The words of the request, and of the answer.
    words: [u32; 5],
}

impl ScalarCall {
    fn new(link: Link) -> Result<Self> {
        Ok(ScalarCall {
            messages: Messages::new(&link.end, CHANNEL).ok_or("no channel")?,
            call: None,
            link,
            words: [0; 5],
        })
    }
}

/// What the far end makes of the words.
fn answer(words: [u32; 5]) -> [u32; 5] {
    words.map(|word| word.wrapping_add(1))
}

impl End for ScalarCall {
    const NAME: &'static str = "sinew, scalar call";
    const NOTE: &'static str = "five words and an answer of five words, trust none";
    const ONE_WAY: bool = false;
    const CHECKS_ITSELF: bool = true;

    fn near(opening: &Opening<'_>) -> Result<Self> {
        let channel = Channel::messages(CHANNEL, "bench", 4, 4);
        ScalarCall::new(Link::near(opening, Trust::None, channel, BELL)?)
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        let channel = Channel::messages(CHANNEL, "bench", 4, 4);
        ScalarCall::new(Link::far(opening, Trust::None, channel, BELL)?)
    }

    /// A request.
    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        self.words = [low, high, low ^ high, !low, !high];
        match self.messages.call(OPCODE, self.words) {
            Ok(call) => self.call = Some(call),
            Err(Refused::Full) => return Ok(false),
            Err(error) => return Err(told(error)),
        }
        Ok(true)
    }

    /// An answer, which is checked.
    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let call = self.call.as_mut().ok_or("no call")?;
        let Some(words) = call.poll().map_err(told)? else {
            return Ok(None);
        };
        match words == answer(self.words) {
            true => Ok(Some(0)),
            false => Err(format!("{words:?} for {:?}", self.words).into()),
        }
    }

    #[inline]
    fn answer(&mut self) -> Result<u64> {
        loop {
            if let Some(message) = self.messages.receive().map_err(told)? {
                let words = answer(message.words);
                message.answer(words);
                return Ok(0);
            }
            self.pause()?;
        }
    }

    #[inline]
    fn pause(&mut self) -> Result<()> {
        match &self.call {
            Some(call) => self.link.pause(|waker| call.arm(waker)),
            None => self.link.pause(|waker| self.messages.arm(waker)),
        }
        Ok(())
    }
}

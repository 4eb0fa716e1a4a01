//! Memory that is lent, changed by the far end, and read by the near end: 53 bytes, as in the benchmark
//! of Xous.
//!
//! A side clears what it sent when its peer changes, not after each message: as shipped nothing is
//! cleared here. What it would cost to clear each block after its use, as a kernel must that gives pages
//! to others, is measured beside it: the near end clears the block that it lent, and the far end, where
//! it answers in a block of its own, that one.

use sinew_shm::domain::{Channel, Loan, Messages, Pool, Refused, Trust};
use sinew_shm::linux::exchange::DoorbellKind;

use super::link::{CHANNEL, Handle, Link, told};
use crate::Result;
use crate::shm::contender::{End, Opening};

const BELL: DoorbellKind = DoorbellKind::Socket;
const OPCODE: u32 = 7;
/// Bytes that are lent.
const BYTES: usize = 53;
/// Bytes of a page.
const PAGE: usize = 4096;

/// A message channel with memory, of which so many bytes are cleared after use.
pub struct LendMut<const MUTUAL: bool, const CLEARED: usize> {
    messages: Messages<Handle>,
    loan: Option<Loan<Handle>>,
    link: Link,
    /// What was lent.
    bytes: [u8; BYTES],
}

impl<const MUTUAL: bool, const CLEARED: usize> LendMut<MUTUAL, CLEARED> {
    const TRUST: Trust = if MUTUAL { Trust::Mutual } else { Trust::None };
    /// Bytes of a block, for which memory is asked for.
    const BLOCK: usize = if CLEARED > BYTES { PAGE } else { 64 };

    fn channel() -> Channel {
        let pool = Pool::new(4, Self::BLOCK as u32);
        let channel = Channel::messages(CHANNEL, "bench", 4, 4).with_memory(pool);
        if MUTUAL {
            channel.with_replies()
        } else {
            channel
        }
    }

    fn new(link: Link) -> Result<Self> {
        Ok(LendMut {
            messages: Messages::new(&link.end, CHANNEL).ok_or("no channel")?,
            loan: None,
            link,
            bytes: [0; BYTES],
        })
    }
}

/// What the far end makes of the bytes.
#[inline(always)]
fn change(bytes: &mut [u8]) {
    if let [first, .., last] = bytes {
        (*first, *last) = (!*first, !*last);
    }
}

impl<const MUTUAL: bool, const CLEARED: usize> End for LendMut<MUTUAL, CLEARED> {
    const NAME: &'static str = match (MUTUAL, CLEARED) {
        (false, 0) => "sinew, lend_mut",
        (true, 0) => "sinew, lend_mut, mutual",
        (false, BYTES) => "lend_mut, 53 B cleared",
        (false, _) => "lend_mut, page cleared",
        (true, BYTES) => "mutual, 53 B cleared",
        (true, _) => "mutual, page cleared",
    };
    const NOTE: &'static str = match (MUTUAL, CLEARED) {
        (false, 0) => {
            "53 B written, lent, copied out and in by the far end, changed, copied out; trust none; cleared when the peer changes, not per message"
        }
        (true, 0) => {
            "53 B written, lent, changed where they lie, read; trust mutual; cleared when the peer changes, not per message"
        }
        (_, BYTES) => "the same, and each block's 53 B cleared after use",
        _ => "the same in a block of 4096 B, all of which is cleared after use",
    };
    const ONE_WAY: bool = false;
    const CHECKS_ITSELF: bool = true;
    const BLOCKS: bool = false;

    fn near(opening: &Opening<'_>) -> Result<Self> {
        LendMut::new(Link::near(opening, Self::TRUST, Self::channel(), BELL)?)
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        LendMut::new(Link::far(opening, Self::TRUST, Self::channel(), BELL)?)
    }

    /// A request.
    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let (words, rest) = self.bytes.as_chunks_mut();
        words.fill(seed.to_le_bytes());
        rest.fill(seed as u8);
        let mut buffer = match self.messages.memory(Self::BLOCK.max(BYTES)) {
            Ok(buffer) => buffer,
            Err(Refused::Full) => return Ok(false),
            Err(error) => return Err(told(error)),
        };
        *buffer.first_chunk_mut().ok_or("a small block")? = self.bytes;
        match buffer.lend_mut(OPCODE, 0..BYTES, [1, 2, 3]) {
            Ok(loan) => self.loan = Some(loan),
            Err(unsent) if unsent.refused == Refused::Full => return Ok(false),
            Err(unsent) => return Err(told(unsent)),
        }
        Ok(true)
    }

    /// An answer, which is checked.
    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let loan = self.loan.as_mut().ok_or("no loan")?;
        let Some(returned) = loan.poll().map_err(told)? else {
            return Ok(None);
        };
        let mut bytes = [0; BYTES];
        match returned.trusted() {
            Some(answer) => bytes = *answer.first_chunk().ok_or("a short answer")?,
            None => {
                returned.copy_to(&mut bytes).map_err(told)?;
            }
        }
        if CLEARED > 0 {
            let mut buffer = returned.into_buffer();
            buffer.get_mut(..CLEARED).ok_or("a small block")?.fill(0);
        }
        change(&mut bytes);
        match bytes == self.bytes {
            true => Ok(Some(0)),
            false => Err(format!("{bytes:?} for {:?}", self.bytes).into()),
        }
    }

    #[inline]
    fn answer(&mut self) -> Result<u64> {
        loop {
            if let Some(message) = self.messages.receive().map_err(told)? {
                let mut given = message.memory.ok_or("no memory")?;
                if CLEARED > 0 && !MUTUAL {
                    // What the last answer left there.
                    let place = given.blank(CLEARED).ok_or("no place for the answer")?;
                    place.fill(0);
                }
                change(given.in_place().ok_or("no place for the answer")?);
                let valid = given.valid();
                given.answer_with(valid);
                return Ok(0);
            }
            self.pause()?;
        }
    }

    #[inline]
    fn pause(&mut self) -> Result<()> {
        match &self.loan {
            Some(loan) => self.link.pause(|waker| loan.arm(waker)),
            None => self.link.pause(|waker| self.messages.arm(waker)),
        }
        Ok(())
    }
}

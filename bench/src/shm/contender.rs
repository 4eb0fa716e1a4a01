//! What takes part: an [`End`] in each process, and the loops that are timed.

use std::hint::spin_loop;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::control::Control;
use super::payload::{Digest, seed};
use crate::Result;

/// How an end waits for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// It looks again and again.
    Busy,
    /// It sleeps in the kernel.
    Blocking,
}

/// What an end is opened with.
pub struct Opening<'a> {
    /// Bytes of every message, a multiple of eight.
    pub size: usize,
    /// Messages that may be on their way at once, a power of two.
    pub depth: usize,
    /// Messages in one batch, at most; 1: they go one by one.
    pub batch: usize,
    pub waiting: Waiting,
    /// A name that no other opening has, the same on both sides.
    pub name: &'a str,
    /// To the other process, which opens its end at this moment: for descriptors.
    pub control: &'a Control,
}

/// One end of a contender. Both processes have one: the near end calls and consumes, the far end
/// answers and produces. Payload is written by [`fill`](super::payload::fill) in the place it leaves
/// from and read by [`sum`](super::payload::sum) in the place it arrived, where the contender can.
pub trait End: Sized + 'static {
    /// In the results.
    const NAME: &'static str;
    /// Its settings.
    const NOTE: &'static str;
    /// Whether it is measured one way too.
    const ONE_WAY: bool = true;
    /// Its messages are its own: it checks every answer, and its sums say nothing.
    const CHECKS_ITSELF: bool = false;
    /// Where it has one size only: in which cases it takes part.
    const SIZE: Option<usize> = if Self::CHECKS_ITSELF { Some(64) } else { None };
    /// Whether it takes part where ends sleep.
    const BLOCKS: bool = true;

    /// The end of the calling process.
    fn near(opening: &Opening<'_>) -> Result<Self>;

    /// The end of the answering process.
    fn far(opening: &Opening<'_>) -> Result<Self>;

    /// Sends one message; `false` while there is no place for it.
    fn send(&mut self, seed: u64) -> Result<bool>;

    /// Takes one message and gives its sum; `None` while there is none.
    fn receive(&mut self) -> Result<Option<u64>>;

    /// What an end does while it has nothing: sleeps until there may be a message, when blocking.
    /// When busy it tells the processor that it only waits, which leaves a sibling core more to run
    /// on: all contenders gain by it.
    #[inline]
    fn pause(&mut self) -> Result<()> {
        spin_loop();
        Ok(())
    }

    /// Sends as many of these messages as there is place for, at most, as one batch.
    #[inline]
    fn send_batch(&mut self, messages: Range<u64>) -> Result<u64> {
        let first = messages.start;
        for n in messages.clone() {
            if !self.send(seed(n))? {
                return Ok(n - first);
            }
        }
        Ok(messages.end - first)
    }

    /// Takes what is there, at most `most` messages, as one batch.
    #[inline]
    fn receive_batch(&mut self, most: u64, digest: &mut Digest) -> Result<u64> {
        for n in 0..most {
            match self.receive()? {
                Some(sum) => digest.add(sum),
                None => return Ok(n),
            }
        }
        Ok(most)
    }

    /// Sends a request and gives the sum of its answer.
    #[inline]
    fn call(&mut self, seed: u64) -> Result<u64> {
        while !self.send(seed)? {
            spin_loop();
        }
        self.wait()
    }

    /// Takes a request and sends an answer with its sum as the seed; gives that sum.
    #[inline]
    fn answer(&mut self) -> Result<u64> {
        let sum = self.wait()?;
        while !self.send(sum)? {
            spin_loop();
        }
        Ok(sum)
    }

    /// The next message's sum.
    #[inline]
    fn wait(&mut self) -> Result<u64> {
        loop {
            if let Some(sum) = self.receive()? {
                return Ok(sum);
            }
            self.pause()?;
        }
    }
}

/// An opened end of whatever contender.
pub trait Runner {
    /// `untimed` calls, then `calls` that are timed; the digest of all answers.
    fn calls(&mut self, untimed: u64, calls: u64) -> Result<(Duration, Digest)>;
    /// Answers so many calls; the digest of the requests.
    fn answers(&mut self, calls: u64) -> Result<Digest>;
    /// Sends so many messages, in batches of `batch`; 1: each on its own.
    fn produce(&mut self, messages: u64, batch: u64) -> Result<()>;
    /// Takes so many messages; the time from the first on, and the digest of all.
    fn consume(&mut self, messages: u64, batch: u64) -> Result<(Duration, Digest)>;
}

impl<E: End> Runner for E {
    fn calls(&mut self, untimed: u64, calls: u64) -> Result<(Duration, Digest)> {
        let mut digest = Digest::default();
        for n in 0..untimed {
            digest.add(self.call(seed(n))?);
        }
        let start = Instant::now();
        for n in untimed..untimed + calls {
            digest.add(self.call(seed(n))?);
        }
        Ok((start.elapsed(), digest))
    }

    fn answers(&mut self, calls: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        for _ in 0..calls {
            digest.add(self.answer()?);
        }
        Ok(digest)
    }

    fn produce(&mut self, messages: u64, batch: u64) -> Result<()> {
        let mut sent = 0;
        while sent < messages {
            let now = if batch == 1 {
                u64::from(self.send(seed(sent))?)
            } else {
                self.send_batch(sent..messages.min(sent + batch))?
            };
            if now == 0 {
                spin_loop();
            }
            sent += now;
        }
        Ok(())
    }

    fn consume(&mut self, messages: u64, batch: u64) -> Result<(Duration, Digest)> {
        let mut digest = Digest::default();
        digest.add(self.wait()?);
        let start = Instant::now();
        let mut taken = 1;
        while taken < messages {
            if batch == 1 {
                digest.add(self.wait()?);
                taken += 1;
                continue;
            }
            let now = self.receive_batch(batch.min(messages - taken), &mut digest)?;
            if now == 0 {
                spin_loop();
            }
            taken += now;
        }
        Ok((start.elapsed(), digest))
    }
}

type Open = fn(&Opening<'_>) -> Result<Box<dyn Runner>>;

/// A kind of [`End`].
pub struct Contender {
    pub name: &'static str,
    pub note: &'static str,
    pub one_way: bool,
    pub checks_itself: bool,
    pub size: Option<usize>,
    pub blocks: bool,
    pub near: Open,
    pub far: Open,
}

impl Contender {
    /// The contender of the ends `E`.
    pub const fn of<E: End>() -> Self {
        Contender {
            name: E::NAME,
            note: E::NOTE,
            one_way: E::ONE_WAY,
            checks_itself: E::CHECKS_ITSELF,
            size: E::SIZE,
            blocks: E::BLOCKS,
            near: |opening| Ok(Box::new(E::near(opening)?)),
            far: |opening| Ok(Box::new(E::far(opening)?)),
        }
    }
}

//! The unsafe ring: once with a ring each way, once with the answer in the slot of the request; and the
//! least that a round trip can write.

use std::hint::spin_loop;
use std::ops::Range;
use std::os::fd::AsFd;

use sinew_reference_ring::{Consumer, PingPong, Producer, create, create_ping_pong};

use crate::Result;
use crate::shm::contender::{End, Opening, Waiting};
use crate::shm::payload::{Digest, fill, seed, sum};

/// A ring each way.
pub struct Ring {
    out: Producer,
    back: Consumer,
    waiting: Waiting,
}

impl End for Ring {
    const NAME: &'static str = "reference ring";
    const NOTE: &'static str = "unsafe ring each way, no checks, no lengths; futex when blocking";

    fn near(opening: &Opening<'_>) -> Result<Self> {
        let (slots, size) = (opening.depth as u32, opening.size);
        let (there, back) = (create(slots, size)?, create(slots, size)?);
        opening.control.give(&[there.as_fd(), back.as_fd()])?;
        Ok(Ring {
            out: Producer::new(there, slots, size)?,
            back: Consumer::new(back, slots, size)?,
            waiting: opening.waiting,
        })
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        let (slots, size) = (opening.depth as u32, opening.size);
        let [there, back] = opening.control.take()?;
        Ok(Ring {
            out: Producer::new(back, slots, size)?,
            back: Consumer::new(there, slots, size)?,
            waiting: opening.waiting,
        })
    }

    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let Some(place) = self.out.place() else {
            return Ok(false);
        };
        fill(place, seed);
        self.out.end();
        self.out.publish();
        if self.waiting == Waiting::Blocking {
            self.out.wake()?;
        }
        Ok(true)
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let sum = self.back.message().map(|message| sum(message));
        if sum.is_some() {
            self.back.end();
            self.back.give_back();
        }
        Ok(sum)
    }

    #[inline]
    fn send_batch(&mut self, messages: Range<u64>) -> Result<u64> {
        let mut sent = 0;
        for n in messages {
            let Some(place) = self.out.place() else {
                break;
            };
            fill(place, seed(n));
            self.out.end();
            sent += 1;
        }
        self.out.publish();
        Ok(sent)
    }

    #[inline]
    fn receive_batch(&mut self, most: u64, digest: &mut Digest) -> Result<u64> {
        let mut taken = 0;
        while taken < most && (taken == 0 || self.back.knows_more()) {
            let Some(message) = self.back.message() else {
                return Ok(0);
            };
            digest.add(sum(message));
            self.back.end();
            taken += 1;
        }
        self.back.give_back();
        Ok(taken)
    }

    #[inline]
    fn pause(&mut self) -> Result<()> {
        match self.waiting {
            Waiting::Busy => spin_loop(),
            Waiting::Blocking => self.back.sleep()?,
        }
        Ok(())
    }
}

/// One ring; the answer is written over the request.
pub enum InPlace {
    Near(Producer, Waiting),
    Far(Consumer, Waiting),
}

impl End for InPlace {
    const NAME: &'static str = "reference, in place";
    const NOTE: &'static str = "the same, one ring, the answer in the slot of the request";
    const ONE_WAY: bool = false;

    fn near(opening: &Opening<'_>) -> Result<Self> {
        let (slots, size) = (opening.depth as u32, opening.size);
        let file = create(slots, size)?;
        opening.control.give(&[file.as_fd()])?;
        let end = Producer::new(file, slots, size)?;
        Ok(InPlace::Near(end, opening.waiting))
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        let (slots, size) = (opening.depth as u32, opening.size);
        let [file] = opening.control.take()?;
        let end = Consumer::new(file, slots, size)?;
        Ok(InPlace::Far(end, opening.waiting))
    }

    /// A request: only the near end sends.
    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let InPlace::Near(end, waiting) = self else {
            return Err("the far end has no ring of its own".into());
        };
        let Some(place) = end.place() else {
            return Ok(false);
        };
        fill(place, seed);
        end.end();
        end.publish();
        if *waiting == Waiting::Blocking {
            end.wake()?;
        }
        Ok(true)
    }

    /// An answer on the near side; a request, answered in its place, on the far side.
    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        match self {
            InPlace::Near(end, _) => Ok(end.answer().map(sum)),
            InPlace::Far(end, waiting) => {
                let Some(message) = end.message() else {
                    return Ok(None);
                };
                let sum = sum(message);
                fill(message, sum);
                end.end();
                end.give_back();
                if *waiting == Waiting::Blocking {
                    end.wake()?;
                }
                Ok(Some(sum))
            }
        }
    }

    #[inline]
    fn answer(&mut self) -> Result<u64> {
        self.wait()
    }

    #[inline]
    fn pause(&mut self) -> Result<()> {
        match self {
            InPlace::Near(end, Waiting::Blocking) => end.sleep()?,
            InPlace::Far(end, Waiting::Blocking) => end.sleep()?,
            _ => spin_loop(),
        }
        Ok(())
    }
}

/// A line of data and a line with an index each way.
pub struct Bare(PingPong);

impl End for Bare {
    const NAME: &'static str = "bare ping-pong";
    const NOTE: &'static str =
        "unsafe, no ring: writes one line of data and one line with an index each way";
    const ONE_WAY: bool = false;
    const SIZE: Option<usize> = Some(PingPong::SIZE);
    const BLOCKS: bool = false;

    fn near(opening: &Opening<'_>) -> Result<Self> {
        let file = create_ping_pong()?;
        opening.control.give(&[file.as_fd()])?;
        Ok(Bare(PingPong::new(file, true)?))
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        let [file] = opening.control.take()?;
        Ok(Bare(PingPong::new(file, false)?))
    }

    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        self.0.send(|place| fill(place, seed));
        Ok(true)
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        Ok(self.0.receive().map(sum))
    }
}

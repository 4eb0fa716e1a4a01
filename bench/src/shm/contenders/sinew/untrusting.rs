//! Trust = none: a packet is written where it leaves from and read in place, each word once.

use std::ops::Range;

use sinew_shm::domain::{Channel, Pool, Receiver, Refused, Sender, Trust};
use sinew_shm::linux::exchange::DoorbellKind;

use super::link::{CHANNEL, Handle, Link, told};
use crate::Result;
use crate::shm::contender::{End, Opening};
use crate::shm::payload::{fill, seed};

const BELL: DoorbellKind = DoorbellKind::Socket;

/// A queue channel.
pub struct Queue {
    out: Sender<Handle>,
    back: Receiver<Handle>,
    link: Link,
}

impl Queue {
    fn new(link: Link) -> Result<Self> {
        Ok(Queue {
            out: Sender::new(&link.end, CHANNEL).ok_or("no channel")?,
            back: Receiver::new(&link.end, CHANNEL).ok_or("no channel")?,
            link,
        })
    }

    /// Sends one message; the peer is rung by `flush` only.
    #[inline]
    fn publish(&mut self, seed: u64) -> Result<bool> {
        let mut place = match self.out.place(0) {
            Ok(place) => place,
            Err(Refused::Full) => return Ok(false),
            Err(error) => return Err(told(error)),
        };
        fill(&mut place, seed);
        let len = place.len();
        place.publish(len).map_err(told)
    }
}

fn channel(opening: &Opening<'_>) -> Channel {
    let pool = Pool::new(opening.depth as u16, opening.size as u32);
    Channel::new(CHANNEL, "bench", pool)
}

impl End for Queue {
    const NAME: &'static str = "sinew, trust none";
    const NOTE: &'static str = "sealed memfds, read in place; doorbell when blocking: unix socket";

    fn near(opening: &Opening<'_>) -> Result<Self> {
        Queue::new(Link::near(opening, Trust::None, channel(opening), BELL)?)
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        Queue::new(Link::far(opening, Trust::None, channel(opening), BELL)?)
    }

    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let mut place = match self.out.place(0) {
            Ok(place) => place,
            Err(Refused::Full) => return Ok(false),
            Err(error) => return Err(told(error)),
        };
        fill(&mut place, seed);
        let len = place.len();
        place.send(len).map_err(told)
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let packet = self.back.receive().map_err(told)?;
        Ok(packet.map(|packet| {
            let words = packet.words();
            words.fold(0, |sum: u64, word| sum.wrapping_add(word as u64))
        }))
    }

    #[inline]
    fn send_batch(&mut self, messages: Range<u64>) -> Result<u64> {
        let first = messages.start;
        let mut sent = 0;
        for n in first..messages.end {
            if !self.publish(seed(n))? {
                break;
            }
            sent += 1;
        }
        self.out.flush();
        Ok(sent)
    }

    #[inline]
    fn pause(&mut self) -> Result<()> {
        self.link.pause(|waker| self.back.arm(waker));
        Ok(())
    }
}

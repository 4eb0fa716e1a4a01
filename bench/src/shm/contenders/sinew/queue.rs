//! A queue each way: a packet is written where it leaves from and read where it lies, without trust
//! each word once.

use std::hint::spin_loop;
use std::ops::Range;

use sinew_shm::domain::{Channel, Outgoing, Packet, Pool, Receiver, Refused, Sender, Trust};
use sinew_shm::linux::exchange::DoorbellKind;

use super::link::{CHANNEL, Handle, Link, told};
use crate::Result;
use crate::shm::contender::{End, Opening};
use crate::shm::payload::{fill, seed, sum};

const BELL: DoorbellKind = DoorbellKind::Socket;

/// A queue channel.
pub struct Queue<const MUTUAL: bool> {
    out: Outgoing<Handle>,
    back: Receiver<Handle>,
    link: Link,
}

impl<const MUTUAL: bool> Queue<MUTUAL> {
    const TRUST: Trust = if MUTUAL { Trust::Mutual } else { Trust::None };

    fn new(link: Link) -> Result<Self> {
        Ok(Queue {
            out: Outgoing::new(Sender::new(&link.end, CHANNEL).ok_or("no channel")?),
            back: Receiver::new(&link.end, CHANNEL).ok_or("no channel")?,
            link,
        })
    }
}

/// Sends one message; the peer is rung by `flush`. `false` while there is no place for it.
#[inline]
fn publish(out: &mut Outgoing<Handle>, seed: u64) -> Result<bool> {
    let place = match out.place(0) {
        Ok(place) => place,
        Err(Refused::Full) => return Ok(false),
        Err(error) => return Err(told(error)),
    };
    fill(place, seed);
    let len = place.len();
    out.commit(len).map_err(told)?;
    Ok(true)
}

/// The sum of a packet where it lies; of a foreign one each word is read once.
#[inline]
fn sum_of(packet: &Packet<'_, Handle>) -> u64 {
    if let Some(bytes) = packet.trusted() {
        return sum(bytes);
    }
    if packet.len() == size_of::<u64>() {
        return packet.words().fold(0, |sum, word| sum + word as u64);
    }
    let mut sums = [0u64; 8];
    for line in packet.lines() {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(word as u64);
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

fn channel(opening: &Opening<'_>) -> Channel {
    let pool = Pool::new(opening.depth as u16, opening.size as u32);
    Channel::new(CHANNEL, "bench", pool)
}

impl<const MUTUAL: bool> End for Queue<MUTUAL> {
    const NAME: &'static str = if MUTUAL {
        "sinew, trust mutual"
    } else {
        "sinew, trust none"
    };
    const NOTE: &'static str =
        "sealed memfds, a queue each way; doorbell when blocking: unix socket";

    fn near(opening: &Opening<'_>) -> Result<Self> {
        Queue::new(Link::near(opening, Self::TRUST, channel(opening), BELL)?)
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        Queue::new(Link::far(opening, Self::TRUST, channel(opening), BELL)?)
    }

    /// And takes the next place while the peer is at it.
    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let sent = publish(&mut self.out, seed)?;
        self.out.flush();
        // Where there is none, the next message finds out.
        let _ = self.out.place(0);
        Ok(sent)
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let packet = self.back.receive().map_err(told)?;
        Ok(packet.map(|packet| sum_of(&packet)))
    }

    /// A large request is given back when the answer has gone.
    #[inline]
    fn answer(&mut self) -> Result<u64> {
        loop {
            if let Some(packet) = self.back.receive().map_err(told)? {
                let sum = sum_of(&packet);
                while !publish(&mut self.out, sum)? {
                    spin_loop();
                }
                self.out.flush();
                let _ = self.out.place(0);
                return Ok(sum);
            }
            self.link.pause(|waker| self.back.arm(waker));
        }
    }

    #[inline]
    fn send_batch(&mut self, messages: Range<u64>) -> Result<u64> {
        let first = messages.start;
        let mut sent = 0;
        for n in first..messages.end {
            if !publish(&mut self.out, seed(n))? {
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

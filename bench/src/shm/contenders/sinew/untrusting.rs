//! Trust = none: a packet is written where it leaves from and read in place, each word once.

use std::hint::spin_loop;
use std::ops::Range;

use sinew_shm::domain::{Channel, Outgoing, Packet, Pool, Receiver, Refused, Sender, Trust};
use sinew_shm::linux::exchange::DoorbellKind;

use super::link::{CHANNEL, Handle, Link, told};
use crate::Result;
use crate::shm::contender::{End, Opening};
use crate::shm::payload::{fill, seed};

const BELL: DoorbellKind = DoorbellKind::Socket;

/// A queue channel.
pub struct Queue {
    out: Outgoing<Handle>,
    back: Receiver<Handle>,
    link: Link,
}

impl Queue {
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

/// Sends one message, and takes the next place while the peer is at it.
#[inline]
fn send(out: &mut Outgoing<Handle>, seed: u64) -> Result<bool> {
    let sent = publish(out, seed)?;
    out.flush();
    // Where there is none, the next message finds out.
    let _ = out.place(0);
    Ok(sent)
}

/// The sum of a packet where it lies, each word read once.
#[inline]
fn sum(packet: &Packet<'_, Handle>) -> u64 {
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
        send(&mut self.out, seed)
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let packet = self.back.receive().map_err(told)?;
        Ok(packet.map(|packet| sum(&packet)))
    }

    /// The request is given back when the answer has gone.
    #[inline]
    fn answer(&mut self) -> Result<u64> {
        loop {
            if let Some(packet) = self.back.receive().map_err(told)? {
                let sum = sum(&packet);
                while !send(&mut self.out, sum)? {
                    spin_loop();
                }
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

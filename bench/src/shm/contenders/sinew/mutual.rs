//! Trust = mutual: the answer is written over the request, in the block that was lent.

use sinew_shm::domain::{Channel, Pool, Receiver, Refused, Sender, Trust};
use sinew_shm::linux::exchange::DoorbellKind;

use super::link::{CHANNEL, Handle, Link, told};
use crate::Result;
use crate::shm::contender::{End, Opening};
use crate::shm::payload::{fill, sum};

const BELL: DoorbellKind = DoorbellKind::Socket;

/// A queue channel with replies.
pub enum InPlace {
    Near(Sender<Handle>, Link),
    Far(Receiver<Handle>, Link),
}

fn channel(opening: &Opening<'_>) -> Channel {
    let pool = Pool::new(opening.depth as u16, opening.size as u32);
    let channel = Channel::new(CHANNEL, "bench", pool).with_replies();
    channel.pools(pool, Pool::new(0, 0))
}

impl End for InPlace {
    const NAME: &'static str = "sinew, answer in place";
    const NOTE: &'static str = "trust mutual; the answer in the lent block";
    const ONE_WAY: bool = false;

    fn near(opening: &Opening<'_>) -> Result<Self> {
        let link = Link::near(opening, Trust::Mutual, channel(opening), BELL)?;
        let sender = Sender::new(&link.end, CHANNEL).ok_or("no channel")?;
        Ok(InPlace::Near(sender, link))
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        let link = Link::far(opening, Trust::Mutual, channel(opening), BELL)?;
        let receiver = Receiver::new(&link.end, CHANNEL).ok_or("no channel")?;
        Ok(InPlace::Far(receiver, link))
    }

    /// A request: only the near end sends.
    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let InPlace::Near(sender, _) = self else {
            return Err("the far end answers only".into());
        };
        let mut place = match sender.place(0) {
            Ok(place) => place,
            Err(Refused::Full) => return Ok(false),
            Err(error) => return Err(told(error)),
        };
        fill(&mut place, seed);
        let len = place.len();
        place.send(len).map_err(told)
    }

    /// An answer on the near side; a request, answered in its place, on the far side.
    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        match self {
            InPlace::Near(sender, _) => {
                let reply = sender.reply().map_err(told)?;
                Ok(reply.map(|reply| sum(&reply)))
            }
            InPlace::Far(receiver, _) => {
                let Some(mut packet) = receiver.receive().map_err(told)? else {
                    return Ok(None);
                };
                let request = packet.trusted().map(sum).ok_or("no trust")?;
                let place = packet.place().ok_or("no replies")?;
                fill(place, request);
                let len = place.len();
                packet.reply(len);
                Ok(Some(request))
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
            InPlace::Near(sender, link) => link.pause(|waker| sender.arm_reply(waker)),
            InPlace::Far(receiver, link) => link.pause(|waker| receiver.arm(waker)),
        }
        Ok(())
    }
}

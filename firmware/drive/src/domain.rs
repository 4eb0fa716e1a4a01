//! A link over shared memory: what it needs beyond the halves of `sinew::link::domain`.
//!
//! The halves find out that the peer has begun again; [`Serving`](crate::Serving) then ends the calls of that
//! link and renews them. A port outlives every pairing.

use core::task::Waker;

use sinew::link::{Port, SendError};
use sinew_shm::domain::{EndRef, Incoming, Outgoing, Sender};
use sinew_shm::{Bell, Lock};

use crate::serving::Renew;

impl<R: EndRef> Renew for Outgoing<R> {
    fn renew(&mut self) {
        Outgoing::renew(self);
    }
}

impl<R: EndRef, B: AsMut<[u8]>> Renew for Incoming<R, B> {
    fn renew(&mut self) {
        Incoming::renew(self);
    }
}

/// The way out for late answers and streams, in whichever pairing there is when they leave.
///
/// One block stays free for the answer to the next request.
pub struct Later<R, L: 'static> {
    end: R,
    channel: u16,
    bell: &'static Bell<L>,
}

impl<R: EndRef, L> Later<R, L> {
    /// A port onto this channel. `bell` is what the driver of this side sleeps on.
    pub const fn new(end: R, channel: u16, bell: &'static Bell<L>) -> Self {
        Later { end, channel, bell }
    }

    fn sender(&self) -> Option<Sender<R>> {
        Sender::new(&self.end, self.channel).map(|sender| sender.with_reserve(1))
    }
}

impl<R: EndRef + Sync, L: Lock + Sync> Port for Later<R, L> {
    fn mtu(&self) -> usize {
        self.sender().map_or(0, |sender| sender.size())
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let sender = self.sender().ok_or(SendError::Closed)?;
        let mut place = sender.place(min)?;
        match fill(&mut place) {
            0 => Ok(()),
            len => Ok(place.send(len).map(drop)?),
        }
    }

    fn arm(&self, waker: &Waker) {
        match self.sender() {
            Some(sender) => sender.arm(waker),
            None => waker.wake_by_ref(),
        }
    }

    fn ring(&self) {
        self.bell.ring();
    }
}

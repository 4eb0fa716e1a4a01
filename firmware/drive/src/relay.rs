//! Passing packets on, between two links that need not be of one kind: a service behind the other link is then
//! called by this one, and neither side knows.
//!
//! A packet is taken up only with a place for it on the other side; until then it waits on its link, whose flow
//! control holds its sender back. Nobody looks into a packet, so links with the same largest packet belong
//! together: what does not fit is dropped and counted, and its call ends at its deadline.

use core::task::Waker;

use sinew::link::{RecvError, Rx, SendError, Tx};

use crate::serving::Renew;

/// The two halves of a link.
pub struct Halves<T, R>(pub T, pub R);

/// Packets of either way that were not passed on. Counts wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// They were larger than the other link takes: give both the same largest packet.
    pub too_large: u32,
    /// The other side was gone, or had begun again.
    pub lost: u32,
}

/// Passes packets on between two links.
pub struct Relay<T, R, U, S> {
    near: Halves<T, R>,
    far: Halves<U, S>,
    dropped: Dropped,
}

impl<T: Tx + Renew, R: Rx + Renew, U: Tx + Renew, S: Rx + Renew> Relay<T, R, U, S> {
    /// A relay between these links.
    pub const fn new(near: Halves<T, R>, far: Halves<U, S>) -> Self {
        Relay {
            near,
            far,
            dropped: Dropped {
                too_large: 0,
                lost: 0,
            },
        }
    }

    /// Passes on what there is, a packet each way at most; `false` where there is none, or no place for it.
    pub fn turn(&mut self) -> bool {
        let Relay { near, far, dropped } = self;
        pass(&mut near.1, &mut far.0, dropped) | pass(&mut far.1, &mut near.0, dropped)
    }

    /// Asks each link to tell when it has a packet. For places nobody asks: a link that has none returns them to who
    /// looks again, when it rings or time passes.
    pub fn arm(&mut self) {
        self.near.1.arm(Waker::noop());
        self.far.1.arm(Waker::noop());
    }

    /// What was not passed on so far.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }
}

fn pass(from: &mut (impl Rx + Renew), to: &mut (impl Tx + Renew), dropped: &mut Dropped) -> bool {
    let packet = match from.peek() {
        Ok(Some(packet)) => packet,
        Ok(None) => return false,
        Err(RecvError::Closed) => {
            from.renew();
            return true;
        }
    };
    let sent = match to.place(packet.len()) {
        Ok(place) => {
            if let Some(place) = place.get_mut(..packet.len()) {
                place.copy_from_slice(packet);
            }
            to.commit(packet.len())
        }
        Err(error) => Err(error),
    };
    match sent {
        Ok(()) => to.flush(),
        Err(SendError::Full) => {
            to.arm(Waker::noop());
            return false;
        }
        // The other side is gone, or has begun again: what was for it goes with it.
        Err(SendError::Closed) => {
            dropped.lost = dropped.lost.wrapping_add(1);
            to.renew();
        }
        Err(SendError::TooLarge) => dropped.too_large = dropped.too_large.wrapping_add(1),
    }
    from.release();
    true
}

//! Passing packets on, between two links that need not be of one kind: a service behind the other link is then
//! called by this one, and neither side knows.
//!
//! A packet is taken up only with a place for it on the other side; until then it waits on its link, whose flow
//! control holds its sender back. Nobody looks into a packet, so links with the same largest packet belong
//! together: what does not fit is dropped, and its call ends at its deadline.

use core::task::Waker;

use sinew::link::{RecvError, Rx, SendError, Tx};

use crate::serving::Renew;

/// The two halves of a link.
pub struct Halves<T, R>(pub T, pub R);

/// Passes on what there is, a packet each way at most; `false` where there is none, or no place for it.
pub fn turn<T: Tx + Renew, R: Rx + Renew, U: Tx + Renew, S: Rx + Renew>(
    near: &mut Halves<T, R>,
    far: &mut Halves<U, S>,
) -> bool {
    pass(&mut near.1, &mut far.0) | pass(&mut far.1, &mut near.0)
}

/// Asks each link to tell when it has a packet. For places nobody asks: a link that has none returns them to who
/// looks again, when it rings or time passes.
pub fn arm<T: Tx, R: Rx, U: Tx, S: Rx>(near: &mut Halves<T, R>, far: &mut Halves<U, S>) {
    near.1.arm(Waker::noop());
    far.1.arm(Waker::noop());
}

fn pass(from: &mut (impl Rx + Renew), to: &mut (impl Tx + Renew)) -> bool {
    let packet = match from.peek() {
        Ok(Some(packet)) => packet,
        Ok(None) => return false,
        Err(RecvError::Closed) => {
            from.renew();
            return true;
        }
    };
    match to.place(packet.len()) {
        Ok(place) => {
            if let Some(place) = place.get_mut(..packet.len()) {
                place.copy_from_slice(packet);
            }
            let _ = to.commit(packet.len());
            to.flush();
        }
        Err(SendError::Full) => {
            to.arm(Waker::noop());
            return false;
        }
        // The other side is gone, or has begun again: what was for it goes with it.
        Err(SendError::Closed) => to.renew(),
        Err(SendError::TooLarge) => {}
    }
    from.release();
    true
}

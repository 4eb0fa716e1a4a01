//! Calls from elsewhere: the first core passes packets on, and knows no service.

use sinew::link::{Rx, Tx};
use sinew_drive::relay::{Halves, Relay};
use sinew_drive::serving::Renew;
use sinew_shm::domain::{Incoming, Outgoing, Receiver, Role, Sender};

use crate::agreed::{CALLS, MTU};
use crate::{First, look, open};

/// Starts the other core, and passes packets on between it and this link. Returns only where the link to it cannot be
/// opened.
pub fn relay<C: First>(tx: impl Tx + Renew, rx: impl Rx + Renew) -> Option<()> {
    let mut clock = C::start();
    let end = &open::<C>(Role::First)?;
    C::start_peer();
    let near = Halves(tx, rx);
    let far = Halves(
        Outgoing::new(Sender::new(&end, CALLS)?),
        Incoming::new(Receiver::new(&end, CALLS)?, [0; MTU])?,
    );
    let mut relay = Relay::new(near, far);
    loop {
        look(end, &mut clock);
        if relay.turn() {
            continue;
        }
        // What came before is found by one more turn.
        relay.arm();
        if !relay.turn() {
            C::sleep();
        }
    }
}

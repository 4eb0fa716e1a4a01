//! A client and its services in one thread, joined by queues: for services that defer answers or
//! send streams, which a direct call cannot. The services run while the client waits.

use std::task::Waker;
use std::time::Duration;

use sinew::link::Rx;
use sinew::rpc::Service;

use crate::client::Client;
use crate::endpoint::DEFAULT_MTU;
use crate::link::{Link, Want};
use crate::serve::{Next, Server, Turns};
use crate::threads::{self, QueueLink};

/// Both ends of a link, one of them served by whoever waits on the other.
pub struct Loopback<S: Service, const CALLS: usize = 64> {
    near: Near,
    far: Near,
    turns: Turns<S, CALLS>,
}

type Near = QueueLink<16, DEFAULT_MTU>;

/// A client of the server's services in the caller's thread; `None` where the server has too many
/// links.
pub fn connect<S: Service, const CALLS: usize>(
    server: &Server<S, CALLS>,
) -> Option<Client<Loopback<S, CALLS>>> {
    let (near, mut far) = threads::link();
    let turns = server.turns(&mut far, 1)?;
    Some(Client::new(Loopback { near, far, turns }, 1))
}

impl<S: Service, const CALLS: usize> Link for Loopback<S, CALLS> {
    type Tx = <Near as Link>::Tx;
    type Rx = <Near as Link>::Rx;

    fn halves(&mut self) -> (&mut Self::Tx, &mut Self::Rx) {
        self.near.halves()
    }

    fn wait(&mut self, want: Want, timeout: Option<Duration>) {
        loop {
            let next = self.turns.turn(&mut self.far);
            let has_packet = !matches!(self.near.halves().1.peek(), Ok(None));
            match next {
                _ if has_packet => return,
                Next::Turn if want == Want::Place => return,
                Next::Turn => {}
                // Somebody else answers, later: he rings.
                Next::Sleep(far, soon) => {
                    self.turns.arm(&self.near.waker(), far);
                    return self.near.wait(want, timeout.into_iter().chain(soon).min());
                }
                Next::End => return,
            }
        }
    }

    fn waker(&mut self) -> Waker {
        self.near.waker()
    }
}

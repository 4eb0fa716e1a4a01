//! Two threads of this program, joined by the memory of a domain link.
//!
//! As [`crate::threads`], which is quicker; this one has several channels, priorities and filters
//! where the configuration says so, and is what `shm:` does between processes.
//!
//! ```
//! use sinew_io::{Client, Server, shm};
//! # use sinew::rpc::{Call, Input, MethodKind, Service};
//! # struct Nothing;
//! # impl Service for Nothing {
//! #     fn kind(&self, _: u32, _: u32) -> Option<MethodKind> { None }
//! #     fn handle(&mut self, _: &mut Call<'_>, _: Input<'_>) -> bool { false }
//! # }
//! # let services = Nothing;
//! let (near, mut far) = shm::threads::link().unwrap();
//! let server = Server::new(services);
//! let thread = std::thread::spawn(move || server.serve(&mut far, 1));
//! let client = Client::new(near, 1);
//! drop(client); // the link closes, and the server's thread ends
//! thread.join().unwrap();
//! ```

use sinew_shm::domain::{Incoming, OpenError, Options, Outgoing, Receiver, Sender};
use sinew_shm::local::{self, LocalEnd};

use super::config::{CHANNEL, calls};
use crate::endpoint::DEFAULT_MTU;
use crate::parked::Parked;

/// One end of a link between threads over a channel of a domain link.
pub type LocalLink = Parked<Outgoing<LocalEnd>, Incoming<LocalEnd, Vec<u8>>>;

/// A link for calls, of the default size. Its memory is freed with both ends.
pub fn link() -> Result<(LocalLink, LocalLink), OpenError> {
    let (near, far) = local::pair(calls(DEFAULT_MTU), Options::default())?;
    // The configuration has the channel.
    over(&near, &far, CHANNEL).ok_or(OpenError::Room)
}

/// A link over one channel of two ends of [`local::pair`], which may have others. `None` where they
/// have no such channel.
pub fn over(near: &LocalEnd, far: &LocalEnd, channel: u16) -> Option<(LocalLink, LocalLink)> {
    Some((end(near, channel)?, end(far, channel)?))
}

fn end(end: &LocalEnd, channel: u16) -> Option<LocalLink> {
    let receiver = Receiver::new(end, channel)?;
    let buffer = match end.is_trusted() {
        true => Vec::new(),
        false => vec![0; receiver.size()],
    };
    let outgoing = Outgoing::new(Sender::new(end, channel)?);
    Some(Parked::new((outgoing, Incoming::new(receiver, buffer)?)))
}

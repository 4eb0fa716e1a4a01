//! Halves of a link that live apart: one sends from any thread, behind a lock of the driver; one is
//! owned by a thread that receives, and sleeps on the descriptor itself.
//!
//! | module | what it is for |
//! |---|---|
//! | [`open()`] | what an endpoint names, as its client |
//! | [`listen()`] | what an endpoint names, as its server: halves for each that comes |
//! | `polled` | halves over descriptors: sockets, lines, pipes |
//!
//! Every link of this crate can be taken apart (`apart`), each where it is made.
//!
//! ```
//! use sinew_io::{apart, endpoint::{Endpoint, Use}};
//!
//! let at = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
//! let mut listener = apart::listen(&at).unwrap();
//! let mut near = apart::open(listener.endpoint()).unwrap();
//! let mut far = listener.accept_within(None).unwrap();
//!
//! near.tx.place(4).unwrap()[..4].copy_from_slice(b"ping");
//! near.tx.commit(4).unwrap();
//! near.tx.flush();
//! while far.rx.peek() == Ok(None) {
//!     far.rx.wait(None);
//! }
//! assert_eq!(far.rx.peek(), Ok(Some(&b"ping"[..])));
//! ```

use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use sinew::link::{Rx, Tx};

use crate::link::Traffic;

mod listen;
mod open;
pub(crate) mod polled;

pub use listen::{Listener, listen};
pub use open::open;

/// Both halves of a link.
///
/// A half does not need the other one, but what the other one does: with shared memory it is the
/// thread on the receiving half that hears of places that come back.
pub struct Apart {
    /// The sending half. What its `flush` could not send leaves without it.
    pub tx: Box<dyn Tx + Send>,
    /// The receiving half.
    pub rx: Box<dyn Receive + Send>,
}

/// A receiving half on which a thread can sleep.
pub trait Receive: Rx {
    /// Sleeps until there may be something to do: a packet, the end of the link, a call of the
    /// [waker](Receive::waker) since the last `wait`, or the time-out (`None`: for ever). It may
    /// return early; the caller looks again.
    ///
    /// To be called after `peek` has found nothing: what it gave already wakes nobody.
    fn wait(&mut self, timeout: Option<Duration>);

    /// Wakes [`Receive::wait`] from anywhere.
    fn waker(&mut self) -> Waker;

    /// What has arrived so far.
    fn traffic(&self) -> Traffic;
}

/// Kept alive by both halves: a child process, an entry in a list.
pub(crate) type Keep = Arc<Mutex<Box<dyn Send>>>;

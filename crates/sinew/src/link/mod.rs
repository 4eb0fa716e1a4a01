//! The seam: a packet link.
//!
//! Everything that carries packets (a ring between threads, shared memory, a UART, a socket)
//! offers the same few operations, and engines know nothing else of it. A packet is written once,
//! into the *place* it leaves from, and read once, in the place where it arrived.
//!
//! Three traits, all object-safe except where closures make it impossible:
//! * [`Tx`] and [`Rx`] are the two halves of a link, owned by whoever drives it;
//! * [`Port`] lets several tasks and threads send on one link by shared reference.
//!
//! # Rules that every implementation keeps (`conformance` checks them)
//! * Packets arrive whole, in order, with their exact length, or not at all; a carrier that can
//!   lose says so in its counters.
//! * `place` gives at least `min` bytes and the same place until `commit`; `commit(0)` gives it
//!   back and sends nothing. A commit after a place never fails for want of room.
//! * `peek` gives the same packet until `release`.
//! * No lost wake-up: `arm` looks again after registering, and wakes at once where there is
//!   already something to do.
//! * A place that comes back wakes those who wait for one.
//! * After the peer is gone, what it sent is still readable, then `Closed`.

use core::task::Waker;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "shm")]
pub mod domain;
#[cfg(feature = "shm")]
pub mod queue;

/// Why a packet could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// Every place is taken. The receiver is slower than the sender: wait with `arm`, then retry.
    Full,
    /// The packet is larger than the link's [`Tx::mtu`]. Shorten the message, or configure larger
    /// blocks on both sides.
    TooLarge,
    /// The peer or the link is gone. Connect again.
    Closed,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SendError::Full => "every place is taken: wait, then retry",
            SendError::TooLarge => "larger than the link's packets: shorten it, or enlarge them",
            SendError::Closed => "the link is closed: connect again",
        })
    }
}

impl core::error::Error for SendError {}

/// Why nothing can be received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvError {
    /// The peer or the link is gone and everything it sent has been read. Connect again.
    Closed,
}

impl core::fmt::Display for RecvError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RecvError::Closed => "the link is closed, and all was read: connect again",
        })
    }
}

impl core::error::Error for RecvError {}

/// The sending half of a link.
pub trait Tx {
    /// The largest packet in bytes.
    fn mtu(&self) -> usize;

    /// The place for the next packet: at least `min` bytes, and the same place until `commit`.
    ///
    /// Its content is unspecified. [`SendError::TooLarge`] where `min` is above the mtu,
    /// [`SendError::Full`] where no place is free now.
    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError>;

    /// Sends the first `len` bytes of the place; 0 gives the place back and sends nothing.
    ///
    /// Never `Full`. Without a place in hand, or with `len` beyond it: `TooLarge`, nothing sent.
    fn commit(&mut self, len: usize) -> Result<(), SendError>;

    /// Sends what a carrier has batched and rings the peer where it must be rung. Never blocks.
    fn flush(&mut self);

    /// Wakes `waker` once when a place is free (at once where one already is) or the link closes.
    fn arm(&mut self, waker: &Waker);
}

/// The receiving half of a link.
pub trait Rx {
    /// The oldest packet that has arrived, the same one until [`Rx::release`]; `None` where there
    /// is none now.
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError>;

    /// Gives the place of the peeked packet back. Without a peeked packet: nothing happens.
    fn release(&mut self);

    /// Wakes `waker` once when a packet is there (at once where one already is) or the link
    /// closes.
    fn arm(&mut self, waker: &Waker);
}

/// Sends on a link that others share: answers and streams from other tasks and threads.
///
/// A lock, where there is one, is held only to take and to publish a place, never while `fill`
/// runs or the peer is woken. A port always leaves one place free for the receive step of the
/// link's driver; a port for bulk streams leaves more, so that urgent packets are not held up.
pub trait Port: Sync {
    /// The largest packet in bytes.
    fn mtu(&self) -> usize;

    /// Takes a place of at least `min` bytes, lets `fill` write it, and sends as many bytes as
    /// `fill` returns; 0 sends nothing.
    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError>;

    /// Wakes `waker` once when a place is free for this port (at once where one already is) or the
    /// link closes.
    fn arm(&self, waker: &Waker);

    /// Wakes the driver of this link's own side (not the peer): a call has ended outside of it.
    fn ring(&self);
}

impl dyn Port + '_ {
    /// [`Port::send`] with a value out of the closure.
    ///
    /// ```
    /// # fn demo(port: &dyn sinew::link::Port) -> Result<u8, sinew::link::SendError> {
    /// port.send_with(4, |place| {
    ///     place[..4].copy_from_slice(b"ping");
    ///     (4, 42) // bytes to send, and what send_with returns
    /// })
    /// # }
    /// ```
    pub fn send_with<T>(
        &self,
        min: usize,
        fill: impl FnOnce(&mut [u8]) -> (usize, T),
    ) -> Result<T, SendError> {
        let mut fill = Some(fill);
        let mut out = None;
        self.send(min, &mut |place| match fill.take() {
            Some(fill) => {
                let (len, value) = fill(place);
                out = Some(value);
                len
            }
            None => 0,
        })?;
        out.ok_or(SendError::Closed)
    }
}

//! The seam over a channel of a domain link: what joins threads, processes and cores by memory that
//! they share.
//!
//! The halves are those of `sinew-shm`. Whoever drives them calls `End::look` where the doorbell
//! arrives; with `sinew_shm::local`, as here, that needs nobody.
//!
//! ```
//! use sinew::link::{Rx, Tx};
//! use sinew_shm::domain::{Channel, Config, Incoming, Options, Outgoing, Pool, Receiver, Sender};
//! use sinew_shm::local;
//!
//! const LINK: Config = Config::new(&[Channel::new(1, "rpc", Pool::new(8, 256))]);
//!
//! let (near, far) = local::pair(LINK, Options::default()).unwrap();
//! let mut tx = Outgoing::new(Sender::new(&near, 1).unwrap());
//! let mut rx = Incoming::new(Receiver::new(&far, 1).unwrap(), [0; 256]).unwrap();
//! tx.place(4).unwrap()[..4].copy_from_slice(b"ping");
//! tx.commit(4).unwrap();
//! tx.flush();
//! assert_eq!(rx.peek(), Ok(Some(&b"ping"[..])));
//! ```

use core::ops::Deref;
use core::task::Waker;

use sinew_shm::domain::{EndRef, Incoming, Lost, Outgoing, Refused, Sender, Staged};
use sinew_shm::{Bell, Lock};

use super::{Port, RecvError, Rx, SendError, Tx};

/// However a pairing has ended: the halves stay closed until they are renewed.
impl From<Lost> for RecvError {
    fn from(_: Lost) -> RecvError {
        RecvError::Closed
    }
}

impl From<Refused> for SendError {
    fn from(refused: Refused) -> SendError {
        match refused {
            Refused::Full => SendError::Full,
            Refused::TooLarge => SendError::TooLarge,
            Refused::Lost(_) => SendError::Closed,
        }
    }
}

/// It may use every block, down to the last one.
impl<R: EndRef> Tx for Outgoing<R> {
    fn mtu(&self) -> usize {
        Outgoing::mtu(self)
    }

    #[inline]
    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        Ok(Outgoing::place(self, min)?)
    }

    #[inline]
    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        Ok(Outgoing::commit(self, len)?)
    }

    #[inline]
    fn flush(&mut self) {
        Outgoing::flush(self);
    }

    fn arm(&mut self, waker: &Waker) {
        Outgoing::arm(self, waker);
    }
}

/// It may use every block, down to the last one.
impl<R: EndRef, B: AsMut<[u8]>> Tx for Staged<R, B> {
    fn mtu(&self) -> usize {
        Staged::mtu(self)
    }

    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        Ok(Staged::place(self, min)?)
    }

    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        Ok(Staged::commit(self, len)?)
    }

    fn flush(&mut self) {
        Staged::flush(self);
    }

    fn arm(&mut self, waker: &Waker) {
        Staged::arm(self, waker);
    }
}

impl<R: EndRef, B: AsMut<[u8]>> Rx for Incoming<R, B> {
    #[inline]
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        Ok(Incoming::peek(self)?)
    }

    #[inline]
    fn release(&mut self) {
        Incoming::release(self);
    }

    fn arm(&mut self, waker: &Waker) {
        Incoming::arm(self, waker);
    }
}

/// Sends on the channel from other tasks and threads; outlives the pairing harmlessly.
///
/// `B` is how the bell of this side's driver is reached: `&'static Bell<L>` or `Arc<Bell<L>>`.
pub struct DomainPort<R: EndRef, B> {
    sender: Sender<R>,
    bell: B,
}

impl<R: EndRef, B> DomainPort<R, B> {
    /// A port that leaves `reserve` blocks free: 1 for urgent packets, more for bulk streams. Less
    /// counts as 1, so the channel needs 2 blocks or more.
    ///
    /// `bell` is what the driver of this side waits on.
    pub fn new(sender: &Sender<R>, reserve: u16, bell: B) -> DomainPort<R, B> {
        DomainPort {
            sender: sender.clone().with_reserve(reserve.max(1)),
            bell,
        }
    }
}

impl<R: EndRef, B: Clone> Clone for DomainPort<R, B> {
    fn clone(&self) -> Self {
        DomainPort {
            sender: self.sender.clone(),
            bell: self.bell.clone(),
        }
    }
}

impl<R, B, L> Port for DomainPort<R, B>
where
    R: EndRef + Sync,
    B: Deref<Target = Bell<L>> + Sync,
    L: Lock,
{
    fn mtu(&self) -> usize {
        self.sender.size()
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut place = self.sender.place(min)?;
        match fill(&mut place) {
            0 => Ok(()),
            len => Ok(place.send(len).map(drop)?),
        }
    }

    fn arm(&self, waker: &Waker) {
        self.sender.arm(waker);
    }

    fn ring(&self) {
        self.bell.ring();
    }
}

//! The seam over the block queue of `sinew-shm`: threads and tasks of one program share a link.
//!
//! A link is two queues, one per direction, in statics. The place is the block: a packet is written
//! into it once and read there by the other side.
//!
//! ```
//! use sinew::link::{Rx, Tx, queue};
//! use sinew_shm::{Queue, StdLock};
//!
//! static THERE: Queue<StdLock, 8, 256> = Queue::new();
//! static BACK: Queue<StdLock, 8, 256> = Queue::new();
//!
//! let ((mut tx, _), (_, mut rx)) = queue::pair(&THERE, &BACK).unwrap();
//! tx.place(4).unwrap()[..4].copy_from_slice(b"ping");
//! tx.commit(4).unwrap();
//! assert_eq!(rx.peek(), Ok(Some(&b"ping"[..])));
//! rx.release();
//! ```

use core::task::Waker;

use sinew_shm::{Bell, Closed, Handle, Lock, Place, Queue, Receiver, Refused, Sender};

use super::{Port, RecvError, Rx, SendError, Tx};

/// Both halves of one side of a link.
pub type End<L, const BLOCKS: usize, const SIZE: usize> =
    (QueueTx<L, BLOCKS, SIZE>, QueueRx<L, BLOCKS, SIZE>);

/// A link between two contexts over two queues: what the first end sends on `there`, the second
/// receives, and back.
///
/// `None` while something of an earlier link over these queues is alive; after that they can be
/// used again.
#[allow(clippy::type_complexity)]
pub fn pair<L: Lock, const BLOCKS: usize, const SIZE: usize>(
    there: &'static Queue<L, BLOCKS, SIZE>,
    back: &'static Queue<L, BLOCKS, SIZE>,
) -> Option<(End<L, BLOCKS, SIZE>, End<L, BLOCKS, SIZE>)> {
    let (there_tx, there_rx) = one_way(there)?;
    let (back_tx, back_rx) = one_way(back)?;
    Some(((there_tx, back_rx), (back_tx, there_rx)))
}

/// One direction alone, for pumps that carry packets between a queue and a device.
///
/// `None` while something of an earlier use of this queue is alive.
pub fn one_way<L: Lock, const BLOCKS: usize, const SIZE: usize>(
    queue: &'static Queue<L, BLOCKS, SIZE>,
) -> Option<End<L, BLOCKS, SIZE>> {
    let (sender, receiver) = queue.split()?;
    Some((
        QueueTx {
            place: None,
            sender,
        },
        QueueRx { receiver },
    ))
}

/// The sending half for the driver of the link. It may use every place, down to the last one.
///
/// Dropping it closes the link in this direction, for the ports as well.
pub struct QueueTx<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> {
    place: Option<Place<L, BLOCKS, SIZE>>,
    sender: Sender<L, BLOCKS, SIZE>,
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> QueueTx<L, BLOCKS, SIZE> {
    /// A port for other contexts that leaves `reserve` places free: 1 for urgent packets, more for
    /// bulk streams. Less counts as 1, and more than `BLOCKS - 1` as that.
    ///
    /// `bell` is what the driver of this side waits on.
    pub fn port(&self, reserve: usize, bell: &'static Bell<L>) -> QueuePort<L, BLOCKS, SIZE> {
        const {
            assert!(
                BLOCKS >= 2,
                "a port leaves one place to the driver: 2 blocks or more"
            )
        };
        QueuePort {
            handle: self.sender.handle(reserve.max(1)),
            bell,
        }
    }
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Tx for QueueTx<L, BLOCKS, SIZE> {
    fn mtu(&self) -> usize {
        SIZE
    }

    #[inline]
    fn place(&mut self, min: usize) -> Result<&mut [u8], SendError> {
        if self.place.is_none() || min > SIZE {
            self.place = Some(self.sender.place(min)?);
        }
        self.place.as_deref_mut().ok_or(SendError::Closed)
    }

    #[inline]
    fn commit(&mut self, len: usize) -> Result<(), SendError> {
        let place = self.place.take().ok_or(SendError::TooLarge)?;
        Ok(place.commit(len)?)
    }

    /// Does nothing: a commit is seen, and wakes, at once.
    fn flush(&mut self) {}

    fn arm(&mut self, waker: &Waker) {
        if self.place.is_some() {
            waker.wake_by_ref();
        } else {
            self.sender.arm(waker);
        }
    }
}

/// The receiving half. Dropping it closes the link in this direction.
pub struct QueueRx<L: Lock + 'static, const BLOCKS: usize, const SIZE: usize> {
    receiver: Receiver<L, BLOCKS, SIZE>,
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Rx for QueueRx<L, BLOCKS, SIZE> {
    #[inline]
    fn peek(&mut self) -> Result<Option<&[u8]>, RecvError> {
        self.receiver.peek().map_err(|Closed| RecvError::Closed)
    }

    #[inline]
    fn release(&mut self) {
        self.receiver.release();
    }

    fn arm(&mut self, waker: &Waker) {
        self.receiver.arm(waker);
    }
}

/// Sends on the link from other tasks and threads; copies freely, and outlives the link
/// harmlessly.
pub struct QueuePort<L: 'static, const BLOCKS: usize, const SIZE: usize> {
    handle: Handle<L, BLOCKS, SIZE>,
    bell: &'static Bell<L>,
}

impl<L, const BLOCKS: usize, const SIZE: usize> Copy for QueuePort<L, BLOCKS, SIZE> {}

impl<L, const BLOCKS: usize, const SIZE: usize> Clone for QueuePort<L, BLOCKS, SIZE> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Lock + Sync, const BLOCKS: usize, const SIZE: usize> Port for QueuePort<L, BLOCKS, SIZE> {
    fn mtu(&self) -> usize {
        SIZE
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut place = self.handle.place(min)?;
        let len = fill(&mut place);
        Ok(place.commit(len)?)
    }

    fn arm(&self, waker: &Waker) {
        self.handle.arm(waker);
    }

    fn ring(&self) {
        self.bell.ring();
    }
}

impl From<Refused> for SendError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => SendError::Full,
            Refused::TooLarge => SendError::TooLarge,
            Refused::Closed => SendError::Closed,
        }
    }
}

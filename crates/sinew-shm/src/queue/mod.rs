//! The local block queue: packets from many producers to one consumer, in static memory.
//!
//! A producer takes a block, writes it, and publishes an entry {block, length} in a ring by moving
//! `head`. The consumer reads blocks where they lie, in ring order, and gives each back by moving
//! `returned`. As blocks come back in the order they went, the ring itself says which: there is no
//! second ring. Two producers may hold blocks at the same time and publish in either order.
//!
//! | word | written by | read by |
//! |---|---|---|
//! | `head` | producers, under the lock | consumer |
//! | `returned` | consumer | producers, under the lock |
//! | `waiting` (producers wait for a place) | under the lock | consumer |
//! | `closed` | under the lock | consumer |
//! | entries | producers, before `head` | consumer, after `head` |
//!
//! The consumer takes no lock to receive and to give back. All calls are bounded.
//!
//! # No lost wake-up
//! The consumer registers its waker under the lock under which `head` moves. A producer stores
//! `waiting`, fence, looks at `returned`; the consumer stores `returned`, fence, looks at
//! `waiting`: one of the two sees the other.

mod receiver;
mod sender;

use core::task::Waker;

use crate::cell::{Cell, Line};
use crate::lock::Lock;
use crate::waiters::{Waiters, Woken, wake};
use crate::word::{ARM_FENCE, CLOSE_STORE, HEAD_STORE, RETURN_LOAD, Word, full_fence};

pub use self::receiver::{Closed, Receiver};
pub use self::sender::{Handle, Place, Refused, Sender};

/// A queue of up to `BLOCKS` packets of up to `SIZE` bytes each, usable as a `static`.
///
/// `BLOCKS` is a power of two up to 32,768. `L` says which contexts may send: see
/// [`lock`](crate::lock). The memory is `BLOCKS * (SIZE + 10)` bytes and a few lines; it is all
/// zero before the first [`Queue::split`].
///
/// ```
/// # #[cfg(feature = "std")] {
/// use sinew_shm::{Queue, StdLock};
///
/// static QUEUE: Queue<StdLock, 8, 256> = Queue::new();
///
/// let (sender, mut receiver) = QUEUE.split().unwrap();
/// let mut place = sender.place(4).unwrap();
/// place[..4].copy_from_slice(b"ping");
/// place.commit(4).unwrap();
/// assert_eq!(receiver.peek(), Ok(Some(&b"ping"[..])));
/// receiver.release();
/// # }
/// ```
pub struct Queue<L, const BLOCKS: usize, const SIZE: usize> {
    lock: L,
    producers: Line<Cell<Producers<BLOCKS>>>,
    shared: Line<Shared>,
    /// Free-running count of blocks that the consumer has given back.
    returned: Line<Word>,
    ring: [Entry; BLOCKS],
    blocks: [Line<Cell<[u8; SIZE]>>; BLOCKS],
}

/// What the producers' side publishes.
struct Shared {
    /// Free-running count of published entries.
    head: Word,
    /// Not 0: a producer waits for a place.
    waiting: Word,
    /// Not 0: nothing more will be published.
    closed: Word,
    full: Word,
    too_large: Word,
    discarded: Word,
}

/// A packet in the ring.
struct Entry {
    block: Word,
    len: Word,
}

/// What the producers share among themselves, under the lock.
struct Producers<const BLOCKS: usize> {
    /// The session that may send; 0 while the queue is closed.
    open: u32,
    /// The last session that was opened; 0 before the first.
    session: u32,
    sender_lives: bool,
    receiver_lives: bool,
    /// How many of the returned blocks have been taken again.
    reclaimed: u32,
    /// Free blocks that never left, or came back unsent.
    unsent: [u16; BLOCKS],
    unsent_len: u32,
    waiters: Waiters,
    consumer: Option<Waker>,
}

/// Counters of a queue since the start of the program, free-running.
///
/// They are read one after another while both sides go on, so sums may be off by what happened
/// in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets published.
    pub sent: u32,
    /// Packets that the consumer has read and given back.
    pub received: u32,
    /// Packets that nobody had read when the queue was opened again.
    pub discarded: u32,
    /// Refusals because no block was free.
    pub full: u32,
    /// Refusals because the packet was larger than a block.
    pub too_large: u32,
}

// SAFETY: `producers` is only reached under the lock. A block is reached by the one who holds it:
// the place that took it under the lock, then, after `head`, the one receiver, until `returned`.
// The rest are words.
unsafe impl<L: Lock + Sync, const BLOCKS: usize, const SIZE: usize> Sync
    for Queue<L, BLOCKS, SIZE>
{
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Default for Queue<L, BLOCKS, SIZE> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Lock, const BLOCKS: usize, const SIZE: usize> Queue<L, BLOCKS, SIZE> {
    const_fn! {
        /// A queue that nobody has opened yet.
        pub fn new() -> Self {
            const {
                assert!(BLOCKS.is_power_of_two() && BLOCKS <= 1 << 15, "BLOCKS: a power of two");
                assert!(SIZE > 0 && SIZE <= u32::MAX as usize, "SIZE: at least 1 byte");
            }
            Queue {
                lock: L::NEW,
                producers: Line(Cell::new(Producers {
                    open: 0,
                    session: 0,
                    sender_lives: false,
                    receiver_lives: false,
                    reclaimed: 0,
                    unsent: [0; BLOCKS],
                    unsent_len: 0,
                    waiters: Waiters::new(),
                    consumer: None,
                })),
                shared: Line(Shared {
                    head: Word::new(),
                    waiting: Word::new(),
                    closed: Word::new(),
                    full: Word::new(),
                    too_large: Word::new(),
                    discarded: Word::new(),
                }),
                returned: Line(Word::new()),
                ring: array![Entry { block: Word::new(), len: Word::new() }; BLOCKS],
                blocks: array![Line(Cell::new([0; SIZE])); BLOCKS],
            }
        }
    }

    /// Opens the queue: the one sender, from which handles come, and the one receiver.
    ///
    /// `None` while the sender, the receiver or a [`Place`] of the time before is alive. Once all
    /// are dropped the queue opens again, empty, with every block free; old handles stay
    /// [`Refused::Closed`].
    #[allow(clippy::type_complexity)]
    pub fn split(&'static self) -> Option<(Sender<L, BLOCKS, SIZE>, Receiver<L, BLOCKS, SIZE>)> {
        let session = self.locked(|producers| {
            let head = self.shared.0.head.get();
            let queued = head.wrapping_sub(producers.reclaimed);
            let all_back = producers.session == 0
                || queued.wrapping_add(producers.unsent_len) == BLOCKS as u32;
            if producers.sender_lives || producers.receiver_lives || !all_back {
                return None;
            }
            let unread = head.wrapping_sub(self.returned.0.get());
            self.shared
                .0
                .discarded
                .set(self.shared.0.discarded.get().wrapping_add(unread));
            // There is no consumer now, so its word is ours.
            self.returned.0.set(head);
            self.shared.0.closed.set(0);
            producers.reclaimed = head;
            for (block, slot) in producers.unsent.iter_mut().enumerate() {
                *slot = block as u16;
            }
            producers.unsent_len = BLOCKS as u32;
            producers.sender_lives = true;
            producers.receiver_lives = true;
            producers.session = producers.session.wrapping_add(1).max(1);
            producers.open = producers.session;
            Some((producers.session, head))
        });
        let (session, head) = session?;
        Some((Sender::new(self, session), Receiver::new(self, head)))
    }

    /// A handle as [`Sender::handle`] gives it, of the sender that there is now; `None` where the queue is closed.
    pub fn handle(&'static self, reserve: usize) -> Option<Handle<L, BLOCKS, SIZE>> {
        let session = self.locked(|producers| producers.open);
        (session != 0).then(|| Handle::new(self, session, reserve))
    }

    /// Counters, readable from any context.
    pub fn stats(&self) -> Stats {
        let discarded = self.shared.0.discarded.get();
        Stats {
            sent: self.shared.0.head.get(),
            received: self.returned.0.get().wrapping_sub(discarded),
            discarded,
            full: self.shared.0.full.get(),
            too_large: self.shared.0.too_large.get(),
        }
    }

    /// Takes a block for a producer of `session` that leaves `reserve` blocks free.
    fn take(&self, session: u32, reserve: u32) -> Result<u32, Refused> {
        self.locked(|producers| {
            if producers.open != session {
                return Err(Refused::Closed);
            }
            let back = self
                .returned
                .0
                .load(RETURN_LOAD)
                .wrapping_sub(producers.reclaimed);
            if back + producers.unsent_len <= reserve {
                self.shared.0.full.bump();
                return Err(Refused::Full);
            }
            // The block that came back last is the warmest, so the returned ones go first.
            Ok(if back != 0 {
                let block = self.entry(producers.reclaimed).block.get();
                producers.reclaimed = producers.reclaimed.wrapping_add(1);
                block
            } else {
                producers.unsent_len -= 1;
                u32::from(producers.unsent[Self::slot(producers.unsent_len)])
            })
        })
    }

    /// Publishes a block that was taken, and wakes the consumer if it waits.
    fn publish(&self, session: u32, block: u32, len: u32) -> Result<(), Refused> {
        let consumer = self.locked(|producers| {
            if producers.open != session {
                producers.keep(block);
                return Err(Refused::Closed);
            }
            let head = self.shared.0.head.get();
            let entry = self.entry(head);
            entry.block.set(block);
            entry.len.set(len);
            self.shared.0.head.store(head.wrapping_add(1), HEAD_STORE);
            Ok(producers.consumer.take())
        })?;
        if let Some(consumer) = consumer {
            consumer.wake();
        }
        Ok(())
    }

    /// Takes an unsent block back, and wakes who waits for one.
    #[cold]
    fn give_back(&self, block: u32) {
        wake(self.locked(|producers| {
            producers.keep(block);
            self.ready(producers)
        }));
    }

    /// Wakes who waits for a place after the consumer has given one back.
    #[cold]
    fn wake_ready(&self) {
        wake(self.locked(|producers| self.ready(producers)));
    }

    /// Registers a waiting producer.
    fn wait(&self, session: u32, reserve: u32, waker: &Waker) {
        let mut mine = Some(waker.clone());
        let (evicted, woken) = self.locked(|producers| {
            if producers.open != session {
                return (mine.take(), Default::default());
            }
            let evicted = producers.waiters.add(&mut mine, reserve, u32::min);
            self.shared.0.waiting.set(1);
            full_fence(ARM_FENCE);
            (evicted, self.ready(producers))
        });
        if let Some(evicted) = evicted {
            evicted.wake();
        }
        wake(woken);
    }

    /// Ends the session and wakes everybody, and notes which half is dropped, if one is.
    #[cold]
    fn close(&self, sender_gone: bool, receiver_gone: bool) {
        let (consumer, woken) = self.locked(|producers| {
            producers.sender_lives &= !sender_gone;
            producers.receiver_lives &= !receiver_gone;
            producers.open = 0;
            self.shared.0.closed.store(1, CLOSE_STORE);
            self.shared.0.waiting.set(0);
            let mut woken = Woken::default();
            producers.waiters.ready(|_| true, &mut woken);
            (producers.consumer.take(), woken)
        });
        if let Some(consumer) = consumer {
            consumer.wake();
        }
        wake(woken);
    }

    /// Takes out who may go on now, and keeps `waiting` true to the rest.
    fn ready(&self, producers: &mut Producers<BLOCKS>) -> Woken {
        let back = self
            .returned
            .0
            .load(RETURN_LOAD)
            .wrapping_sub(producers.reclaimed);
        let mut woken = Woken::default();
        let free = back + producers.unsent_len;
        producers
            .waiters
            .ready(|reserve| free > reserve, &mut woken);
        self.shared
            .0
            .waiting
            .set(u32::from(!producers.waiters.is_empty()));
        woken
    }

    fn count_too_large(&self) {
        self.locked(|_| self.shared.0.too_large.bump());
    }

    #[inline(always)]
    fn entry(&self, count: u32) -> &Entry {
        &self.ring[Self::slot(count)]
    }

    #[inline(always)]
    fn block(&self, block: u32) -> &Cell<[u8; SIZE]> {
        &self.blocks[Self::slot(block)].0
    }

    /// Any count or block number as an index below `BLOCKS`.
    #[inline(always)]
    fn slot(count: u32) -> usize {
        count as usize & (BLOCKS - 1)
    }

    #[inline(always)]
    fn locked<R>(&self, f: impl FnOnce(&mut Producers<BLOCKS>) -> R) -> R {
        self.lock.with(|| {
            // SAFETY: the lock keeps every other context out of the cell.
            f(unsafe { &mut *self.producers.0.write() })
        })
    }
}

impl<const BLOCKS: usize> Producers<BLOCKS> {
    /// Keeps a block that was taken and not sent.
    fn keep(&mut self, block: u32) {
        if let Some(slot) = self.unsent.get_mut(self.unsent_len as usize) {
            *slot = block as u16;
            self.unsent_len += 1;
        }
    }
}

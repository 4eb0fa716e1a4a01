//! What shared memory allows when nothing is checked: the reference of `make bench BENCH=shm`.
//!
//! A ring for one producer and one consumer in a memfd that both processes map: a head, a tail, and
//! slots of one size; a message is written in its slot and read there. No length, no session, no
//! check, no protection: a peer that breaks the rules, or is restarted, breaks this side too. That is
//! the point. It shows the cost of moving the cache lines, and what every check has to be held
//! against. It is not for use, and no crate of the product may depend on it.
//!
//! The safe functions of this crate are sound only as long as both ends keep the protocol, which the
//! benchmark's two processes do.
#![warn(missing_docs)]

mod map;
mod ping_pong;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::thread::futex;

use map::Map;

pub use ping_pong::{PingPong, create_ping_pong};

/// Indices lie this far apart: two lines, as processors fetch them in pairs.
const APART: usize = 128;
const HEAD: usize = 0; // written by the producer: messages published
const TAIL: usize = APART; // written by the consumer: messages given back
const PRODUCER_SLEEPS: usize = 2 * APART;
const CONSUMER_SLEEPS: usize = 3 * APART;
const SLOTS: usize = 4 * APART;

/// What both ends know: where things are.
struct Ring {
    map: Map,
    mask: u32,
    size: usize,
    stride: usize,
}

impl Ring {
    fn new(file: impl AsFd, slots: u32, size: usize) -> io::Result<Self> {
        let map = Map::new(file, bytes(slots, size))?;
        Ok(Ring {
            map,
            mask: slots - 1,
            size,
            stride: stride(size),
        })
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        self.map.word(at)
    }

    fn slot(&self, count: u32) -> usize {
        SLOTS + (count & self.mask) as usize * self.stride
    }

    /// Sleeps until `index` is no longer `seen`; `asleep` tells the other side to wake us.
    fn sleep(&self, asleep: usize, index: usize, seen: u32) -> io::Result<()> {
        let (asleep, index) = (self.word(asleep), self.word(index));
        asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst); // our word before their index; `wake` is the other half
        if index.load(Ordering::Relaxed) == seen {
            match futex::wait(index, futex::Flags::empty(), seen, None) {
                Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        asleep.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Wakes the other side where it sleeps on `index`.
    fn wake(&self, asleep: usize, index: usize) -> io::Result<()> {
        fence(Ordering::SeqCst); // our index before their word; `sleep` is the other half
        if self.word(asleep).load(Ordering::Relaxed) != 0 {
            futex::wake(self.word(index), futex::Flags::empty(), 1)?;
        }
        Ok(())
    }
}

/// Slots begin at a line.
fn stride(size: usize) -> usize {
    size.next_multiple_of(64)
}

fn bytes(slots: u32, size: usize) -> usize {
    SLOTS + slots as usize * stride(size)
}

/// Memory for a ring of `slots` messages of `size` bytes; `slots` is a power of two. Map it with
/// [`Producer::new`] in one process and [`Consumer::new`] in the other.
pub fn create(slots: u32, size: usize) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("reference-ring", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, bytes(slots, size) as u64)?;
    Ok(file)
}

/// The end that writes.
pub struct Producer {
    ring: Ring,
    head: u32,
    published: u32,
    /// The tail as last read: read again only when the ring looks full.
    tail: u32,
}

impl Producer {
    /// The writing end of a ring in `file`, with the figures of [`create`].
    pub fn new(file: impl AsFd, slots: u32, size: usize) -> io::Result<Self> {
        Ok(Producer {
            ring: Ring::new(file, slots, size)?,
            head: 0,
            published: 0,
            tail: 0,
        })
    }

    /// The slot of the next message, or `None` while all are taken.
    #[inline]
    pub fn place(&mut self) -> Option<&mut [u8]> {
        if self.head.wrapping_sub(self.tail) > self.ring.mask {
            self.tail = self.ring.word(TAIL).load(Ordering::Acquire);
            if self.head.wrapping_sub(self.tail) > self.ring.mask {
                return None;
            }
        }
        let at = self.ring.slot(self.head);
        // SAFETY: the slot lies in the map (`slot` masks the count), the consumer gave it back (the
        // acquire load above) and reads it again only after `publish`, and `&mut self` keeps us from
        // giving it out twice.
        Some(unsafe { self.ring.map.bytes_mut(at, self.ring.size) })
    }

    /// Ends the message in the slot of [`Producer::place`]; seen by the peer from `publish` on.
    #[inline]
    pub fn end(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    /// Shows the peer all ended messages.
    #[inline]
    pub fn publish(&mut self) {
        self.published = self.head;
        self.ring.word(HEAD).store(self.head, Ordering::Release);
    }

    /// The answer that the consumer wrote over the last message, once it gave the slot back; `None`
    /// before that.
    #[inline]
    pub fn answer(&mut self) -> Option<&[u8]> {
        if self.ring.word(TAIL).load(Ordering::Acquire) != self.published {
            return None;
        }
        let at = self.ring.slot(self.published.wrapping_sub(1));
        // SAFETY: the slot lies in the map; the consumer gave all slots back (the acquire load) and
        // writes none before the next `publish`, which needs `&mut self` and so ends this borrow.
        Some(unsafe { self.ring.map.bytes(at, self.ring.size) })
    }

    /// Wakes a sleeping consumer; for blocking use, after `publish`.
    pub fn wake(&self) -> io::Result<()> {
        self.ring.wake(CONSUMER_SLEEPS, HEAD)
    }

    /// Sleeps until the consumer gives something back.
    pub fn sleep(&self) -> io::Result<()> {
        let tail = self.ring.word(TAIL).load(Ordering::Relaxed);
        if tail != self.published {
            self.ring.sleep(PRODUCER_SLEEPS, TAIL, tail)?;
        }
        Ok(())
    }
}

/// The end that reads.
pub struct Consumer {
    ring: Ring,
    tail: u32,
    /// The head as last read: read again only when the ring looks empty.
    head: u32,
}

impl Consumer {
    /// The reading end of a ring in `file`, with the figures of [`create`].
    pub fn new(file: impl AsFd, slots: u32, size: usize) -> io::Result<Self> {
        Ok(Consumer {
            ring: Ring::new(file, slots, size)?,
            tail: 0,
            head: 0,
        })
    }

    /// The oldest message, or `None`. Writable: an answer may be written over it.
    #[inline]
    pub fn message(&mut self) -> Option<&mut [u8]> {
        if self.head == self.tail {
            self.head = self.ring.word(HEAD).load(Ordering::Acquire);
            if self.head == self.tail {
                return None;
            }
        }
        let at = self.ring.slot(self.tail);
        // SAFETY: the slot lies in the map; the producer published it (the acquire load above) and
        // takes it up again only after `release`; `&mut self` keeps us from giving it out twice.
        Some(unsafe { self.ring.map.bytes_mut(at, self.ring.size) })
    }

    /// Goes on to the next message; the peer gets the slots back at `give_back`.
    #[inline]
    pub fn end(&mut self) {
        self.tail = self.tail.wrapping_add(1);
    }

    /// Whether a further message is known of without a look at the peer's line.
    #[inline]
    pub fn knows_more(&self) -> bool {
        self.head != self.tail
    }

    /// Gives the slots of all ended messages back.
    #[inline]
    pub fn give_back(&mut self) {
        self.ring.word(TAIL).store(self.tail, Ordering::Release);
    }

    /// Wakes a sleeping producer; for blocking use, after `give_back`.
    pub fn wake(&self) -> io::Result<()> {
        self.ring.wake(PRODUCER_SLEEPS, TAIL)
    }

    /// Sleeps until there is a message.
    pub fn sleep(&self) -> io::Result<()> {
        self.ring.sleep(CONSUMER_SLEEPS, HEAD, self.tail)
    }
}

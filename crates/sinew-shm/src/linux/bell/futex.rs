//! A doorbell that is a word in the ringer's own segment.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::thread::{ClockId, futex};
use rustix::time::clock_gettime;

use super::watch::Watch;
use super::{SLICE, Seen, Wait, Woken};
use crate::domain::Doorbell;
use crate::linux::{Deadline, Mapping};
use crate::word::futex::{FutexWord, KernelWord, OwnWord, address};

/// One word of each side: its owner counts it up and wakes who waits on it; the peer waits on it
/// through a mapping that may be read-only.
///
/// A thread of its own watches the socket, so that a wait ends at once when the peer dies; without a
/// socket ([`FutexBell::unwatched`]) the bell does not tell of death. Nothing that the peer does to its
/// word makes a call here wait longer than its time limit.
pub struct FutexBell {
    mine: FutexWord,
    peers: FutexWord,
    /// What `mine` holds: it is not read back. The lock makes several ringers one writer.
    rung: Mutex<u32>,
    /// `None` where there is no socket.
    watch: Option<Watch>,
    /// Counts the interruptions; the lock makes several threads one writer.
    interrupted: OwnWord,
    interruptions: Mutex<u32>,
    /// Keeps `mine` and `peers` mapped; the watch ends before, as it uses `peers`.
    _memory: [Arc<Mapping>; 2],
}

/// A place of a word: a mapping, and an offset in it in bytes.
pub type At<'a> = (&'a Arc<Mapping>, usize);

impl FutexBell {
    /// Rings by the word at `mine`, waits on the word at `peers`, watches `socket` for the hang-up.
    ///
    /// The word of `mine` is for this bell alone: nothing else writes it. It is rung on from whatever
    /// value it has.
    pub fn new(mine: At<'_>, peers: At<'_>, socket: OwnedFd) -> Result<Self, FutexError> {
        let mut bell = Self::unwatched(mine, peers)?;
        let word = bell.peers;
        let watch = Watch::start(socket, move || wake(word.word()));
        bell.watch = Some(watch.map_err(FutexError::Io)?);
        Ok(bell)
    }

    /// As [`FutexBell::new`], where there is no socket: it never says [`Woken::HungUp`], so the death
    /// of the peer is for others to see.
    pub fn unwatched(mine: At<'_>, peers: At<'_>) -> Result<Self, FutexError> {
        if !mine.0.is_writable() {
            return Err(FutexError::ReadOnly);
        }
        let memory = [mine.0.clone(), peers.0.clone()];
        let mine = place(mine)?;
        let peers = place(peers)?;
        Ok(FutexBell {
            mine,
            peers,
            rung: Mutex::new(mine.load()),
            watch: None,
            interrupted: OwnWord::new(),
            interruptions: Mutex::new(0),
            _memory: memory,
        })
    }

    /// Sleeps until one of the two words is not as seen, or somebody wakes who waits on it.
    fn sleep(&self, seen: Seen, deadline: Deadline) -> Result<(), Errno> {
        let wait = |word, value: u32, flags| {
            let mut wait = futex::Wait::new();
            wait.uaddr = futex::WaitPtr::new(address(word));
            wait.val = u64::from(value);
            wait.flags = futex::WaitFlags::SIZE_U32 | flags;
            wait
        };
        let both = [
            wait(self.peers.word(), seen.rung, futex::WaitFlags::empty()),
            wait(
                self.interrupted.word(),
                seen.interrupted,
                futex::WaitFlags::PRIVATE,
            ),
        ];
        let end = deadline.left().map(|left| {
            let now = clock_gettime(ClockId::Monotonic);
            now.checked_add(left).unwrap_or(now)
        });
        let flags = futex::WaitvFlags::empty();
        match futex::waitv(&both, flags, end.as_ref(), ClockId::Monotonic) {
            Err(Errno::NOSYS) => {
                let slice = deadline.remaining().map_or(SLICE, |left| left.min(SLICE));
                let slice = Timespec::try_from(slice).ok();
                let flags = futex::Flags::empty();
                match futex::wait(self.peers.word(), flags, seen.rung, slice.as_ref()) {
                    Err(Errno::TIMEDOUT) => Ok(()),
                    woken => woken,
                }
            }
            woken => woken.map(drop),
        }
    }
}

/// The word at an offset of a mapping, which must outlive it.
fn place((mapping, at): At<'_>) -> Result<FutexWord, FutexError> {
    let inside = at.checked_add(4).is_some_and(|end| end <= mapping.len());
    if !inside {
        return Err(FutexError::Misplaced);
    }
    // SAFETY: the four bytes lie in the mapping.
    let word = unsafe { mapping.as_ptr().add(at) };
    if word.addr().get() % 4 != 0 {
        return Err(FutexError::Misplaced);
    }
    // SAFETY: aligned and mapped, and the bell keeps the mapping for as long as it uses the word.
    Ok(unsafe { FutexWord::new(word) })
}

/// Wakes all that wait on the word: an observer may wait there too.
fn wake(word: &KernelWord) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

impl Doorbell for FutexBell {
    fn ring(&self) {
        {
            let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
            *rung = rung.wrapping_add(1);
            // SAFETY: `new` refused a mapping that is not writable.
            unsafe { self.mine.store(*rung) };
        }
        wake(self.mine.word());
    }
}

impl Wait for FutexBell {
    fn seen(&self) -> Seen {
        Seen {
            rung: self.peers.load(),
            interrupted: self.interrupted.load(),
        }
    }

    fn wait(&self, seen: Seen, timeout: Option<Duration>) -> Woken {
        let deadline = Deadline::within(timeout);
        loop {
            // A wake-up without a change of a word is none.
            if self.seen() != seen {
                return Woken::Rung;
            }
            let inside = self.watch.as_ref().map(Watch::enter);
            if matches!(inside, Some(None)) {
                return Woken::HungUp;
            }
            // Also where somebody wakes without end.
            if deadline.is_over() {
                return Woken::TimedOut;
            }
            match self.sleep(seen, deadline) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::TIMEDOUT) => return Woken::TimedOut,
                Err(_) => return Woken::HungUp,
            }
        }
    }

    fn interrupt(&self) {
        {
            let count = self.interruptions.lock();
            let mut count = count.unwrap_or_else(PoisonError::into_inner);
            *count = count.wrapping_add(1);
            self.interrupted.store(*count);
        }
        let flags = futex::Flags::PRIVATE;
        let _ = futex::wake(self.interrupted.word(), flags, i32::MAX as u32);
    }
}

impl core::fmt::Debug for FutexBell {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FutexBell").finish_non_exhaustive()
    }
}

/// Why a bell was not made.
#[derive(Debug)]
pub enum FutexError {
    /// The own word lies in a mapping that cannot be written. Usually the two are exchanged.
    ReadOnly,
    /// A word lies outside of its mapping, or not at a multiple of four bytes.
    Misplaced,
    /// The thread or its descriptor could not be made: the limits of the process.
    Io(io::Error),
}

impl core::fmt::Display for FutexError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            FutexError::ReadOnly => f.write_str("the own word is mapped read-only"),
            FutexError::Misplaced => f.write_str("the word is outside of its mapping or unaligned"),
            FutexError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FutexError {}

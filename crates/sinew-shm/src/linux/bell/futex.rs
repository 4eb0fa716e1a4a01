//! A doorbell that is a word in the ringer's own segment.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;

use super::watch::Watch;
use super::{Seen, Wait, Woken};
use crate::domain::Doorbell;
use crate::linux::{Deadline, Mapping};
use crate::word::futex::FutexWord;

/// One word of each side: its owner counts it up and wakes who waits on it; the peer waits on it
/// through a mapping that may be read-only.
///
/// A thread of its own watches the socket, so that a wait ends at once when the peer dies. Nothing
/// that the peer does to its word makes a call here wait longer than its time limit.
pub struct FutexBell {
    mine: FutexWord,
    peers: FutexWord,
    /// What `mine` holds: it is not read back. The lock makes several ringers one writer.
    rung: Mutex<u32>,
    watch: Watch,
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
        if !mine.0.is_writable() {
            return Err(FutexError::ReadOnly);
        }
        let memory = [mine.0.clone(), peers.0.clone()];
        let mine = place(mine)?;
        let peers = place(peers)?;
        let rung = Mutex::new(mine.load());
        let watch = Watch::start(socket, move || wake(&peers)).map_err(FutexError::Io)?;
        Ok(FutexBell {
            mine,
            peers,
            rung,
            watch,
            _memory: memory,
        })
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
fn wake(word: &FutexWord) {
    let _ = futex::wake(word.word(), futex::Flags::empty(), i32::MAX as u32);
}

impl Doorbell for FutexBell {
    fn ring(&self) {
        {
            let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
            *rung = rung.wrapping_add(1);
            // SAFETY: `new` refused a mapping that is not writable.
            unsafe { self.mine.store(*rung) };
        }
        wake(&self.mine);
    }
}

impl Wait for FutexBell {
    fn seen(&self) -> Seen {
        Seen(self.peers.load())
    }

    fn wait(&self, seen: Seen, timeout: Option<Duration>) -> Woken {
        let deadline = Deadline::within(timeout);
        loop {
            if self.peers.load() != seen.0 {
                return Woken::Rung;
            }
            let Some(_inside) = self.watch.enter() else {
                return Woken::HungUp;
            };
            let left = deadline.left();
            let flags = futex::Flags::empty();
            match futex::wait(self.peers.word(), flags, seen.0, left.as_ref()) {
                // Before the wait, whatever the word is by now.
                Err(Errno::AGAIN) => return Woken::Rung,
                // The next round tells whether it was a ring or the hang-up. The wake-up of a ring that
                // was seen without it is for nothing; one without end keeps nobody beyond the limit.
                Ok(()) | Err(Errno::INTR) if !deadline.is_over() => {}
                Ok(()) | Err(Errno::INTR | Errno::TIMEDOUT) => return Woken::TimedOut,
                Err(_) => return Woken::HungUp,
            }
        }
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

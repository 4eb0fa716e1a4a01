//! A pipe each way.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::Result;
use crate::shm::contender::{End, Opening, Waiting};
use crate::shm::payload::{Digest, fill, seed, sum};

/// The most that an unprivileged process may ask for.
const CAPACITY: usize = 1 << 20;

/// A pipe each way. When busy both descriptors do not block.
pub struct Pipes {
    out: OwnedFd,
    back: OwnedFd,
    size: usize,
    /// Messages to write.
    outgoing: Vec<u8>,
    /// Bytes read and not yet taken: `start..end`.
    incoming: Vec<u8>,
    start: usize,
    end: usize,
}

impl Pipes {
    fn new(out: OwnedFd, back: OwnedFd, opening: &Opening<'_>) -> Result<Self> {
        if opening.waiting == Waiting::Busy {
            ioctl_fionbio(&out, true)?;
            ioctl_fionbio(&back, true)?;
        }
        let batch = opening.size * opening.batch;
        Ok(Pipes {
            out,
            back,
            size: opening.size,
            outgoing: vec![0; batch],
            incoming: vec![0; batch],
            start: 0,
            end: 0,
        })
    }

    /// Writes the first `len` outgoing bytes; 0 if there was no room at all.
    fn write(&mut self, len: usize) -> Result<usize> {
        let mut done = 0;
        while done < len {
            match write(&self.out, &self.outgoing[done..len]) {
                Ok(n) => done += n,
                Err(Errno::AGAIN) if done == 0 => return Ok(0),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Reads until `len` bytes are there, or nothing is and there is nothing to wait for.
    fn read(&mut self, len: usize, most: usize) -> Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        while self.end - self.start < len {
            match read(&self.back, &mut self.incoming[self.end..most]) {
                Ok(0) => return Err("the pipe is closed".into()),
                Ok(n) => self.end += n,
                Err(Errno::AGAIN) if self.end == 0 => return Ok(false),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

impl End for Pipes {
    const NAME: &'static str = "pipe";
    const NOTE: &'static str = "1 MiB; busy: O_NONBLOCK; batched: one write and read for many";

    fn near(opening: &Opening<'_>) -> Result<Self> {
        let (there, out) = pipe_with(PipeFlags::CLOEXEC)?;
        let (back, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setpipe_size(&out, CAPACITY)?;
        fcntl_setpipe_size(&theirs, CAPACITY)?;
        opening.control.give(&[there.as_fd(), theirs.as_fd()])?;
        Pipes::new(out, back, opening)
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        let [there, out] = opening.control.take()?;
        Pipes::new(out, there, opening)
    }

    fn send(&mut self, seed: u64) -> Result<bool> {
        fill(&mut self.outgoing[..self.size], seed);
        Ok(self.write(self.size)? > 0)
    }

    fn receive(&mut self) -> Result<Option<u64>> {
        if !self.read(self.size, self.size)? {
            return Ok(None);
        }
        let message = &self.incoming[self.start..self.start + self.size];
        self.start += self.size;
        Ok(Some(sum(message)))
    }

    fn send_batch(&mut self, messages: Range<u64>) -> Result<u64> {
        let places = self.outgoing.chunks_exact_mut(self.size);
        for (place, n) in places.zip(messages.clone()) {
            fill(place, seed(n));
        }
        let count = messages.end - messages.start;
        let written = self.write(count as usize * self.size)?;
        Ok((written / self.size) as u64)
    }

    fn receive_batch(&mut self, most: u64, digest: &mut Digest) -> Result<u64> {
        if !self.read(self.size, most as usize * self.size)? {
            return Ok(0);
        }
        // A read may end inside of a message: its rest is there, or comes at once.
        let whole = (self.end - self.start).next_multiple_of(self.size);
        self.read(whole, self.start + whole)?;
        let messages = self.incoming[self.start..self.end].chunks_exact(self.size);
        let taken = messages.len() as u64;
        messages.for_each(|message| digest.add(sum(message)));
        self.start = self.end;
        Ok(taken)
    }
}

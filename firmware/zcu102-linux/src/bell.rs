//! The doorbell of the Cortex-R5F: an interrupt that it sets pending, by drivers that Debian's kernel has.
//!
//! The device tree calls it a key (gpio-keys with an interrupt and no pin), so evdev makes a descriptor of
//! it that is readable after each interrupt. A kernel with uio_pdrv_genirq does the same with less: there
//! one reads four bytes, and then writes a 1 (32 bits), which enables the interrupt again.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, OFlags, open};
use sinew_shm::domain::Doorbell;
use sinew_shm::linux::bell::{Seen, Wait, Woken};

use crate::{PATIENCE, Result};

/// Waits for the interrupt. Rings nobody: the Cortex-R5F polls.
pub struct Bell {
    events: File,
    interrupted: OwnedFd,
    rings: AtomicU32,
}

impl Bell {
    /// Opens it as soon as its driver has made it.
    pub fn open() -> Result<Bell> {
        let path = "/dev/input/event0";
        let careful = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let begin = Instant::now();
        let events = loop {
            match open(path, careful, Mode::empty()) {
                Ok(events) => break events,
                Err(error) if begin.elapsed() > PATIENCE => {
                    return Err(format!("{path}: {error}").into());
                }
                Err(_) => sleep(Duration::from_millis(5)),
            }
        };
        Ok(Bell {
            events: events.into(),
            interrupted: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            rings: AtomicU32::new(0),
        })
    }

    /// How often it was found rung.
    pub fn rings(&self) -> u32 {
        self.rings.load(Relaxed)
    }

    /// Whether it rang since the last call.
    fn take(&self) -> bool {
        // Some events of a key; what is left over rings once more.
        let is_rung = (&self.events).read(&mut [0; 24 * 64]).is_ok();
        self.rings.fetch_add(u32::from(is_rung), Relaxed);
        is_rung
    }
}

impl Doorbell for Bell {
    fn ring(&self) {}
}

impl Wait for Bell {
    /// Nothing to remember: the events wait in the kernel.
    fn seen(&self) -> Seen {
        Seen::default()
    }

    fn wait(&self, _: Seen, timeout: Option<Duration>) -> Woken {
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = [
            PollFd::new(&self.events, PollFlags::IN),
            PollFd::new(&self.interrupted, PollFlags::IN),
        ];
        // What ends early is found again by who waits: there is no time limit to be kept here.
        let _ = poll(&mut fds, timeout.as_ref());
        let is_interrupted = rustix::io::read(&self.interrupted, &mut [0; 8]).is_ok();
        match self.take() || is_interrupted {
            true => Woken::Rung,
            false => Woken::TimedOut,
        }
    }

    fn interrupt(&self) {
        // A full counter is an interruption that was not taken yet.
        let _ = rustix::io::write(&self.interrupted, &1u64.to_ne_bytes());
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.events.as_fd())
    }
}

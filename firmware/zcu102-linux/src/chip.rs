//! The Cortex-R5F as Linux sees it: memory into which an image is loaded, and the words of its start.
//!
//! This is what a remoteproc driver does, in a process, by `/dev/mem`: Debian's kernel has no driver for
//! this core.

use std::fs::{File, OpenOptions};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use object::{Object, ObjectSegment};
use sinew_shm::linux::Mapping;

use crate::agreed::{CODE_LEN, CONTROL, START, STARTED, TCM, TCM_LEN, WAITS};
use crate::{PATIENCE, Result};

/// An instruction that is undefined for ever.
const UNDEFINED: u32 = 0xe7f0_00f0;

/// The Cortex-R5F.
pub struct Chip {
    memory: Words,
    control: Words,
    starts: u32,
}

impl Chip {
    pub fn open() -> Result<Chip> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/mem")?;
        let control = Words::map(&device, CONTROL, 4096)?;
        let chip = Chip {
            memory: Words::map(&device, TCM, TCM_LEN)?,
            starts: control.read(STARTED),
            control,
        };
        chip.until("is not there, or does not wait", || {
            chip.control.read(WAITS) == 1
        })?;
        Ok(chip)
    }

    /// Loads the image, an ELF file, into the core, which waits, and lets it run.
    pub fn start(&mut self, image: &[u8]) -> Result<()> {
        for segment in object::File::parse(image)?.segments() {
            let bytes = segment.data()?;
            let first = (segment.address() as usize)
                .checked_sub(TCM)
                .filter(|first| first + bytes.len() <= TCM_LEN)
                .ok_or("the image does not lie in the core's memory")?;
            for (at, word) in (first..).step_by(4).zip(bytes.chunks(4)) {
                let mut whole = [0; 4];
                whole
                    .iter_mut()
                    .zip(word)
                    .for_each(|(to, from)| *to = *from);
                self.memory.write(at, u32::from_le_bytes(whole));
            }
        }
        self.starts = self.starts.wrapping_add(1);
        self.control.write(START, self.starts);
        self.until("does not start", || {
            self.control.read(STARTED) == self.starts
        })
    }

    /// Stops the core in the middle of whatever it does.
    ///
    /// The chip has a reset for that (CRL_APB, RST_LPD_TOP), this emulator has not. Instead the core's code
    /// is overwritten: at its next instruction it takes an exception, and waits.
    pub fn stop(&self) -> Result<()> {
        for at in (0..CODE_LEN).step_by(4) {
            self.memory.write(at, UNDEFINED);
        }
        self.until("does not stop", || self.control.read(WAITS) == 1)
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
        let begin = Instant::now();
        while !is_so() {
            if begin.elapsed() > PATIENCE {
                return Err(format!("the Cortex-R5F {what}").into());
            }
            sleep(Duration::from_micros(100));
        }
        Ok(())
    }
}

/// Physical memory, by aligned words: on arm64 it is mapped as Device memory.
struct Words(Mapping);

impl Words {
    fn map(device: &File, at: usize, len: usize) -> Result<Words> {
        Ok(Words(Mapping::shared(device, at as u64, len)?))
    }

    /// The word at a byte that is in the map, and a multiple of 4.
    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.0.len());
        // SAFETY: it lies in the map, as just checked, and is aligned, as the map begins at a page; it is
        // only reached as an atomic.
        unsafe { self.0.as_ptr().add(at).cast().as_ref() }
    }

    fn read(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Acquire)
    }

    fn write(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Release);
    }
}

//! A range of a file, a memfd or a device, mapped into this process.

use core::ptr::{self, NonNull};
use std::boxed::Box;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, makedev};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::overlap::Overlap;

/// An owned range of mapped memory; unmapped when dropped.
///
/// Holding one proves: `len` bytes (at least 1) from [`Mapping::as_ptr`] are mapped until it is
/// dropped, readable, and writable where [`Mapping::is_writable`] says so. It does not prove that the
/// bytes stay as they are: other processes, other mappings and devices may change them at any time,
/// so they are reached by atomic words and volatile copies, never as a `&[u8]`.
///
/// A regular file that somebody truncates later makes an access past its new end a SIGBUS. Only a
/// sealed memfd ([`super::memfd::Segment`]) rules that out. Somebody who may write the file can also
/// map it writable, so only a sealed memfd holds against a hostile peer.
#[derive(Debug)]
pub struct Mapping {
    /// Of the first page.
    start: NonNull<u8>,
    /// Bytes between the first page and the first byte asked for.
    skip: usize,
    len: usize,
    writable: bool,
}

// SAFETY: a mapping belongs to the process, not to a thread; all that a shared reference gives is the
// address and the length, and every access through them is the caller's own unsafe code.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing changes behind a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes from `offset` of `fd` for reading and writing, shared with all who map them.
    ///
    /// `offset` is in bytes and need not be that of a page: the page below is mapped too, and the
    /// rest of it hidden. The address is aligned as `offset` is, up to a page. The length of a
    /// character device (UIO, `/dev/mem`) cannot be asked for, so there the driver decides.
    pub fn shared(fd: impl AsFd, offset: u64, len: usize) -> Result<Self, MapError> {
        Self::new(fd, offset, len, true, MapFlags::SHARED)
    }

    /// As [`Mapping::shared`], for reading only: a write through it is a SIGSEGV.
    pub fn read_only(fd: impl AsFd, offset: u64, len: usize) -> Result<Self, MapError> {
        Self::new(fd, offset, len, false, MapFlags::SHARED)
    }

    /// Maps all of a memfd that cannot change its size, with its pages present: no access faults.
    pub(super) fn sealed(fd: impl AsFd, len: usize, writable: bool) -> Result<Self, MapError> {
        Self::new(fd, 0, len, writable, MapFlags::SHARED | MapFlags::POPULATE)
    }

    fn new(
        fd: impl AsFd,
        offset: u64,
        len: usize,
        writable: bool,
        flags: MapFlags,
    ) -> Result<Self, MapError> {
        if len == 0 {
            return Err(MapError::Empty);
        }
        let too_large = MapError::OutOfRange { offset, len };
        // In range of the kernel's own signed offsets.
        let Some(end) = offset
            .checked_add(len as u64)
            .filter(|end| *end <= i64::MAX as u64)
        else {
            return Err(too_large);
        };
        let skip = (offset % rustix::param::page_size() as u64) as usize;
        let Some(mapped) = skip.checked_add(len).filter(|n| *n <= isize::MAX as usize) else {
            return Err(too_large);
        };
        check_length(&fd, offset - skip as u64, end)?;
        let protection = if writable {
            ProtFlags::READ | ProtFlags::WRITE
        } else {
            ProtFlags::READ
        };
        // SAFETY: the address is null, so the kernel takes one that is free, and no Rust object lies
        // there. No reference into it is ever made here.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                mapped,
                protection,
                flags,
                &fd,
                offset - skip as u64,
            )
        };
        let start = start.map_err(|error| MapError::Io(error.into()))?;
        Ok(Mapping {
            start: NonNull::new(start.cast()).ok_or(MapError::OutOfRange { offset, len })?,
            skip,
            len,
            writable,
        })
    }

    /// The first byte.
    pub fn as_ptr(&self) -> NonNull<u8> {
        // SAFETY: `skip + len` bytes are mapped from `start`, and `len` is at least 1.
        unsafe { self.start.add(self.skip) }
    }

    /// In bytes, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it was mapped for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `new` and is unmapped here only; the kernel rounds the
        // length up to pages as it did then. Who kept a pointer broke the contract of this type.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.skip + self.len) };
    }
}

/// That a regular file reaches up to `end`. Nothing can be said of a device, but for `/dev/zero`,
/// which has nothing from a `begin` above 0 on.
fn check_length(fd: impl AsFd, begin: u64, end: u64) -> Result<(), MapError> {
    let stat = rustix::fs::fstat(fd).map_err(|error| MapError::Io(error.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let has = u64::try_from(stat.st_size).unwrap_or(0);
            if has < end {
                return Err(MapError::TooShort { needed: end, has });
            }
            Ok(())
        }
        // Each map of `/dev/zero` is memory of its own that ends where the map's length says, so
        // that there is nothing, and a SIGBUS, behind an offset.
        FileType::CharacterDevice if begin > 0 && stat.st_rdev == makedev(1, 5) => {
            Err(MapError::NotMemory)
        }
        FileType::CharacterDevice => Ok(()),
        _ => Err(MapError::NotMemory),
    }
}

/// Why a range was not mapped.
#[derive(Debug)]
pub enum MapError {
    /// No bytes were asked for. Give the length of the configuration.
    Empty,
    /// Offset and length together pass what this machine can address. Check both.
    OutOfRange {
        /// As asked for, in bytes.
        offset: u64,
        /// As asked for, in bytes.
        len: usize,
    },
    /// The file ends before the range does, and an access there would be a SIGBUS. Usually another
    /// configuration, or the other side has not made the file yet: give it its size first.
    TooShort {
        /// Where the range ends, in bytes.
        needed: u64,
        /// Length of the file in bytes.
        has: u64,
    },
    /// Neither a regular file nor a character device with memory. Usually the wrong path.
    NotMemory,
    /// Another process, or another link of this one, is this side of the link already. End it, or be
    /// the other side.
    Taken,
    /// What is to be this side's segment is the other side's: a wrong offset, or the roles are
    /// exchanged. Nothing was written. Where that is on purpose, clear the memory first.
    OtherSide,
    /// The other side's segment lies where this side would write: usually the blocks of the two have
    /// other sizes, or the offset is wrong. Nothing was written, and a side that runs there goes on. Give
    /// both the same configuration. Where it was left by a side that runs no more
    /// ([`Overlap::is_alive`]), clear the memory first.
    Overlap(Box<Overlap>),
    /// The kernel refused: usually no permission, or the device has no such range.
    Io(io::Error),
}

impl core::fmt::Display for MapError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            MapError::Empty => f.write_str("nothing to map: the length is 0"),
            MapError::OutOfRange { offset, len } => {
                write!(f, "{len} bytes at {offset:#x} are out of range")
            }
            MapError::TooShort { needed, has } => {
                write!(f, "the file is too short: {has} bytes, {needed} needed")
            }
            MapError::NotMemory => {
                f.write_str("neither a regular file nor a character device with memory")
            }
            MapError::Taken => {
                f.write_str("somebody else is this side of the link already: end the other one")
            }
            MapError::OtherSide => f.write_str(
                "the other side's segment is where this side's is to be: check the offset, and which \
                 side this is",
            ),
            MapError::Overlap(overlap) => write!(
                f,
                "{overlap}: give both sides the same configuration, or check the offset{}",
                overlap.or_clear()
            ),
            MapError::Io(error) => write!(f, "cannot map: {error}"),
        }
    }
}

impl std::error::Error for MapError {}

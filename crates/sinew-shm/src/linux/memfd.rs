//! Segments in sealed anonymous memory: nobody can resize them, and one process alone can write them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    fstatfs, ftruncate, memfd_create,
};
use rustix::io::Errno;

use super::map::{MapError, Mapping};

/// Nobody may change the size or the seals.
const FIXED: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);
/// And nobody may write but through the mapping that the owner has already.
const ONE_WRITER: SealFlags = FIXED.union(SealFlags::FUTURE_WRITE);

/// `f_type` of memory with pages of the usual size. (Huge pages may be missing at the first access,
/// which is a SIGBUS.)
const TMPFS: i64 = 0x0102_1994;

/// A sealed memfd and its mapping.
///
/// Holding one proves that its size can never change, so that no access is a SIGBUS by truncation.
/// One that [`Segment::create`] made, or that [`Segment::accept`] took, also has one writer: the
/// mapping of the process that made it. The kernel refuses any other writable mapping of it, an
/// `mprotect` to writable, `write`, and the punching of holes, to everybody.
///
/// A child that the owner forks inherits the writable mapping (one that it executes does not).
#[derive(Debug)]
pub struct Segment {
    fd: OwnedFd,
    map: Mapping,
}

impl Segment {
    /// Makes a segment of `len` zero bytes that only the mapping in it can write.
    pub fn create(len: usize) -> Result<Self, SegmentError> {
        Self::make(len, ONE_WRITER)
    }

    /// Makes an exchange segment of `len` zero bytes: whoever has the descriptor may map it writable.
    pub fn create_exchange(len: usize) -> Result<Self, SegmentError> {
        Self::make(len, FIXED)
    }

    fn make(len: usize, seals: SealFlags) -> Result<Self, SegmentError> {
        let fd = anonymous()?;
        let size = i64::try_from(len).map_err(|_| Errno::FBIG)?;
        ftruncate(&fd, size as u64)?;
        if len > 0 {
            // The pages exist from the start: an access never runs out of memory.
            fallocate(&fd, FallocateFlags::empty(), 0, size as u64)?;
        }
        let map = Mapping::sealed(&fd, len, true)?;
        fcntl_add_seals(&fd, seals)?;
        Ok(Segment { fd, map })
    }

    /// Takes the segment of another process: checks the seals and the size, then maps it read-only.
    pub fn accept(fd: OwnedFd, len: usize) -> Result<Self, SegmentError> {
        check_seals(fd.as_fd(), ONE_WRITER)?;
        check_size(fd.as_fd(), len)?;
        let map = Mapping::sealed(&fd, len, false)?;
        Ok(Segment { fd, map })
    }

    /// Takes an exchange segment that another process made, and maps it read/write.
    pub fn accept_exchange(fd: OwnedFd, len: usize) -> Result<Self, SegmentError> {
        check_seals(fd.as_fd(), FIXED)?;
        check_size(fd.as_fd(), len)?;
        let map = Mapping::sealed(&fd, len, true)?;
        Ok(Segment { fd, map })
    }

    /// Takes a segment of any size up to `limit` bytes, read-only: for observers.
    pub fn observe(fd: OwnedFd, limit: usize) -> Result<Self, SegmentError> {
        check_seals(fd.as_fd(), ONE_WRITER)?;
        let size = size(fd.as_fd())?;
        let len = usize::try_from(size)
            .ok()
            .filter(|len| *len <= limit)
            .ok_or(SegmentError::WrongSize {
                ours: limit as u64,
                theirs: size,
            })?;
        // Its pages are not made present: that would be memory of ours, for what others left empty.
        let map = Mapping::read_only(&fd, 0, len)?;
        Ok(Segment { fd, map })
    }

    /// The memory.
    pub fn mapping(&self) -> &Mapping {
        &self.map
    }

    /// The descriptor and the memory.
    pub fn into_parts(self) -> (OwnedFd, Mapping) {
        (self.fd, self.map)
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// An empty memfd that can be sealed, and never be executed where the kernel knows that (6.3).
fn anonymous() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"sinew", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"sinew", flags),
        made => made,
    }
}

/// A descriptor of one's own as others may have it: for reading only.
///
/// The seals protect the memory also without this; it says so to who looks at the descriptor.
pub(super) fn for_readers(fd: BorrowedFd<'_>) -> Result<OwnedFd, SegmentError> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd;

    check_seals(fd, ONE_WRITER)?;
    let path = std::format!("/proc/self/fd/{}", fd.as_raw_fd());
    let reopened = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    // Without /proc.
    let fd = reopened.or_else(|_| rustix::io::fcntl_dupfd_cloexec(fd, 0))?;
    Ok(fd)
}

/// Also that it is a memfd: nothing else has the seals that are needed, and most files have none.
/// Asks nobody but the kernel, so that a file of a hostile file system cannot hang us.
fn check_seals(fd: BorrowedFd<'_>, needed: SealFlags) -> Result<(), SegmentError> {
    let seals = fcntl_get_seals(fd).map_err(|error| match error {
        Errno::INVAL => SegmentError::NotMemory,
        error => error.into(),
    })?;
    if !seals.contains(needed) {
        return Err(SegmentError::NotSealed {
            ours: needed.bits(),
            theirs: seals.bits(),
        });
    }
    #[allow(clippy::unnecessary_cast)]
    if fstatfs(fd)?.f_type as i64 != TMPFS {
        return Err(SegmentError::NotMemory);
    }
    Ok(())
}

/// After [`check_seals`] this cannot change any more.
fn size(fd: BorrowedFd<'_>) -> Result<u64, SegmentError> {
    Ok(u64::try_from(fstat(fd)?.st_size).unwrap_or(0))
}

fn check_size(fd: BorrowedFd<'_>, len: usize) -> Result<(), SegmentError> {
    let theirs = size(fd)?;
    let ours = len as u64;
    if theirs != ours {
        return Err(SegmentError::WrongSize { ours, theirs });
    }
    Ok(())
}

/// Why a segment was not made or not taken.
#[derive(Debug)]
pub enum SegmentError {
    /// The descriptor is no memfd, or one of huge pages. Its sender is no domain of ours, or hostile.
    NotMemory,
    /// The memfd lacks seals (`F_SEAL_*`), so its sender could truncate it under us, or let others
    /// write it. Its sender is no domain of ours, or hostile.
    NotSealed {
        /// The seals that are needed.
        ours: u32,
        /// The seals that it has.
        theirs: u32,
    },
    /// It has another size than configured. Give both sides the same configuration.
    WrongSize {
        /// What is expected (of an observer: the limit), in bytes.
        ours: u64,
        /// What it has, in bytes.
        theirs: u64,
    },
    /// It could not be mapped.
    Map(MapError),
    /// The kernel refused: usually too many open files, or too little memory.
    Io(io::Error),
}

impl core::fmt::Display for SegmentError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SegmentError::NotMemory => f.write_str("the descriptor is no memfd"),
            SegmentError::NotSealed { ours, theirs } => {
                write!(f, "seals {theirs:#x}, {ours:#x} needed")
            }
            SegmentError::WrongSize { ours, theirs } => {
                write!(f, "{theirs} bytes, {ours} expected")
            }
            SegmentError::Map(error) => error.fmt(f),
            SegmentError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SegmentError {}

impl From<MapError> for SegmentError {
    fn from(error: MapError) -> Self {
        SegmentError::Map(error)
    }
}

impl From<Errno> for SegmentError {
    fn from(error: Errno) -> Self {
        SegmentError::Io(error.into())
    }
}

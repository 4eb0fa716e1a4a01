//! A part of a file or of physical memory in which the segments of links lie.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, fallocate, fstat, ftruncate, open};
use rustix::io::Errno;

use super::map::{MapError, Mapping};
use super::record::{Record, is_taken};
use super::role::Role;
use crate::domain::Span;

/// `len` bytes at `offset` of a file or device: a shared file, `/dev/mem`, `/dev/uioN`.
///
/// Each side maps its own segment by [`Region::own`] and the other's by [`Region::peer`]. Protection
/// is by page, so segments that share a page are not protected from each other. What is said of files
/// at [`Mapping`] holds: this is for a peer that is trusted not to truncate or overwrite the file.
///
/// Devices are opened with `O_SYNC`, by which `/dev/mem` maps memory uncached, as a peer without
/// coherent caches needs. Where caches are coherent, open the device without it and use
/// [`Mapping::shared`], which is faster. Of a UIO device the offset names the map (n times the page
/// size is map n). On arm64, UIO memory is Device memory: aligned accesses only.
#[derive(Debug)]
pub struct Region {
    file: OwnedFd,
    offset: u64,
    len: usize,
}

/// Makes a file as long as this, at least. Somebody else may do the same with another length at the
/// same time, so it must never become shorter.
fn grow(file: &OwnedFd, len: u64) -> io::Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), len.saturating_sub(1), 1) {
            Err(Errno::INTR) => {}
            // On a file system without it, two lengths at the same time may leave the shorter one,
            // which the check of each map finds.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(ftruncate(file, len)?),
            done => return Ok(done?),
        }
    }
}

impl Region {
    /// Opens `path` for reading and writing. The file must exist; the range is checked when mapped.
    pub fn open(path: impl AsRef<Path>, offset: u64, len: usize) -> io::Result<Self> {
        Self::open_as(path.as_ref(), offset, len, OFlags::RDWR)
    }

    /// Opens `path` as [`Region::open`], and makes the file, for its owner alone, and as long as it
    /// must be, where it is not yet: each side may be the first.
    pub fn create(path: impl AsRef<Path>, offset: u64, len: usize) -> io::Result<Self> {
        let path = path.as_ref();
        let mode = Mode::RUSR | Mode::WUSR;
        let careful = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = open(path, OFlags::RDWR | OFlags::CREATE | careful, mode)?;
        let stat = fstat(&file)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let end = offset.saturating_add(len as u64);
        if is_file && u64::try_from(stat.st_size).unwrap_or(0) < end {
            grow(&file, end)?;
        }
        Self::open(path, offset, len)
    }

    /// Opens `path` for reading: for observers. [`Region::own`] then fails.
    pub fn open_read_only(path: impl AsRef<Path>, offset: u64, len: usize) -> io::Result<Self> {
        Self::open_as(path.as_ref(), offset, len, OFlags::RDONLY)
    }

    fn open_as(path: &Path, offset: u64, len: usize, access: OFlags) -> io::Result<Self> {
        // Not to hang in a pipe, nor to take a terminal, that a wrong path names.
        let careful = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = open(path, access | careful | OFlags::SYNC, Mode::empty())?;
        Ok(Region { file, offset, len })
    }

    /// Where it begins in the file or device, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Maps `len` bytes at `at` of the region for reading and writing.
    pub fn own(&self, at: usize, len: usize) -> Result<Mapping, MapError> {
        Mapping::shared(&self.file, self.within(at, len)?, len)
    }

    /// Maps `len` bytes at `at` of the region for reading.
    pub fn peer(&self, at: usize, len: usize) -> Result<Mapping, MapError> {
        Mapping::read_only(&self.file, self.within(at, len)?, len)
    }

    /// Takes the side whose segment lies at `own`, so that nobody else does.
    pub(super) fn claim(&self, own: Span, peer: Span) -> Result<Role, MapError> {
        let (own, peer) = (self.range(own)?, self.range(peer)?);
        match Role::take(self.file.as_fd(), own, peer) {
            Ok(Some(role)) => Ok(role),
            Ok(None) => Err(MapError::Taken),
            Err(error) => Err(MapError::Io(error)),
        }
    }

    /// Whether a process of this machine is the side whose segment lies at `part`, by the lock that
    /// [`Link::in_region`](super::Link::in_region) takes. A region that is open for reading will do.
    ///
    /// Another core, or an emulator, has no lock.
    pub fn is_taken(&self, part: Span) -> Result<bool, MapError> {
        let range = self.range(part)?;
        is_taken(self.file.as_fd(), range).map_err(MapError::Io)
    }

    /// Takes bytes of the region, as [`Region::claim`] does; `None` where somebody has them.
    pub(super) fn lock(&self, part: Span) -> Result<Option<Record>, MapError> {
        let range = self.range(part)?;
        Record::take(self.file.as_fd(), range).map_err(MapError::Io)
    }

    /// The region of a part of the same file, which need not lie in this one.
    pub(super) fn elsewhere(&self, part: Span) -> Result<Region, MapError> {
        let out_of_range = |len| MapError::OutOfRange {
            offset: part.offset,
            len,
        };
        let len = usize::try_from(part.len).map_err(|_| out_of_range(usize::MAX))?;
        let offset = self.offset.checked_add(part.offset);
        Ok(Region {
            file: self.file.try_clone().map_err(MapError::Io)?,
            offset: offset.ok_or(out_of_range(len))?,
            len,
        })
    }

    /// The bytes of the file that a part of the region has.
    fn range(&self, part: Span) -> Result<(u64, u64), MapError> {
        let out_of_range = MapError::OutOfRange {
            offset: part.offset,
            len: self.len,
        };
        match (usize::try_from(part.offset), usize::try_from(part.len)) {
            (Ok(at), Ok(len)) => Ok((self.within(at, len)?, part.len)),
            _ => Err(out_of_range),
        }
    }

    /// The offset in the file of a range that lies in the region.
    fn within(&self, at: usize, len: usize) -> Result<u64, MapError> {
        let fits = at.checked_add(len).is_some_and(|end| end <= self.len);
        fits.then(|| self.offset.checked_add(at as u64))
            .flatten()
            .ok_or(MapError::OutOfRange {
                offset: self.offset.saturating_add(at as u64),
                len,
            })
    }
}

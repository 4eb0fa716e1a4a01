//! Locks on bytes of an open file ("open file description locks").
//!
//! Such a lock belongs to the open file, not to the process: the kernel frees it when the last
//! descriptor of that file is closed, so when the process is gone, whatever way it went. Here each has
//! an open file of its own, close-on-exec, that no program which the process starts inherits. (A copy
//! of the process itself, by `fork` without `exec`, does: the lock is then free when both are gone.)
//!
//! A lock is advice: it holds against a mistake, not against malice, and not against an emulator or a
//! core that knows nothing of it. And it wakes nobody: who wants to know that it is free looks.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};

/// Bytes of a file: offset and length.
pub(super) type Range = (u64, u64);

/// Holding one proves: no other [`Record`] of this machine has any of the same bytes of the file.
#[derive(Debug)]
pub(super) struct Record {
    file: OwnedFd,
    range: Range,
}

impl Record {
    /// Takes the bytes. `None`: somebody has some of them.
    pub(super) fn take(file: BorrowedFd<'_>, range: Range) -> io::Result<Option<Record>> {
        // A lock belongs to the open file, and that of `file` may be shared with another lock.
        let path = std::format!("/proc/self/fd/{}", file.as_raw_fd());
        let careful = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = open(path, OFlags::RDWR | careful, Mode::empty())?;
        match fcntl(file.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, range) {
            Ok(_) => Ok(Some(Record { file, range })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether somebody else has some of these bytes of the same file.
    pub(super) fn finds(&self, range: Range) -> io::Result<bool> {
        is_taken(self.file.as_fd(), range)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // Closing would do, but for the moment in which another thread starts a program: until it
        // closes what it inherits, the new process has the open file too.
        let _ = fcntl(
            self.file.as_fd(),
            libc::F_OFD_SETLK,
            libc::F_UNLCK,
            self.range,
        );
    }
}

/// Whether somebody has some of the bytes, by another open file than `file`, which may be one for
/// reading.
pub(super) fn is_taken(file: BorrowedFd<'_>, range: Range) -> io::Result<bool> {
    let kind = fcntl(file, libc::F_OFD_GETLK, libc::F_WRLCK, range)?;
    Ok(kind != libc::F_UNLCK as i16)
}

/// `struct flock64` of the kernel, the same in programs of 32 and of 64 bits but for the alignment of
/// the machine.
#[repr(C)]
struct Flock {
    kind: i16,
    whence: i16,
    start: i64,
    len: i64,
    pid: i32,
}

/// Asks the kernel for a lock of this kind, or about it; what stands in the way.
fn fcntl(file: BorrowedFd<'_>, command: i32, kind: i32, (start, len): Range) -> io::Result<i16> {
    // The C library's `fcntl` has offsets of 32 bits in programs of 32 bits.
    #[cfg(target_pointer_width = "64")]
    const FCNTL: libc::c_long = libc::SYS_fcntl;
    #[cfg(not(target_pointer_width = "64"))]
    const FCNTL: libc::c_long = libc::SYS_fcntl64;
    let in_range = |value: u64| i64::try_from(value).map_err(io::Error::other);
    let mut flock = Flock {
        kind: kind as i16,
        whence: libc::SEEK_SET as i16,
        start: in_range(start)?,
        len: in_range(len)?,
        // The kernel wants 0 here for locks of open files.
        pid: 0,
    };
    // SAFETY: the descriptor is open; the kernel reads and writes one `flock64`, which this is, and
    // keeps no pointer to it.
    let done = unsafe { libc::syscall(FCNTL, file.as_raw_fd(), command, &raw mut flock) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(flock.kind),
    }
}

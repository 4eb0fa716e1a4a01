//! Which side of a link in a region is taken, and whether the other side is there.
//!
//! In a file two processes could be the same side, and write over each other. So each side locks the
//! bytes of its segment: an open-file-description lock, on a descriptor of its own that no program it
//! starts inherits. The kernel frees it when the process is gone, whatever way it went, and so the
//! other side also sees death by it, as long as both are processes of one machine.
//!
//! The lock is advice: it holds against a mistake, not against malice, and not against an emulator or a
//! core that knows nothing of it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};

/// Bytes of a file: offset and length.
pub(super) type Range = (u64, u64);

/// Holding one proves: no other [`Role`] of this machine has the same bytes of the file.
#[derive(Debug)]
pub(super) struct Role {
    file: OwnedFd,
    peer: Range,
}

impl Role {
    /// Takes the side whose segment lies at `own`. `None`: it is taken.
    pub(super) fn take(file: BorrowedFd<'_>, own: Range, peer: Range) -> io::Result<Option<Role>> {
        // A lock belongs to the open file, and that of `file` may be shared with another side.
        let path = std::format!("/proc/self/fd/{}", file.as_raw_fd());
        let careful = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = open(path, OFlags::RDWR | careful, Mode::empty())?;
        match fcntl(&file, libc::F_OFD_SETLK, own) {
            Ok(_) => Ok(Some(Role { file, peer })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a process has the other side. Where it cannot be known: yes.
    pub(super) fn has_peer(&self) -> bool {
        let found = fcntl(&self.file, libc::F_OFD_GETLK, self.peer);
        found.map_or(true, |kind| kind != libc::F_UNLCK as i16)
    }
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

/// Asks the kernel for a lock of writers, or about it; what stands in the way.
fn fcntl(file: &OwnedFd, command: i32, (start, len): Range) -> io::Result<i16> {
    // The C library's `fcntl` has offsets of 32 bits in programs of 32 bits.
    #[cfg(target_pointer_width = "64")]
    const FCNTL: libc::c_long = libc::SYS_fcntl;
    #[cfg(not(target_pointer_width = "64"))]
    const FCNTL: libc::c_long = libc::SYS_fcntl64;
    let in_range = |value: u64| i64::try_from(value).map_err(io::Error::other);
    let mut flock = Flock {
        kind: libc::F_WRLCK as i16,
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

//! What to do about errors of the operating system that say nothing of a peer.

use std::io;

use rustix::io::Errno;

/// What to do about it; `None` where that depends on what was tried.
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    Some(match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => "raise its limit of open files (`ulimit -n`)",
        Errno::NOMEM | Errno::NOSPC => "free memory, or choose fewer or smaller blocks",
        Errno::NAMETOOLONG => "choose a shorter path: that of a socket has at most 107 bytes",
        Errno::NOTDIR => "check the path: a part of it is no folder",
        Errno::ISDIR => "check the path: it is a folder",
        Errno::LOOP => "check the path: its symbolic links go round in a circle",
        Errno::ROFS => "choose a folder that can be written",
        _ => return None,
    })
}

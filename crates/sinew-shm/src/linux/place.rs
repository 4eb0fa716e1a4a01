//! A path at which a socket listens: made, replaced and removed by one process at a time.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use super::Deadline;

/// How long one process waits for the turn of another, which takes some system calls. Somebody may
/// hold the folder for ever: then it goes on without.
const PATIENCE: Duration = Duration::from_secs(1);

/// A socket's place in the file system. Dropping it removes the path, unless somebody else's socket
/// stands there meanwhile; drop it before the socket, whose file keeps its number as long.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// Device and file, where it could be asked for.
    id: Option<(u64, u64)>,
}

impl SocketPath {
    /// Makes a socket that listens at `path` by `bind`. What an ended process left there is replaced:
    /// a socket, of which `is_dead` says that nobody listens. Nothing else is.
    ///
    /// Of several processes that do this at the same time, one gets the path.
    pub fn bind<T>(
        path: &Path,
        bind: impl Fn() -> io::Result<T>,
        is_dead: impl FnOnce() -> bool,
    ) -> io::Result<(T, SocketPath)> {
        // Between the look at a dead socket and its removal another process could have replaced it,
        // and its socket, which is alive, would be removed.
        let _turn = turn(path);
        let socket = match bind() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_socket(path) => {
                if !is_dead() {
                    return Err(error);
                }
                fs::remove_file(path)?;
                bind()?
            }
            bound => bound?,
        };
        let place = SocketPath {
            path: path.into(),
            id: id(path),
        };
        Ok((socket, place))
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _turn = turn(&self.path);
        if self.id.is_some() && self.id == id(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Keeps other processes from doing the same in the folder, as long as it is open. `None` where the
/// folder cannot be opened, as one that may not be listed.
fn turn(path: &Path) -> Option<OwnedFd> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(folder, flags, Mode::empty()).ok()?;
    let deadline = Deadline::after(PATIENCE);
    while let Err(Errno::WOULDBLOCK | Errno::INTR) =
        flock(&folder, FlockOperation::NonBlockingLockExclusive)
    {
        if deadline.is_over() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Some(folder)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

fn id(path: &Path) -> Option<(u64, u64)> {
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

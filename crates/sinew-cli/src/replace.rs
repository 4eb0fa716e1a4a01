//! Files that are made anew, over an earlier one of the same kind and over nothing else: a wrong word on the command
//! line must not cost a source file.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock};
use rustix::io::Errno;
use sinew::rpc::Status;

use crate::failure::Failure;

/// A kind of file.
pub struct Kind {
    /// With its article left out.
    pub name: &'static str,
    /// Whether a file, which is read from its beginning, is of this kind.
    pub is: fn(&mut dyn Read) -> io::Result<bool>,
}

/// Whether it begins with this.
pub fn begins(file: &mut dyn Read, magic: &[u8]) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.take(magic.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == magic)
}

/// Makes the file with all that is in it, as [`create`] does.
pub fn write(path: &Path, kind: &Kind, bytes: &[u8]) -> Result<(), Failure> {
    create(path, kind)?.write_all(bytes).map_err(|error| {
        Failure::usage(
            format!("cannot write {}: {error}", path.display()),
            "make room there, or give another path",
        )
    })
}

/// Makes the file, which is this program's until it is dropped. One that is there is replaced where it is empty or of
/// the same kind; a FIFO that somebody reads, and devices, are written to.
pub fn create(path: &Path, kind: &Kind) -> Result<File, Failure> {
    let shown = path.display();
    let there = fs::metadata(path).map(|there| there.file_type());
    if there.as_ref().is_ok_and(FileType::is_fifo) {
        return fifo(path).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => {
                Failure::usage(format!("nobody reads {shown}"), "start its reader first")
            }
            _ => cannot(path, &error),
        });
    }
    let open = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    let file = open.map_err(|error| cannot(path, &error))?;
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Ok(file);
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        Failure::usage(
            format!("another program writes {shown}"),
            "give another name, or end the other one",
        )
    })?;
    let same = File::open(path).and_then(|mut there| match there.metadata()?.len() {
        0 => Ok(true),
        _ => (kind.is)(&mut there),
    });
    let is_same = same.map_err(|error| {
        Failure::usage(
            format!("{shown} is there, and cannot be read: {error}"),
            "give another name, or remove it: what cannot be looked at is not replaced",
        )
    })?;
    if !is_same {
        return Err(Failure::usage(
            format!("{shown} is there, and is no {}", kind.name),
            "give another name, or remove it: only a file of the same kind is replaced",
        ));
    }
    file.set_len(0).map_err(|error| cannot(path, &error))?;
    Ok(file)
}

/// Opens it without waiting for a reader; writing waits then.
fn fifo(path: &Path) -> io::Result<File> {
    let open = OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    fcntl_setfl(&open, fcntl_getfl(&open)? - OFlags::NONBLOCK)?;
    Ok(open)
}

/// What was begun cannot be written any further; `again` is what may then be tried again.
pub fn unwritten(path: &Path, error: &io::Error, again: &str) -> Failure {
    let (cause, help) = match error.kind() {
        ErrorKind::BrokenPipe => (
            "its reader has ended".into(),
            format!("the reader has what passed before; start it again, and {again} again"),
        ),
        _ => (
            error.to_string(),
            format!(
                "what passed before is in it; make room there, or give -o another place, and {again} again"
            ),
        ),
    };
    let path = path.display();
    Failure::outcome(
        Status::RESOURCE_EXHAUSTED,
        format!("cannot write {path}: {cause}"),
        help,
    )
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(
        format!("cannot write {}: {error}", path.display()),
        "check the path and its permissions",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Kind = Kind {
        name: "file of ours",
        is: |file| begins(file, b"MAGIC"),
    };

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("sinew-replace-{name}-{}", std::process::id()))
    }

    #[test]
    fn file_has_one_writer_and_is_replaced_by_the_next() {
        let path = path("twice");
        fs::write(&path, "MAGIC and what was there").unwrap();
        let first = create(&path, &OURS).unwrap();
        let second = create(&path, &OURS).unwrap_err();
        assert!(second.to_string().contains("another program writes"));
        drop(first);
        create(&path, &OURS).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        fs::write(&path, "MAGI").unwrap();
        create(&path, &OURS).unwrap_err();
        fs::write(&path, "of another kind").unwrap();
        let other = create(&path, &OURS).unwrap_err();
        assert!(other.to_string().contains("is no file of ours"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "of another kind");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn fifo_without_a_reader_is_told_of_at_once() {
        let path = path("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let nobody = create(&path, &OURS).unwrap_err();
        assert!(nobody.to_string().contains("nobody reads"));
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .unwrap();
        create(&path, &OURS).unwrap();
        drop(reader);
        fs::remove_file(path).unwrap();
    }
}

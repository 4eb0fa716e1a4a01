//! Generated files: written, or compared.

use std::io;
use std::path::{Path, PathBuf};

/// A generated file that does not agree with what it is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stale {
    /// The file.
    pub path: PathBuf,
    /// The first line that differs, from 1; `None` where there is no such file.
    pub line: Option<usize>,
}

impl Stale {
    /// Compares a file with what a run would write there; `None` where they agree.
    pub fn of(path: &Path, text: &str) -> Option<Stale> {
        // What is no file might never begin, or have no end.
        let text_of = |path: &Path| match path.is_file() {
            true => std::fs::read_to_string(path).ok(),
            false => None,
        };
        let line = match text_of(path).ok_or(()) {
            Ok(found) if found == text => return None,
            Ok(found) => {
                let same = found.lines().zip(text.lines()).take_while(|(a, b)| a == b);
                Some(same.count() + 1)
            }
            Err(_) => None,
        };
        let path = path.to_owned();
        Some(Stale { path, line })
    }
}

/// Writes a generated file, and its folder: all of it, or nothing. An unchanged file keeps its time, so that
/// nothing is built again for it.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if Stale::of(path, text).is_none() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    if path.exists() && !path.is_file() {
        return Err(io::Error::other(
            "there is something else in its place, which is no file",
        ));
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
    written.inspect_err(|_| drop(std::fs::remove_file(&new)))
}

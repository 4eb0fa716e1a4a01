//! Schemas that were read before, by their hash, and who said them: files in the user's cache folder.
//!
//! What is found there is checked like what a device sends, and where there is no such folder, or it cannot
//! be written, everything works without.

use std::fs;
use std::path::{PathBuf, absolute};

use sha2::{Digest, Sha256};
use sinew_io::{Address, Endpoint};
use sinew_services::Description;

use super::known;

/// The first 8 bytes of the SHA-256, big-endian.
pub fn hash(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    let first = digest.iter().take(8);
    first.fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}

pub fn get(described: &Description) -> Option<Vec<u8>> {
    if let Some(bytes) = known::get(described) {
        return Some(bytes);
    }
    let path = path(described)?;
    // Something else in its place is not even opened.
    let found = fs::metadata(&path).ok()?;
    if !found.is_file() || found.len() != u64::from(described.size) {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    (bytes.len() == described.size as usize && hash(&bytes) == described.hash).then_some(bytes)
}

pub fn put(described: &Description, bytes: &[u8]) {
    write(path(described), bytes);
}

/// Keeps which schemas a device has: a line with the endpoint, and one with hash and size of each.
pub fn remember(endpoint: &Endpoint, schemas: &[Description]) {
    let mut text = format!("{endpoint}\n");
    for schema in schemas {
        text += &format!("{:016x} {}\n", schema.hash, schema.size);
    }
    write(place(endpoint), text.as_bytes());
}

/// The schemas that the device had last.
pub fn recall(endpoint: &Endpoint) -> Option<Vec<Vec<u8>>> {
    let text = fs::read_to_string(place(endpoint)?).ok()?;
    let schemas = text.lines().skip(1).map(|line| {
        let (hash, size) = line.split_once(' ')?;
        get(&Description {
            hash: u64::from_str_radix(hash, 16).ok()?,
            size: size.parse().ok()?,
            ..Description::default()
        })
    });
    schemas.collect()
}

/// The devices of which schemas are kept, as they were named, in the order of their names.
pub fn endpoints() -> Vec<String> {
    let folder = folder().map(|folder| folder.join("endpoints"));
    let files = folder.and_then(|folder| fs::read_dir(folder).ok());
    let files = files.into_iter().flatten().flatten();
    let first = |text: String| text.lines().next().map(String::from);
    let named = |file: fs::DirEntry| fs::read_to_string(file.path()).ok().and_then(first);
    let mut names: Vec<String> = files.filter_map(named).collect();
    names.sort();
    names
}

fn write(path: Option<PathBuf>, bytes: &[u8]) {
    let Some(path) = path else { return };
    let Some(folder) = path.parent() else { return };
    // Another tool may look meanwhile: it finds the whole file or none.
    let part = path.with_extension(std::process::id().to_string());
    let _ = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&part, bytes))
        .and_then(|()| fs::rename(&part, &path));
}

fn path(described: &Description) -> Option<PathBuf> {
    Some(folder()?.join(format!("schemas/{:016x}", described.hash)))
}

/// The file of a device. A path is meant from the folder of today.
fn place(endpoint: &Endpoint) -> Option<PathBuf> {
    let at = match &endpoint.address {
        Address::Unix(path) | Address::Shm(path) | Address::Serial(path, _) => absolute(path).ok(),
        Address::Qemu(emulated) => absolute(&emulated.image).ok(),
        Address::Tcp(..) | Address::Udp(..) | Address::Exec(_) | Address::Stdio => None,
    };
    let name = match at {
        Some(path) => path.display().to_string(),
        None => endpoint.address.to_string(),
    };
    Some(folder()?.join(format!("endpoints/{:016x}", hash(name.as_bytes()))))
}

fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(folder.join("sinew"))
}

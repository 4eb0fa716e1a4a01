//! Mappings, sealed segments, doorbells and the exchange, against the kernel itself.
#![cfg(all(feature = "linux", target_os = "linux", not(miri)))]

mod areas;
mod barrier;
mod bells;
mod exchange;
mod fds;
mod hostile;
mod links;
mod maps;
mod memfds;
mod messages;
mod processes;
mod slots;

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sinew_shm::linux::Mapping;

/// Long enough for a machine under load; nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(20);
/// For what never comes.
const SHORT: Duration = Duration::from_millis(30);

const KINDS: [SocketType; 2] = [SocketType::STREAM, SocketType::SEQPACKET];

fn pair(kind: SocketType) -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap()
}

fn read(map: &Mapping, at: usize) -> u8 {
    assert!(at < map.len());
    // SAFETY: within the mapping, which is always readable.
    unsafe { map.as_ptr().add(at).read_volatile() }
}

fn write(map: &Mapping, at: usize, value: u8) {
    assert!(at < map.len() && map.is_writable());
    // SAFETY: within the mapping, which is writable.
    unsafe { map.as_ptr().add(at).write_volatile(value) }
}

/// The descriptors that this process has open, by what they are.
fn open_files(name: &str) -> usize {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|path| path.to_string_lossy().contains(name))
        .count()
}

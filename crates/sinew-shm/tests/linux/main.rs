//! Mappings, sealed segments, doorbells and the exchange, against the kernel itself.
#![cfg(all(feature = "linux", target_os = "linux", not(miri)))]

mod areas;
mod bells;
mod exchange;
mod fds;
mod hostile;
mod links;
mod maps;
mod memfds;
mod messages;
mod overlaps;
mod processes;
mod slots;

use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sinew_shm::linux::Mapping;

/// Long enough for a machine under load; nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(60);
/// For what never comes.
const SHORT: Duration = Duration::from_millis(30);

/// Held while a process is started: until it runs its own program it has all that is open here, and with that
/// the locks and the listeners that another test closes meanwhile.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts a process; none may be started otherwise.
fn start(command: &mut Command) -> Child {
    let _turn = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

/// What was closed before this is closed for good: no process that is just being started has it still.
fn closed() {
    drop(STARTING.lock().unwrap_or_else(PoisonError::into_inner));
}

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

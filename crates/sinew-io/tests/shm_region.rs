//! Calls through a file that another core shares, with a byte on a socket as the doorbell. Here a thread
//! is the other core; `firmware/runner` does the same with an emulated one.

mod support;

use std::fs::{self, File};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sinew_demo::{cache, exercise, exercise_async};
use sinew_io::serve::ListenError;
use sinew_io::shm::config::{CHANNEL, calls};
use sinew_io::shm::process::ProcessLink;
use sinew_io::{ConnectError, Endpoint, connect, open};
use sinew_shm::domain::{self, Role};
use sinew_shm::linux::Region;
use sinew_shm::linux::bell::SocketBell;
use sinew_shm::linux::link::{Link, Options, RegionBell};
use support::*;

/// Bytes of the other core's memory that come before the link.
const OFFSET: u64 = 8192;

/// What the other core has: a file, and a socket for the doorbell.
struct Board {
    memory: PathBuf,
    socket: PathBuf,
    listener: UnixListener,
}

impl Board {
    fn new(mtu: usize) -> Board {
        let (memory, socket) = (fresh_path("memory"), fresh_path("bell"));
        let len = OFFSET + domain::Region::of(&calls(mtu)).len;
        File::create(&memory).unwrap().set_len(len).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        Board {
            memory,
            socket,
            listener,
        }
    }

    fn endpoint(&self, mtu: usize) -> Endpoint {
        let (memory, socket) = (self.memory.display(), self.socket.display());
        let text = format!("shm:{memory}?mtu={mtu}&doorbell={socket}&offset={OFFSET}");
        text.parse().unwrap()
    }

    /// The memory of a core that waits for somebody, and has no lock on it as a process has.
    fn run_core(&self, mtu: usize) -> Vec<u8> {
        let config = calls(mtu);
        let len = domain::Region::of(&config).len as usize;
        let region = Region::open(&self.memory, OFFSET, len).unwrap();
        let bell = SocketBell::new(UnixStream::pair().unwrap().0.into());
        let bell = RegionBell::Other(Arc::new(bell));
        let options = Options::default();
        let link: Link = Link::in_region(&region, config, Role::Second, bell, options).unwrap();
        let memory = fs::read(&self.memory).unwrap();
        drop(link);
        fs::write(&self.memory, &memory).unwrap();
        memory
    }

    /// Serves the demo, as the second side, to one who connects, until that one hangs up.
    fn serve(&self, mtu: usize) -> JoinHandle<()> {
        let listener = self.listener.try_clone().unwrap();
        let config = calls(mtu);
        let len = domain::Region::of(&config).len as usize;
        let region = Region::open(&self.memory, OFFSET, len).unwrap();
        thread::spawn(move || {
            let bell = SocketBell::new(listener.accept().unwrap().0.into());
            let bell = RegionBell::Other(Arc::new(bell));
            let options = Options::default();
            let link = Link::in_region(&region, config, Role::Second, bell, options).unwrap();
            let mut link = ProcessLink::new(link, CHANNEL, Duration::ZERO).unwrap();
            server().serve(&mut link, 1);
        })
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.memory);
        let _ = std::fs::remove_file(&self.socket);
    }
}

#[test]
fn a_core_that_shares_memory_is_called_as_often_as_somebody_comes() {
    let board = Board::new(64);
    for n in 0..3 {
        let core = board.serve(64);
        let client = connect(&board.endpoint(64)).unwrap();
        for value in n..n + 100 {
            assert_eq!(exercise(&mut cache::Client(&client), value), Ok(value));
        }
        drop(client);
        core.join().unwrap();
    }
}

#[tokio::test]
async fn a_core_that_shares_memory_is_called_by_tasks() {
    let board = Board::new(64);
    let core = board.serve(64);
    let client = sinew_io::tokio::connect(&board.endpoint(64)).await.unwrap();
    for value in 0..100 {
        let called = exercise_async(&mut cache::AsyncClient(&client), value).await;
        assert_eq!(called, Ok(value));
    }
    drop(client);
    tokio::task::spawn_blocking(|| core.join().unwrap())
        .await
        .unwrap();
}

#[test]
fn a_core_with_other_packets_is_named_as_such() {
    let board = Board::new(128);
    let core = board.serve(128);
    let error = open(&board.endpoint(64)).err().expect("an error");
    let text = error.to_string();
    assert!(matches!(error, ConnectError::Io(..)), "{text}");
    assert!(
        text.contains("the peer does not fit: channel 1: size"),
        "{text}"
    );
    core.join().unwrap();
}

#[test]
fn a_core_that_would_be_written_over_is_named_with_its_packets() {
    let board = Board::new(4096);
    let memory = board.run_core(64);
    let error = open(&board.endpoint(4096)).err().expect("an error");
    assert!(matches!(error, ConnectError::Overlap(..)), "{error}");
    let text = error.to_string();
    for part in [
        "at 0x3000, where this side would write",
        "16 blocks of 64 bytes",
        "give mtu=64, or check offset=",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(memory == fs::read(&board.memory).unwrap());
}

#[test]
fn a_side_that_is_taken_is_named_as_such() {
    let board = Board::new(64);
    let core = board.serve(64);
    let client = connect(&board.endpoint(64)).unwrap();
    let error = open(&board.endpoint(64)).err().expect("an error");
    assert!(matches!(error, ConnectError::Busy(_)), "{error}");
    assert!(error.to_string().contains("end the other one"), "{error}");
    drop(client);
    core.join().unwrap();
}

#[test]
fn a_core_that_does_not_open_its_side_may_have_other_packets() {
    let error = ConnectError::TimedOut(Board::new(64).endpoint(64));
    assert!(error.to_string().contains("check mtu="), "{error}");
}

#[test]
fn a_core_that_does_not_run_has_no_doorbell() {
    let board = Board::new(64);
    std::fs::remove_file(&board.socket).unwrap();
    let error = open(&board.endpoint(64)).err().expect("an error");
    assert!(matches!(error, ConnectError::NoServer(_)), "{error}");
    assert!(error.to_string().contains("at the doorbell"), "{error}");
}

#[test]
fn a_file_that_is_too_short_is_an_error() {
    let board = Board::new(64);
    let file = File::options().write(true).open(&board.memory).unwrap();
    file.set_len(OFFSET).unwrap();
    let error = open(&board.endpoint(64)).err().expect("an error");
    assert!(error.to_string().contains("too short"), "{error}");
}

#[test]
fn memory_with_one_peer_has_no_place_to_listen_at() {
    let board = Board::new(64);
    let error = server()
        .listen(&board.endpoint(64))
        .err()
        .expect("an error");
    assert!(matches!(error, ListenError::Io(..)), "{error}");
    assert!(error.to_string().contains("open the link"), "{error}");
}

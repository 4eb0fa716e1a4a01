//! The same between two real processes: this program starts itself as the other side.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::net::SocketType;
use sinew_shm::domain::Doorbell;
use sinew_shm::linux::bell::{EventFdBell, FutexBell, SocketBell, Wait, Woken};
use sinew_shm::linux::exchange::{DoorbellKind, Joined, Offer, Trust, greet, join};
use sinew_shm::linux::fds::{FdsError, receive, send};
use sinew_shm::linux::{Deadline, Mapping};

use super::exchange::{OFFER, other};
use super::{KINDS, LONG, pair, read, write};

const ROLE: &str = "SINEW_TEST_ROLE";
/// Where the word of each side's [`FutexBell`] lies.
const WORD: usize = 256;

fn offer(doorbell: DoorbellKind) -> Offer {
    Offer {
        trust: Trust::Mutual,
        exchange_len: 4096,
        doorbell,
        ..OFFER
    }
}

fn doorbell(role: &str) -> DoorbellKind {
    match role {
        "eventfd" => DoorbellKind::EventFd,
        "futex" => DoorbellKind::Futex,
        _ => DoorbellKind::Socket,
    }
}

/// Starts the other side, with one end of a pair of sockets as its standard input.
fn start(kind: SocketType, role: &str) -> (Child, OwnedFd) {
    let (near, far) = pair(kind);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "processes::other_side",
            "--ignored",
            "--nocapture",
        ])
        .env(ROLE, role)
        .stdin(Stdio::from(far))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = super::start(&mut command);
    (child, near)
}

trait Bell: Doorbell + Wait {}
impl<T: Doorbell + Wait> Bell for T {}

struct Side {
    mine: Arc<Mapping>,
    peer: Arc<Mapping>,
    bell: Box<dyn Bell>,
}

impl Side {
    fn new(joined: Joined, doorbell: DoorbellKind) -> Side {
        let mine = Arc::new(joined.mine.into_parts().1);
        let peer = Arc::new(joined.peer.into_parts().1);
        let socket = joined.socket;
        let bell: Box<dyn Bell> = match doorbell {
            DoorbellKind::Socket => Box::new(SocketBell::new(socket)),
            DoorbellKind::EventFd => {
                let fds = joined.eventfds.unwrap();
                Box::new(EventFdBell::new(fds.mine, fds.peers, socket))
            }
            DoorbellKind::Futex => {
                Box::new(FutexBell::new((&mine, WORD), (&peer, WORD), socket).unwrap())
            }
        };
        Side { mine, peer, bell }
    }

    /// Waits until the peer's byte is `value`.
    fn wait_for(&self, value: u8) -> Woken {
        loop {
            let seen = self.bell.seen();
            if read(&self.peer, 0) == value {
                return Woken::Rung;
            }
            match self.bell.wait(seen, Some(LONG)) {
                Woken::Rung => {}
                woken => return woken,
            }
        }
    }

    fn say(&self, value: u8) {
        write(&self.mine, 0, value);
        self.bell.ring();
    }
}

/// Not a test of its own: what the other process does.
#[test]
#[ignore = "started by the other tests"]
fn other_side() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    if role == "full" {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = Rlimit {
            current: Some(std::fs::read_dir("/proc/self/fd").unwrap().count() as u64),
            ..getrlimit(Resource::Nofile)
        };
        // One may still be opened, but not two.
        setrlimit(Resource::Nofile, limit).unwrap();
        let refused = receive(socket, &mut [0], Deadline::after(LONG));
        let told = matches!(refused, Err(FdsError::Truncated));
        std::process::exit(if told { 0 } else { 1 });
    }
    let doorbell = doorbell(&role);
    let joined = join(socket, &offer(doorbell), LONG).unwrap();
    if role == "write" {
        let at = joined.peer.mapping().as_ptr().as_ptr();
        // SAFETY: none. This is what a hostile peer does, and the kernel ends it.
        unsafe { at.write_volatile(1) };
        std::process::exit(0);
    }
    let side = Side::new(joined, doorbell);
    for turn in 1..=200 {
        assert_eq!(side.wait_for(turn), Woken::Rung);
        side.say(turn);
    }
    // Until it is killed.
    loop {
        std::thread::park();
    }
}

fn serve(kind: SocketType, role: &str) -> (Child, Joined) {
    let (child, socket) = start(kind, role);
    let greeting = greet(socket, LONG).unwrap();
    let joined = greeting.join(&other(offer(doorbell(role))), LONG).unwrap();
    (child, joined)
}

#[test]
fn processes_ring_each_other_and_death_is_told() {
    for role in ["socket", "eventfd", "futex"] {
        for kind in KINDS {
            let (mut child, joined) = serve(kind, role);
            let side = Side::new(joined, doorbell(role));
            for turn in 1..=200 {
                side.say(turn);
                assert_eq!(side.wait_for(turn), Woken::Rung, "{role}");
            }
            // The other side does no more than live now; killed, it cannot say so itself.
            let seen = side.bell.seen();
            child.kill().unwrap();
            child.wait().unwrap();
            // Rings of before may be told first.
            let mut woken = side.bell.wait(seen, None);
            while woken == Woken::Rung {
                woken = side.bell.wait(side.bell.seen(), None);
            }
            assert_eq!(woken, Woken::HungUp, "{role}");
            assert_eq!(read(&side.peer, 0), 200, "its segment is still there");
        }
    }
}

#[test]
fn descriptors_beyond_the_limit_of_the_process_are_an_error() {
    let (mut child, socket) = start(SocketType::SEQPACKET, "full");
    send(&socket, &[0], &[socket.as_fd(); 4], Deadline::after(LONG)).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn process_that_writes_our_segment_is_ended_by_the_kernel() {
    const SIGSEGV: i32 = 11;
    let (mut child, joined) = serve(SocketType::SEQPACKET, "write");
    assert_eq!(child.wait().unwrap().signal(), Some(SIGSEGV));
    assert_eq!(read(joined.mine.mapping(), 0), 0);
}

//! Memory shared between processes: who is let in, who is not and is told why, and who only looks.

mod support;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind,
    connect as connect_socket, listen as listen_socket, recv, send, socket_with,
};
use sinew::link::{Rx, SendError, Tx};
use sinew::rpc::CallError;
use sinew_demo::{Num, cache, exercise, kinds};
use sinew_io::link::{Link as _, Want};
use sinew_io::serve::Listening;
use sinew_io::shm::process::ProcessLink;
use sinew_io::{Address, ConnectError, Endpoint, Server, connect, open, shm};
use sinew_shm::domain::{self, Doorbell, Role};
use sinew_shm::linux::Region;
use sinew_shm::linux::bell::{Seen, Wait, Woken};
use sinew_shm::linux::exchange::{self, ExchangeError, Field, TIMEOUT};
use sinew_shm::linux::link::{Link, Options, RegionBell};
use support::*;

/// Packets one after another: enough that a wake-up that can be lost is.
const ROUNDS: usize = 2000;

fn path_of(listening: &Listening) -> &Path {
    match &listening.endpoint().address {
        Address::Shm(path) => path,
        other => panic!("{other}"),
    }
}

fn socket() -> OwnedFd {
    let (flags, kind) = (SocketFlags::CLOEXEC, SocketType::SEQPACKET);
    socket_with(AddressFamily::UNIX, kind, flags, None).unwrap()
}

/// Somebody who has connected and says nothing yet.
fn connected(path: &Path) -> OwnedFd {
    let socket = socket();
    connect_socket(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

fn at(path: &Path, options: &str) -> Endpoint {
    let text = format!("shm:{}{options}", path.display());
    text.parse().unwrap()
}

fn fails(endpoint: &Endpoint) -> ConnectError {
    open(endpoint).err().expect("an error")
}

fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn sides_with_different_packet_sizes_are_told_what_differs() {
    let (server, listening) = listen("shm");
    let error = fails(&at(path_of(&listening), "?mtu=512"));
    let ConnectError::Differs(_, refusal) = &error else {
        panic!("{error}");
    };
    assert_eq!(refusal.field, Field::ServingLength);
    let text = error.to_string();
    assert!(text.contains("give both the same mtu"), "{text}");
    // So close that the memory is of the same size.
    let error = fails(&at(path_of(&listening), "?mtu=1023"));
    assert!(matches!(
        error,
        ConnectError::Differs(_, refusal) if refusal.field == Field::Configuration
    ));
    until(|| server.refused() == 2);
    let client = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5));
}

#[test]
fn one_client_too_many_is_told_so_and_counted() {
    let server = Server::<_, 8>::with_capacities(services(), 1);
    let listening = server.listen(&fresh_endpoint("shm")).unwrap();
    let first = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&first), 1), Ok(1));
    let error = fails(listening.endpoint());
    assert!(matches!(error, ConnectError::Busy(_)), "{error}");
    assert!(error.to_string().contains("too many clients"), "{error}");
    until(|| server.refused() == 1);
    drop(first);
    until(|| server.links() == 0);
    let third = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&third), 3), Ok(3));
}

#[test]
fn clients_that_come_at_the_same_time_are_served_or_told_that_there_are_too_many() {
    let server = Server::<_, 8>::with_capacities(services(), 2);
    let listening = server.listen(&fresh_endpoint("shm")).unwrap();
    for _ in 0..30 {
        let begin = std::sync::Barrier::new(6);
        let served = std::thread::scope(|scope| {
            let client = || {
                begin.wait();
                let client = match connect(listening.endpoint()) {
                    Ok(client) => client,
                    Err(ConnectError::Busy(_)) => return None,
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(exercise(&mut cache::Client(&client), 3), Ok(3));
                Some(client)
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(client)).collect();
            let clients = threads.into_iter().map(|thread| thread.join().unwrap());
            // They stay until the last one has been heard.
            let clients: Vec<_> = clients.collect();
            clients.into_iter().flatten().count()
        });
        assert_eq!(served, 2);
        until(|| server.links() == 0);
    }
}

#[test]
fn any_channel_of_a_link_file_carries_calls() {
    let file = fresh_path("link.toml");
    let text = "[[channel]]\nid = 3\nname = \"camera\"\nfirst = { blocks = 4, size = 100_000 }\n\
                [[channel]]\nid = 40\nname = \"calls\"\nblocks = 4\nsize = 8192\npriority = 1\n\
                [[channel]]\nid = 41\nname = \"more\"\nblocks = 2\nsize = 64\n";
    std::fs::write(&file, text).unwrap();
    let path = fresh_path("sock");
    let choice = |queue| at(&path, &format!("?config={}{queue}", file.display()));
    let server = server();
    let _listening = server.listen(&choice("&queue=calls")).unwrap();
    for queue in ["&queue=calls", "&queue=40"] {
        let client = connect(&choice(queue)).unwrap();
        assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5));
        assert_eq!(client.with_link(|link| link.halves().0.mtu()), 8192);
    }
    for (queue, why) in [
        ("", "there are camera, calls, more"),
        (
            "&queue=none",
            "no channel `none`; there are camera, calls, more",
        ),
        ("&queue=camera", "less than 2 blocks in a direction"),
    ] {
        let error = fails(&choice(queue));
        assert!(matches!(error, ConnectError::Config(..)), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.to_string().contains("link.toml"), "{error}");
    }
    std::fs::write(&file, "[[channel]]\nid = x\n").unwrap();
    let error = server.listen(&choice("")).err().unwrap();
    assert!(error.to_string().contains("link.toml"), "{error}");
    std::fs::remove_file(&file).unwrap();
    // The default link does not fit.
    assert!(matches!(fails(&at(&path, "")), ConnectError::Differs(..)));
}

#[test]
fn link_file_that_cannot_be_read_or_carry_calls_is_named_with_the_reason() {
    let file = fresh_path("wrong.toml");
    let choice = at(&fresh_path("sock"), &format!("?config={}", file.display()));
    let why = || {
        let text = server().listen(&choice).err().unwrap().to_string();
        assert!(text.contains("wrong.toml"), "{text}");
        assert_eq!(fails(&choice).to_string(), text);
        text
    };
    assert!(why().contains("no such file"));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    // A pipe to which nobody writes.
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(why().contains("it is no file"));
    std::fs::remove_file(&file).unwrap();
    // One that has no end.
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    assert!(why().contains("it is no file"));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(why().contains("it is a folder"));
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, b"trust = \"\xff\"").unwrap();
    assert!(why().contains("UTF-8"));
    std::fs::write(&file, vec![b'\n'; (1 << 20) + 1]).unwrap();
    assert!(why().contains("above 1048576 bytes"));
    let text = "[[channel]]\nid = 3\nname = \"small\"\nblocks = 4\nsize = 63\n";
    std::fs::write(&file, text).unwrap();
    assert!(why().contains("small has blocks of 63 bytes"));
    std::fs::remove_file(&file).unwrap();
}

/// A server that says this to everybody, and hangs up.
fn server_that_says(bytes: &'static [u8]) -> PathBuf {
    let path = fresh_path("sock");
    let listener = socket();
    bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen_socket(&listener, 1).unwrap();
    std::thread::spawn(move || {
        let client = accept(&listener).unwrap();
        recv(&client, &mut [0; 64][..], RecvFlags::empty()).unwrap();
        if !bytes.is_empty() {
            send(&client, bytes, SendFlags::empty()).unwrap();
        }
    });
    path
}

#[test]
fn server_of_something_else_is_named_as_such() {
    let error = fails(&at(&server_that_says(b""), ""));
    assert!(matches!(error, ConnectError::HungUp(_)), "{error}");
    for words in [&b"220 ready"[..], &[0; 64], &[0xFF; 64]] {
        let error = fails(&at(&server_that_says(words), ""));
        assert!(
            matches!(error, ConnectError::Differs(_, refusal) if refusal.field == Field::Hello),
            "{error}"
        );
    }
}

#[test]
fn server_without_descriptors_is_told_from_one_that_does_not_fit() {
    const REFUSAL: [u8; 64] = {
        let mut bytes = [0; 64];
        let head = *b"sinewdom\x01";
        let mut at = 0;
        while at < head.len() {
            bytes[at] = head[at];
            at += 1;
        }
        (bytes[40], bytes[44]) = (16, 24);
        bytes
    };
    let error = fails(&at(&server_that_says(&REFUSAL), ""));
    assert!(matches!(error, ConnectError::Trouble(..)), "{error}");
    assert!(error.to_string().contains("ulimit -n"), "{error}");
}

#[test]
fn client_for_whom_no_thread_is_left_is_told_that_there_are_too_many() {
    let server = Server::<_, 8>::with_capacities(services(), 1);
    let listening = server.listen(&fresh_endpoint("shm")).unwrap();
    // As many as have a thread, and say nothing.
    let silent: Vec<_> = (0..9).map(|_| connected(path_of(&listening))).collect();
    for _ in 0..20 {
        let error = fails(listening.endpoint());
        assert!(matches!(error, ConnectError::Busy(_)), "{error}");
        let socket = connected(path_of(&listening));
        let error = exchange::observe(socket, TIMEOUT).unwrap_err();
        assert!(
            matches!(error, ExchangeError::RefusedByPeer(refusal) if refusal.field == Field::Busy),
            "{error}"
        );
    }
    until(|| server.refused() == 40);
    drop(silent);
    until(|| match connect(listening.endpoint()) {
        Ok(client) => exercise(&mut cache::Client(&client), 3) == Ok(3),
        Err(_) => false,
    });
}

#[test]
fn observers_that_stay_leave_threads_for_clients() {
    let server = Server::<_, 8>::with_capacities(services(), 1);
    let listening = server.listen(&fresh_endpoint("shm")).unwrap();
    let look = || exchange::observe(connected(path_of(&listening)), TIMEOUT);
    let mut staying: Vec<_> = (0..4).map(|_| look().unwrap()).collect();
    for _ in 0..9 {
        let error = look().unwrap_err();
        assert!(
            matches!(error, ExchangeError::RefusedByPeer(refusal) if refusal.field == Field::Busy),
            "{error}"
        );
    }
    let client = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5));
    staying.pop();
    until(|| look().is_ok());
}

#[test]
fn client_that_says_nothing_or_nonsense_holds_nobody_up() {
    let (server, listening) = listen("shm");
    let silent = connected(path_of(&listening));
    let gone = connected(path_of(&listening));
    drop(gone);
    let strange = connected(path_of(&listening));
    send(&strange, b"\x7e\xa5\x03\x7e", SendFlags::empty()).unwrap();
    until(|| server.refused() == 1);
    let client = connect(listening.endpoint()).unwrap();
    assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5));
    listening.stop();
    // Nobody waits for the silent one to speak.
    let got = recv(&silent, &mut [0; 8][..], RecvFlags::DONTWAIT).map(|(_, len)| len);
    assert!(matches!(got, Ok(0) | Err(Errno::CONNRESET)), "{got:?}");
    assert_eq!(
        exercise(&mut cache::Client(&client), 5),
        Err(CallError::Closed)
    );
    assert_eq!(server.refused(), 1);
}

#[test]
fn observers_are_shown_the_links_and_are_no_clients() {
    let server = Server::<_, 8>::with_capacities(services(), 1);
    let listening = server.listen(&fresh_endpoint("shm")).unwrap();
    let observe = || exchange::observe(connected(path_of(&listening)), TIMEOUT).unwrap();
    assert_eq!(observe().total, 0);
    let client = connect(listening.endpoint()).unwrap();
    let mut kinds = kinds::Client(&client);
    assert_eq!(kinds.double(&Num { n: 4 }), Ok(Num { n: 8 }));
    let seen = observe();
    assert_eq!((seen.total, seen.links.len()), (1, 1));
    assert!(!seen.links[0].0.mapping().is_writable());
    assert_eq!(kinds.double(&Num { n: 5 }), Ok(Num { n: 10 }));
    drop(client);
    until(|| server.links() == 0);
    until(|| observe().total == 0);
    assert_eq!(server.refused(), 0);
}

#[test]
fn one_call_of_the_waker_hides_nothing_that_comes_after_it() {
    for spin in [0, 1000] {
        let config = shm::config::calls(64);
        let (near, far) = Link::pair(config, Options::default()).unwrap();
        let spin = Duration::from_micros(spin);
        let mut near = ProcessLink::new(near, shm::config::CHANNEL, spin).unwrap();
        near.waker().wake_by_ref();
        near.wait(Want::Packet, None);
        drop(far);
        // The hang-up is only seen by who sleeps.
        let mut waits = 0..100;
        while near.halves().1.peek() == Ok(None) && waits.next().is_some() {
            near.wait(Want::Packet, None);
        }
        assert!(near.halves().1.peek().is_err(), "{spin:?}");
    }
}

/// A doorbell that another thread has taken by the time that anybody sleeps on it.
struct Taken {
    /// Never readable, as long as the other one lives.
    silent: (UnixStream, UnixStream),
    /// What the thread that takes it does, once; runs when the descriptor is asked for, which is the last
    /// step before a sleep.
    take: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Taken {
    fn new() -> Arc<Taken> {
        Arc::new(Taken {
            silent: UnixStream::pair().unwrap(),
            take: Mutex::new(None),
        })
    }
}

impl Doorbell for Taken {
    fn ring(&self) {}
}

impl Wait for Taken {
    fn seen(&self) -> Seen {
        Seen::default()
    }

    fn wait(&self, _: Seen, _: Option<Duration>) -> Woken {
        Woken::Rung
    }

    fn interrupt(&self) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let take = self.take.lock().unwrap().take();
        if let Some(take) = take {
            take();
        }
        Some(self.silent.0.as_fd())
    }
}

/// Runs `wait` of a link whose peer sends while it falls asleep, and whose doorbell another thread takes.
fn wakes_although_the_doorbell_was_taken(wait: impl FnOnce(ProcessLink) + Send + 'static) {
    let config = shm::config::calls(64);
    let file = fresh_path("memory");
    let len = domain::Region::of(&config).len;
    File::create(&file).unwrap().set_len(len).unwrap();
    let region = Region::open(&file, 0, len as usize).unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut options = Options::default();
    // No sign of life wakes it instead.
    options.end.heartbeat = 3_600_000;
    let bells = [(); 2].map(|()| Taken::new());
    let side = |role, bell: &Arc<Taken>| {
        let bell = RegionBell::Other(bell.clone());
        Link::in_region(&region, config, role, bell, options).unwrap()
    };
    let near = side(Role::First, &bells[0]);
    let far = side(Role::Second, &bells[1]);
    for link in [&near, &far, &near] {
        link.on_ready();
    }
    let over = |link: &Link| ProcessLink::new(link.clone(), shm::config::CHANNEL, Duration::ZERO);
    let waits = over(&near).unwrap();
    let mut sends = over(&far).unwrap();
    *bells[0].take.lock().unwrap() = Some(Box::new(move || {
        let tx = sends.halves().0;
        tx.place(1).unwrap();
        tx.commit(1).unwrap();
        tx.flush();
        near.on_ready();
        // It stays, so that no hang-up wakes it instead.
        std::mem::forget(sends);
    }));
    let (tell, told) = channel();
    thread::spawn(move || {
        wait(waits);
        tell.send(())
    });
    let told = told.recv_timeout(Duration::from_secs(10));
    assert!(told.is_ok(), "it sleeps beside its packet");
}

/// Threads on other channels of a link take its doorbell too: what it rang for may be for another thread.
#[test]
fn thread_that_sleeps_is_woken_where_another_thread_took_the_doorbell() {
    wakes_although_the_doorbell_was_taken(|mut link| {
        link.wait(Want::Packet, None);
        assert_eq!(link.halves().1.peek().unwrap().map(<[u8]>::len), Some(1));
    });
}

/// So does the reactor, for halves that are armed.
#[test]
fn receiving_half_that_sleeps_is_woken_where_another_thread_took_the_doorbell() {
    wakes_although_the_doorbell_was_taken(|link| {
        let mut apart = link.apart();
        apart.rx.wait(None);
        assert_eq!(apart.rx.peek().unwrap().map(<[u8]>::len), Some(1));
    });
}

/// The same as it comes, so that the doorbell is also taken before a sleep and after it.
#[test]
fn packet_whose_doorbell_another_thread_took_wakes_the_thread_that_sleeps() {
    let mut options = Options::default();
    // No sign of life wakes it instead.
    options.end.heartbeat = 3_600_000;
    let (near, far) = Link::pair(shm::config::calls(64), options).unwrap();
    let apart =
        |link| ProcessLink::new(link, shm::config::CHANNEL, Duration::ZERO).map(|it| it.apart());
    let taker = near.clone();
    let (mut near, mut far) = (apart(near).unwrap(), apart(far).unwrap());
    let is_over = AtomicBool::new(false);
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                taker.on_ready();
            }
        });
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                while near.rx.peek() == Ok(None) {
                    near.rx.wait(None);
                }
                near.rx.release();
                tell.send(()).unwrap();
            }
        });
        for _ in 0..ROUNDS {
            while far.tx.place(1) == Err(SendError::Full) {
                far.rx.wait(Some(Duration::from_millis(1)));
            }
            far.tx.commit(1).unwrap();
            far.tx.flush();
            let heard = told.recv_timeout(Duration::from_secs(10));
            if heard.is_err() {
                is_over.store(true, Ordering::Relaxed);
                // So that the thread that sleeps ends as well.
                drop(far);
                panic!("it sleeps beside its packet");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn link_that_ends_lets_its_descriptors_and_threads_go() {
    let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
    let (server, listening) = listen("shm");
    let call = || {
        let client = connect(listening.endpoint()).unwrap();
        assert_eq!(exercise(&mut cache::Client(&client), 5), Ok(5));
        drop(client);
        until(|| server.links() == 0);
    };
    call();
    let threads = count("/proc/self/task");
    let open_files = || count("/proc/self/fd");
    let before = open_files();
    (0..20).for_each(|_| call());
    // Other tests of this program open and close theirs at the same time.
    until(|| open_files() < before + 20 && count("/proc/self/task") < threads + 20);
}

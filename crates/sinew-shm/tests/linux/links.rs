//! Links of a process: who waits, for what, and how each wait ends.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use sinew_shm::Unshared;
use sinew_shm::domain::{self, Channel, Config, Lost, Pool, Status};
use sinew_shm::linux::exchange::{DoorbellKind, ExchangeError, observe};
use sinew_shm::linux::link::{
    Link, LinkError, Listener, Options, RegionBell, WaitError, connected_stream,
};
use sinew_shm::linux::map::MapError;
use sinew_shm::linux::{Region, bell::SocketBell};

use super::{KINDS, LONG, SHORT, closed, pair, start};

const FOREVER: Option<Duration> = None;
const POLL: Option<Duration> = Some(Duration::ZERO);

const LINK: Config = Config::new(&[
    Channel::new(1, "urgent", Pool::new(4, 64)).priority(0),
    Channel::new(2, "bulk", Pool::new(4, 64)).priority(200),
    Channel::new(3, "more", Pool::new(4, 64)),
]);
const MUTUAL: Config =
    Config::new(&[Channel::new(1, "calls", Pool::new(4, 64)).with_replies()]).mutual();

/// Without a heartbeat, so that nothing is found by looking every now and then.
fn options(doorbell: DoorbellKind) -> Options {
    let mut options = Options::default();
    options.end.heartbeat = 3_600_000;
    Options {
        doorbell,
        ..options
    }
}

fn both(config: Config<'static>, doorbell: DoorbellKind) -> (Link, Link) {
    let (first, second) = Link::pair(config, options(doorbell)).unwrap();
    come_up(&first, &second);
    (first, second)
}

fn come_up(first: &Link, second: &Link) {
    thread::scope(|scope| {
        scope.spawn(|| first.up_within(Some(LONG)).unwrap());
        second.up_within(Some(LONG)).unwrap();
    });
}

fn bells() -> impl Iterator<Item = (Config<'static>, DoorbellKind)> {
    [
        (LINK, DoorbellKind::Socket),
        (LINK, DoorbellKind::Futex),
        (LINK.mutual(), DoorbellKind::EventFd),
    ]
    .into_iter()
}

fn text(packet: &domain::Packet<'_, impl domain::EndRef>) -> Vec<u8> {
    let mut bytes = vec![0; packet.len()];
    packet.copy_to(&mut bytes).unwrap();
    bytes
}

/// A file for one test, of no length.
pub(super) fn file(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("sinew-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn packets_go_round_between_threads_by_each_bell() {
    for (config, doorbell) in bells() {
        let (first, second) = both(config, doorbell);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (here, there) = (second.receiver(1).unwrap(), second.sender(1).unwrap());
                for _ in 0..2000 {
                    let packet = here.receive_within(Some(LONG)).unwrap();
                    there.send_within(&text(&packet), Some(LONG)).unwrap();
                }
            });
            let (there, here) = (first.sender(1).unwrap(), first.receiver(1).unwrap());
            for turn in 0..2000_u32 {
                there.send_within(&turn.to_le_bytes(), Some(LONG)).unwrap();
                let packet = here.receive_within(FOREVER).unwrap();
                assert_eq!(text(&packet), turn.to_le_bytes());
            }
        });
        assert!(first.end().check_books() && second.end().check_books());
    }
}

#[test]
fn answers_come_back_in_the_block_of_the_request() {
    let (first, second) = both(MUTUAL, DoorbellKind::EventFd);
    thread::scope(|scope| {
        scope.spawn(|| {
            let here = second.receiver(1).unwrap();
            for _ in 0..500 {
                let mut request = here.receive_within(Some(LONG)).unwrap();
                let answer = request.place().unwrap();
                answer[0] = answer[0].wrapping_add(1);
                assert!(request.reply(1));
            }
        });
        let there = first.sender(1).unwrap();
        for turn in 0..500 {
            there.send_within(&[turn as u8], Some(LONG)).unwrap();
            let answer = there.reply_within(Some(LONG)).unwrap();
            assert_eq!(*answer, [(turn as u8).wrapping_add(1)]);
        }
    });
}

#[test]
fn batch_that_needs_more_blocks_than_there_are_gets_through() {
    let (first, second) = both(LINK, DoorbellKind::Socket);
    thread::scope(|scope| {
        let here = second.receiver(1).unwrap();
        scope.spawn(move || {
            for _ in 0..50 {
                here.receive_within(Some(LONG)).unwrap();
            }
        });
        let there = first.sender(1).unwrap();
        for _ in 0..50 {
            let place = there.place_within(1, FOREVER).unwrap();
            place.publish(1).unwrap();
        }
        there.flush();
    });
}

#[test]
fn wait_ends_with_its_time_limit_and_polling_at_once() {
    for (config, doorbell) in bells() {
        let (first, _second) = both(config, doorbell);
        let (there, here) = (first.sender(1).unwrap(), first.receiver(1).unwrap());
        let _places: Vec<_> = (0..4).map(|_| there.place(1).unwrap()).collect();
        for limit in [POLL, Some(SHORT)] {
            let over = WaitError::TimedOut;
            assert_eq!(here.receive_within(limit).err(), Some(over));
            assert_eq!(there.place_within(1, limit).err(), Some(over));
            assert_eq!(there.reply_within(limit).err(), Some(over));
            assert_eq!(first.next_within(limit), Err(over));
            assert_eq!(here.gather_within(1, limit), Err(over));
        }
        assert_eq!(
            there.place_within(65, FOREVER).err(),
            Some(WaitError::TooLarge)
        );
    }
}

#[test]
fn threads_wait_for_different_channels_of_one_link() {
    for (config, doorbell) in bells() {
        let (first, second) = both(config, doorbell);
        thread::scope(|scope| {
            for channel in [1, 2, 3] {
                // Two of each: the one that leads leaves the others behind with every packet.
                for _ in 0..2 {
                    let here = second.receiver(channel).unwrap();
                    scope.spawn(move || {
                        for _ in 0..200 {
                            let packet = here.receive_within(Some(LONG)).unwrap();
                            assert_eq!(text(&packet), [channel as u8]);
                        }
                    });
                }
            }
            for channel in [1, 2, 3] {
                let there = first.sender(channel).unwrap();
                scope.spawn(move || {
                    for _ in 0..400 {
                        there.send_within(&[channel as u8], Some(LONG)).unwrap();
                    }
                });
            }
        });
        assert!(first.end().check_books() && second.end().check_books());
    }
}

#[test]
fn place_that_another_thread_gives_back_wakes_who_waits_for_one() {
    for (config, doorbell) in bells() {
        let (first, _second) = both(config, doorbell);
        let there = first.sender(1).unwrap();
        let mut places: Vec<_> = (0..4).map(|_| there.place(1).unwrap()).collect();
        thread::scope(|scope| {
            // One of them leads, the other does not.
            let waiters = [(); 2].map(|()| {
                let there = first.sender(1).unwrap();
                scope.spawn(move || there.place_within(1, FOREVER).map(drop))
            });
            thread::sleep(SHORT);
            places.pop();
            for waiter in waiters {
                waiter.join().unwrap().unwrap();
            }
        });
    }
}

#[test]
fn urgent_channel_is_named_first() {
    let (first, second) = both(LINK, DoorbellKind::Socket);
    for channel in [3, 2, 1] {
        first.sender(channel).unwrap().send(&[1]).unwrap();
    }
    for channel in [1, 3, 2] {
        assert_eq!(second.next_within(FOREVER), Ok(channel));
        let here = second.receiver(channel).unwrap();
        here.receive_within(FOREVER).unwrap();
    }
    assert_eq!(second.next_within(POLL), Err(WaitError::TimedOut));
}

#[test]
fn gathering_ends_when_so_many_packets_are_there() {
    let (first, second) = both(LINK, DoorbellKind::Socket);
    let (there, here) = (first.sender(1).unwrap(), second.receiver(1).unwrap());
    there.send(&[0]).unwrap();
    assert_eq!(here.gather_within(2, Some(SHORT)), Err(WaitError::TimedOut));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| here.gather_within(3, FOREVER));
        there.send(&[1]).unwrap();
        thread::sleep(SHORT);
        assert!(!waiter.is_finished());
        there.send(&[2]).unwrap();
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn peer_that_goes_ends_every_wait_for_ever() {
    for (config, doorbell) in bells() {
        for closes in [false, true] {
            let (first, second) = both(config, doorbell);
            let gone = Some(WaitError::Lost(Lost::Closed));
            let (there, here) = (first.sender(1).unwrap(), first.receiver(2).unwrap());
            let _places: Vec<_> = (0..4).map(|_| there.place(1).unwrap()).collect();
            thread::scope(|scope| {
                let waiters = [
                    scope.spawn(|| here.receive_within(FOREVER).err()),
                    scope.spawn(|| there.place_within(1, FOREVER).err()),
                    scope.spawn(|| there.reply_within(FOREVER).err()),
                    scope.spawn(|| first.next_within(FOREVER).err()),
                ];
                thread::sleep(SHORT);
                if closes {
                    second.end().close();
                } else {
                    drop(second);
                }
                for waiter in waiters {
                    assert_eq!(waiter.join().unwrap(), gone, "{doorbell:?}");
                }
            });
            if !closes {
                // Nobody else can come by this socket.
                let mut later = first.receiver(2).unwrap();
                later.renew();
                assert_eq!(later.receive_within(FOREVER).err(), gone);
                assert_eq!(first.up_within(FOREVER).err(), gone);
            }
        }
    }
}

#[test]
fn what_a_peer_sent_before_it_went_is_received_first() {
    for (config, doorbell) in bells() {
        let (first, second) = both(config, doorbell);
        let there = second.sender(2).unwrap();
        let here = first.receiver(2).unwrap();
        there.send(&[1]).unwrap();
        there.send(&[2]).unwrap();
        drop((there, second));
        // Until the hang-up is seen, which comes after the ring.
        let arrived = |count| here.gather_within(count, FOREVER);
        assert_eq!(
            arrived(3),
            Err(WaitError::Lost(Lost::Closed)),
            "{doorbell:?}"
        );
        for byte in [1, 2] {
            let packet = here.receive_within(FOREVER).unwrap();
            assert_eq!(text(&packet), [byte]);
        }
        let end = here.receive_within(FOREVER).err();
        assert_eq!(end, Some(WaitError::Lost(Lost::Closed)), "{doorbell:?}");
    }
}

#[test]
fn draining_waits_for_every_block() {
    let (first, second) = both(LINK, DoorbellKind::Socket);
    let there = first.sender(1).unwrap();
    there.send(&[1]).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| first.drain_within(Some(LONG)));
        thread::sleep(SHORT);
        assert!(!waiter.is_finished());
        let here = second.receiver(1).unwrap();
        drop(here.receive_within(FOREVER).unwrap());
        waiter.join().unwrap().unwrap();
    });
    assert!(there.place(1).is_err());
}

/// The processor time of this process.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap()
}

/// Started by the next test in a process of its own, whose processor time is nobody else's.
#[test]
#[ignore = "started by another test"]
fn idle() {
    for (config, doorbell) in bells() {
        let (first, second) = both(config, doorbell);
        let before = busy();
        thread::scope(|scope| {
            let limit = Some(Duration::from_millis(200));
            for channel in [1, 1, 1, 1, 1, 1, 2, 3] {
                let here = first.receiver(channel).unwrap();
                scope.spawn(move || here.receive_within(limit).err());
            }
            let here = second.receiver(1).unwrap();
            assert_eq!(here.receive_within(limit).err(), Some(WaitError::TimedOut));
        });
        let took = busy() - before;
        assert!(took < Duration::from_millis(60), "{doorbell:?}: {took:?}");
    }
}

#[test]
fn threads_that_wait_need_no_processor() {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "links::idle", "--ignored"])
        .stdout(Stdio::piped());
    let test = start(&mut test).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&test.stdout);
    assert!(test.status.success(), "{said}");
}

#[test]
fn processes_connect_and_are_told_what_differs() {
    let path = file("listen");
    let listener = Listener::bind(&path).unwrap();
    assert!(matches!(
        listener.accept::<Unshared>(LINK, Options::default(), Some(SHORT)),
        Err(LinkError::Nobody)
    ));
    thread::scope(|scope| {
        scope.spawn(|| {
            const OTHER: Config = Config::new(&[Channel::new(1, "urgent", Pool::new(5, 64))]);
            let refused = Link::<Unshared>::connect(&path, OTHER, Options::default());
            assert!(matches!(
                refused,
                Err(LinkError::Exchange(ExchangeError::RefusedByPeer(_)))
            ));
            let link = Link::<Unshared>::connect(&path, LINK, Options::default()).unwrap();
            link.up_within(Some(LONG)).unwrap();
            let there = link.sender(1).unwrap();
            there.send_within(b"hello", Some(LONG)).unwrap();
            assert_eq!(
                link.receiver(1).unwrap().receive_within(FOREVER).err(),
                Some(WaitError::Lost(Lost::Closed))
            );
        });
        let accept = || listener.accept::<Unshared>(LINK, Options::default(), Some(LONG));
        assert!(matches!(
            accept(),
            Err(LinkError::Exchange(ExchangeError::Refused(_)))
        ));
        let link = accept().unwrap();
        link.up_within(Some(LONG)).unwrap();
        let here = link.receiver(1).unwrap();
        assert_eq!(text(&here.receive_within(Some(LONG)).unwrap()), b"hello");
    });
    assert!(matches!(Listener::bind(&path), Err(LinkError::Socket(_))));
    drop(listener);
    assert!(matches!(
        Link::<Unshared>::connect(&path, LINK, Options::default()),
        Err(LinkError::Socket(_))
    ));
}

#[test]
fn what_an_ended_listener_left_is_replaced() {
    let path = file("left");
    std::mem::forget(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(Listener::bind(&path).is_err(), "somebody listens");
    std::fs::remove_file(&path).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    closed();
    Listener::bind(&path).unwrap();
    std::fs::write(&path, b"no socket").unwrap();
    assert!(Listener::bind(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"no socket");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn observers_are_shown_the_links_that_live() {
    let path = file("observed");
    let listener = Listener::bind(&path).unwrap();
    let accept = |limit| listener.accept::<Unshared>(LINK, Options::default(), limit);
    let see = || {
        thread::scope(|scope| {
            let observer = scope.spawn(|| {
                let socket = rustix::net::socket(
                    rustix::net::AddressFamily::UNIX,
                    rustix::net::SocketType::SEQPACKET,
                    None,
                )
                .unwrap();
                let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
                rustix::net::connect(&socket, &address).unwrap();
                observe(socket, LONG).unwrap().links.len()
            });
            while !observer.is_finished() {
                let _ = accept(Some(SHORT));
            }
            observer.join().unwrap()
        })
    };
    assert_eq!(see(), 0);
    let (peer, link) = thread::scope(|scope| {
        let peer = scope.spawn(|| Link::connect(&path, LINK, Options::default()).unwrap());
        let link = accept(Some(LONG)).unwrap();
        let peer: Link = peer.join().unwrap();
        (peer, link)
    });
    assert_eq!(see(), 1);
    drop((peer, link));
    assert_eq!(see(), 0);
}

fn region(path: &std::path::Path, config: &Config) -> Region {
    Region::create(path, 4096, domain::Region::of(config).len as usize).unwrap()
}

fn in_region(
    region: &Region,
    config: Config<'static>,
    role: domain::Role,
) -> Result<Link, LinkError> {
    Link::in_region(
        region,
        config,
        role,
        RegionBell::Process,
        Options::default(),
    )
}

#[test]
fn side_of_a_region_is_taken_by_one_at_a_time() {
    let path = file("taken");
    let region = region(&path, &LINK);
    let [one, two] = [domain::Role::First, domain::Role::Second];
    let first = in_region(&region, LINK, one).unwrap();
    assert!(matches!(
        in_region(&region, LINK, one),
        Err(LinkError::Map(MapError::Taken))
    ));
    let second = in_region(&region, LINK, two).unwrap();
    come_up(&first, &second);
    let sender = first.sender(1).unwrap();
    drop(first);
    assert!(in_region(&region, LINK, one).is_err(), "a handle lives");
    drop(sender);
    closed();
    let first = in_region(&region, LINK, one).unwrap();
    come_up(&first, &second);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn link_at_a_wrong_offset_leaves_the_peers_segment_alone() {
    let path = file("offset");
    let parts = domain::Region::of(&LINK);
    let both = region(&path, &LINK);
    let [one, two] = [domain::Role::First, domain::Role::Second];
    // A core has no lock on its segment: neither has one who is gone.
    drop(in_region(&both, LINK, two).unwrap());
    closed();
    let len = parts.len as usize;
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(4096 + 2 * parts.len)
        .unwrap();
    let shift = parts.segment(two).offset - parts.segment(one).offset;
    let wrong = Region::open(&path, 4096 + shift, len).unwrap();
    assert!(matches!(
        in_region(&wrong, LINK, one),
        Err(LinkError::Map(MapError::OtherSide))
    ));
    let first = in_region(&both, LINK, one).unwrap();
    let second = in_region(&both, LINK, two).unwrap();
    come_up(&first, &second);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn link_in_a_region_comes_up_again_and_again() {
    let path = file("again");
    let region = region(&path, &LINK);
    let [one, two] = [domain::Role::First, domain::Role::Second];
    let mut first = in_region(&region, LINK, one).unwrap();
    let mut second = in_region(&region, LINK, two).unwrap();
    for turn in 0..20 {
        come_up(&first, &second);
        let (there, here) = (first.sender(2).unwrap(), second.receiver(2).unwrap());
        there.send_within(&[turn], Some(LONG)).unwrap();
        let packet = here.receive_within(Some(LONG)).unwrap();
        assert_eq!(text(&packet), [turn]);
        drop(packet);
        drop((here, there));
        if turn % 2 == 0 {
            drop(first);
            closed();
            first = in_region(&region, LINK, one).unwrap();
        } else {
            drop(second);
            closed();
            second = in_region(&region, LINK, two).unwrap();
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn peer_that_does_not_fit_is_named_at_the_time_limit() {
    const OTHER: Config = Config::new(&[
        Channel::new(1, "urgent", Pool::new(4, 64)).priority(1),
        Channel::new(2, "bulk", Pool::new(4, 64)).priority(200),
        Channel::new(3, "more", Pool::new(4, 64)),
    ]);
    let path = file("misfit");
    let region = region(&path, &LINK);
    let first = in_region(&region, LINK, domain::Role::First).unwrap();
    let _second = in_region(&region, OTHER, domain::Role::Second).unwrap();
    let Err(WaitError::Refused(difference)) = first.up_within(Some(SHORT)) else {
        panic!("{:?}", first.end().status());
    };
    assert_eq!(difference.field, domain::Field::Priority);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn hang_up_of_another_bell_is_the_death_of_the_peer_in_a_region() {
    let path = file("other-bell");
    let region = region(&path, &LINK);
    let (near, far) = pair(KINDS[0]);
    let open = |role, bell| {
        let bell = RegionBell::Other(Arc::new(SocketBell::new(bell)));
        Link::<sinew_shm::StdLock>::in_region(&region, LINK, role, bell, Options::default())
            .unwrap()
    };
    let first = open(domain::Role::First, near);
    let second = open(domain::Role::Second, far);
    come_up(&first, &second);
    let here = first.receiver(1).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| here.receive_within(FOREVER).err());
        drop(second);
        let lost = waiter.join().unwrap();
        assert_eq!(lost, Some(WaitError::Lost(Lost::Closed)));
    });
    std::fs::remove_file(&path).unwrap();
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn event_loop_waits_by_descriptor_and_waker() {
    for (config, doorbell) in bells() {
        let (first, second) = both(config, doorbell);
        let (there, here) = (first.sender(1).unwrap(), second.receiver(1).unwrap());
        let flag = Arc::new(Flag::default());
        here.arm(&Waker::from(flag.clone()));
        let is_woken = || flag.0.load(Ordering::SeqCst);
        second.on_ready();
        assert!(!is_woken());
        there.send(b"x").unwrap();
        match second.descriptor() {
            Some(fd) => {
                let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
                let long = Timespec::try_from(LONG).unwrap();
                assert_eq!(poll(&mut fds, Some(&long)), Ok(1));
            }
            None => assert_eq!(doorbell, DoorbellKind::Futex),
        }
        assert_eq!(second.on_ready(), Status::Up);
        assert!(is_woken());
        assert!(here.receive().unwrap().is_some());
        drop((first, there));
        let end = Instant::now() + LONG;
        while second.on_ready() == Status::Up && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(matches!(here.receive(), Err(Lost::Closed)));
    }
}

const REGION: &str = "SINEW_TEST_REGION";

/// Not a test of its own: the second side of a region in another process, until it is killed.
#[test]
#[ignore = "started by another test"]
fn second_side() {
    let Some(path) = std::env::var_os(REGION) else {
        return;
    };
    let region = region(path.as_ref(), &LINK);
    let link = in_region(&region, LINK, domain::Role::Second).unwrap();
    let (here, there) = (link.receiver(1).unwrap(), link.sender(1).unwrap());
    loop {
        let packet = here.receive_within(FOREVER).unwrap();
        there.send_within(&text(&packet), FOREVER).unwrap();
    }
}

#[test]
fn process_that_is_killed_in_a_region_ends_waits_for_ever() {
    let path = file("killed");
    let region = region(&path, &LINK);
    let first = in_region(&region, LINK, domain::Role::First).unwrap();
    let there = first.sender(1).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "links::second_side", "--ignored"])
        .env(REGION, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = start(&mut child);
    first.up_within(Some(LONG)).unwrap();
    assert!(in_region(&region, LINK, domain::Role::Second).is_err());
    let here = first.receiver(1).unwrap();
    there.send_within(b"ping", Some(LONG)).unwrap();
    assert_eq!(text(&here.receive_within(Some(LONG)).unwrap()), b"ping");
    // All blocks are with the peer or on their way when it goes.
    thread::scope(|scope| {
        let waiter = scope.spawn(|| here.receive_within(FOREVER).map(drop));
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::STOP,
        )
        .unwrap();
        while there.send(b"lost").is_ok() {}
        child.kill().unwrap();
        child.wait().unwrap();
        let lost = Err(WaitError::Lost(Lost::Closed));
        assert_eq!(there.place_within(1, FOREVER).map(drop), lost);
        // It may still have had an answer.
        let _ = waiter.join().unwrap();
    });
    assert!(first.end().check_books());
    let second = in_region(&region, LINK, domain::Role::Second).unwrap();
    come_up(&first, &second);
    let mut there = first.sender(1).unwrap();
    there.renew();
    let places: Vec<_> = (0..4).map(|_| there.place(1)).collect();
    assert!(
        places.iter().all(|place| place.is_ok()),
        "all blocks are back"
    );
    drop(places);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn doorbell_is_for_the_process_of_its_link_alone() {
    let is_readable = |link: &Link| {
        let fd = link.descriptor().unwrap();
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    };
    let (one, peer_of_one) = both(LINK, DoorbellKind::Socket);
    let (two, peer_of_two) = both(LINK, DoorbellKind::Socket);
    let waker = Waker::noop();
    for peer in [&peer_of_one, &peer_of_two] {
        peer.on_ready();
        peer.receiver(1).unwrap().arm(waker);
    }
    one.sender(1).unwrap().send(b"x").unwrap();
    assert!(is_readable(&peer_of_one) && !is_readable(&peer_of_two));
    // One that takes nothing keeps nobody up.
    let there = two.sender(1).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let here = peer_of_two.receiver(1).unwrap();
            for _ in 0..100 {
                here.receive_within(Some(LONG)).unwrap();
            }
        });
        for _ in 0..100 {
            one.sender(2).unwrap().flush();
            there.send_within(b"x", Some(LONG)).unwrap();
        }
    });
}

#[test]
fn link_is_not_up_with_a_peer_that_has_ended() {
    for (config, doorbell) in bells() {
        let (first, second) = both(config, doorbell);
        let there = second.sender(2).unwrap();
        there.send(&[1]).unwrap();
        drop((there, second));
        let closed = Err(WaitError::Lost(Lost::Closed));
        let here = first.receiver(1).unwrap();
        assert_eq!(here.gather_within(1, FOREVER), closed);
        // Though a packet is there that nobody has received.
        assert_eq!(first.up_within(FOREVER), closed, "{doorbell:?}");
    }
}

#[test]
fn of_listeners_that_begin_at_the_same_time_one_gets_the_path() {
    let path = file("race");
    for _ in 0..200 {
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        closed();
        let bind = || Listener::bind(&path).ok();
        let bound = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(bind)).collect();
            let bound = threads.into_iter().filter_map(|it| it.join().unwrap());
            bound.collect::<Vec<_>>()
        });
        assert_eq!(bound.len(), 1);
    }
    assert!(!path.exists());
}

#[test]
fn a_listener_that_ends_leaves_the_path_to_another_one() {
    let path = file("left-to-another");
    let first = Listener::bind(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _second = Listener::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
}

#[test]
fn connecting_to_who_takes_nobody_up_ends_with_its_time_limit() {
    let path = file("full");
    let stream = std::os::unix::net::UnixListener::bind(&path).unwrap();
    rustix::net::listen(&stream, 1).unwrap();
    let waiting: Result<Vec<_>, _> = (0..64).map(|_| connected_stream(&path, SHORT)).collect();
    assert_eq!(waiting.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    std::fs::remove_file(&path).unwrap();
}

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex;
use sinew_shm::domain::Doorbell;
use sinew_shm::linux::bell::{EventFdBell, FutexBell, FutexError, SocketBell, Wait, Woken};
use sinew_shm::linux::{Mapping, Segment};

use super::{KINDS, LONG, SHORT, pair, read, write};

/// What [`Doorbell`] and [`Wait`] promise of any bell.
trait Bell: Doorbell + Wait + Send + Sync {}
impl<T: Doorbell + Wait + Send + Sync> Bell for T {}

/// The two sides of a link, and the name of its kind of bell.
type Link = (&'static str, Box<dyn Bell>, Box<dyn Bell>);

/// One of each kind.
fn all() -> [Link; 4] {
    let [stream, packets] = KINDS.map(|kind| {
        let (a, b) = pair(kind);
        (SocketBell::new(a), SocketBell::new(b))
    });
    let (eventfd_a, eventfd_b) = eventfds();
    let (futex_a, futex_b, _) = futexes();
    [
        ("stream", Box::new(stream.0), Box::new(stream.1)),
        ("seqpacket", Box::new(packets.0), Box::new(packets.1)),
        ("eventfd", Box::new(eventfd_a), Box::new(eventfd_b)),
        ("futex", Box::new(futex_a), Box::new(futex_b)),
    ]
}

fn eventfds() -> (EventFdBell, EventFdBell) {
    let (a, b) = pair(KINDS[0]);
    let [one, two] = [(); 2].map(|()| EventFdBell::create().unwrap());
    let copy = |fd: &OwnedFd| fd.try_clone().unwrap();
    (
        EventFdBell::new(copy(&one), copy(&two), a),
        EventFdBell::new(two, one, b),
    )
}

/// Each waits on the other's word through a read-only mapping. Also gives the second's own segment.
fn futexes() -> (FutexBell, FutexBell, Arc<Mapping>) {
    let segment = || {
        let own = Segment::create(4096).unwrap();
        let fd = own.as_fd().try_clone_to_owned().unwrap();
        let peers = Segment::accept(fd, 4096).unwrap();
        assert!(!peers.mapping().is_writable());
        [own, peers].map(|segment| Arc::new(segment.into_parts().1))
    };
    let ([a, a_seen], [b, b_seen]) = (segment(), segment());
    let (near, far) = pair(KINDS[0]);
    let one = FutexBell::new((&a, 64), (&b_seen, 128), near).unwrap();
    let two = FutexBell::new((&b, 128), (&a_seen, 64), far).unwrap();
    (one, two, b)
}

#[test]
fn silent_bell_lets_the_time_pass() {
    for (name, _near, far) in all() {
        let seen = far.seen();
        assert_eq!(far.wait(seen, Some(SHORT)), Woken::TimedOut, "{name}");
        assert_eq!(
            far.wait(seen, Some(Duration::ZERO)),
            Woken::TimedOut,
            "{name}"
        );
    }
}

#[test]
fn ring_before_the_wait_ends_it() {
    for (name, near, far) in all() {
        let seen = far.seen();
        near.ring();
        assert_eq!(far.wait(seen, None), Woken::Rung, "{name}");
        let seen = far.seen();
        assert_eq!(far.wait(seen, Some(SHORT)), Woken::TimedOut, "{name}: once");
    }
}

#[test]
fn rings_come_together_as_one() {
    for (name, near, far) in all() {
        let seen = far.seen();
        for _ in 0..10 {
            near.ring();
        }
        assert_eq!(far.wait(seen, None), Woken::Rung, "{name}");
        let seen = far.seen();
        assert_eq!(far.wait(seen, Some(SHORT)), Woken::TimedOut, "{name}");
    }
}

#[test]
fn ring_during_the_wait_ends_it() {
    for (name, near, far) in all() {
        let seen = far.seen();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| far.wait(seen, Some(LONG)));
            std::thread::sleep(SHORT);
            near.ring();
            assert_eq!(waiter.join().unwrap(), Woken::Rung, "{name}");
        });
    }
}

#[test]
fn ringer_never_waits_for_a_peer_that_never_takes() {
    for (name, near, far) in all() {
        let seen = far.seen();
        for _ in 0..100_000 {
            near.ring();
        }
        assert_eq!(far.wait(seen, None), Woken::Rung, "{name}");
        assert_eq!(
            near.wait(near.seen(), Some(SHORT)),
            Woken::TimedOut,
            "{name}"
        );
    }
}

#[test]
fn many_turns_lose_no_ring() {
    const TURNS: usize = 2000;
    for (name, near, far) in all() {
        // Each rings only when it was rung, so one ring that is lost ends it.
        std::thread::scope(|scope| {
            let mut seen = far.seen();
            let far = &far;
            scope.spawn(move || {
                for _ in 0..TURNS {
                    assert_eq!(far.wait(seen, Some(LONG)), Woken::Rung, "{name}");
                    seen = far.seen();
                    far.ring();
                }
            });
            for _ in 0..TURNS {
                let seen = near.seen();
                near.ring();
                assert_eq!(near.wait(seen, Some(LONG)), Woken::Rung, "{name}");
            }
        });
    }
}

#[test]
fn interruption_before_or_during_the_wait_ends_it_once() {
    for (name, near, far) in all() {
        let seen = far.seen();
        far.interrupt();
        assert_eq!(far.wait(seen, None), Woken::Rung, "{name}");
        let seen = far.seen();
        assert_eq!(far.wait(seen, Some(SHORT)), Woken::TimedOut, "{name}: once");
        let seen = far.seen();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| far.wait(seen, Some(LONG)));
            std::thread::sleep(SHORT);
            far.interrupt();
            assert_eq!(waiter.join().unwrap(), Woken::Rung, "{name}");
        });
        let seen = near.seen();
        assert_eq!(near.wait(seen, Some(SHORT)), Woken::TimedOut, "{name}");
    }
}

#[test]
fn bell_without_a_socket_rings_and_is_interrupted() {
    let own = Segment::create(4096).unwrap();
    let seen = Segment::accept(own.as_fd().try_clone_to_owned().unwrap(), 4096).unwrap();
    let [own, seen] = [own, seen].map(|segment| Arc::new(segment.into_parts().1));
    // One memory is both sides here: what it rings, it hears.
    let bell = FutexBell::unwatched((&own, 0), (&seen, 0)).unwrap();
    let before = bell.seen();
    assert_eq!(bell.wait(before, Some(SHORT)), Woken::TimedOut);
    for wake in [Doorbell::ring, Wait::interrupt] {
        let before = bell.seen();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| bell.wait(before, None));
            std::thread::sleep(SHORT);
            wake(&bell);
            assert_eq!(waiter.join().unwrap(), Woken::Rung);
        });
    }
}

#[test]
fn hang_up_ends_the_wait_and_every_later_one() {
    for (name, near, far) in all() {
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| far.wait(far.seen(), None));
            std::thread::sleep(SHORT);
            drop(near);
            assert_eq!(waiter.join().unwrap(), Woken::HungUp, "{name}");
        });
        assert_eq!(far.wait(far.seen(), None), Woken::HungUp, "{name}");
        far.ring();
    }
}

#[test]
fn ring_before_the_hang_up_is_told_first() {
    for (name, near, far) in all() {
        let seen = far.seen();
        near.ring();
        drop(near);
        assert_eq!(far.wait(seen, None), Woken::Rung, "{name}");
        assert_eq!(far.wait(far.seen(), None), Woken::HungUp, "{name}");
    }
}

#[test]
fn polled_descriptor_is_readable_when_rung() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let readable = |fd: &dyn AsFd| {
        let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    };
    let (near, far) = pair(KINDS[1]);
    let (near, far) = (SocketBell::new(near), SocketBell::new(far));
    assert!(!readable(&far));
    near.ring();
    assert!(readable(&far));
    assert_eq!(far.take(), Woken::Rung);
    assert_eq!(far.take(), Woken::TimedOut);
    assert!(!readable(&far));

    let (near, far) = eventfds();
    assert!(!readable(&far));
    near.ring();
    assert!(readable(&far));
    assert!(far.take() && !far.take());
    assert!(!readable(&far));
}

#[test]
fn one_look_takes_a_bounded_number_of_rings() {
    let (near, far) = pair(KINDS[1]);
    let (near, far) = (SocketBell::new(near), SocketBell::new(far));
    for _ in 0..100 {
        near.ring();
    }
    // Packets are taken one by one, so some are left; what is left over rings once more.
    assert_eq!(far.take(), Woken::Rung);
    assert_eq!(far.take(), Woken::Rung);
    assert_eq!(far.take(), Woken::TimedOut);
}

#[test]
fn word_that_changes_under_the_waiter_is_a_ring() {
    let (_near, far, _) = futexes();
    let (near, _far, segment) = futexes();
    let seen = near.seen();
    // As a hostile peer might: any value, and no wake-up.
    write(&segment, 128, 0xFF);
    assert_eq!(near.wait(seen, None), Woken::Rung);
    assert_eq!(far.wait(far.seen(), Some(SHORT)), Woken::TimedOut);
}

#[test]
fn wake_up_without_a_ring_is_none() {
    let (near, _far, segment) = futexes();
    // SAFETY: aligned, and mapped while it is used.
    let word = unsafe { segment.as_ptr().add(128).cast::<AtomicU32>().as_ref() };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                futex::wake(word, futex::Flags::empty(), u32::MAX >> 1).unwrap();
            }
        });
        for _ in 0..20 {
            assert_eq!(near.wait(near.seen(), Some(SHORT)), Woken::TimedOut);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn several_ringers_are_one_writer() {
    let (_near, far, segment) = futexes();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50_000 {
                    far.ring();
                }
            });
        }
    });
    let rung = [0, 1, 2, 3].map(|byte| read(&segment, 128 + byte));
    assert_eq!(u32::from_le_bytes(rung), 200_000);
}

#[test]
fn words_in_wrong_places_are_refused() {
    let own = Segment::create(4096).unwrap();
    let fd = own.as_fd().try_clone_to_owned().unwrap();
    let peers = Segment::accept(fd, 4096).unwrap();
    let [own, peers] = [own, peers].map(|segment| Arc::new(segment.into_parts().1));
    let make = |mine, theirs| {
        let (socket, _) = pair(KINDS[0]);
        FutexBell::new(mine, theirs, socket).map(drop)
    };
    make((&own, 4092), (&peers, 0)).unwrap();
    assert!(matches!(
        make((&peers, 0), (&own, 0)),
        Err(FutexError::ReadOnly)
    ));
    for at in [1, 2, 4093, 4096, usize::MAX] {
        assert!(matches!(
            make((&own, at), (&peers, 0)),
            Err(FutexError::Misplaced)
        ));
        assert!(matches!(
            make((&own, 0), (&peers, at)),
            Err(FutexError::Misplaced)
        ));
    }
}

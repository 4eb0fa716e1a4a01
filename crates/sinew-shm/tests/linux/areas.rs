//! Lock channels of processes: who waits for the lock, and how each wait ends.

use std::thread;
use std::time::Duration;

use sinew_shm::domain::{Channel, Config, Lost, Pool};
use sinew_shm::linux::exchange::DoorbellKind;
use sinew_shm::linux::link::{Area, Link, Options, WaitError};

use super::{LONG, SHORT};

// The queue is what a link without a heartbeat comes up by at once.
const LINK: Config = Config::new(&[
    Channel::lock(1, "counter", 8),
    Channel::new(2, "queue", Pool::new(1, 8)),
]);

/// Without a heartbeat, so that nothing is found by looking every now and then.
fn both(doorbell: DoorbellKind) -> (Link, Link) {
    let mut options = Options::default();
    options.end.heartbeat = 3_600_000;
    let options = Options {
        doorbell,
        spin: Duration::ZERO,
        ..options
    };
    let (first, second) = Link::pair(LINK, options).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| first.up_within(Some(LONG)).unwrap());
        second.up_within(Some(LONG)).unwrap();
    });
    (first, second)
}

fn area(link: &Link) -> Area {
    link.area(1).unwrap()
}

#[test]
fn threads_of_both_sides_wait_for_each_other_and_all_get_it() {
    const ROUNDS: u64 = 300;
    for doorbell in [
        DoorbellKind::Socket,
        DoorbellKind::Futex,
        DoorbellKind::EventFd,
    ] {
        let (first, second) = both(doorbell);
        thread::scope(|scope| {
            for link in [&first, &second, &first, &second] {
                let area = area(link);
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let mut guard = area.lock_within(Some(LONG)).unwrap().unwrap();
                        let count: u64 = guard.get(0).unwrap();
                        thread::yield_now();
                        guard.set(0, &(count + 1)).unwrap();
                        guard.unlock().unwrap();
                    }
                });
            }
        });
        let area = area(&second);
        let guard = area.lock_within(Some(LONG)).unwrap().unwrap();
        assert_eq!(guard.get(0), Ok(4 * ROUNDS));
    }
}

#[test]
fn who_waits_is_told_of_the_time_and_of_the_end() {
    let (first, second) = both(DoorbellKind::Socket);
    let (near, far) = (area(&first), area(&second));
    let guard = near.lock_within(Some(LONG)).unwrap().unwrap();
    let timed_out = far.lock_within(Some(SHORT)).map(drop);
    assert_eq!(timed_out, Err(WaitError::TimedOut));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| far.lock_within(Some(LONG)).map(drop));
        thread::sleep(SHORT);
        first.end().close();
        let ended = waiting.join().unwrap();
        assert_eq!(ended, Err(WaitError::Lost(Lost::Closed)));
    });
    assert_eq!(guard.unlock(), Err(Lost::Closed));
}

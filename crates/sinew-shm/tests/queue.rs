//! The queue and the bell as a program uses them.
#![cfg(all(feature = "std", not(loom)))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use sinew_shm::{Bell, Closed, Queue, Refused, StdLock};

type Small = Queue<StdLock, 4, 16>;

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), count.into())
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! queue {
    () => {{
        static QUEUE: Small = Queue::new();
        &QUEUE
    }};
}

#[test]
fn two_places_commit_in_either_order() {
    let (sender, mut receiver) = queue!().split().unwrap();
    let mut first = sender.handle(0).place(1).unwrap();
    let mut second = sender.handle(0).place(1).unwrap();
    first[0] = 1;
    second[0] = 2;
    second.commit(1).unwrap();
    first.commit(1).unwrap();
    assert_eq!(receiver.peek(), Ok(Some(&[2][..])));
    receiver.release();
    assert_eq!(receiver.peek(), Ok(Some(&[1][..])));
    receiver.release();
    assert_eq!(receiver.peek(), Ok(None));
}

#[test]
fn dropped_place_is_free_again() {
    let (sender, _receiver) = queue!().split().unwrap();
    for _ in 0..100 {
        drop(sender.place(1).unwrap());
        sender.place(1).unwrap().commit(0).unwrap();
        assert_eq!(sender.place(1).unwrap().commit(17), Err(Refused::TooLarge));
    }
    let places: Vec<_> = (0..4).map(|_| sender.place(16).unwrap()).collect();
    assert_eq!(sender.place(1).err(), Some(Refused::Full));
    drop(places);
    assert!(sender.place(1).is_ok());
}

#[test]
fn every_place_is_a_block_of_its_own() {
    let (sender, _receiver) = queue!().split().unwrap();
    let places: Vec<_> = (0..4).map(|_| sender.place(16).unwrap()).collect();
    let mut at: Vec<_> = places.iter().map(|place| place.as_ptr()).collect();
    at.sort();
    at.dedup();
    assert_eq!(at.len(), 4);
}

#[test]
fn handle_leaves_its_reserve_free() {
    let (sender, mut receiver) = queue!().split().unwrap();
    let (urgent, bulk) = (sender.handle(1), sender.handle(2));
    bulk.place(1).unwrap().commit(1).unwrap();
    bulk.place(1).unwrap().commit(1).unwrap();
    assert_eq!(bulk.place(1).err(), Some(Refused::Full));
    urgent.place(1).unwrap().commit(1).unwrap();
    assert_eq!(urgent.place(1).err(), Some(Refused::Full));
    sender.place(1).unwrap().commit(1).unwrap();
    assert_eq!(sender.place(1).err(), Some(Refused::Full));
    receiver.peek().unwrap();
    receiver.release();
    assert_eq!(urgent.place(1).err(), Some(Refused::Full));
    assert!(sender.place(1).is_ok());
}

#[test]
fn reserve_of_all_blocks_still_sends() {
    let (sender, _receiver) = queue!().split().unwrap();
    assert!(sender.handle(99).place(1).is_ok());
}

#[test]
fn waiting_producer_is_woken_once_its_reserve_is_free() {
    let (sender, mut receiver) = queue!().split().unwrap();
    for _ in 0..4 {
        sender.place(1).unwrap().commit(1).unwrap();
    }
    let (any, any_waker) = counting();
    let (bulk, bulk_waker) = counting();
    sender.arm(&any_waker);
    sender.handle(1).arm(&bulk_waker);
    assert_eq!((any.get(), bulk.get()), (0, 0));
    receiver.peek().unwrap();
    receiver.release();
    assert_eq!((any.get(), bulk.get()), (1, 0));
    receiver.peek().unwrap();
    receiver.release();
    assert_eq!((any.get(), bulk.get()), (1, 1));
    receiver.peek().unwrap();
    receiver.release();
    assert_eq!((any.get(), bulk.get()), (1, 1));
}

#[test]
fn dropped_place_wakes_who_waits() {
    let (sender, _receiver) = queue!().split().unwrap();
    let mut places: Vec<_> = (0..4).map(|_| sender.place(1).unwrap()).collect();
    let (count, waker) = counting();
    sender.arm(&waker);
    sender.arm(&waker);
    assert_eq!(count.get(), 0);
    places.pop();
    assert_eq!(count.get(), 1, "armed twice, registered once");
}

#[test]
fn arm_with_a_free_place_wakes_at_once() {
    let (sender, mut receiver) = queue!().split().unwrap();
    let (count, waker) = counting();
    sender.arm(&waker);
    assert_eq!(count.get(), 1);
    sender.place(1).unwrap().commit(1).unwrap();
    receiver.arm(&waker);
    assert_eq!(count.get(), 2);
}

#[test]
fn fifth_waiting_producer_wakes_the_oldest() {
    let (sender, mut receiver) = queue!().split().unwrap();
    for _ in 0..4 {
        sender.place(1).unwrap().commit(1).unwrap();
    }
    let waiting: Vec<_> = (0..6).map(|_| counting()).collect();
    for (_, waker) in &waiting {
        sender.arm(waker);
    }
    let woken = || {
        waiting
            .iter()
            .map(|(count, _)| count.get())
            .collect::<Vec<_>>()
    };
    assert_eq!(woken(), [1, 1, 0, 0, 0, 0]);
    receiver.peek().unwrap();
    receiver.release();
    assert_eq!(woken(), [1, 1, 1, 1, 1, 1]);
}

#[test]
fn commit_wakes_the_receiver_once() {
    let (sender, mut receiver) = queue!().split().unwrap();
    let (count, waker) = counting();
    receiver.arm(&waker);
    assert_eq!(count.get(), 0);
    sender.place(1).unwrap().commit(1).unwrap();
    sender.place(1).unwrap().commit(1).unwrap();
    assert_eq!(count.get(), 1);
}

#[test]
fn closed_by_the_sender_is_read_to_the_end() {
    let (sender, mut receiver) = queue!().split().unwrap();
    let handle = sender.handle(0);
    let late = handle.place(1).unwrap();
    handle.place(1).unwrap().commit(1).unwrap();
    let (count, waker) = counting();
    drop(sender);
    assert_eq!(handle.place(1).err(), Some(Refused::Closed));
    assert_eq!(late.commit(1), Err(Refused::Closed));
    assert!(receiver.peek().unwrap().is_some());
    receiver.release();
    assert_eq!(receiver.peek(), Err(Closed));
    receiver.arm(&waker);
    assert_eq!(count.get(), 1);
}

#[test]
fn close_wakes_everybody() {
    let (sender, mut receiver) = queue!().split().unwrap();
    let (count, waker) = counting();
    receiver.arm(&waker);
    sender.close();
    assert_eq!(count.get(), 1);
    drop((sender, receiver));

    let (sender, receiver) = queue!().split().unwrap();
    for _ in 0..4 {
        sender.place(1).unwrap().commit(1).unwrap();
    }
    let (count, waker) = counting();
    sender.arm(&waker);
    drop(receiver);
    assert_eq!(count.get(), 1);
    sender.arm(&waker);
    assert_eq!(count.get(), 2);
}

#[test]
fn opens_once_and_again_after_all_is_dropped() {
    let queue = queue!();
    let (sender, receiver) = queue.split().unwrap();
    assert!(queue.split().is_none());
    let old = sender.handle(0);
    let place = old.place(1).unwrap();
    sender.place(1).unwrap().commit(1).unwrap();
    drop(sender);
    assert!(queue.split().is_none());
    drop(receiver);
    assert!(queue.split().is_none(), "a place is out");
    drop(place);
    let (sender, mut receiver) = queue.split().unwrap();
    assert_eq!(receiver.peek(), Ok(None), "nothing of the time before");
    assert_eq!(old.place(1).err(), Some(Refused::Closed));
    assert_eq!(
        (0..4)
            .filter(|_| sender.place(1).unwrap().commit(1).is_ok())
            .count(),
        4
    );
    assert_eq!(sender.place(1).err(), Some(Refused::Full));
}

#[test]
fn open_queue_gives_a_handle_without_its_sender() {
    let queue = queue!();
    assert!(queue.handle(0).is_none(), "nobody has opened it");
    let (sender, mut receiver) = queue.split().unwrap();
    let handle = queue.handle(3).unwrap();
    handle.place(1).unwrap().commit(1).unwrap();
    assert_eq!(handle.place(1).err(), Some(Refused::Full));
    assert!(receiver.peek().unwrap().is_some());
    drop((sender, receiver));
    assert_eq!(handle.place(1).err(), Some(Refused::Closed));
    assert!(queue.handle(0).is_none(), "it is closed again");
}

#[test]
fn counters_add_up() {
    let queue = queue!();
    let (sender, mut receiver) = queue.split().unwrap();
    for _ in 0..3 {
        sender.place(1).unwrap().commit(1).unwrap();
    }
    assert!(sender.handle(1).place(1).is_err());
    assert!(sender.place(17).is_err());
    receiver.peek().unwrap();
    receiver.release();
    receiver.release();
    drop((sender, receiver));
    let _open = queue.split().unwrap();
    let stats = queue.stats();
    assert_eq!((stats.sent, stats.received, stats.discarded), (3, 1, 2));
    assert_eq!((stats.full, stats.too_large), (1, 1));
}

#[test]
fn threads_send_everything_in_order() {
    let (sender, mut receiver) = queue!().split().unwrap();
    const EACH: u32 = if cfg!(miri) { 50 } else { 20_000 };
    std::thread::scope(|scope| {
        for id in 0..3u32 {
            let handle = sender.handle(0);
            scope.spawn(move || {
                let waker = thread_waker();
                for count in 0..EACH {
                    let mut place = loop {
                        match handle.place(8) {
                            Ok(place) => break place,
                            Err(_) => {
                                handle.arm(&waker);
                                std::thread::park();
                            }
                        }
                    };
                    place[..4].copy_from_slice(&id.to_le_bytes());
                    place[4..8].copy_from_slice(&count.to_le_bytes());
                    place.commit(8).unwrap();
                }
            });
        }
        let waker = thread_waker();
        let mut next = [0; 3];
        while next.iter().sum::<u32>() < 3 * EACH {
            let Some(packet) = receiver.peek().unwrap() else {
                receiver.arm(&waker);
                std::thread::park();
                continue;
            };
            let id = u32::from_le_bytes(packet[..4].try_into().unwrap());
            let count = u32::from_le_bytes(packet[4..8].try_into().unwrap());
            assert_eq!(count, next[id as usize]);
            next[id as usize] += 1;
            receiver.release();
        }
    });
}

fn thread_waker() -> Waker {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Arc::new(Unpark(std::thread::current())).into()
}

#[test]
fn bell_is_sticky_and_wakes_once() {
    static BELL: Bell<StdLock> = Bell::new();
    let (count, waker) = counting();
    assert!(!BELL.take());
    BELL.arm(&waker);
    assert_eq!(count.get(), 0);
    BELL.ring();
    BELL.ring();
    assert_eq!(count.get(), 1);
    assert!(BELL.take());
    assert!(!BELL.take());
    BELL.ring();
    BELL.arm(&waker);
    assert_eq!(count.get(), 2, "rung before it was armed");
}

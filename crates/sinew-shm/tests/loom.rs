//! Every interleaving of small programs over the shipped queue and bell, and the proof that each
//! synchronisation point is needed.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sinew-shm --release --test loom`
#![cfg(loom)]

#[path = "support/loom.rs"]
mod support;

use std::future::poll_fn;
use std::task::{Context, Poll};

use loom::cell::UnsafeCell;
use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;
use sinew_shm::{Bell, Closed, Handle, MUTANTS, Queue, Receiver, Refused, Sender};
use support::{LoomLock, explore, passes_without};

type Queued<const BLOCKS: usize> = Queue<LoomLock, BLOCKS, 4>;
type Ends<const BLOCKS: usize> = (Sender<LoomLock, BLOCKS, 4>, Receiver<LoomLock, BLOCKS, 4>);

fn open<const BLOCKS: usize>() -> Ends<BLOCKS> {
    Box::leak(Box::new(Queued::new())).split().unwrap()
}

fn try_send<const BLOCKS: usize>(
    handle: &Handle<LoomLock, BLOCKS, 4>,
    value: u8,
) -> Result<(), Refused> {
    let mut place = handle.place(1)?;
    place[0] = value;
    place.commit(1)
}

fn send<const BLOCKS: usize>(
    handle: &Handle<LoomLock, BLOCKS, 4>,
    value: u8,
) -> Result<(), Refused> {
    block_on(poll_fn(|cx: &mut Context| match try_send(handle, value) {
        Err(Refused::Full) => {
            handle.arm(cx.waker());
            Poll::Pending
        }
        done => Poll::Ready(done),
    }))
}

fn receive<const BLOCKS: usize>(
    receiver: &mut Receiver<LoomLock, BLOCKS, 4>,
) -> Result<u8, Closed> {
    block_on(poll_fn(|cx: &mut Context| {
        let got = match receiver.peek() {
            Ok(None) => {
                receiver.arm(cx.waker());
                return Poll::Pending;
            }
            Ok(Some(packet)) => Ok(packet[0]),
            Err(Closed) => Err(Closed),
        };
        receiver.release();
        Poll::Ready(got)
    }))
}

#[test]
fn packets_cross_in_order() {
    explore(4, || {
        let (sender, mut receiver) = open::<2>();
        let producer = thread::spawn(move || {
            let handle = sender.handle(0);
            try_send(&handle, 1).unwrap();
            try_send(&handle, 2).unwrap();
            sender
        });
        assert_eq!(receive(&mut receiver), Ok(1));
        assert_eq!(receive(&mut receiver), Ok(2));
        producer.join().unwrap();
    });
}

#[test]
fn full_queue_goes_on_when_a_block_comes_back() {
    explore(4, || {
        let (sender, mut receiver) = open::<1>();
        let producer = thread::spawn(move || {
            let handle = sender.handle(0);
            send(&handle, 1).unwrap();
            send(&handle, 2).unwrap();
            sender
        });
        assert_eq!(receive(&mut receiver), Ok(1));
        assert_eq!(receive(&mut receiver), Ok(2));
        producer.join().unwrap();
    });
}

#[test]
fn two_producers_lose_nothing() {
    explore(3, || {
        let (sender, mut receiver) = open::<2>();
        let producers = [1, 2].map(|value| {
            let handle = sender.handle(0);
            thread::spawn(move || send(&handle, value).unwrap())
        });
        let got = receive(&mut receiver).unwrap() + receive(&mut receiver).unwrap();
        assert_eq!(got, 3);
        producers
            .into_iter()
            .for_each(|producer| producer.join().unwrap());
    });
}

#[test]
fn two_producers_wait_for_one_block() {
    explore(3, || {
        let (sender, mut receiver) = open::<1>();
        let producers = [1, 2].map(|value| {
            let handle = sender.handle(0);
            thread::spawn(move || send(&handle, value).unwrap())
        });
        let got = receive(&mut receiver).unwrap() + receive(&mut receiver).unwrap();
        assert_eq!(got, 3);
        producers
            .into_iter()
            .for_each(|producer| producer.join().unwrap());
    });
}

#[test]
fn dropped_place_wakes_the_other_producer() {
    explore(4, || {
        let (sender, receiver) = open::<1>();
        let handle = sender.handle(0);
        let place = handle.place(1).unwrap();
        let other = thread::spawn(move || send(&handle, 1).unwrap());
        drop(place);
        other.join().unwrap();
        drop((sender, receiver));
    });
}

#[test]
fn closed_queue_is_read_to_the_end() {
    explore(4, || {
        let (sender, mut receiver) = open::<2>();
        let producer = thread::spawn(move || {
            try_send(&sender.handle(0), 7).unwrap();
            drop(sender);
        });
        assert_eq!(receive(&mut receiver), Ok(7));
        assert_eq!(receive(&mut receiver), Err(Closed));
        producer.join().unwrap();
    });
}

#[test]
fn gone_receiver_wakes_a_waiting_producer() {
    explore(4, || {
        let (sender, receiver) = open::<1>();
        try_send(&sender.handle(0), 1).unwrap();
        let producer = thread::spawn(move || {
            assert_eq!(send(&sender.handle(0), 2), Err(Refused::Closed));
        });
        drop(receiver);
        producer.join().unwrap();
    });
}

#[test]
fn opens_again_with_every_block_free() {
    explore(3, || {
        let queue: &'static Queued<1> = Box::leak(Box::new(Queued::new()));
        let (sender, mut receiver) = queue.split().unwrap();
        let producer = thread::spawn(move || {
            let _ = try_send(&sender.handle(0), 1);
        });
        let _ = receiver.peek();
        drop(receiver);
        producer.join().unwrap();
        let (sender, mut receiver) = queue.split().unwrap();
        assert_eq!(receiver.peek(), Ok(None));
        try_send(&sender.handle(0), 2).unwrap();
        assert_eq!(receive(&mut receiver), Ok(2));
    });
}

fn bell() -> &'static Bell<LoomLock> {
    Box::leak(Box::new(Bell::new()))
}

#[test]
fn bell_wakes_the_driver() {
    explore(4, || {
        let bell = bell();
        let ringers = [0, 1].map(|_| thread::spawn(|| bell.ring()));
        block_on(poll_fn(|cx: &mut Context| {
            if bell.take() {
                return Poll::Ready(());
            }
            bell.arm(cx.waker());
            Poll::Pending
        }));
        ringers
            .into_iter()
            .for_each(|ringer| ringer.join().unwrap());
    });
}

#[test]
fn taken_bell_shows_what_came_before_the_ring() {
    explore(4, || {
        let bell = bell();
        let data = Arc::new(UnsafeCell::new(0));
        let written = data.clone();
        let ringer = thread::spawn(move || {
            // SAFETY: the driver reads only after the ring.
            written.with_mut(|data| unsafe { *data = 1 });
            bell.ring();
        });
        while !bell.take() {
            thread::yield_now();
        }
        // SAFETY: the ringer wrote before the ring.
        data.with(|data| assert_eq!(unsafe { *data }, 1));
        ringer.join().unwrap();
    });
}

/// Runs this program once for each synchronisation point, weakened: some test must fail.
#[test]
fn each_weakened_point_is_found() {
    let others = ["--skip", "each_weakened_point_is_found"];
    let unfound: Vec<_> = MUTANTS
        .into_iter()
        .filter(|point| passes_without(point, &others))
        .collect();
    assert!(unfound.is_empty(), "no test needs {unfound:?}");
}

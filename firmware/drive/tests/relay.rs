//! What a relay does not pass on is counted.

use sinew::link::queue::{self, QueueRx, QueueTx};
use sinew::link::{Rx, Tx};
use sinew_drive::relay::{Dropped, Halves, Relay};
use sinew_shm::{Queue, StdLock};

type End<const SIZE: usize> = Halves<QueueTx<StdLock, 8, SIZE>, QueueRx<StdLock, 8, SIZE>>;

/// Both ends of a link with packets of up to `SIZE` bytes.
fn link<const SIZE: usize>() -> [End<SIZE>; 2] {
    let queue = || &*Box::leak(Box::new(Queue::new()));
    let (near, far) = queue::pair(queue(), queue()).unwrap();
    [near, far].map(|(tx, rx)| Halves(tx, rx))
}

fn send(tx: &mut impl Tx, len: usize) {
    tx.place(len).unwrap()[..len].fill(7);
    tx.commit(len).unwrap();
}

/// The lengths of the packets that have come.
fn received(rx: &mut impl Rx) -> Vec<usize> {
    std::iter::from_fn(|| {
        let len = rx.peek().unwrap()?.len();
        rx.release();
        Some(len)
    })
    .collect()
}

#[test]
fn packet_that_the_other_link_does_not_take_is_counted() {
    let [near, Halves(mut tx, _rx)] = link::<256>();
    let [far, Halves(_tx, mut rx)] = link::<64>();
    let mut relay = Relay::new(near, far);
    for len in [64, 65, 256, 1] {
        send(&mut tx, len);
    }
    while relay.turn() {}
    assert_eq!(received(&mut rx), [64, 1]);
    let dropped = Dropped {
        too_large: 2,
        lost: 0,
    };
    assert_eq!(relay.dropped(), dropped);
}

#[test]
fn packet_for_a_side_that_is_gone_is_counted() {
    let [near, Halves(mut tx, _rx)] = link::<64>();
    let [far, Halves(_tx, rx)] = link::<64>();
    let mut relay = Relay::new(near, far);
    drop(rx);
    for _ in 0..3 {
        send(&mut tx, 1);
    }
    while relay.turn() {}
    let dropped = Dropped {
        too_large: 0,
        lost: 3,
    };
    assert_eq!(relay.dropped(), dropped);
}

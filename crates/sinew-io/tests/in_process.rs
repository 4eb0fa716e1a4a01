//! The same services between two threads.

mod support;

use std::time::Duration;

use sinew::link::{Rx, Tx};
use sinew::rpc::packet::{Packet, PacketType, encode};
use sinew::rpc::{CallError, Status};
use sinew_demo::{Num, cache, exercise, kinds};
use sinew_io::{Client, Link, Want, threads};
use support::*;

#[test]
fn two_threads_joined_by_queues() {
    let (near, mut far) = threads::link();
    let server = server();
    let thread = std::thread::spawn(move || server.serve(&mut far, 1));
    let client = Client::new(near, 1);
    for value in 0..1000 {
        assert_eq!(exercise(&mut cache::Client(&client), value), Ok(value));
    }
    let mut count = kinds::Client(&client).count(&Num { n: 1000 }).unwrap();
    for n in 0..1000 {
        assert_eq!(count.next(), Ok(Some(Num { n })));
    }
    assert_eq!(count.next(), Ok(None));
    drop(count);
    drop(client);
    assert!(thread.join().unwrap());
}

#[test]
fn a_call_that_nobody_answers_ends_at_its_deadline() {
    let (near, mut far) = threads::link();
    let mut client = Client::new(near, 1);
    let late = Err(CallError::DeadlineExceeded);
    // Short, and long enough that a time-out is not set for each sleep.
    for timeout in [Duration::from_millis(20), Duration::from_secs(1)] {
        client.set_timeout(timeout);
        std::thread::scope(|scope| {
            scope.spawn(|| answer_one(&mut far));
            assert_eq!(
                kinds::Client(&client).double(&Num { n: 4 }),
                Ok(Num { n: 8 })
            );
        });
        assert_eq!(kinds::Client(&client).double(&Num { n: 4 }), late);
        // The request, and the error that tells of the deadline.
        let packets = std::iter::from_fn(|| {
            let (_, rx) = far.halves();
            let packet = rx.peek().unwrap()?.to_vec();
            rx.release();
            Some(packet)
        });
        assert_eq!(packets.count(), 2);
    }
}

/// Answers one call of Double by hand, with twice four.
fn answer_one(far: &mut impl Link) {
    while far.halves().1.peek() == Ok(None) {
        far.wait(Want::Packet, None);
    }
    let (tx, rx) = far.halves();
    let request = Packet::decode(rx.peek().unwrap().expect("a request")).unwrap();
    let place = tx.place(tx.mtu()).unwrap();
    let answer = Num { n: 8 };
    let len = encode(
        place,
        PacketType::RESPONSE,
        &request.route,
        &answer,
        Status::OK,
    );
    tx.commit(len.unwrap()).unwrap();
    rx.release();
}

//! The same services between two threads, and in one.

mod support;

use sinew_demo::{Num, cache, exercise, kinds};
use sinew_io::{Client, loopback, threads};
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
fn one_thread_serves_itself() {
    let server = server();
    let client = loopback::connect(&server).unwrap();
    assert_eq!(exercise(&mut cache::Client(&client), 9), Ok(9));
    let mut kinds = kinds::Client(&client);
    let mut count = kinds.count(&Num { n: 1000 }).unwrap();
    let mut sum = kinds.sum().unwrap();
    for n in 0..1000 {
        assert_eq!(count.next(), Ok(Some(Num { n })));
        sum.send(&Num { n }).unwrap();
    }
    assert_eq!(count.next(), Ok(None));
    assert_eq!(sum.finish_and_wait(), Ok(Num { n: 499_500 }));
}

//! What a node takes of the memory of its host. Alone in its process, which is measured.
#![cfg(target_os = "linux")]

use std::time::Duration;

use sinew_io::apart;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::pubsub::{self, Options, Overflow, PublisherOptions, Qos};

const SOON: Duration = Duration::from_secs(60);

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse::<usize>().unwrap() << 10
}

#[test]
fn a_short_message_in_fragments_does_not_take_the_memory_for_the_longest() {
    let any = Endpoint::parse("tcp:127.0.0.1:0", Use::Batches).unwrap();
    let mut listener = apart::listen(&any).unwrap();
    let options = Options {
        largest: 512 << 20,
        batch_size: 100,
        ..Options::peer()
    };
    let one = pubsub::open(listener.endpoint(), options.clone());
    let apart = listener.accept_within(Some(SOON)).unwrap();
    let other = pubsub::accept(apart, options.clone());
    let samples = other.samples("demo/k", 8, Overflow::Wait).unwrap();
    one.wait_open(SOON).unwrap();
    let waits = PublisherOptions {
        qos: Qos::REQUEST,
        ..PublisherOptions::DEFAULT
    };
    let publisher = one.publisher_with("demo/k", waits).unwrap();
    assert_eq!(publisher.wait_heard(SOON), Some(true));
    let before = resident();
    for _ in 0..3 {
        publisher.put(&[7; 1000]).unwrap();
        let sample = samples.next_within(Some(SOON)).unwrap();
        assert_eq!(sample.payload, [7; 1000]);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < options.largest / 8, "{grown} bytes more");
}

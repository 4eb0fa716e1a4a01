//! Bytes on the wire, beside those of Zenoh-Pico 1.9 (captured; both are clients of a router).

use std::time::{Duration, Instant};

use crate::alone;
use crate::node::*;
use crate::ours::Sinew;
use crate::proxy::Recorder;

use super::links::router;

/// Batches of a stream, without their lengths; a byte of each is there at least.
fn batches(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut batches = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes(*len));
        // The rest of the last one is not there yet.
        let Some((batch, rest)) = rest.split_at_checked(len) else {
            break;
        };
        assert!(!batch.is_empty());
        batches.push(batch);
        bytes = rest;
    }
    batches
}

/// With its length.
fn size(batch: &[u8]) -> usize {
    2 + batch.len()
}

/// What is sent until these batches are enough.
fn sent(proxy: &Recorder, is_enough: impl Fn(&[&[u8]]) -> bool) -> Vec<u8> {
    let (mut all, started) = (Vec::new(), Instant::now());
    loop {
        let [sent, _] = proxy.take();
        all.extend(sent);
        if is_enough(&batches(&all)) {
            return all;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{all:02x?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Frames of so many bytes besides their heads.
fn hold(batches: &[&[u8]], bytes: usize) -> bool {
    let frames = batches.iter().filter(|batch| batch[0] == FRAME);
    frames.map(|batch| batch.len() - head(batch)).sum::<usize>() >= bytes
}

/// Publishes one sample, after which nothing of before is under way, and forgets all of it.
fn settle(proxy: &Recorder, lamp: &sinew_io::pubsub::Publisher) {
    lamp.put(b"settled").expect("put");
    sent(proxy, |batches| {
        let mut bytes = batches.iter();
        bytes.any(|batch| batch.ends_with(b"settled"))
    });
}

const FRAME: u8 = 0x25;

/// Bytes of a frame before its first message: its header and its number.
fn head(batch: &[u8]) -> usize {
    2 + batch[1..].iter().take_while(|byte| **byte >= 0x80).count()
}

#[test]
fn samples_cost_four_bytes_in_a_batch_and_eight_to_eleven_alone() {
    let _turn = alone();
    let (_router, at) = router();
    let proxy = Recorder::new(&at).expect("a proxy");

    // Alone.
    let lease = Some(Duration::from_secs(1));
    let sinew = Sinew {
        lease,
        ..Sinew::default()
    };
    let mut node = sinew.client_at(proxy.at()).expect("a session");
    let [ours, theirs] = proxy.take();
    let (ours, theirs) = (batches(&ours), batches(&theirs));
    let [init, open, ..] = ours[..] else {
        panic!("found {ours:02x?}, expected INIT and OPEN");
    };
    let [init_ack, open_ack, ..] = theirs[..] else {
        panic!("found {theirs:02x?}, expected INIT and OPEN");
    };
    let sizes = [init, init_ack, open, open_ack].map(size);
    println!(
        "{:34} {:>12} {:>12}",
        "bytes with TCP's length", "Sinew", "Zenoh-Pico"
    );
    let row = |what: &str, ours: String, pico: &str| println!("{what:34} {ours:>12} {pico:>12}");
    row(
        "open: INIT, INIT, OPEN, OPEN",
        format!("{sizes:?}"),
        "26 76 55 8",
    );
    row("open", sizes.iter().sum::<usize>().to_string(), "165");
    // The first sequence number is any, where Zenoh-Pico's is 0: up to three bytes more.
    assert!(sizes[0] <= 26 && sizes[2] <= 55 + 3, "{sizes:?}");

    let lamp = node.node().expect("a node").publisher("wire/lamp");
    let lamp = lamp.expect("a key");
    settle(&proxy, &lamp);
    const ALONE: usize = 100;
    for _ in 0..ALONE {
        lamp.put(&[0; 8]).expect("put");
    }
    let alone = sent(&proxy, |batches| hold(batches, ALONE * (8 + 4)));
    let alone = batches(&alone);
    let frames: Vec<&[u8]> = alone
        .iter()
        .copied()
        .filter(|batch| batch[0] == FRAME)
        .collect();
    assert_eq!(frames.len(), ALONE);
    let costs: Vec<usize> = frames.iter().map(|batch| size(batch) - 8).collect();
    let (least, most) = (
        costs.iter().min().expect("100"),
        costs.iter().max().expect("100"),
    );
    row(
        "a sample alone, besides 8 B",
        format!("{least}..={most}"),
        "8..=11",
    );
    assert!(
        (8..=11).contains(least) && (8..=11).contains(most),
        "{costs:?}"
    );

    // Signs of life.
    let started = Instant::now();
    let idle = sent(&proxy, |batches| batches.len() >= 3);
    let quarters = started.elapsed().as_millis() / 250;
    let idle = batches(&idle);
    assert!(
        idle.len() as u128 <= quarters + 2,
        "a quarter of a second apart: {idle:02x?}"
    );
    assert!(idle.iter().all(|batch| *batch == [0x04]), "{idle:02x?}");
    row("a sign of life", size(idle[0]).to_string(), "3");
    drop(lamp);
    Box::new(node).close().expect("closed");
    let is_close = |batch: &&[u8]| batch[0] & 0x1f == 0x03;
    let close = sent(&proxy, |batches| batches.last().is_some_and(is_close));
    let close = batches(&close);
    let close = close.last().expect("CLOSE");
    row("close", size(close).to_string(), "none");

    // In batches.
    let sinew = Sinew {
        batching: Duration::from_millis(5),
        batch_size: Some(2_048),
        ..Sinew::default()
    };
    node = sinew.client_at(proxy.at()).expect("a session");
    let lamp = node.node().expect("a node").publisher("wire/lamp");
    let lamp = lamp.expect("a key");
    settle(&proxy, &lamp);
    const BATCHED: usize = 50_000;
    let started = Instant::now();
    for _ in 0..BATCHED {
        lamp.put(&[0; 8]).expect("put");
    }
    let took = started.elapsed();
    let bytes = sent(&proxy, |batches| hold(batches, BATCHED * (8 + 4)));
    let all = batches(&bytes);
    let frames: Vec<&[u8]> = all
        .iter()
        .copied()
        .filter(|batch| batch[0] == FRAME)
        .collect();
    let payload: usize = frames.iter().map(|batch| batch.len() - head(batch)).sum();
    assert_eq!(payload, BATCHED * (8 + 4), "four bytes besides each 8");
    let whole: usize = frames.iter().map(|batch| size(batch)).sum();
    let cost = (whole - BATCHED * 8) as f64 / BATCHED as f64;
    row(
        "a sample in batches of 2,048 B",
        format!("{cost:.3}"),
        "4.029",
    );
    println!("{BATCHED} samples in {} batches, in {took:?}", frames.len());
    // A batch may leave before it is full, when its time is up.
    assert!(cost < 4.2, "{cost}");
}

//! What the tests of deferred calls share.

use sinew::rpc::{Responder, Writer};

use super::Bench;
use super::kinds::*;
use super::wire::*;

pub fn say(seen: Option<Seen>) -> String {
    show(&seen)
}

/// A bench whose service takes calls away.
pub fn deferring() -> Bench {
    let mut bench = Bench::new();
    bench.kinds.defer = true;
    bench
}

/// The responder of a `Double` that was taken away.
pub fn responder(bench: &mut Bench, call_id: u32) -> Responder<Num> {
    assert_eq!(bench.send(&request(DOUBLE, call_id, 21)), None);
    bench.kinds.responders.pop().expect("a deferred call")
}

pub fn writer(bench: &mut Bench, call_id: u32) -> Writer<Num> {
    assert_eq!(bench.send(&request(COUNT, call_id, 1)), None);
    bench.kinds.writers.pop().expect("a deferred stream")
}

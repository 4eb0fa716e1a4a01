//! The four kinds of methods of `demo.Kinds`, through the engine.

mod support;

use sinew::rpc::Status;
use sinew::rpc::packet::PacketType as P;
use sinew_demo::kinds::{Serve, method};
use sinew_demo::{KindsService, Num};
use support::{Bench, CALLS};

fn bench() -> Bench<Serve<KindsService<CALLS>>> {
    Bench::new(Serve(KindsService::new()))
}

#[test]
fn double_answers_or_is_out_of_range() {
    let mut bench = bench();
    let mut double = |n| bench.step::<method::Double>(P::REQUEST, 1, Some(&Num { n }));
    assert_eq!(
        double(21),
        Some((P::RESPONSE, 1, Status::OK, Some(Num { n: 42 })))
    );
    assert_eq!(
        double(1 << 31),
        Some((P::RESPONSE, 1, Status::OUT_OF_RANGE, None))
    );
}

#[test]
fn count_keeps_the_item_that_met_a_full_link() {
    let mut bench = bench();
    assert_eq!(
        bench.step::<method::Count>(P::REQUEST, 5, Some(&Num { n: 7 })),
        None
    );
    let mut said = Vec::new();
    while bench.poll() {
        said.extend(bench.sent::<method::Count>());
    }
    said.extend(bench.sent::<method::Count>());
    let items = (0..7).map(|n| (P::SERVER_STREAM, 5, Status::OK, Some(Num { n })));
    let end = (P::RESPONSE, 5, Status::OK, None);
    assert_eq!(said, items.chain([end]).collect::<Vec<_>>());
}

#[test]
fn a_cancelled_count_sends_nothing_more_and_frees_its_place() {
    let mut bench = bench();
    for call in 0..10 {
        assert_eq!(
            bench.step::<method::Count>(P::REQUEST, call + 1, Some(&Num { n: 1000 })),
            None
        );
        assert!(bench.poll());
        assert!(!bench.sent::<method::Count>().is_empty());
        assert_eq!(
            bench.step::<method::Count>(P::CLIENT_ERROR, call + 1, None),
            None
        );
        assert!(!bench.poll());
        assert_eq!(bench.sent::<method::Count>(), []);
    }
}

#[test]
fn more_counts_than_places_are_refused() {
    let mut bench = bench();
    for call in 1..=CALLS as u32 {
        assert_eq!(
            bench.step::<method::Count>(P::REQUEST, call, Some(&Num { n: 9 })),
            None
        );
    }
    let refused = bench.step::<method::Count>(P::REQUEST, 9, Some(&Num { n: 9 }));
    assert_eq!(
        refused,
        Some((P::RESPONSE, 9, Status::RESOURCE_EXHAUSTED, None))
    );
}

#[test]
fn sums_of_two_calls_do_not_mix() {
    let mut bench = bench();
    for call in [1, 2] {
        assert_eq!(bench.step::<method::Sum>(P::REQUEST, call, None), None);
    }
    for (call, n) in [(1, 10), (2, 1), (1, 20), (2, 2)] {
        assert_eq!(
            bench.step::<method::Sum>(P::CLIENT_STREAM, call, Some(&Num { n })),
            None
        );
    }
    for (call, n) in [(2, 3), (1, 30)] {
        let end = bench.step::<method::Sum>(P::CLIENT_REQUEST_COMPLETION, call, None);
        assert_eq!(end, Some((P::RESPONSE, call, Status::OK, Some(Num { n }))));
    }
}

#[test]
fn a_sum_that_does_not_fit_ends_out_of_range() {
    let mut bench = bench();
    assert_eq!(bench.step::<method::Sum>(P::REQUEST, 1, None), None);
    let mut item = |n| bench.step::<method::Sum>(P::CLIENT_STREAM, 1, Some(&Num { n }));
    assert_eq!(item(u32::MAX), None);
    assert_eq!(item(1), Some((P::RESPONSE, 1, Status::OUT_OF_RANGE, None)));
}

#[test]
fn each_item_is_echoed_until_the_end() {
    let mut bench = bench();
    assert_eq!(bench.step::<method::EchoAll>(P::REQUEST, 3, None), None);
    for n in [7, 0] {
        let echo = bench.step::<method::EchoAll>(P::CLIENT_STREAM, 3, Some(&Num { n }));
        assert_eq!(
            echo,
            Some((P::SERVER_STREAM, 3, Status::OK, Some(Num { n })))
        );
    }
    let end = bench.step::<method::EchoAll>(P::CLIENT_REQUEST_COMPLETION, 3, None);
    assert_eq!(end, Some((P::RESPONSE, 3, Status::OK, None)));
}

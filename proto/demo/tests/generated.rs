//! What the generator makes beside the trait: deferred calls, mocks, the async client.

mod support;

use std::task::{Context, Poll, Waker};

use sinew::rpc::packet::PacketType as P;
use sinew::rpc::{CallError, Direct, Handoff, Status};
use sinew_demo::kinds::{Calls, Defer, Serve, method, mock};
use sinew_demo::{CacheService, GetValueResponse, Num, cache, exercise, exercise_async};
use support::Bench;

const OK: Status = Status::OK;

#[test]
fn a_deferred_call_is_answered_from_a_task() {
    let (queue, calls) = std::sync::mpsc::channel();
    let sink = move |call| queue.send(call).map_err(|back| back.0);
    let mut bench = Bench::new(Serve(Defer(sink)));
    assert_eq!(
        bench.step::<method::Double>(P::REQUEST, 1, Some(&Num { n: 4 })),
        None
    );

    let Ok(Calls::Double {
        request,
        mut responder,
    }) = calls.try_recv()
    else {
        panic!("no call was handed over");
    };
    responder
        .answer(&Num { n: 2 * request.n })
        .expect("an open call");
    let said = bench.sent::<method::Double>();
    assert_eq!(said, [(P::RESPONSE, 1, OK, Some(Num { n: 8 }))]);
}

#[test]
fn a_deferred_stream_hands_over_each_step() {
    let (queue, calls) = std::sync::mpsc::channel();
    let sink = move |call| queue.send(call).map_err(|back| back.0);
    let mut bench = Bench::new(Serve(Defer(sink)));
    assert_eq!(bench.step::<method::Sum>(P::REQUEST, 1, None), None);
    assert_eq!(
        bench.step::<method::Sum>(P::CLIENT_STREAM, 1, Some(&Num { n: 4 })),
        None
    );
    assert_eq!(
        bench.step::<method::Sum>(P::CLIENT_REQUEST_COMPLETION, 1, None),
        None
    );

    let inputs: Vec<_> = calls
        .try_iter()
        .map(|call| match call {
            Calls::Sum { slot: 0, input } => input,
            other => panic!("{other:?}"),
        })
        .collect();
    let [Handoff::Open(_), Handoff::Item(Num { n: 4 }), Handoff::End] = inputs.as_slice() else {
        panic!("{inputs:?}");
    };
}

#[test]
fn a_full_sink_ends_the_call() {
    let mut bench = Bench::new(Serve(Defer(Err::<(), Calls>)));
    let full = Some((P::RESPONSE, 1, Status::RESOURCE_EXHAUSTED, None));
    assert_eq!(
        bench.step::<method::Double>(P::REQUEST, 1, Some(&Num { n: 4 })),
        full
    );
    assert_eq!(bench.step::<method::Sum>(P::REQUEST, 1, None), full);
    assert_eq!(bench.sent::<method::Sum>(), []);
}

#[test]
fn a_mock_service_plays_its_script_and_records() {
    let mut service = mock::Service::<4>::default();
    service.double.answer(Ok(Num { n: 1 })).expect("room");
    service
        .double
        .answer(Err(Status::NOT_FOUND.into()))
        .expect("room");
    for answer in [Ok(Num { n: 5 }), Ok(Num { n: 6 }), Err(OK.into())] {
        service.count.answer(answer).expect("room");
    }
    let mut bench = Bench::new(Serve(service));
    let mut double = |n| bench.step::<method::Double>(P::REQUEST, 1, Some(&Num { n }));
    assert_eq!(double(7), Some((P::RESPONSE, 1, OK, Some(Num { n: 1 }))));
    assert_eq!(double(8), Some((P::RESPONSE, 1, Status::NOT_FOUND, None)));
    assert_eq!(
        double(9),
        Some((P::RESPONSE, 1, Status::UNIMPLEMENTED, None))
    );

    assert_eq!(
        bench.step::<method::Count>(P::REQUEST, 2, Some(&Num { n: 3 })),
        None
    );
    while bench.poll() {}
    let said = bench.sent::<method::Count>();
    let item = |n| (P::SERVER_STREAM, 2, OK, Some(Num { n }));
    assert_eq!(said, [item(5), item(6), (P::RESPONSE, 2, OK, None)]);

    let service = &bench.services.0;
    assert_eq!(
        service.double.requests(),
        [Num { n: 7 }, Num { n: 8 }, Num { n: 9 }]
    );
    assert_eq!(service.count.requests(), [Num { n: 3 }]);
}

#[test]
fn a_mock_reach_stands_for_a_link() {
    let mut reach = cache::mock::Reach::<2>::default();
    reach
        .set_value
        .answer(Ok(Default::default()))
        .expect("room");
    reach
        .get_value
        .answer(Ok(GetValueResponse { value: 3 }))
        .expect("room");
    reach
        .set_value
        .answer(Err(CallError::Closed))
        .expect("room");
    let mut client = cache::Client(reach);
    assert_eq!(exercise(&mut client, 8), Ok(3));
    assert_eq!(exercise(&mut client, 9), Err(CallError::Closed));
    assert_eq!(client.0.set_value.requests()[1].value, 9);
}

#[test]
fn an_async_client_reaches_a_borrowed_service() {
    let mut service = CacheService::new();
    let mut client = cache::AsyncClient(Direct(&mut service));
    let call = std::pin::pin!(exercise_async(&mut client, 5));
    let result = call.poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(result, Poll::Ready(Ok(5)));
}

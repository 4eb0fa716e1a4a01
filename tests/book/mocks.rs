//! Tests without a device: the client alone, the service alone, and both over a link.

use std::error::Error;

use sinew_demo::{CacheService, GetValueResponse, Num, SetValueRequest, cache, kinds};
use sinew_io::{Server, loopback};

// ANCHOR: under_test
use sinew::rpc::{CallError, Status};
use sinew_demo::GetValueRequest;

/// The code under test: what it reads, or the last value that it knew.
fn read_or<R>(cache: &mut cache::Client<R>, known: i32) -> Result<i32, CallError>
where
    R: sinew::rpc::Unary<cache::method::GetValue>,
{
    match cache.get_value(&GetValueRequest {}) {
        Ok(answer) => Ok(answer.value),
        Err(CallError::DeadlineExceeded | CallError::Closed) => Ok(known),
        Err(error) => Err(error),
    }
}
// ANCHOR_END: under_test

#[test]
fn a_client_is_tested_against_a_script() {
    // ANCHOR: script
    let mut reach = cache::mock::Reach::<4>::default();
    let answers = [
        Ok(GetValueResponse { value: 7 }),
        Err(CallError::DeadlineExceeded), // the device hangs
        Err(CallError::Status(Status::PERMISSION_DENIED)),
    ];
    for answer in answers {
        reach.get_value.answer(answer).unwrap();
    }
    let mut cache = cache::Client(reach);
    assert_eq!(read_or(&mut cache, 5), Ok(7));
    assert_eq!(read_or(&mut cache, 5), Ok(5));
    let refused = CallError::Status(Status::PERMISSION_DENIED);
    assert_eq!(read_or(&mut cache, 5), Err(refused));
    assert_eq!(cache.0.get_value.requests().len(), 3);
    // ANCHOR_END: script
}

#[test]
fn a_service_is_tested_without_a_link() -> Result<(), CallError> {
    // ANCHOR: direct
    let mut service = CacheService::new();
    let mut cache = cache::Client(sinew::rpc::Direct(&mut service));
    cache.set_value(&SetValueRequest { value: 3 })?;
    assert_eq!(read_or(&mut cache, 0), Ok(3));
    // ANCHOR_END: direct
    Ok(())
}

#[test]
fn a_client_of_streams_is_tested_against_a_mock_behind_a_link() -> Result<(), Box<dyn Error>> {
    // ANCHOR: streams
    let mut service = kinds::mock::Service::<4>::default();
    service.count.answer(Ok(Num { n: 1 })).unwrap();
    service
        .count
        .answer(Err(CallError::Status(Status::DATA_LOSS)))
        .unwrap();
    let server: Server<_> = Server::new(kinds::Serve(service));
    let client = loopback::connect(&server).ok_or("too many links")?;
    let mut kinds = kinds::Client(&client);

    let mut count = kinds.count(&Num { n: 9 })?;
    assert_eq!(count.next()?, Some(Num { n: 1 }));
    let ended = CallError::Status(Status::DATA_LOSS);
    assert_eq!(count.next(), Err(ended)); // the sensor broke in the middle
    server.with_services(|services| assert_eq!(services.0.count.requests(), [Num { n: 9 }]));
    // ANCHOR_END: streams
    Ok(())
}

//! What the server is told of a handle that is dropped or cancelled: the same for blocking and for
//! async clients.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use sinew::link::Rx;
use sinew::rpc::packet::{Packet, PacketType};
use sinew::rpc::streams::*;
use sinew::rpc::{CallError, Status};
use sinew_demo::{Num, kinds};
use sinew_io::tokio::AsyncClient;
use sinew_io::{Client, Link, threads};

type Told = Vec<(PacketType, Status)>;

const OPENED: (PacketType, Status) = (PacketType::REQUEST, Status::OK);
const COMPLETED: (PacketType, Status) = (PacketType::CLIENT_REQUEST_COMPLETION, Status::OK);
const CANCELLED: (PacketType, Status) = (PacketType::CLIENT_ERROR, Status::CANCELLED);

/// What has arrived.
fn told(rx: &mut impl Rx) -> Told {
    std::iter::from_fn(|| {
        let packet = Packet::decode(rx.peek().unwrap()?).unwrap();
        let told = (packet.packet_type, packet.status);
        rx.release();
        Some(told)
    })
    .collect()
}

#[test]
fn dropped_blocking_handle_completes_a_client_stream_and_else_says_nothing() {
    let (near, mut far) = threads::link();
    let client = Client::new(near, 1);
    let mut kinds = kinds::Client(&client);
    let mut told = || told(far.halves().1);

    drop(kinds.count(&Num { n: 1 }).unwrap());
    assert_eq!(told(), [OPENED]);
    drop(kinds.sum().unwrap());
    assert_eq!(told(), [OPENED, COMPLETED]);
    let mut echo = kinds.echo_all().unwrap();
    echo.complete().unwrap();
    drop(echo);
    assert_eq!(told(), [OPENED, COMPLETED], "complete already");

    cancel_all(&mut kinds).unwrap();
    assert_eq!(told(), [OPENED, CANCELLED].repeat(3));
}

/// Opens each stream and cancels it, through the traits.
fn cancel_all<R: kinds::Reach>(kinds: &mut kinds::Client<R>) -> Result<(), CallError> {
    kinds.count(&Num { n: 1 })?.cancel();
    kinds.sum()?.cancel();
    kinds.echo_all()?.cancel();
    Ok(())
}

#[tokio::test]
async fn dropped_async_handle_completes_a_client_stream_and_else_says_nothing() {
    let ((near_tx, near_rx), (_far_tx, mut far)) = {
        let (near, far) = threads::link();
        (near.split(), far.split())
    };
    let client = AsyncClient::over(Box::new(near_tx), Box::new(near_rx), None, 1);
    let mut kinds = kinds::AsyncClient(&client);
    let mut told = || told(&mut far);

    drop(kinds.count(&Num { n: 1 }).await.unwrap());
    assert_eq!(told(), [OPENED]);
    drop(kinds.sum().await.unwrap());
    assert_eq!(told(), [OPENED, COMPLETED]);
    let mut echo = kinds.echo_all().await.unwrap();
    echo.complete().await.unwrap();
    drop(echo);
    assert_eq!(told(), [OPENED, COMPLETED], "complete already");

    {
        let mut call = pin!(kinds.double(&Num { n: 1 }));
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Pending);
    }
    assert_eq!(told(), [OPENED], "a future of a unary call");

    cancel_all_async(&mut kinds).await.unwrap();
    assert_eq!(told(), [OPENED, CANCELLED].repeat(3));
}

/// Opens each stream and cancels it, through the traits.
async fn cancel_all_async<R: kinds::AsyncReach>(
    kinds: &mut kinds::AsyncClient<R>,
) -> Result<(), CallError> {
    kinds.count(&Num { n: 1 }).await?.cancel();
    kinds.sum().await?.cancel();
    kinds.echo_all().await?.cancel();
    Ok(())
}

//! A handle keeps its call: what came for it is there until it is read, also where the call has ended
//! and others are made meanwhile. The same for blocking and for async clients.

use std::ops::Range;

use sinew::link::{Rx, Tx};
use sinew::rpc::packet::{Packet, PacketType, Route, encode};
use sinew::rpc::{CallError, Status};
use sinew_demo::{Num, kinds};
use sinew_io::tokio::AsyncClient;
use sinew_io::{Client, threads};

const ANY: Num = Num { n: 1 };

/// The other end of the link: it reads what the client asks, and says what the test wants.
struct Peer<T, R>(T, R);

impl<T: Tx, R: Rx> Peer<T, R> {
    /// The call whose request comes next.
    fn asked(&mut self) -> Route {
        let packet = Packet::decode(self.1.peek().unwrap().unwrap()).unwrap();
        assert_eq!(packet.packet_type, PacketType::REQUEST);
        let route = packet.route;
        self.1.release();
        route
    }

    fn say(&mut self, packet_type: PacketType, call: &Route, message: &Num) {
        let place = self.0.place(64).unwrap();
        let len = encode(place, packet_type, call, message, Status::OK).unwrap();
        self.0.commit(len).unwrap();
    }

    fn send(&mut self, call: &Route, items: Range<u32>) {
        for n in items {
            self.say(PacketType::SERVER_STREAM, call, &Num { n });
        }
    }

    fn complete(&mut self, call: &Route) {
        self.say(PacketType::RESPONSE, call, &Num { n: 0 });
    }
}

#[test]
fn blocking_call_that_was_completed_keeps_what_came_and_leaves_the_next_one_alone() {
    let (near, far) = threads::link();
    let (tx, rx) = far.split();
    let mut peer = Peer(tx, rx);
    let client: Client<_, 3, 64> = Client::with_capacities(near, 1);
    let mut kinds = kinds::Client(&client);
    let mut held = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 0..3);
    peer.complete(&call);
    let mut open = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 7..8);
    assert_eq!(open.next(), Ok(Some(Num { n: 7 })));

    let mut next = kinds.count(&ANY).unwrap();
    let call = peer.asked();
    peer.send(&call, 10..15);
    peer.complete(&call);
    let too_many = Some(CallError::TooManyCalls);
    assert_eq!(kinds.count(&ANY).err(), too_many, "one is held");
    for n in 0..3 {
        assert_eq!(held.next(), Ok(Some(Num { n })));
    }
    assert_eq!(held.next(), Ok(None));
    drop(held);
    for n in 10..15 {
        assert_eq!(next.next(), Ok(Some(Num { n })));
    }
    assert_eq!(next.next(), Ok(None));
}

#[tokio::test]
async fn async_call_that_was_completed_keeps_what_came_and_leaves_the_next_one_alone() {
    let (near, far) = threads::link();
    let ((near_tx, near_rx), (tx, rx)) = (near.split(), far.split());
    let mut peer = Peer(tx, rx);
    let client = AsyncClient::over(Box::new(near_tx), Box::new(near_rx), None, 1);
    let mut kinds = kinds::AsyncClient(&client);
    let mut held = kinds.count(&ANY).await.unwrap();
    let call = peer.asked();
    peer.send(&call, 0..3);
    peer.complete(&call);
    let mut open = kinds.count(&ANY).await.unwrap();
    let call = peer.asked();
    peer.send(&call, 7..8);
    assert_eq!(open.next().await, Ok(Some(Num { n: 7 })));

    let mut next = kinds.count(&ANY).await.unwrap();
    let call = peer.asked();
    peer.send(&call, 10..15);
    peer.complete(&call);
    for n in 0..3 {
        assert_eq!(held.next().await, Ok(Some(Num { n })));
    }
    assert_eq!(held.next().await, Ok(None));
    drop(held);
    for n in 10..15 {
        assert_eq!(next.next().await, Ok(Some(Num { n })));
    }
    assert_eq!(next.next().await, Ok(None));
}

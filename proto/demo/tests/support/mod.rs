//! A server over a port that keeps what is sent: the engine without a link.

use std::sync::Mutex;
use std::task::Waker;

use sinew::link::{Port, SendError};
use sinew::rpc::packet::{HEADER_MAX, Packet, PacketType, Route, encode};
use sinew::rpc::{Channels, Decode, Method, Server, Service, Slot, Status, Via};
use sinew::time::Instant;

/// Places of the port, and call slots of the server.
pub const PLACES: usize = 3;
pub const CALLS: usize = 2;

const MTU: usize = HEADER_MAX + 512;

/// Keeps up to [`PLACES`] packets of so many bytes until they are taken.
struct Kept(Mutex<Vec<Vec<u8>>>, usize);

impl Port for Kept {
    fn mtu(&self) -> usize {
        self.1
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut packets = self.0.lock().expect("no panic with the lock held");
        match packets.len() {
            _ if min > self.1 => Err(SendError::TooLarge),
            PLACES.. => Err(SendError::Full),
            _ => {
                let mut place = vec![0; self.1];
                let len = fill(&mut place);
                place.truncate(len);
                packets.extend((len > 0).then_some(place));
                Ok(())
            }
        }
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    fn ring(&self) {}
}

/// What a server said: type, call id, status, and the message where there is one.
pub type Said<R> = (PacketType, u32, Status, Option<R>);

/// A server with its services. Each has its own port and slots, which live as long as the test.
pub struct Bench<S> {
    server: Server<CALLS>,
    pub services: S,
    via: Via,
    port: &'static Kept,
}

impl<S: Service> Bench<S> {
    pub fn new(services: S) -> Self {
        Bench::with_mtu(services, MTU)
    }

    /// With a port for packets of so many bytes.
    pub fn with_mtu(services: S, mtu: usize) -> Self {
        let port: &'static Kept = Box::leak(Box::new(Kept(Mutex::default(), mtu)));
        let slots = Box::leak(Box::new([const { Slot::new() }; CALLS]));
        Bench {
            server: Server::new(slots),
            services,
            via: Via {
                link: 0,
                channels: Channels::Any,
                port: Some(port),
                bulk: None,
            },
            port,
        }
    }

    /// Gives the server a packet of a call and returns what it says at once.
    pub fn step<M: Method>(
        &mut self,
        packet_type: PacketType,
        call_id: u32,
        message: Option<&M::Request>,
    ) -> Option<Said<M::Response>> {
        let route = Route::new(1, M::ID, call_id);
        let (mut packet, mut place) = ([0; MTU], [0; MTU]);
        let len = match message {
            Some(message) => encode(&mut packet, packet_type, &route, message, Status::OK),
            None => encode(&mut packet, packet_type, &route, &[][..], Status::OK),
        };
        let packet = &packet[..len.expect("a packet fits the mtu")];
        let now = Instant::START;
        let len = self
            .server
            .handle(packet, &self.via, &mut place, &mut self.services, now);
        (len > 0).then(|| said::<M>(&place[..len]))
    }

    /// Lets the services go on.
    pub fn poll(&mut self) -> bool {
        self.services.poll(Instant::START)
    }

    /// Takes what left through the port.
    pub fn sent<M: Method>(&self) -> Vec<Said<M::Response>> {
        let packets =
            std::mem::take(&mut *self.port.0.lock().expect("no panic with the lock held"));
        packets.iter().map(|packet| said::<M>(packet)).collect()
    }
}

fn said<M: Method>(packet: &[u8]) -> Said<M::Response> {
    let packet = Packet::decode(packet).expect("a packet of ours");
    assert_eq!(packet.route.service, M::ID.service);
    assert_eq!(packet.route.method, M::ID.method);
    let carries = packet.packet_type == PacketType::SERVER_STREAM
        || (packet.status == Status::OK && !M::ID.kind.server_streams());
    let message = carries.then(|| M::Response::decode(packet.payload).expect("a message of ours"));
    (
        packet.packet_type,
        packet.route.call_id,
        packet.status,
        message,
    )
}

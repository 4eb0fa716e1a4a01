//! The main loop of an image for a microcontroller, run here with a UART made of queues.

/// The board: here what goes over the cable lies in queues, and time stands still.
mod board {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    thread_local! {
        pub static IN: RefCell<VecDeque<u8>> = const { RefCell::new(VecDeque::new()) };
        pub static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    pub fn receive() -> Option<u8> {
        IN.with_borrow_mut(VecDeque::pop_front)
    }

    pub fn send(byte: u8) {
        OUT.with_borrow_mut(|out| out.push(byte));
    }

    pub fn micros() -> u64 {
        1
    }
}

// ANCHOR: image
use core::task::Waker;

use sinew::frame::hdlc::{Decoder, RPC_ADDRESS, put_frame};
use sinew::link::{Port, SendError};
use sinew::rpc::{Channels, Server, Service, Slot, Via};
use sinew::time::Instant;

use crate::home::lamp;
use crate::service::LampService;

/// The largest packet: `HEADER_MAX` (36 bytes) and the largest message (22).
const MTU: usize = 64;

/// Calls that outlive their receive step. `Lamp` has none; a stream or `defer` takes one.
const CALLS: usize = 1;

static SLOTS: [Slot; CALLS] = [const { Slot::new() }; CALLS];
static VIA: Via = Via {
    link: 0,
    channels: Channels::Any,
    port: Some(&Uart),
    bulk: None,
};

/// The way out for answers that are given later, and for streams. A packet has left when `send`
/// returns, so there is always a place.
struct Uart;

impl Port for Uart {
    fn mtu(&self) -> usize {
        MTU
    }

    fn send(&self, min: usize, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> Result<(), SendError> {
        let mut place = [0; MTU];
        if min > MTU {
            return Err(SendError::TooLarge);
        }
        let len = fill(&mut place);
        if let Some(packet @ [_, ..]) = place.get(..len) {
            put_frame(RPC_ADDRESS, packet, &mut |byte| board::send(byte));
        }
        Ok(())
    }

    fn arm(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    fn ring(&self) {} // the loop looks at every turn
}

struct Image {
    server: Server<CALLS>,
    services: lamp::Serve<LampService>,
    decoder: Decoder,
    request: [u8; MTU],
    answer: [u8; MTU],
}

impl Image {
    fn new() -> Image {
        Image {
            server: Server::new(&SLOTS),
            services: lamp::Serve(LampService::default()),
            decoder: Decoder::new(RPC_ADDRESS),
            request: [0; MTU],
            answer: [0; MTU],
        }
    }

    /// One turn of the main loop; `false` where the core may sleep until a byte comes or time
    /// passes.
    fn turn(&mut self) -> bool {
        let now = Instant::from_micros(board::micros());
        let byte = board::receive();
        let bytes = byte.as_slice();
        let (place, services) = (&mut self.answer, &mut self.services);
        let len = match self.decoder.decode(&mut self.request, &mut &bytes[..]) {
            Some(packet) => self.server.handle(packet, &VIA, place, services, now),
            None => self.server.poll(&VIA, place, services, now).unwrap_or(0),
        };
        if let Some(packet @ [_, ..]) = self.answer.get(..len) {
            put_frame(RPC_ADDRESS, packet, &mut |byte| board::send(byte));
        }
        self.services.poll(now) || byte.is_some() || len > 0
    }
}
// ANCHOR_END: image

use sinew::rpc::{Client, DEFAULT_TIMEOUT, Decode, Method, Received, Status};

use crate::home::{SetRequest, State, lamp::method::Set};

#[test]
fn an_image_serves_the_tutorials_service() {
    let mut client = Client::<1>::new(1, 0);
    let call = client.open(Set::ID, DEFAULT_TIMEOUT, Instant::START);
    let call = call.expect("a free call");
    let request = SetRequest {
        percent: 40,
        reason: "0123456789abcdef".try_into().expect("16 bytes"),
    };
    let mut packet = [0; MTU];
    let len = call.request(&mut packet, &request).expect("it fits");
    put_frame(RPC_ADDRESS, &packet[..len], &mut |byte| {
        board::IN.with_borrow_mut(|line| line.push_back(byte));
    });

    let mut image = Image::new();
    while image.turn() {}

    let answer = board::OUT.take();
    let mut decoder = Decoder::new(RPC_ADDRESS);
    let answer = decoder.decode(&mut packet, &mut &answer[..]);
    let mut none = [0; MTU];
    let (_, event) = client.handle(answer.expect("a packet"), &mut none, Instant::START);
    let Some(Received::Completed(Status::OK, bytes)) = event.map(|event| event.received) else {
        panic!("{event:?}");
    };
    assert_eq!(State::decode(bytes).expect("a state").percent, 40);
}

#[test]
fn the_port_of_the_image_sends_a_frame() {
    assert_eq!(
        Uart.send(MTU + 1, &mut |_| panic!("no place")),
        Err(SendError::TooLarge)
    );
    let sent = Uart.send(4, &mut |place| {
        place[..4].copy_from_slice(b"ping");
        4
    });
    assert_eq!((sent, board::OUT.take().len()), (Ok(()), 12));
}
